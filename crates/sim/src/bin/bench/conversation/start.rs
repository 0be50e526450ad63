//! From the start of the program to a prompt that takes input.

use super::model::FakeModel;
use super::program::Program;
use super::world::World;
use crate::error::Outcome;
use crate::figure::Figure;
use crate::sizes;

pub(super) async fn measure(model: &FakeModel) -> Outcome<Vec<Figure>> {
    let (mut first, mut later) = (Vec::new(), Vec::new());
    let (mut peak, mut now) = (Vec::new(), Vec::new());
    for round in 0..sizes::FIRST_STARTS {
        let world = World::new(model.port)?;
        let (mut program, took) = Program::start(&world).await?;
        first.push(took);
        if round + 1 < sizes::FIRST_STARTS {
            program.leave().await?;
            continue;
        }
        // From now on there is a session to look for.
        let (_, from) = program.say("Good day.").await?;
        program.turn_over(from).await?;
        program.leave().await?;
        for _ in 0..sizes::STARTS {
            let (program, took) = Program::start(&world).await?;
            later.push(took);
            let memory = program.memory()?;
            peak.push(memory.peak);
            now.push(memory.now);
            program.leave().await?;
        }
    }
    Ok(vec![
        Figure::of("start/first", "ms", first),
        Figure::of("start/later", "ms", later),
        Figure::of("peak/prompt", "MiB", peak),
        Figure::of("rss/prompt", "MiB", now),
    ])
}
