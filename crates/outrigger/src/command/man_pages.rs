//! `outrigger man`: a page for man(1) of each command, as packages bring them along.

use clap::{Args, Command};
use std::path::PathBuf;

use crate::exit::{Failure, Kind, Outcome};

#[derive(Debug, Args)]
pub(crate) struct ManPages {
    /// Into which directory.
    pub(crate) dir: PathBuf,
}

/// For the program, as its whole command line is.
pub(super) fn execute(asked: &ManPages, program: Command) -> Outcome<u8> {
    clap_mangen::generate_to(program, &asked.dir).map_err(|error| {
        Failure::new(Kind::Usage, format!("cannot write into {}: {error}", asked.dir.display()))
    })?;
    Ok(0)
}
