//! Who may do what with which sandbox and which snapshot.

use outrigger_api::ProblemCode;
use outrigger_policy::{AccessAction, AccessRights, SessionStanding};
use outrigger_sandbox::{ExecId, Execute, Sandbox, SandboxId, SnapshotId};
use std::sync::Arc;

use super::command::of_another_life;
use crate::access::denied;
use crate::budgets::check_stopped;
use crate::login::Person;
use crate::{RequestError, Server};

/// What somebody wants of a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SandboxUse {
    /// To know that it is there.
    List,
    /// To see its files, and what its commands wrote.
    Look,
    /// To run commands in it and to change its files.
    Drive,
    /// To suspend or to remove it.
    Keep,
}

/// How a person stands to what is somebody's.
fn standing(rights: &AccessRights, owner: &str) -> SessionStanding {
    rights.standing(owner, [])
}

/// Whether a person may do that with what is somebody's. Who administers the organisation sees
/// that it is there, and takes it away.
pub(crate) fn may(rights: &AccessRights, owner: &str, what: SandboxUse) -> bool {
    let permitted = |action| rights.permit(action, standing(rights, owner));
    let administers = rights.permit_anywhere(AccessAction::Administer);
    match what {
        SandboxUse::List => permitted(AccessAction::View) || administers,
        SandboxUse::Look => permitted(AccessAction::View),
        SandboxUse::Drive => permitted(AccessAction::Manage),
        SandboxUse::Keep => permitted(AccessAction::Manage) || administers,
    }
}

impl Server {
    /// A sandbox with which a person may do that. One that they may not see is none.
    pub(crate) fn sandbox(
        &self,
        person: &Person,
        name: &str,
        what: SandboxUse,
    ) -> Result<SandboxId, RequestError> {
        let unknown = || RequestError::not_found(format!("there is no sandbox `{name}`"));
        let id = SandboxId::new(name).map_err(|_| unknown())?;
        let owner = self.parts.sandboxes.owner(&id).ok_or_else(unknown)?;
        self.judge(person, &owner, what, unknown)?;
        Ok(id)
    }

    /// Refuses what a person may not do with what is somebody's; what they may not see is unknown.
    fn judge(
        &self,
        person: &Person,
        owner: &str,
        what: SandboxUse,
        unknown: impl Fn() -> RequestError,
    ) -> Result<(), RequestError> {
        let rights = self.rights(person)?;
        if !may(&rights, owner, SandboxUse::List) {
            return Err(unknown());
        }
        if may(&rights, owner, what) {
            return Ok(());
        }
        let action =
            if what == SandboxUse::Look { AccessAction::View } else { AccessAction::Manage };
        Err(denied(action))
    }

    /// The error of a command, also where its sandbox was removed meanwhile: no attempt more
    /// helps then.
    pub(crate) fn ended_by(&self, error: RequestError, id: &SandboxId) -> RequestError {
        let is_gone = self.parts.sandboxes.owner(id).is_none();
        if error.code == ProblemCode::SandboxUnavailable && is_gone {
            return RequestError::not_found(format!("sandbox `{id}` was removed"));
        }
        error
    }

    /// A sandbox with which a person may do that, to be used.
    pub(crate) async fn opened(
        &self,
        person: &Person,
        name: &str,
        what: SandboxUse,
    ) -> Result<Arc<dyn Sandbox>, RequestError> {
        let id = self.sandbox(person, name, what)?;
        self.parts.sandboxes.open(&id).await
    }

    /// Lets a command of somebody reach what its sandbox does, if anything may begin for them.
    /// Before it is waited for: it has not begun yet.
    pub(crate) async fn connect(
        &self,
        person: &Person,
        sandbox: &dyn Sandbox,
        request: &mut Execute,
    ) -> Result<(), RequestError> {
        check_stopped(self, person).await?;
        // What was asked for goes before.
        for (name, value) in self.parts.sandbox_egress.variables(sandbox).await? {
            request.env.entry(name).or_insert(value);
        }
        Ok(())
    }

    /// A sandbox that has a command of that name, in the life in which it was begun.
    pub(crate) async fn with_exec(
        &self,
        person: &Person,
        (sandbox, exec): (&str, &str),
        what: SandboxUse,
    ) -> Result<(Arc<dyn Sandbox>, ExecId), RequestError> {
        let id = self.sandbox(person, sandbox, what)?;
        let unknown = || RequestError::not_found(format!("there is no command `{exec}`"));
        let exec = ExecId::new(exec).map_err(|_| unknown())?;
        let life = self.parts.sandboxes.exec_life(&id, &exec, None)?.ok_or_else(unknown)?;
        let opened = self.parts.sandboxes.open(&id).await?;
        if *opened.generation() != life {
            return Err(of_another_life(&exec));
        }
        Ok((opened, exec))
    }

    /// A snapshot with which a person may do that. Any other is none.
    pub(crate) fn snapshot(
        &self,
        person: &Person,
        name: &str,
        what: SandboxUse,
    ) -> Result<SnapshotId, RequestError> {
        let unknown = || RequestError::not_found(format!("there is no snapshot `{name}`"));
        let id = SnapshotId::new(name).map_err(|_| unknown())?;
        let owner = self.parts.snapshots.snapshot_owner(&id).ok_or_else(unknown)?;
        self.judge(person, &owner, what, unknown)?;
        Ok(id)
    }
}
