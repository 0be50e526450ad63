//! The server: HTTP, streams and the page, in handlers of a few lines.
//!
//! Owns who is let in, how journals become what `outrigger_api` says, and how followers hear
//! of events in order. What opens and drives sessions is handed in as a [`SessionHost`], what looks into
//! their sandboxes as [`SessionDisks`], what makes sandboxes of people as [`SandboxHost`]. Must
//! never decide what a person may do to an effect (that is `policy`, asked by `engine`), and
//! never perform one.
//!
//! Read first: [`Server`], [`SessionHost`], `router.rs`.

#![forbid(unsafe_code)]

mod access;
mod admission;
mod agent_catalog;
mod agents;
mod approvals;
mod audit;
mod budgets;
mod changes;
mod checkpoints;
mod convert;
mod counters;
mod device;
mod device_logins;
mod disks;
mod egress;
mod egress_index;
mod error;
mod events;
mod files;
mod follow;
mod headers;
mod host;
mod hub;
mod input;
mod journal;
pub mod limits;
mod listing;
mod login;
mod login_provider;
mod memory;
mod metrics;
mod observer;
mod page;
mod parts;
mod people;
mod pictures;
mod presence;
mod problems;
mod proposals;
mod redaction;
mod request_keys;
mod requests;
mod router;
mod rules;
mod sandbox_host;
mod sandboxes;
mod secret_store;
mod secrets;
mod server;
mod serving;
mod sessions;
mod sign_in;
mod skill_catalog;
mod skills;
mod span_metrics;
mod traces;
mod workspaces;

pub use agent_catalog::{AgentCatalog, HeaderMap, WebhookMessage};
pub use budgets::account_stop;
pub use convert::entry as entries;
pub use convert::{OF_BUDGET, approval, approval_id, when_busy};
pub use disks::{FilePreview, SessionChanges, SessionDisks, TakenChanges};
pub use error::RequestError;
pub use host::{SessionHost, Upload, UploadHost};
pub use login::{NewKey, new_key};
pub use login_provider::{LoginProvider, ProviderAnswer, ProviderLogin};
pub use observer::{AnsweredRequest, ExportCounts, Observer};
pub use parts::{Origins, Services};
pub use router::openapi;
pub use sandbox_host::{NotedFlow, SandboxEgress, SandboxHost, SnapshotStore};
pub use sandboxes::files::file_info;
pub use secret_store::SecretStore;
pub use server::Server;
pub use serving::serve;
pub use sessions::session_name;
pub use skill_catalog::SkillCatalog;
