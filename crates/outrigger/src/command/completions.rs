//! `outrigger completions`: what a shell needs to complete commands and options.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit::Outcome;
use crate::show;

/// How each shell takes them in.
const HELP: &str = "\
Taken in for a person, each once:
  bash        outrigger completions bash > ~/.local/share/bash-completion/completions/outrigger
  zsh         outrigger completions zsh > DIR/_outrigger    (DIR is one of $fpath)
  fish        outrigger completions fish > ~/.config/fish/completions/outrigger.fish";

#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct Completions {
    /// For which shell.
    pub(crate) shell: Shell,
}

/// For the program, as its whole command line is.
pub(super) fn execute(asked: &Completions, mut program: Command) -> Outcome<u8> {
    let mut text = Vec::new();
    clap_complete::generate(asked.shell, &mut program, "outrigger", &mut text);
    show::out(&String::from_utf8_lossy(&text))?;
    Ok(0)
}
