//! From the bytes of a token to its letters on the terminal, in short turns.

use outrigger_sim::limits;
use std::time::Duration;

use super::model::{FakeModel, Reply};
use super::program::{Program, ms};
use super::world::World;
use crate::error::{Error, Outcome};
use crate::figure::Figure;
use crate::sizes;

pub(super) async fn measure(model: &mut FakeModel) -> Outcome<Vec<Figure>> {
    let world = World::new(model.port)?;
    let (mut program, _) = Program::start(&world).await?;
    let keys = program.keys(sizes::KEYS).await?;
    let mut begun = Vec::new();
    for number in 0..sizes::FRESH_SESSIONS {
        let (took, _, from) = program.ask("Good day.", model).await?;
        begun.push(took);
        program.turn_over(from).await?;
        if number + 1 < sizes::FRESH_SESSIONS {
            let (_, from) = program.say("/new").await?;
            program.terminal.until(from, "begins another session").await?;
        }
    }
    let (mut sent, mut first, mut later) = (Vec::new(), Vec::new(), Vec::new());
    for turn in 0..sizes::TOKEN_TURNS {
        let words = (0..sizes::TURN_TOKENS).map(|token| format!("t{turn:03}.{token:03}"));
        // At another moment between two drawings each time.
        let pause = Duration::from_millis(5 + turn * 7 % 40);
        let between = Duration::from_millis(limits::BENCH_TOKEN_PAUSE_MS);
        model.answers(Reply::Words { words: words.collect(), pause, between });
        let (took, _, from) = program.ask("Count, please.", model).await?;
        sent.push(took);
        program.turn_over(from).await?;
        for (index, (word, written)) in model.words().into_iter().enumerate() {
            let never = || Error::Astray(format!("never on the terminal: {word}"));
            let shown = program.terminal.found(from, &word).ok_or_else(never)?;
            if index == 0 { &mut first } else { &mut later }.push(ms(written, shown));
        }
    }
    program.leave().await?;
    Ok(vec![
        Figure::of("token/first", "ms", first),
        Figure::of("token/later", "ms", later),
        Figure::of("key/empty", "ms", keys),
        Figure::of("message/begins", "ms", begun),
        Figure::of("message/short", "ms", sent),
    ])
}
