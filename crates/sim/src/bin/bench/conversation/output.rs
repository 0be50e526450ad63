//! A command that prints five megabytes in a turn, and keys that are typed meanwhile.

use std::process::Stdio;
use std::time::{Duration, Instant};

use super::model::{FakeModel, Reply};
use super::program::{Program, ms};
use super::world::World;
use crate::error::{Error, ErrorContext, Outcome};
use crate::figure::Figure;
use crate::sizes;

/// Eight bytes a line.
const PRINTS: &str = "seq 1000000 1624999";

pub(super) async fn measure(model: &mut FakeModel) -> Outcome<Vec<Figure>> {
    let world = World::new(model.port)?;
    let (mut program, _) = Program::start(&world).await?;
    // It makes the sandbox.
    turn(&mut program, model, "true").await?;
    let (mut quiet, mut loud, mut host) = (Vec::new(), Vec::new(), Vec::new());
    let (mut keys, mut longest) = (Vec::new(), Vec::new());
    for _ in 0..sizes::OUTPUT_TURNS {
        host.push(on_host(&world)?);
        quiet.push(turn(&mut program, model, "true").await?.0);
        let (took, typed) = turn(&mut program, model, PRINTS).await?;
        loud.push(took);
        longest.push(typed.iter().copied().fold(0.0, f64::max));
        keys.extend(typed);
    }
    let memory = program.memory()?;
    program.leave().await?;
    Ok(vec![
        Figure::of("output/turn_5mb", "ms", loud),
        Figure::of("output/turn_nothing", "ms", quiet),
        Figure::of("output/host_5mb", "ms", host),
        Figure::of("output/key", "ms", keys),
        Figure::of("output/key_longest", "ms", longest),
        Figure::of("peak/5mb", "MiB", vec![memory.peak]),
        Figure::of("rss/5mb", "MiB", vec![memory.now]),
    ])
}

/// A turn with a command: the milliseconds of it, and of each key that was typed meanwhile.
async fn turn(program: &mut Program, model: &FakeModel, command: &str) -> Outcome<(f64, Vec<f64>)> {
    model.answers(Reply::Command(command.to_owned()));
    model.answers(Reply::Text("That is all.".to_owned()));
    let (at, from) = program.say("Do it.").await?;
    let mut keys = Vec::new();
    while !program.is_turn_over(from) {
        keys.extend(program.keys(1).await?);
    }
    let over = program.turn_over(from).await?;
    if program.terminal.found(from, "✓ execute").is_none() {
        return Err(Error::Astray(format!("the command was not executed: {command}")));
    }
    Ok((ms(at, over), keys))
}

/// The same command without any of this.
fn on_host(world: &World) -> Outcome<f64> {
    let begun = Instant::now();
    let mut command = world.command("sh");
    command.args(["-c", &format!("{PRINTS} | cat >/dev/null")]).stdin(Stdio::null());
    let status = command.status().doing("running a command on the host")?;
    let took: Duration = begun.elapsed();
    if !status.success() {
        return Err(Error::Astray(format!("`{PRINTS}` ended with {status} on the host")));
    }
    Ok(took.as_secs_f64() * 1e3)
}
