//! The wire contract of the server: requests, answers, streams, error codes.
//!
//! Owns what a client and a server say to each other over HTTP, and nothing of how either
//! does it. Fields are added, never renamed or removed; a client passes over kinds and fields
//! that it does not know. Must never depend on what the journal holds: the server converts.
//!
//! Times are milliseconds since 1970 in UTC, money is in billionths of a dollar.

#![forbid(unsafe_code)]

mod agent;
mod approval;
mod audit;
mod budget;
mod changes;
mod checkpoint;
mod egress;
mod entry;
mod event;
mod exec;
mod file;
mod journal;
pub mod limits;
mod login;
mod object;
mod problem;
mod proposal;
mod rule;
mod sandbox;
mod secret;
mod session;
mod share;
mod skill;
mod stream;
mod workspace;

pub use agent::{
    AgentDefinition, AgentInfo, AgentList, AgentSchedule, AgentSource, AgentWebhook,
    WebhookAccepted,
};
pub use approval::{
    AnswerApproval, ApprovalAnswer, ApprovalInfo, ApprovalList, ApprovalPreview, OutsideToolInfo,
};
pub use audit::AuditReport;
pub use budget::{
    AccountInfo, AccountLimits, AccountList, AccountPeriod, AccountStopInfo, ChangedAccount,
    MeasureInfo, SetAccount,
};
pub use changes::{
    AppliedChanges, ApplyChanges, ChangedFile, FileChangeKind, ReadObjects, WorkspaceChanges,
};
pub use checkpoint::{CheckpointInfo, CheckpointList, ForkSession, RewindSession};
pub use egress::{EgressInfo, EgressList};
pub use entry::{
    ChangedEntry, DerivedVersions, EntryBlame, EntryContent, EntryDiff, EntryHistory, EntryHit,
    EntryHits, EntryInfo, EntryLine, EntryList, EntryRedaction, EntryVersion, EntryVersionState,
    EntryVia, RedactEntry, RedactedEntry, RevertEntry, WriteEntry,
};
pub use event::{
    ApprovalKind, EffectKind, EffectOutcome, EventKind, EventList, HostFlow, MessageAuthor,
    PictureInfo, ReplyPart, SessionEvent, VerdictKind,
};
pub use exec::{
    ExecEnd, ExecInfo, ExecInput, ExecState, OutputFrame, RunCommand, SHELL_ENDED,
    TerminalDimensions,
};
pub use file::{FileContent, FileInfo, FileKind, FileList, MoveFile};
pub use journal::JournalPage;
pub use login::{
    AnswerLogin, BeginLogin, DeviceLogin, LoginAnswer, LoginProviderInfo, LoginRequest, LoginState,
    LoginWays, PollLogin,
};
pub use problem::{ProblemCode, ProblemDetails};
pub use proposal::{
    AnswerProposal, CommentProposal, ProposalAnswer, ProposalComment, ProposalDetails,
    ProposalInfo, ProposalList, ProposalStanding,
};
pub use rule::{
    EffectRules, ExplainRules, RuleInfo, RuleList, RuleSubject, RulesDecision, RulesExplanation,
    RulesSituation,
};
pub use sandbox::{
    CreateSandbox, ForkSandbox, SandboxFlow, SandboxFlowList, SandboxInfo, SandboxLimits,
    SandboxList, SandboxState, SetNetwork, SnapshotInfo, SnapshotList, SuspendDepth,
    SuspendSandbox, TakeSnapshot, TemplateInfo, TemplateList,
};
pub use secret::{RotateSecret, SecretGrant, SecretInfo, SecretList, SetSecret};
pub use session::{
    AttachedPicture, AttachedText, BusyAction, CancelSession, CreateSession, ResumeSession,
    SendMessage, ServerInfo, SessionGroup, SessionInfo, SessionLimits, SessionList, UsageInfo,
};
pub use share::{
    GroupInfo, PeopleList, PersonInfo, PresenceFrame, RemovedFrame, ServerRights, SessionRights,
    ShareAccess, ShareInfo,
};
pub use skill::{SkillInfo, SkillList, SkillStanding};
pub use stream::{LiveFrame, LiveKind};
pub use workspace::{SentWorkspace, TrustedContent, UploadedWorkspace};
