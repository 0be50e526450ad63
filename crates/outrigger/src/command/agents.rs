//! `outrigger agents`: which agents there are, and what each is.

use clap::Subcommand;
use outrigger_engine::path_of;
use outrigger_policy::{MemoryKind, MemoryScope, Owner};
use outrigger_store::entries::{
    Attribution, ChangeRequest, EntryFile, EntryPrecondition, Error, Submission,
};
use serde_json::json;
use std::io::Read;
use std::path::{Path, PathBuf};

use super::memory::MemoryContext;
use super::memory::edit::Written;
use crate::agents;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::session::now_ms;
use crate::show::{self, Screen, Tone, inert};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Agents {
    /// List the agents that can be started: your own, those of your groups, of the organisation
    /// and of the configuration.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Keep an agent, or another version of one that there is. `outrigger memory history` shows
    /// the versions of its path, and `outrigger memory rm` removes it.
    Set {
        /// Its name: 1 to 32 characters of a-z 0-9 -.
        name: String,
        /// A file that says in TOML what it is, or `-` for standard input.
        file: PathBuf,
        /// Whose it is: `user`, `organisation`, or the name of a group.
        #[arg(long, value_name = "SCOPE", default_value = "user")]
        to: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Agents {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output } | Self::Set { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Agents) -> Outcome<u8> {
    let memory = MemoryContext::open(paths, asked.output()).await?;
    match asked {
        Agents::Ls { .. } => list(paths, &memory).await?,
        Agents::Set { name, file, to, .. } => set(&memory, &name, &file, &to).await?,
    }
    Ok(0)
}

async fn list(paths: &Paths, memory: &MemoryContext) -> Outcome {
    let mut rows = Vec::new();
    for memory_scope in memory.scope.memory_scopes(MemoryKind::Agents) {
        let found = agents::stored(&*memory.entries, &memory.scope, &memory_scope).await;
        for stored in found.map_err(|error| agents::failed(&error))? {
            let what = stored.definition().map(|it| it.description.unwrap_or_default());
            rows.push((stored.name.clone(), path_of(&stored.place), what));
        }
    }
    let config = Config::of_files(paths.configs())?;
    let configured = config.agents.all().iter().map(|(name, file)| {
        (name.clone(), "configuration".to_owned(), Ok(file.description.clone().unwrap_or_default()))
    });
    rows.extend(configured);
    let lines = rows.into_iter().map(|(name, place, what)| AgentLine { name, place, what });
    print_agents(&lines.collect::<Vec<_>>(), memory.output)
}

/// An agent in a list.
pub(super) struct AgentLine {
    pub(super) name: String,
    /// Where it is kept, as sessions see it, or `configuration`.
    pub(super) place: String,
    /// What it is for, or why it can't be started.
    pub(super) what: Result<String, String>,
}

pub(super) fn print_agents(agents: &[AgentLine], output: Output) -> Outcome {
    if output.json.is_some() {
        let data: Vec<_> = agents
            .iter()
            .map(|AgentLine { name, place, what }| {
                let (description, problem) = (what.as_ref().ok(), what.as_ref().err());
                json!({ "name": name, "place": place, "description": description, "problem": problem })
            })
            .collect();
        return show::line(&json!({ "type": "agents", "agents": data }));
    }
    for AgentLine { name, place, what } in agents {
        let (Ok(text) | Err(text)) = what;
        show::row(&inert(&format!("{name:<32}  {place:<44}  {text}")))?;
    }
    if agents.is_empty() {
        let text = "there is no agent yet: `outrigger agents set NAME FILE`";
        Screen::new(output).note(Tone::Detail, text);
    }
    Ok(())
}

async fn set(memory: &MemoryContext, name: &str, file: &Path, to: &str) -> Outcome {
    let kind = MemoryKind::Agents;
    let owner =
        memory.scope.memory_scopes(kind).into_iter().map(|it| it.owner).find(|owner| match owner {
            Owner::Person(_) => to == "user",
            Owner::Organisation(_) => to == "organisation",
            Owner::Group(name) => to == name,
        });
    let owner = owner.ok_or_else(|| {
        let text = format!("--to {to}: it is `user`, `organisation`, or a group that you are in");
        Failure::new(Kind::NotFound, text)
    })?;
    let at = agents::place(MemoryScope { kind, owner }, name)?;
    let text = read(file)?;
    agents::definition(&file.display().to_string(), &text)?;
    let expected = match memory.entries.stat(&memory.scope, &at).await {
        Ok(before) => EntryPrecondition::Revision(before.revision),
        Err(Error::Absent) => EntryPrecondition::Absent,
        Err(error) => return Err(memory.failed(&at, error)),
    };
    let change = ChangeRequest::Write { at: at.clone(), expected, file: EntryFile::of(text) };
    let done = memory.submit(change, Attribution::person(now_ms())).await;
    let kept = match done.map_err(|error| memory.failed(&at, error))? {
        Submission::Changed(made) => {
            Written::Revision(made.version().map_or(0, |version| version.revision))
        }
        Submission::Proposed(id) => Written::Proposed(id.0),
    };
    told(name, &path_of(&at), kept, memory.output)
}

/// Says what became of a definition.
pub(super) fn told(name: &str, path: &str, kept: Written, output: Output) -> Outcome {
    let (said, next) = match kept {
        Written::Revision(revision) => (
            format!("● {name} is kept as {path} (r{revision})"),
            format!("  `outrigger run --agent {name}` starts it"),
        ),
        Written::Proposed(number) => (
            format!("● {name} is proposed: `outrigger memory proposals show {number}`"),
            "  it is there once somebody accepts it".to_owned(),
        ),
        Written::Conflict => {
            let text = format!("{path} was changed meanwhile");
            return Err(
                Failure::new(Kind::Conflict, text).hint("The same command again writes it.")
            );
        }
    };
    let screen = Screen::new(output);
    screen.note(Tone::Good, &said);
    screen.note(Tone::Detail, next);
    if output.json.is_some() {
        show::line(&json!({ "type": "agent", "name": name, "path": path }))?;
    }
    Ok(())
}

/// What a file or standard input says.
pub(super) fn read(file: &Path) -> Outcome<String> {
    let mut text = String::new();
    let read = match file.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(file).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map_err(|error| Failure::new(Kind::NotFound, format!("{}: {error}", file.display())))?;
    Ok(text)
}
