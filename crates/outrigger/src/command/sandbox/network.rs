//! What a sandbox made by hand may reach: said when it is made, opened before a command, kept
//! while somebody waits for it.
//!
//! The words stand in a file of the sandbox's name. Whoever makes a sandbox writes it before:
//! what an older one of that name might reach is not left to it.

use outrigger_engine::{Egress as _, EgressFlows, HostRules, NO_NETWORK, keeping};
use outrigger_sandbox::{Execute, Sandbox, SandboxId};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use super::context::SandboxContext;
use crate::command::finish::write;
use crate::compose::{self, Store};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Net;
use crate::network::{GateEgress, by_hand, secrets_are_there};
use crate::sandbox::no_network;
use crate::session::WHO;
use crate::show::{Screen, Tone, inert};

/// The way out of a sandbox, for one command.
pub(super) struct ExecNetwork {
    gate: GateEgress,
    id: SandboxId,
    backend: &'static str,
}

impl ExecNetwork {
    /// Opens what a sandbox may reach and tells the command of it; nothing where that is nothing.
    pub(super) async fn open(
        sandboxes: &SandboxContext,
        sandbox: &dyn Sandbox,
        request: &mut Execute,
    ) -> Outcome<Option<Self>> {
        let words = reachable(sandboxes, sandbox.id())?;
        if words.is_empty() || words == [NO_NETWORK] {
            return Ok(None);
        }
        let (store, gate) = gate(sandboxes).await?;
        let rules = HostRules::of_person(store.rules(&sandboxes.paths)?.in_force()?, WHO);
        let backend = sandboxes.backend_name.as_str();
        let opened = gate.open(sandbox, backend, &words, &rules).await;
        let opened = opened.map_err(|error| no_network(sandbox.id(), &error))?;
        // What was asked for goes before.
        for (name, value) in opened {
            request.env.entry(name).or_insert(value);
        }
        Ok(Some(Self { gate, id: sandbox.id().clone(), backend }))
    }

    /// Does the work of the command, and meanwhile keeps open what there is.
    pub(super) async fn during<T>(network: Option<&Self>, work: impl Future<Output = T>) -> T {
        match network {
            Some(it) => keeping(&it.gate, (&it.id, it.backend), work).await,
            None => work.await,
        }
    }

    /// Says what the command did not reach, and what would allow it.
    pub(super) async fn explain(&self, screen: &Screen) {
        let EgressFlows { flows, notes, .. } = self.gate.flows(&self.id).await;
        for text in flows.into_iter().filter_map(|flow| flow.refusal).chain(notes) {
            screen.note(Tone::Warning, inert(&text));
        }
    }
}

/// What a sandbox is to reach, if anything is to be said of that: one that is there keeps what it
/// has beside what is asked for, a new one reaches what the configuration says of sandboxes.
pub(super) async fn asked_for(
    sandboxes: &SandboxContext,
    id: &SandboxId,
    net: &Net,
) -> Outcome<Option<Vec<String>>> {
    let is_there = sandboxes.is_there(id).await?;
    let here = Path::new(".");
    let words = match (net.words()?, is_there) {
        (None, true) => return Ok(None),
        (None, false) => sandboxes.network.without_repository().settle_alone()?,
        (Some(words), true) => words.settle_over(&reachable(sandboxes, id)?, here)?,
        (Some(words), false) => {
            net.over(&sandboxes.network.without_repository(), &words).settle(here)?
        }
    };
    if !words.is_empty() {
        let store = compose::store(&sandboxes.paths).await?;
        secrets_are_there(&*store.database, &words).await?;
    }
    Ok(Some(words))
}

/// Lets a sandbox reach these. What is taken back is so at once; the next command opens the rest.
pub(super) async fn set(sandboxes: &SandboxContext, id: &SandboxId, words: &[String]) -> Outcome {
    let path = sandboxes.paths.sandbox_network(id.as_str());
    let had_some = path.exists();
    let done = match words {
        [] if !had_some => return Ok(()),
        [] => fs::remove_file(&path),
        words => write(&path, words.join("\n").as_bytes()),
    };
    done.map_err(|error| unkept(&path, &error))?;
    if had_some { end(sandboxes, id).await } else { Ok(()) }
}

/// What is open of a sandbox ends, until its next command.
pub(super) async fn close(sandboxes: &SandboxContext, id: &SandboxId) -> Outcome {
    let had_some = sandboxes.paths.sandbox_network(id.as_str()).exists();
    if had_some { end(sandboxes, id).await } else { Ok(()) }
}

async fn end(sandboxes: &SandboxContext, id: &SandboxId) -> Outcome {
    gate(sandboxes).await?.1.close(id).await;
    Ok(())
}

/// What a sandbox may reach, as it was settled when it was said.
pub(super) fn reachable(sandboxes: &SandboxContext, id: &SandboxId) -> Outcome<Vec<String>> {
    let path = sandboxes.paths.sandbox_network(id.as_str());
    match fs::read_to_string(&path) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(unkept(&path, &error)),
    }
}

async fn gate(sandboxes: &SandboxContext) -> Outcome<(Store, GateEgress)> {
    let store = compose::store(&sandboxes.paths).await?;
    let gate = compose::egress(&sandboxes.paths, &store, sandboxes.networks.clone())?;
    Ok((store, gate.advising(by_hand)))
}

fn unkept(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
}
