//! With whom sessions are shared, and how somebody stands to one.

use outrigger_agent::{SharedAccess, State};
use outrigger_api::{SessionInfo, ShareAccess, ShareInfo};
use outrigger_policy::{AccessRights, SessionStanding};

/// How somebody stands to a session that is no subagent's.
pub(crate) fn standing_of(rights: &AccessRights, info: &SessionInfo) -> SessionStanding {
    let shares = info.shares.iter().map(|share| (share.with.as_str(), standing(share.access)));
    rights.standing(&info.person, shares)
}

/// How somebody stands to a session, as its journal says.
pub(crate) fn standing_in(rights: &AccessRights, state: &State) -> SessionStanding {
    let owner = state.spec().map_or("", |spec| &spec.principal);
    let shares = state.shares().iter();
    rights
        .standing(owner, shares.map(|(with, access)| (with.as_str(), standing(access_of(*access)))))
}

/// With whom a session is shared.
pub(super) fn shares(state: &State) -> Vec<ShareInfo> {
    let shares = state.shares().iter();
    shares
        .map(|(with, access)| ShareInfo { with: with.clone(), access: access_of(*access) })
        .collect()
}

pub(super) fn access_of(access: SharedAccess) -> ShareAccess {
    match access {
        SharedAccess::None => ShareAccess::None,
        SharedAccess::Read => ShareAccess::Read,
        SharedAccess::TakePart => ShareAccess::TakePart,
    }
}

/// What is asked for, as the journal has it.
pub(crate) fn shared(access: ShareAccess) -> SharedAccess {
    match access {
        ShareAccess::None => SharedAccess::None,
        ShareAccess::Read => SharedAccess::Read,
        ShareAccess::TakePart => SharedAccess::TakePart,
    }
}

fn standing(access: ShareAccess) -> SessionStanding {
    match access {
        ShareAccess::None => SessionStanding::None,
        ShareAccess::Read => SessionStanding::Read,
        ShareAccess::TakePart => SessionStanding::TakePart,
    }
}
