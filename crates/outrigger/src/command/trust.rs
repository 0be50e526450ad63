//! `outrigger trust`: which files of a repository guide its agents, because a person says so.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::{self, Screen, Tone, inert, word};
use crate::trust::{self, JudgedFile, Standing, TrustAnswer, TrustDecision, TrustRecord};
use crate::{image, limits, workspace};

/// Look at the files by which a repository speaks to agents, and say whether they are trusted.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Trust {
    #[command(subcommand)]
    verb: Option<TrustVerb>,
    /// The directory, as it would be given to `outrigger run`.
    #[arg(long, default_value = ".", value_name = "DIR")]
    dir: PathBuf,
    /// Also this `devcontainer.json` or Dockerfile, by its path in the directory, as it would be
    /// given to `outrigger run --image`.
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Trust what is there as it is, without asking.
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// The verbs.
#[derive(Debug, Subcommand)]
enum TrustVerb {
    /// List what was trusted or declined, in all directories.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Forget what was said of the files of a directory: they are asked about again.
    Rm {
        /// The file; all of the directory, if none is named.
        file: Option<String>,
        /// The directory.
        #[arg(long, default_value = ".", value_name = "DIR")]
        dir: PathBuf,
        #[command(flatten)]
        output: Output,
    },
}

impl Trust {
    pub(crate) fn output(&self) -> Output {
        match &self.verb {
            Some(TrustVerb::Ls { output } | TrustVerb::Rm { output, .. }) => *output,
            None => self.output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Trust) -> Outcome<u8> {
    match asked.verb {
        None => look(paths, asked).await,
        Some(TrustVerb::Ls { output }) => ls(paths, output),
        Some(TrustVerb::Rm { file, dir, output }) => rm(paths, &dir, file.as_deref(), output),
    }
}

/// Shows what there is, and asks whether it is trusted.
async fn look(paths: &Paths, asked: Trust) -> Outcome<u8> {
    let Trust { dir, image, yes, output, .. } = asked;
    let dir = std::fs::canonicalize(&dir).map_err(|error| {
        Failure::new(Kind::NotFound, format!("{}: {error}", dir.display()))
            .hint("Name a directory that is there with --dir.")
    })?;
    let screen = Screen::new(output);
    let tree = workspace::tree(&dir)?;
    let dir = tree.top.clone();
    let mut files = ProjectFile::all(&tree);
    if let Some(path) = image {
        files.extend(image::files(&tree, &path)?);
    }
    let mut all = trust::judge(paths, &dir, files)?;
    for judged in &mut all {
        if output.json.is_none() {
            show_file(judged)?;
        }
        let wanted = !matches!(judged.standing, Standing::Trusted | Standing::Oversized);
        let answer = match (wanted, yes) {
            (false, _) => None,
            (true, true) => Some(TrustAnswer::Trusted),
            (true, false) if screen.can_ask() => {
                screen.forget_lines().await;
                let question = format!("Trust {} as it is?", inert(&judged.file.name));
                let is_trusted = screen.ask(&question).await?;
                Some(if is_trusted { TrustAnswer::Trusted } else { TrustAnswer::Declined })
            }
            (true, false) => None,
        };
        if let Some(answer) = answer {
            trust::decide(paths, &dir, judged, answer)?;
            let (mark, tone) = match answer {
                TrustAnswer::Trusted => ("●", Tone::Good),
                TrustAnswer::Declined => ("!", Tone::Warning),
            };
            let (name, what) = (inert(&judged.file.name), answer.as_str());
            screen.note(tone, format!("{mark} {what}: {name}, sha256 {}", judged.file.digest));
        }
    }
    if all.is_empty() {
        screen.note(
            Tone::Detail,
            "nothing there speaks to agents: AGENTS.md, CLAUDE.md and .mcp.json would",
        );
    }
    if output.json.is_some() {
        let files: Vec<Value> = all.iter().map(object).collect();
        show::line(&json!({ "type": "trust", "dir": dir.display().to_string(), "files": files }))?;
    }
    answered(&dir, &all)
}

/// An error where something waits for a person whom nobody could ask.
fn answered(dir: &Path, all: &[JudgedFile]) -> Outcome<u8> {
    let open: Vec<String> = all
        .iter()
        .filter(|judged| judged.standing.is_open())
        .map(|judged| inert(&judged.file.name))
        .collect();
    if open.is_empty() {
        return Ok(0);
    }
    let text = format!("nobody said yet whether to trust {}", open.join(" and "));
    let dir = word(&dir.display().to_string());
    Err(Failure::new(Kind::WaitsForApproval, text)
        .hint(format!("`outrigger trust --dir {dir}` asks on a terminal; with --yes it trusts what is there, unasked.")))
}

/// All of a file, and how it stands.
fn show_file(judged: &JudgedFile) -> Outcome {
    let (name, standing) = (inert(&judged.file.name), judged.standing.as_str());
    show::out(&format!("{name}  {standing}  sha256 {}", judged.file.digest))?;
    let (text, effects) = (trust::lines(judged), trust::effects(judged));
    text.iter().chain(&effects).try_for_each(|line| show::out(line))
}

fn object(judged: &JudgedFile) -> Value {
    let file = &judged.file;
    json!({
        "file": inert(&file.name),
        "status": judged.standing.as_str(),
        "sha256": file.digest.as_str(),
        "text": file.text,
    })
}

fn ls(paths: &Paths, output: Output) -> Outcome<u8> {
    let all = trust::all(paths)?;
    if output.json.is_some() {
        show::line(&json!({ "type": "trust", "directories": all }))?;
        return Ok(0);
    }
    let rows = all.iter().flat_map(|TrustRecord { dir, files }| {
        let of_file = move |(name, file): (&String, &trust::FileTrust)| {
            let row = |said: &TrustDecision| {
                let digest: String =
                    said.sha256.as_str().chars().take(limits::SEEN_CHARS).collect();
                let (answer, when) = (said.answer.as_str(), show::when(said.at_ms));
                format!("{answer:<8}  {when}  {}  {}  {digest}", inert(name), inert(dir))
            };
            file.decisions.iter().map(row).collect::<Vec<_>>()
        };
        files.iter().flat_map(of_file).collect::<Vec<_>>()
    });
    let rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        let text = "nothing was trusted yet: see `outrigger trust --help`";
        Screen::new(output).note(Tone::Detail, text);
    }
    rows.iter().try_for_each(|text| show::row(text))?;
    Ok(0)
}

fn rm(paths: &Paths, dir: &Path, file: Option<&str>, output: Output) -> Outcome<u8> {
    // One that is gone is forgotten by the name that it had.
    let dir = std::fs::canonicalize(dir).or_else(|_| std::path::absolute(dir));
    let dir = dir.map_err(|error| Failure::from_error(Kind::NotFound, &error))?;
    // Of a part of a repository it is the whole that speaks; what is gone speaks for itself.
    let dir = workspace::tree(&dir).map_or(dir, |tree| tree.top);
    let mut forgotten = Vec::new();
    trust::change(paths, &dir, |record| {
        record.files.retain(|name, _| {
            let is_meant = file.is_none_or(|file| file == name);
            forgotten.extend(is_meant.then(|| name.clone()));
            !is_meant
        });
        if forgotten.is_empty() {
            let text = format!("nothing was said of {} there", file.unwrap_or("any file"));
            return Err(Failure::new(Kind::NotFound, text)
                .hint("`outrigger trust ls` lists what was said of which file."));
        }
        Ok(())
    })?;
    let names: Vec<String> = forgotten.iter().map(|name| inert(name)).collect();
    Screen::new(output).note(Tone::Good, format!("● forgotten: {}", names.join(", ")));
    if output.json.is_some() {
        show::line(
            &json!({ "type": "forgotten", "dir": dir.display().to_string(), "files": forgotten }),
        )?;
    }
    Ok(0)
}
