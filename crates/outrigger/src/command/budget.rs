//! `outrigger budget`: what accounts and sessions may spend, and the switch that stops them.

use clap::{Args, Subcommand, ValueEnum, value_parser};
use outrigger_agent::{AccountId, Amounts, Limit, Measure, SessionId, State};
use outrigger_engine::Engine;
use outrigger_store::{Account, AccountStop, Journal, Period, SessionRow, Terms, TermsChange};
use serde_json::{Value, json};
use std::ops::ControlFlow;

use super::sessions::wind_down;
use crate::abandoned;
use crate::compose::{self, Store};
use crate::config::{self, Config, Dollars};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::limits;
use crate::paths::Paths;
use crate::session::{self, now_ms};
use crate::show::{self, Screen, Tone, amounts};

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
    #[arg(long, value_name = "AMOUNT", value_parser = Dollars::parse, help_heading = "Limits")]
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
    #[arg(long, value_name = "AMOUNT", value_parser = Dollars::parse, help_heading = "Limits")]
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
    if text.starts_with("person:") {
        return Ok(AccountId::user(text));
    }
    let none = "an account is `org` or `user:NAME`; groups have none";
    AccountId::parse(text).ok_or_else(|| none.to_owned())
}

pub(crate) async fn execute(paths: &Paths, asked: Budget) -> Outcome<u8> {
    let output = asked.output();
    match asked {
        Budget::Show { recount, .. } => show(paths, recount, output).await,
        Budget::Set(set) => self::set(paths, set).await,
        Budget::Stop { account, reason, .. } => stop(paths, account, reason, output).await,
        Budget::Allow { account, .. } => {
            let store = compose::store(paths).await?;
            let set = store.accounts.set_terms(&account, TermsChange::Allow).await?;
            changed(&set, "may start things again", output)
        }
    }
}

impl Set {
    /// What is set; an error where nothing is.
    pub(super) fn terms(&self) -> Outcome<Terms> {
        let Self { steps, tokens, seconds, cpu_seconds, egress_bytes, .. } = *self;
        let amounts = [steps, tokens, seconds, cpu_seconds, egress_bytes];
        let limit = config::limit(amounts, self.dollars);
        let soft = [None, self.soft_tokens, None, None, None];
        let soft = config::limit(soft, self.soft_dollars);
        let terms = Terms { limit, soft, period: self.per.map(Into::into), stopped: None };
        if let Some(why) = limit.hides(soft) {
            return Err(Failure::new(Kind::Usage, why));
        }
        if terms == Terms::default() && !self.clear {
            return Err(Failure::new(Kind::Usage, "nothing was said that could be set")
                .hint("For example `outrigger budget set user:local --dollars 20 --per month`."));
        }
        Ok(terms)
    }

    /// What is told of the account then.
    pub(super) fn told(&self) -> &'static str {
        match self.terms() {
            Ok(terms) if terms == Terms::default() => "has no limits of its own now",
            Ok(_) | Err(_) => "has these limits now; `outrigger budget show` has all of them",
        }
    }
}

async fn set(paths: &Paths, asked: Set) -> Outcome<u8> {
    let terms = asked.terms()?;
    let store = compose::store(paths).await?;
    if asked.clear {
        store.accounts.set_terms(&asked.account, TermsChange::Clear).await?;
    }
    uncharged(&store, &asked.account, &Screen::new(asked.output)).await?;
    let set = store.accounts.set_terms(&asked.account, TermsChange::Set(terms)).await?;
    changed(&set, asked.told(), asked.output)
}

/// Warns of a name that is none of ours and that nothing was ever charged to.
async fn uncharged(store: &Store, account: &AccountId, screen: &Screen) -> Outcome {
    let (organisation, user) = (AccountId::organisation(), AccountId::user(session::WHO));
    if [&organisation, &user].contains(&account) {
        return Ok(());
    }
    let charged = |it: &Account| {
        let nothing = Amounts::default();
        it.account == *account && (it.spent != nothing || it.reserved != nothing)
    };
    if !store.accounts.accounts().await?.iter().any(charged) {
        let text = format!(
            "! nothing was ever charged to {account}; sessions are charged to {organisation} and {user}"
        );
        screen.note(Tone::Warning, text);
    }
    Ok(())
}

fn changed(account: &Account, what: &str, output: Output) -> Outcome<u8> {
    tell_changed(&AccountLine::of(account, account.terms.clone(), now_ms()), what, output)
}

pub(super) fn tell_changed(account: &AccountLine, what: &str, output: Output) -> Outcome<u8> {
    let screen = Screen::new(output);
    screen.note(Tone::Good, format!("● {} {what}", account.account));
    if output.json.is_some() {
        let mut object = account.object();
        object["type"] = json!("account");
        show::line(&object)?;
    }
    Ok(0)
}

/// Writes the switch down first: whoever starts something after that is refused, so that
/// what is listed afterwards is all that runs.
async fn stop(paths: &Paths, account: AccountId, reason: String, output: Output) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    let stopped = AccountStop { by: session::WHO.to_owned(), reason, at_ms: now_ms() };
    store.accounts.set_terms(&account, TermsChange::Stop(stopped)).await?;
    let screen = Screen::new(output);
    uncharged(&store, &account, &screen).await?;
    let running = running(&store, &account).await?;
    // Whatever the sandboxes are like: who drives one of them stops.
    let clerk = compose::clerk(paths, &config, &store)?;
    for session in &running {
        interrupt(&clerk, session).await?;
    }
    let engine = compose::caretaker(paths, &config, &store).await;
    let engine = engine.map_err(|failure| unreached(failure, &account, &running))?;
    let stopping = running.iter().map(|session| still(&store, &engine, session));
    let stopped = futures_util::future::join_all(stopping).await;
    let mut left = Vec::new();
    for (session, stopped) in running.iter().zip(stopped) {
        match stopped {
            Ok(true) => {}
            Ok(false) => left.push(session.to_string()),
            Err(failure) => left.push(format!("{session} ({})", failure.message)),
        }
    }
    let count = show::count((running.len() - left.len()) as u64, "session");
    screen.note(Tone::Good, format!("● {account} is stopped; {count} interrupted"));
    if output.json.is_some() {
        let names: Vec<_> = running.iter().map(SessionId::as_str).collect();
        let account = account.as_str();
        show::line(
            &json!({ "type": "stopped", "account": account, "sessions": names, "left": left }),
        )?;
    }
    if left.is_empty() {
        return Ok(0);
    }
    Err(Failure::new(Kind::Conflict, format!("these did not stop in time: {}", left.join(", ")))
        .hint("`outrigger sessions cancel ID` ends one of them and deletes its sandbox."))
}

/// Sessions of an account in which something is under way.
async fn running(store: &Store, account: &AccountId) -> Outcome<Vec<SessionId>> {
    let mut running = Vec::new();
    for row in abandoned::in_turn(store).await? {
        let state = session::fold(&*store.journal, &row.session).await?;
        if outrigger_engine::is_under_way(&state, account) {
            running.push(row.session);
        }
    }
    Ok(running)
}

/// Writes into its journal that it is to stop.
async fn interrupt(clerk: &Engine, session: &SessionId) -> Outcome {
    match clerk.interrupt(session, session::WHO).await {
        Err(outrigger_engine::Error::Ended(_)) => Ok(()),
        done => Ok(done?),
    }
}

/// What is stopped and what is not, where no sandbox can be reached.
fn unreached(failure: Failure, account: &AccountId, running: &[SessionId]) -> Failure {
    let failure = failure.hint(format!(
        "{account} is stopped: nothing is started for it any more, and processes that run its sessions stop."
    ));
    if running.is_empty() {
        return failure;
    }
    let names: Vec<_> = running.iter().map(SessionId::as_str).collect();
    failure.hint(format!(
        "Of these, commands whose process is gone may run in their sandboxes until their deadline: {}. The same command again ends it once sandboxes can be reached.",
        names.join(", ")
    ))
}

/// Whether nothing of it is under way any more.
async fn still(store: &Store, engine: &Engine, session: &SessionId) -> Outcome<bool> {
    wind_down(store, engine, session).await?;
    Ok(!session::fold(&*store.journal, session).await?.in_turn())
}

async fn show(paths: &Paths, recount: bool, output: Output) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let store = compose::store(paths).await?;
    if recount {
        self::recount(paths, &config, &store).await?;
    }
    let clerk = compose::clerk(paths, &config, &store)?;
    let left_behind = abandoned::release(&store, &clerk).await?;
    let (usual, now_ms) = (config.usual(), now_ms());
    let accounts = store.accounts.accounts().await?;
    let accounts: Vec<AccountLine> = accounts
        .iter()
        .map(|it| AccountLine::of(it, it.terms.or(usual.of(&it.account)), now_ms))
        .collect();
    let sessions = newest(&*store.journal).await?;
    print_budget(&accounts, &sessions, &left_behind, output)
}

/// An account as it is shown.
pub(super) struct AccountLine {
    pub(super) account: String,
    pub(super) terms: Terms,
    pub(super) spent: Amounts,
    /// In all periods; nothing where that is not told.
    pub(super) spent_ever: Option<Amounts>,
    pub(super) reserved: Amounts,
}

impl AccountLine {
    fn of(account: &Account, terms: Terms, now_ms: u64) -> Self {
        Self {
            account: account.account.to_string(),
            spent: account.spent_now(terms.period, now_ms),
            spent_ever: Some(account.spent),
            reserved: account.reserved,
            terms,
        }
    }

    fn object(&self) -> Value {
        json!({
            "account": self.account,
            "limit": self.terms.limit,
            "soft": self.terms.soft,
            "per": self.terms.period,
            "stopped": self.terms.stopped,
            "spent": self.spent,
            "spent_ever": self.spent_ever,
            "reserved": self.reserved,
        })
    }
}

/// The newest sessions, as they stand.
pub(super) async fn newest(journal: &dyn Journal) -> Outcome<Vec<(SessionRow, State)>> {
    let mut sessions = Vec::new();
    for row in journal.sessions(None, limits::BUDGET_SESSIONS_MAX).await? {
        let state = session::fold(journal, &row.session).await?;
        sessions.push((row, state));
    }
    Ok(sessions)
}

pub(super) fn print_budget(
    accounts: &[AccountLine],
    sessions: &[(SessionRow, State)],
    left_behind: &[SessionId],
    output: Output,
) -> Outcome<u8> {
    if output.json.is_some() {
        let accounts: Vec<_> = accounts.iter().map(AccountLine::object).collect();
        let sessions: Vec<_> = sessions.iter().map(|(row, state)| of_session(row, state)).collect();
        let left: Vec<_> = left_behind.iter().map(SessionId::as_str).collect();
        show::line(&json!({
            "type": "budget",
            "accounts": accounts,
            "sessions": sessions,
            "left_behind": left,
        }))?;
        return Ok(0);
    }
    for AccountLine { account, terms, spent, reserved, .. } in accounts {
        let stopped = terms.stopped.as_ref().map_or_else(String::new, |stopped| {
            let since = show::when(stopped.at_ms);
            format!("  stopped by {} since {since} {}", stopped.by, stopped.reason)
        });
        let per = match terms.period {
            None => "",
            Some(Period::Day) => "  per day",
            Some(Period::Month) => "  per month",
        };
        bars(&format!("{account}{per}{stopped}"), *spent, *reserved, terms.limit, terms.soft)?;
    }
    for (row, state) in sessions {
        let title = format!("session {}  {}", row.session, state.status());
        bars(&title, state.spent(), state.reserved(), state.budget(), state.soft())?;
    }
    let screen = Screen::new(output);
    if accounts.is_empty() && sessions.is_empty() {
        screen.note(Tone::Detail, "nothing was spent yet");
    }
    for session in left_behind {
        let told = format!(
            "the process of session {session} is gone, and what it reserved stays reserved, because a command of it may still run: `outrigger sessions resume {session}` goes on, `outrigger sessions cancel {session}` ends it"
        );
        screen.note(Tone::Detail, told);
    }
    Ok(0)
}

/// A title, and a line for each measure that is limited or was used.
fn bars(title: &str, spent: Amounts, reserved: Amounts, limit: Limit, soft: Limit) -> Outcome {
    show::row(&show::inert(title))?;
    for measure in Measure::ALL {
        if let Some(line) = amounts::bar(measure, spent, reserved, limit, soft) {
            show::row(&line)?;
        }
    }
    Ok(())
}

/// Sets the accounts right, and then charges each session with what its journal says.
async fn recount(paths: &Paths, config: &Config, store: &Store) -> Outcome {
    store.accounts.recount().await?;
    let engine = compose::clerk(paths, config, store)?;
    let mut sessions = Vec::new();
    session::walk(&*store.journal, |row| {
        sessions.push(row.session);
        ControlFlow::Continue(())
    })
    .await?;
    for session in sessions {
        outrigger_engine::recharge(&engine, &session).await?;
    }
    Ok(())
}

fn of_session(row: &SessionRow, state: &State) -> Value {
    json!({
        "session": row.session.as_str(),
        "status": state.status(),
        "accounts": state.accounts(),
        "limit": state.budget(),
        "soft": state.soft(),
        "spent": state.spent(),
        "reserved": state.reserved(),
    })
}
