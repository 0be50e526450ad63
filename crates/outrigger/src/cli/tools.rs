//! `outrigger tools`, as it is typed.

use clap::Subcommand;

use super::Output;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Tools {
    /// Ask every server that is configured what tools it has, and list them with how they
    /// stand: trusted, changed, new or gone.
    Ls {
        #[command(flatten)]
        output: Output,
    },
    /// Show what a server says of a tool, and what it says otherwise than when it was trusted.
    Show {
        /// The server, as the configuration names it.
        server: String,
        /// The tool, as the server names it; all that wait to be trusted, if none is named.
        tool: Option<String>,
        #[command(flatten)]
        output: Output,
    },
    /// Trust what a server says of a tool now: sessions that are opened from then on have it so.
    Trust {
        /// The server, as the configuration names it.
        server: String,
        /// The tool, as the server names it.
        tool: String,
        /// What `outrigger tools show` said that was looked at: if the server said something
        /// else since, nothing is trusted.
        #[arg(long, value_name = "SEEN")]
        seen: String,
        #[command(flatten)]
        output: Output,
    },
}

impl Tools {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Ls { output } | Self::Show { output, .. } | Self::Trust { output, .. } => *output,
        }
    }
}
