//! What the gate costs: `cargo xtask bench gate [--json] [--squid PATH] [--mitmdump PATH]`.
//!
//! Owns the figures that are published of it, taken on its real process beside a direct
//! connection and beside proxies of others that end TLS too, all in one run. Must never fail
//! for a figure: it is printed beside its target, and the exit code only says whether it
//! could be measured.

#![forbid(unsafe_code)]

mod figure;
mod gate;
mod host;
mod limits;
mod measure;
mod peer;
mod route;
mod visit;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// What was asked for.
#[derive(Debug, Default)]
struct Options {
    /// Prints an array of `{name, unit, n, min, p50, p99}` and nothing else.
    json: bool,
    /// Squid's program, where the shell does not find it.
    squid: Option<PathBuf>,
    /// mitmproxy's `mitmdump`.
    mitmdump: Option<PathBuf>,
}

fn main() -> ExitCode {
    let mut args = std::env::args_os().skip(1).peekable();
    let done = match args.next_if(|mode| mode == gate::MODE) {
        Some(_) => gate::serve(args),
        None => options(args).and_then(run),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(writeln!(io::stderr(), "bench: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn options(mut args: impl Iterator<Item = OsString>) -> io::Result<Options> {
    let mut options = Options::default();
    while let Some(arg) = args.next() {
        match arg.to_str() {
            Some("--json") => options.json = true,
            Some("--squid") => options.squid = args.next().map(PathBuf::from),
            Some("--mitmdump") => options.mitmdump = args.next().map(PathBuf::from),
            _ => {
                let usage = "bench gate [--json] [--squid PATH] [--mitmdump PATH]";
                return Err(io::Error::other(format!("{}? {usage}", arg.display())));
            }
        }
    }
    Ok(options)
}

/// Measures on one thread, as the gate has one. What was started ends also when it takes too
/// long or somebody presses Ctrl-C.
fn run(options: Options) -> io::Result<()> {
    let json = options.json;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        let limit = Duration::from_millis(limits::BENCH_MS_MAX);
        tokio::select! {
            report = tokio::time::timeout(limit, Box::pin(measure::measure(options))) => report?,
            _ = tokio::signal::ctrl_c() => Err(io::Error::other("interrupted")),
        }
    })?;
    let mut text =
        if json { figure::to_json(&report.figures) } else { figure::table(&report.figures) };
    if !json {
        text.extend(report.notes.iter().map(|note| format!("{note}\n")));
    }
    io::stdout().write_all(text.as_bytes())
}

fn progress(what: &str) {
    drop(writeln!(io::stderr(), "measuring: {what}"));
}
