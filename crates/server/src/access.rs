//! Who may do what in which session: what somebody may not see does not exist for them.

use outrigger_agent::{Seq, SessionId};
use outrigger_api::{ProblemCode, SessionInfo, SessionRights};
use outrigger_policy::{AccessAction, AccessRights, SessionStanding};
use std::sync::Arc;

use crate::convert::{standing_in, standing_of};
use crate::login::Person;
use crate::{RequestError, Server};

impl Server {
    /// All that a person may do, by the rules and the people of now.
    pub(crate) fn rights(&self, person: &Person) -> Result<Arc<AccessRights>, RequestError> {
        Ok(self.parts.host.access()?.rights(&person.name))
    }

    /// A session in which a person may do something. One that they may not see is none.
    pub(crate) async fn session(
        &self,
        person: &Person,
        name: &str,
        action: AccessAction,
    ) -> Result<SessionId, RequestError> {
        let unknown = || RequestError::not_found(format!("there is no session `{name}`"));
        let id = SessionId::new(name).ok_or_else(unknown)?;
        let rights = self.rights(person)?;
        let standing = self.standing(&rights, &id).await?.ok_or_else(unknown)?;
        if !rights.permit(AccessAction::View, standing) {
            return Err(unknown());
        }
        if rights.permit(action, standing) { Ok(id) } else { Err(denied(action)) }
    }

    /// How somebody stands to a session, or to the one that it is a subagent of; nothing where
    /// there is none.
    pub(crate) async fn standing(
        &self,
        rights: &AccessRights,
        session: &SessionId,
    ) -> Result<Option<SessionStanding>, RequestError> {
        // It may have been removed since it was looked at.
        if self.parts.journal.head(session).await? == Seq(0) {
            return Ok(None);
        }
        let root = session.root();
        let known = self.listing.owner(&root);
        if let Some(SessionStanding::Owner) = known.map(|owner| rights.standing(&owner, [])) {
            return Ok(Some(SessionStanding::Owner));
        }
        Ok(Some(standing_in(rights, &self.parts.engine.state(&root).await?)))
    }

    /// An error unless a person may do what is done in no session.
    pub(crate) fn permit(&self, person: &Person, action: AccessAction) -> Result<(), RequestError> {
        let may = self.rights(person)?.permit_anywhere(action);
        if may { Ok(()) } else { Err(denied(action)) }
    }

    /// A session as it stands now, told to a person who may see it.
    pub(crate) async fn shown(
        &self,
        person: &Person,
        session: &SessionId,
    ) -> Result<SessionInfo, RequestError> {
        let info = self.listing.one(&self.parts, session).await?;
        let told = self.told(&*self.rights(person)?, &info).await?;
        told.ok_or_else(|| RequestError::not_found(format!("there is no session `{session}`")))
    }

    /// A session as it is told to somebody; nothing where they may not see it.
    pub(crate) async fn told(
        &self,
        rights: &AccessRights,
        info: &SessionInfo,
    ) -> Result<Option<SessionInfo>, RequestError> {
        let above = info.parent.as_ref().and_then(|_| SessionId::new(&info.id));
        let standing = match above {
            Some(child) => self.standing(rights, &child).await?.unwrap_or(SessionStanding::None),
            None => standing_of(rights, info),
        };
        if !rights.permit(AccessAction::View, standing) {
            return Ok(None);
        }
        let may = |action| rights.permit(action, standing);
        let rights = SessionRights {
            speak: may(AccessAction::Speak),
            manage: may(AccessAction::Manage),
            remove: may(AccessAction::Remove),
            answer: may(AccessAction::Answer),
        };
        Ok(Some(SessionInfo { rights, ..info.clone() }))
    }
}

pub(crate) fn denied(action: AccessAction) -> RequestError {
    let what = match action {
        AccessAction::View => "see this",
        AccessAction::Speak => "speak in this session",
        AccessAction::Answer => "answer what this session asks",
        AccessAction::Manage => "write back, fork, take back, end or share this, nor drive it",
        AccessAction::Remove => "remove this session",
        AccessAction::Start => "begin sessions or make sandboxes",
        AccessAction::WriteMemory => "change memory",
        AccessAction::Administer => "administer this: secrets, and what may be spent",
    };
    let hint = match action {
        AccessAction::Speak | AccessAction::Answer => {
            "Whose session it is can share it, to take part."
        }
        AccessAction::View | AccessAction::Manage => "Ask the person whose it is.",
        AccessAction::Remove => {
            "Whose session it is can, unless the rules of access keep everything here."
        }
        AccessAction::Start | AccessAction::WriteMemory | AccessAction::Administer => {
            "Roles are groups of `policy.people`: ask who runs this server."
        }
    };
    RequestError::new(ProblemCode::Denied, format!("you may not {what}")).hint(hint)
}
