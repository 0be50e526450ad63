//! What `outrigger serve` bears: `cargo xtask bench server [--json] [--peer PATH] [--idle N]`.
//!
//! Owns the figures that are published of the server, taken from outside on the real program with
//! a provider on loopback, beside opencode's server where that is named, in one run. Must never
//! fail for a figure: it is printed beside its target. It fails where an event is lost, comes
//! twice or out of order.

#![forbid(unsafe_code)]

mod figure;
mod http;
mod limits;
mod load;
mod model;
mod ours;
mod peer;
mod process;
mod rest;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use figure::Figure;
use load::Round;

/// What was asked for.
#[derive(Debug)]
struct Options {
    /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
    json: bool,
    /// This program instead of the one that lies above this one.
    program: Option<PathBuf>,
    /// opencode.
    peer: Option<PathBuf>,
    /// Sessions that rest; a tenth of it wait beside them.
    idle: usize,
}

fn main() -> ExitCode {
    let done = options(std::env::args_os().skip(1)).and_then(run);
    process::end_all();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn options(mut args: impl Iterator<Item = OsString>) -> io::Result<Options> {
    let mut options = Options { json: false, program: None, peer: None, idle: limits::IDLE };
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| io::Error::other("a value is missing"));
        match arg.to_str() {
            Some("--json") => options.json = true,
            Some("--program") => options.program = Some(value()?.into()),
            Some("--peer") => options.peer = Some(value()?.into()),
            Some("--idle") => {
                let count = value()?.to_str().and_then(|count| count.parse().ok());
                options.idle = count.ok_or_else(|| io::Error::other("--idle: no number"))?;
            }
            _ => {
                let usage = "bench server [--json] [--program PATH] [--peer PATH] [--idle N]";
                return Err(io::Error::other(format!("{}? {usage}", arg.display())));
            }
        }
    }
    Ok(options)
}

/// What was started ends also when it takes too long or somebody presses Ctrl-C.
fn run(options: Options) -> io::Result<()> {
    let this = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(this))?;
    let json = options.json;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (figures, notes) = runtime.block_on(async {
        let limit = Duration::from_millis(limits::BENCH_MS_MAX);
        tokio::select! {
            report = tokio::time::timeout(limit, Box::pin(measure(options))) => report?,
            _ = tokio::signal::ctrl_c() => Err(io::Error::other("interrupted")),
        }
    })?;
    let mut text = if json { figure::to_json(&figures) } else { figure::table(&figures) };
    if !json {
        text.extend(notes.iter().map(|note| format!("{note}\n")));
    }
    io::stdout().write_all(text.as_bytes())
}

async fn measure(options: Options) -> io::Result<(Vec<Figure>, Vec<String>)> {
    let program = match options.program {
        Some(program) => program,
        // Examples lie in a folder of their own.
        None => std::env::current_exe()?.with_file_name("../outrigger"),
    };
    let program = std::fs::canonicalize(&program)
        .map_err(|error| io::Error::other(format!("{}: {error}", program.display())))?;
    let (address, replies) = model::start()?;
    let world = ours::World::new(&program, address).await?;
    let peers = options.peer.map(|path| peer::World::new(&path, address)).transpose()?;
    let (mut figures, mut notes) = (Vec::new(), Vec::new());
    let (mut own, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..limits::ROUNDS {
        progress(&format!("{} sessions at once, round {}", limits::SESSIONS, round + 1));
        let served = world.serve(None).await?;
        own.push(load::ours(&served, &replies, &format!("round-{round}")).await?);
        served.0.kill().await?;
        process::end_all();
        if let Some(world) = &peers {
            progress("the same on opencode");
            let served = world.serve(None).await?;
            theirs.push(load::peer(&served, &replies).await?);
            served.0.kill().await?;
            process::end_all();
        }
    }
    rounds("ours", own, &mut figures, &mut notes);
    match &peers {
        Some(_) => rounds("opencode", theirs, &mut figures, &mut notes),
        None => notes.push("opencode is not measured (npm i opencode-ai; --peer PATH)".to_owned()),
    }
    progress("a server that is killed under them");
    let served = world.serve(None).await?;
    let (killed, served) = load::killed(&world, served, &replies).await?;
    served.0.kill().await?;
    process::end_all();
    let (events, sessions) = (killed.events, limits::SESSIONS);
    notes.push(format!(
        "ours, killed: {sessions} of {sessions} sessions answered, {events} events, none twice"
    ));
    if let Some(world) = &peers {
        progress("opencode, killed under them");
        let answered = load::peer_killed(world).await?;
        process::end_all();
        notes.push(format!("opencode, killed: {answered} of {sessions} sessions answered"));
    }
    figures.push(Figure::of("kill/ready", "ms", vec![killed.ready_ms]));
    figures.push(Figure::of("kill/next_event", "ms", killed.back_ms));
    // The rest takes a while.
    figures.iter().for_each(|it| progress(&it.row()));
    let (idle, waiting) = (options.idle, options.idle * limits::WAITING / limits::IDLE);
    progress(&format!("{idle} sessions that rest and {waiting} that wait"));
    let world = ours::World::new(&program, address).await?;
    let rest = rest::measure(&world, idle, waiting).await?;
    for (name, unit, samples) in [
        ("start/ready", "ms", rest.ready_ms),
        ("start/sessions", "ms", rest.page_ms),
        ("start/approvals", "ms", rest.approvals_ms),
        ("start/rss", "MiB", rest.rss_mib),
    ] {
        figures.push(Figure::of(name, unit, samples));
    }
    let (shown, each) = (rest.approvals, rest.open_ms);
    notes.push(format!("{shown} of {waiting} questions shown; {each:.2} ms to open a session"));
    Ok((figures, notes))
}

fn rounds(name: &str, all: Vec<Round>, figures: &mut Vec<Figure>, notes: &mut Vec<String>) {
    let steps = (2 * limits::CALLS + 1) as f64;
    let each = |of: fn(&Round) -> f64| -> Vec<f64> { all.iter().map(of).collect() };
    let step = each(|round| round.turn_cpu_ms).iter().map(|cpu_ms| cpu_ms / steps).collect();
    let one = [
        ("cpu_first_turn", "ms", each(|round| round.first_cpu_ms)),
        ("cpu_turn", "ms", each(|round| round.turn_cpu_ms)),
        ("cpu_step", "ms", step),
        ("peak", "MiB", each(|round| round.after.peak_mib)),
        ("peak_server", "MiB", each(|round| round.own_mib)),
        ("round", "s", each(|round| round.wall_s)),
    ];
    for round in &all {
        let (events, frames, count) = (round.events, round.frames, round.after.processes);
        notes.push(format!("{name}: {events} events in {frames} frames, {count} processes"));
    }
    let commit: Vec<f64> = all.iter().flat_map(|round| round.commit_ms.clone()).collect();
    let reply = all.iter().flat_map(|round| round.reply_ms.clone()).collect();
    if !commit.is_empty() {
        figures.push(Figure::of(&format!("commit/{name}"), "ms", commit));
    }
    figures.push(Figure::of(&format!("reply/{name}"), "ms", reply));
    for (what, unit, samples) in one {
        figures.push(Figure::of(&format!("{what}/{name}"), unit, samples));
    }
}

fn progress(what: &str) {
    drop(writeln!(io::stderr(), "measuring: {what}"));
}
