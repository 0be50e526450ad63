//! `outrigger budget`, as it is typed.

use clap::{Args, Subcommand, ValueEnum, value_parser};

use super::Output;
use crate::config::Dollars;
use outrigger_agent::AccountId;
use outrigger_store::Period;

/// The verbs.
#[derive(Debug, Subcommand)]
pub(crate) enum Budget {
    /// Show what accounts and the newest sessions may spend, have spent and have reserved.
    Show {
        /// First count every account anew, and charge every session anew from what its journal says.
        #[arg(long)]
        recount: bool,
        #[command(flatten)]
        output: Output,
    },
    /// Say what an account may spend; what is not said stays as it was.
    Set(Set),
    /// Let nothing further start for an account, in any process, and stop what runs.
    Stop {
        /// `org`, or `user:NAME`.
        #[arg(value_parser = account)]
        account: AccountId,
        /// Why, for whoever is stopped.
        #[arg(long, short = 'm', value_name = "TEXT", default_value = "")]
        reason: String,
        #[command(flatten)]
        output: Output,
    },
    /// Let things start again for an account that was stopped.
    Allow {
        /// `org`, or `user:NAME`.
        #[arg(value_parser = account)]
        account: AccountId,
        #[command(flatten)]
        output: Output,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Set {
    /// `org`, or `user:NAME`.
    #[arg(value_parser = account)]
    pub(crate) account: AccountId,
    /// Take away what was set before.
    #[arg(long)]
    pub(crate) clear: bool,
    /// Begin to count anew each calendar day or month, in UTC.
    #[arg(long, value_enum)]
    pub(crate) per: Option<Per>,
    /// Model calls and tool calls.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) steps: Option<u64>,
    /// Tokens, input and output together.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) tokens: Option<u64>,
    /// What models cost, in US dollars.
    #[arg(long, value_name = "AMOUNT", value_parser = dollars, help_heading = "Limits")]
    pub(crate) dollars: Option<Dollars>,
    /// Seconds that model calls and tool calls take.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(..=1 << 50), help_heading = "Limits")]
    pub(crate) seconds: Option<u64>,
    /// Seconds of processor time that commands take.
    #[arg(long, value_name = "S", value_parser = value_parser!(u64).range(..=1 << 50), help_heading = "Limits")]
    pub(crate) cpu_seconds: Option<u64>,
    /// Bytes that tools outside are sent.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) egress_bytes: Option<u64>,
    /// From so many tokens on, a person is asked.
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub(crate) soft_tokens: Option<u64>,
    /// From so many US dollars on, a person is asked.
    #[arg(long, value_name = "AMOUNT", value_parser = dollars, help_heading = "Limits")]
    pub(crate) soft_dollars: Option<Dollars>,
    #[command(flatten)]
    pub(crate) output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Per {
    /// From midnight to midnight.
    Day,
    /// From the first to the first.
    Month,
}

impl From<Per> for Period {
    fn from(per: Per) -> Self {
        match per {
            Per::Day => Self::Day,
            Per::Month => Self::Month,
        }
    }
}

impl Budget {
    pub(crate) fn output(&self) -> Output {
        match self {
            Self::Show { output, .. } | Self::Stop { output, .. } | Self::Allow { output, .. } => {
                *output
            }
            Self::Set(set) => set.output,
        }
    }
}

fn account(text: &str) -> Result<AccountId, String> {
    AccountId::parse(text).ok_or_else(|| "an account is `org` or `user:NAME`".to_owned())
}

/// An amount of dollars.
pub(super) fn dollars(text: &str) -> Result<Dollars, String> {
    let parsed = text.strip_prefix('$').unwrap_or(text).parse().ok().and_then(Dollars::of);
    parsed.ok_or_else(|| format!("dollars are a number from 0 to {}", crate::limits::DOLLARS_MAX))
}
