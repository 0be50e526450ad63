//! How fast a conversation is for whoever sits at a terminal: the real program in a
//! pseudo-terminal, with a provider on loopback.
//!
//! Owns the program from its start to its end, what is typed, and when what came of it stood on
//! the terminal. Must never look into the program: it knows what a person and a provider know.

mod length;
mod model;
mod output;
mod plain;
mod program;
mod start;
mod terminal;
mod tokens;
mod world;

use crate::error::Outcome;
use crate::figure::Figure;

/// Everything, one after the other.
pub(crate) async fn measure(progress: impl Fn(&str)) -> Outcome<Vec<Figure>> {
    let mut model = model::FakeModel::start()?;
    progress("starts of the program");
    let mut figures = start::measure(&model).await?;
    progress("turns of a few words");
    figures.extend(tokens::measure(&mut model).await?);
    progress("turns with 5 MB of output");
    figures.extend(output::measure(&mut model).await?);
    progress("a conversation of 200,000 tokens");
    figures.extend(length::measure(&mut model).await?);
    Ok(figures)
}
