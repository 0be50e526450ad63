//! What sandboxes may reach: the words of a person, and the gate that holds to them.

mod answers;
pub(crate) mod caller;
mod choice;
mod egress;
mod environment;
mod grants;
mod keeper;
mod mirrors;
mod refusal;
mod registries;
mod rule;
mod secret_info;
mod secret_use;
mod secrets;
mod words;

use std::path::PathBuf;
use std::process::ExitCode;

pub(crate) use choice::{HostChoice, act};
pub(crate) use egress::{GATE_MODE, GateEgress};
pub(crate) use grants::mirrors;
pub(crate) use keeper::{SecretKeeper, secret_value};
pub(crate) use mirrors::Mirrors;
pub(crate) use refusal::{by_hand, over_http};
pub(crate) use registries::GateRoute;
pub(crate) use rule::add as allow_host;
pub(crate) use secret_use::SecretUse;
pub(crate) use secrets::{KeptSecret, ORGANISATION, kept, secrets_are_there};
pub(crate) use words::{Words, of_session, shown, told, widen};

/// This program as the gate, until nobody needs it.
pub(crate) fn serve(mut args: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let dir = args.next().map(PathBuf::from).unwrap_or_default();
    match outrigger_gate::serve(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
