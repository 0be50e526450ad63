//! `outrigger audit`: checks what is stored, signs it, and proves single events.

use clap::{Args, Subcommand};
use outrigger_agent::{Seq, SessionId};
use outrigger_audit::{
    ExternalCheckpoint, Proof, ProofFault, Report, VerificationProgress, VerifyingKey,
    verifying_key,
};
use outrigger_store::{AuditRequest, EventText};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, count, inert};
use crate::{compose, limits, session};

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Audit {
    /// Check everything that is stored against its hashes and the signed log. Offline,
    /// and changes nothing. Exits with 16 if something is not as it was written.
    Verify(Verify),
    /// Cover everything with a signed checkpoint, and print it: whoever keeps it can
    /// show later that nothing before it was changed.
    Checkpoint {
        /// Write it there instead. A checkpoint that is there already must be one that the
        /// log continues; else it stays, and this exits with 16.
        #[arg(long = "to", visible_alias = "out", value_name = "FILE")]
        out: Option<PathBuf>,
        /// Print the verifying key instead of the checkpoint, or after `--to`.
        #[arg(long)]
        key: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Prove that an event is in the log: a file that is checked with nothing else at
    /// hand. It carries this event whole, and no other one.
    Prove {
        /// The session, or the beginning of its name.
        session: String,
        /// The event; the last one that a checkpoint covers, if none is named.
        #[arg(value_parser = clap::value_parser!(u64).range(1..))]
        seq: Option<u64>,
        /// Write it there instead of on standard output.
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
        /// Leave the event's text out; its digest stays.
        #[arg(long)]
        without_text: bool,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Only this session, or the one whose name begins so; and the log.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// A checkpoint that somebody kept: the log must continue it. Can be given again.
    #[arg(long, value_name = "FILE")]
    pub(crate) against: Vec<PathBuf>,
    /// Check this proof instead. No database is read.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["session", "against"])]
    pub(crate) proof: Option<PathBuf>,
    /// The verifying key that must have signed, or a file with it, instead of the one
    /// beside the database or in the proof.
    #[arg(long, value_name = "KEY")]
    pub(crate) key: Option<String>,
    #[command(flatten)]
    pub(crate) output: Output,
}

impl Audit {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Verify(verify) => verify.output,
            Self::Checkpoint { output, .. } | Self::Prove { output, .. } => *output,
        }
    }
}

pub(crate) async fn execute(paths: &Paths, asked: Audit) -> Outcome<u8> {
    match asked {
        Audit::Verify(Verify { proof: Some(file), key, output, .. }) => {
            check_proof(&file, key.as_deref(), output)
        }
        Audit::Verify(asked) => verify(paths, asked).await,
        Audit::Checkpoint { out, key, output } => {
            checkpoint(paths, out.as_deref(), key.then_some(Print::Key), output).await
        }
        Audit::Prove { session, seq, out, without_text, output } => {
            let text = if without_text { EventText::LeftOut } else { EventText::Included };
            let audit = outrigger_store::Audit::open(paths.harness(), paths.database()).await?;
            let session = find(paths, &audit, &session).await?;
            let proof = audit.prove(&session, seq.map(Seq), text).await.map_err(uncovered)?;
            prove(&proof, out.as_deref(), output)
        }
    }
}

async fn verify(paths: &Paths, asked: Verify) -> Outcome<u8> {
    let audit = outrigger_store::Audit::open(paths.harness(), paths.database()).await?;
    let session = match &asked.session {
        Some(name) => Some(find(paths, &audit, name).await?),
        None => None,
    };
    let outside = |path: &PathBuf| {
        let name = path.display().to_string();
        read(path, limits::CHECKPOINT_BYTES_MAX).map(|note| ExternalCheckpoint { name, note })
    };
    let against = asked.against.iter().map(outside).collect::<Outcome<_>>()?;
    let key = asked.key.as_deref().map(key).transpose()?;
    let (progress, mut screen) =
        (Arc::new(VerificationProgress::default()), Screen::on_stdout(asked.output));
    let what = || {
        let (sessions, done, events) = progress.now();
        format!("checking · {done} of {} · {}", count(sessions, "session"), count(events, "event"))
    };
    let wanted = AuditRequest { session, against, key };
    let report = screen.watching(what, audit.verify(&wanted, &progress)).await?;
    tell(&report, &screen)?;
    let faults = report.faults.len() as u64 + report.faults_left_out;
    if report.is_clean() {
        return Ok(0);
    }
    if screen.is_json() {
        // The report says all of it.
        return Ok(Kind::AuditFailed as u8);
    }
    Err(not_as_written(faults))
}

/// The error where something is not as it was written.
pub(super) fn not_as_written(faults: u64) -> Failure {
    let places = count(faults, "place");
    Failure::new(Kind::AuditFailed, format!("{places} not as written")).hint(
        "Keep the data directory as it is, and compare it with a backup: docs/how-to/audit.md.",
    )
}

fn tell(report: &Report, screen: &Screen) -> Outcome {
    if screen.is_json() {
        let mut object = json!({ "type": "audit", "ok": report.is_clean() });
        let fields = serde_json::to_value(report).expect("a report is plain data");
        for (name, value) in fields.as_object().into_iter().flatten() {
            object[name] = value.clone();
        }
        return show::line(&object);
    }
    for fault in &report.faults {
        screen.note(Tone::Error, format!("✗ {}", inert(&fault.to_string())));
    }
    if report.faults_left_out > 0 {
        screen.note(Tone::Error, format!("✗ and {} more", report.faults_left_out));
    }
    let Report { sessions, events, entries, uncovered, .. } = report;
    let read = format!("{} with {} read", count(*sessions, "session"), count(*events, "event"));
    let tone = if report.is_clean() { Tone::Good } else { Tone::Plain };
    let entries = format!("{entries} {}", if *entries == 1 { "entry" } else { "entries" });
    screen.note(tone, format!("{read}; {entries} of the log"));
    if *uncovered > 0 {
        let text = format!("{} not covered by a checkpoint yet", count(*uncovered, "event"));
        screen.note(Tone::Detail, text);
    }
    Ok(())
}

/// What is printed instead of a checkpoint.
#[derive(Debug, Clone, Copy)]
enum Print {
    Key,
}

async fn checkpoint(
    paths: &Paths,
    out: Option<&Path>,
    instead: Option<Print>,
    output: Output,
) -> Outcome<u8> {
    // A store is not made for the sake of a checkpoint.
    let audit = outrigger_store::Audit::open(paths.harness(), paths.database()).await?;
    if let Some(path) = out {
        continues(&audit, path).await?;
    }
    let store = compose::database(paths).await?;
    let made = store.checkpoint().await;
    store.close().await;
    let note = made?;
    let key = verifying_key(paths.harness()).map_err(outrigger_store::Error::from)?;
    let key = key.ok_or_else(|| Failure::new(Kind::Storage, "audit/key.pub is missing"))?;
    if let Some(path) = out {
        replace(path, &note)?;
    }
    if output.json.is_some() {
        show::line(&json!({
            "type": "checkpoint",
            "checkpoint": note,
            "key": key.as_str(),
            "out": out.map(|path| path.display().to_string()),
        }))?;
        return Ok(0);
    }
    match (instead, out) {
        (Some(Print::Key), _) => show::out(key.as_str())?,
        (None, Some(_)) => {}
        (None, None) => show::out(note.trim_end())?,
    }
    Ok(0)
}

/// Refuses to replace a checkpoint that the log does not continue: it is the evidence.
async fn continues(audit: &outrigger_store::Audit, path: &Path) -> Outcome {
    // A pipe or a device has nothing to be compared with.
    if !fs::metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0) {
        return Ok(());
    }
    let note = read(path, limits::CHECKPOINT_BYTES_MAX)?;
    let kept = ExternalCheckpoint { name: path.display().to_string(), note };
    match audit.contradicts(&kept).await? {
        None => Ok(()),
        Some(fault) => Err(Failure::new(Kind::AuditFailed, fault.to_string())
            .hint("It was left as it is. Keep it and the data directory: docs/how-to/audit.md.")),
    }
}

/// Writes a file as a whole: whoever kept the one before never has half of another.
fn replace(path: &Path, text: &str) -> Outcome {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return write(path, text);
    }
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    write(Path::new(&new), text)?;
    fs::rename(&new, path)
        .map_err(|error| Failure::new(Kind::Storage, format!("{}: {error}", path.display())))
}

fn prove(proof: &Proof, out: Option<&Path>, output: Output) -> Outcome<u8> {
    let text = proof.to_text();
    match out {
        Some(path) => write(path, &text)?,
        None if output.json.is_none() => show::out(text.trim_end())?,
        None => {}
    }
    if output.json.is_some() {
        let object = match out {
            Some(path) => json!({ "type": "proof", "out": path.display().to_string() }),
            None => json!({ "type": "proof", "proof": proof }),
        };
        show::line(&object)?;
    }
    Ok(0)
}

fn check_proof(file: &Path, expected: Option<&str>, output: Output) -> Outcome<u8> {
    let text = read(file, outrigger_audit::limits::PROOF_BYTES_MAX)?;
    let known = expected.map(key).transpose()?;
    let fault = |fault: ProofFault| {
        let failure = Failure::from_error(Kind::AuditFailed, &fault);
        let message = format!("{}: {}", file.display(), failure.message);
        Failure::new(Kind::AuditFailed, message)
    };
    let proof = Proof::parse(&text).map_err(fault)?;
    let proved = proof.check(known.as_ref()).map_err(fault)?;
    if output.json.is_some() {
        show::line(&json!({ "type": "proof", "ok": true, "proved": proved }))?;
        return Ok(0);
    }
    let screen = Screen::on_stdout(output);
    let what = format!("event {} of session {}", proved.seq, proved.session);
    let when = show::when(proved.at_ms);
    screen.note(Tone::Good, format!("{what}, of {when}, is in the log"));
    screen.note(Tone::Plain, format!("text    sha256:{}", proved.sha256));
    screen.note(Tone::Plain, format!("log     {} entries", proved.size));
    screen.note(Tone::Plain, format!("key     {}", inert(&proved.key)));
    if known.is_none() {
        let text = "The key is the proof's own: compare it with the one that you know, or give that with --key.";
        screen.note(Tone::Warning, text);
    }
    Ok(0)
}

/// The one session whose name begins like that.
async fn find(
    paths: &Paths,
    audit: &outrigger_store::Audit,
    beginning: &str,
) -> Outcome<SessionId> {
    if beginning == session::LAST {
        let store = compose::store(paths).await?;
        return Ok(session::last(&*store.journal).await?.session);
    }
    let mut found = audit.named(beginning).await?;
    match (found.pop(), found.pop()) {
        (Some(session), None) if !beginning.is_empty() => Ok(session),
        (None, _) => Err(session::none(beginning)),
        _ => Err(session::several(beginning)),
    }
}

fn uncovered(error: outrigger_store::Error) -> Failure {
    let missing = matches!(error, outrigger_store::Error::NotFound { .. });
    let failure = Failure::from(error);
    if missing {
        return failure.hint("`outrigger audit checkpoint` covers what is there.");
    }
    failure
}

/// A key as it is typed, or out of a file.
fn key(text: &str) -> Outcome<VerifyingKey> {
    if let Some(key) = VerifyingKey::parse(text) {
        return Ok(key);
    }
    let read = read(Path::new(text), limits::CHECKPOINT_BYTES_MAX)?;
    let none = || Failure::new(Kind::Usage, format!("{text} holds no verifying key"));
    VerifyingKey::parse(&read).ok_or_else(none)
}

fn read(path: &Path, bytes_max: u64) -> Outcome<String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let size =
        fs::metadata(path).map_err(|error| Failure::new(Kind::NotFound, wrong(&error)))?.len();
    if size > bytes_max {
        let what = format!("it has {size} bytes, and at most {bytes_max} are read");
        return Err(Failure::new(Kind::Usage, wrong(&what)));
    }
    fs::read_to_string(path).map_err(|error| Failure::new(Kind::Usage, wrong(&error)))
}

fn write(path: &Path, text: &str) -> Outcome {
    fs::write(path, text)
        .map_err(|error| Failure::new(Kind::Storage, format!("{}: {error}", path.display())))
}
