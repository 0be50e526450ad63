//! `outrigger sessions ls`: the sessions, with what each works on and what it took.

use clap::Args;
use outrigger_agent::{Spec, Workspace};
use outrigger_store::SessionRow;
use serde_json::{Value, json};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use crate::compose::{self, Store};
use crate::exit::Outcome;
use crate::flags::Output;
use crate::paths::Paths;
use crate::show::amounts::duration;
use crate::show::{self, Screen, Tone, Totals, inert};
use crate::{abandoned, limits, session};

#[derive(Debug, Args)]
pub(crate) struct Ls {
    /// At most so many.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Also the subagents that sessions started.
    #[arg(long, short = 'a')]
    pub(crate) all: bool,
    /// Only those of this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// A session of the list.
#[derive(Debug)]
pub(crate) struct SessionLine {
    pub(crate) row: SessionRow,
    pub(crate) model: Option<String>,
    /// The directory that it began in.
    pub(crate) dir: Option<String>,
    pub(crate) totals: Totals,
}

/// The columns before the task, which has what is left of the row.
const TITLES: [&str; 7] = ["SESSION", "BEGUN", "STATUS", "TIME", "COST", "MODEL", "DIRECTORY"];

pub(super) async fn execute(paths: &Paths, asked: Ls) -> Outcome<u8> {
    let store = compose::store(paths).await?;
    print(&listed(&store, &asked).await?, &asked)
}

/// Prints a list.
pub(crate) fn print(listed: &[SessionLine], asked: &Ls) -> Outcome<u8> {
    if asked.output.json.is_some() {
        let rows: Vec<_> = listed.iter().map(SessionLine::object).collect();
        show::line(&json!({ "type": "sessions", "sessions": rows }))?;
        return Ok(0);
    }
    let mut rows: Vec<[String; 7]> = Vec::new();
    // For people only: what reads a pipe wants sessions.
    if std::io::stdout().is_terminal() && !listed.is_empty() && !asked.output.quiet {
        rows.push(TITLES.map(str::to_owned));
    }
    let titles = rows.len();
    rows.extend(listed.iter().map(SessionLine::columns));
    let width = |column: usize| {
        let of = |row: &[String; 7]| row.get(column).map_or(0, |text| text.chars().count());
        rows.iter().map(of).max().unwrap_or(0)
    };
    let widths: [usize; 7] = std::array::from_fn(width);
    let tasks = std::iter::repeat_n("TASK".to_owned(), titles);
    let tasks = tasks.chain(listed.iter().map(|it| one_line(&it.row.title)));
    for (row, task) in rows.iter().zip(tasks) {
        let cells = row.iter().zip(widths).map(|(text, width)| format!("{text:<width$}  "));
        show::row(&format!("{}{task}", cells.collect::<String>()))?;
    }
    if listed.is_empty() {
        Screen::new(asked.output).note(Tone::Detail, none(asked));
    }
    Ok(0)
}

fn none(asked: &Ls) -> String {
    match &asked.dir {
        Some(dir) => format!("no sessions of {} yet", dir.display()),
        None => "no sessions yet".to_owned(),
    }
}

async fn listed(store: &Store, asked: &Ls) -> Outcome<Vec<SessionLine>> {
    let dir = asked.dir.as_ref().map(|dir| {
        let real = std::fs::canonicalize(dir);
        // One that is gone had sessions all the same.
        real.or_else(|_| std::path::absolute(dir)).unwrap_or_else(|_| dir.clone())
    });
    let mut rows = Vec::new();
    session::walk(&*store.journal, |row| {
        if asked.all || !session::is_below(&row.session) {
            rows.push(row);
        }
        let is_enough = dir.is_none() && rows.len() >= asked.limit;
        if is_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })
    .await?;
    let mut listed = Vec::new();
    for mut row in rows {
        if listed.len() >= asked.limit {
            break;
        }
        let spec = session::opening(store, &row.session).await?;
        let is_of = |dir: &PathBuf| spec.as_ref().is_some_and(|spec| session::is_of(spec, dir));
        if dir.as_ref().is_none_or(is_of) {
            row.status = abandoned::standing(store, &row).await?;
            let totals = totals(store, &row, spec.as_deref()).await?;
            let spec = spec.as_deref();
            let model = spec.map(|spec| spec.model.name.clone());
            let dir = spec.and_then(|spec| spec.workspace.as_ref()).map(Workspace::begun_in);
            listed.push(SessionLine { row, model, dir, totals });
        }
    }
    Ok(listed)
}

/// What it took: as its account was charged, which is kept beside the journal. For a
/// subagent another session is charged.
async fn totals(store: &Store, row: &SessionRow, spec: Option<&Spec>) -> Outcome<Totals> {
    let charged = match session::is_below(&row.session) {
        true => None,
        false => store.accounts.charged(&row.session).await?,
    };
    let spent = match charged {
        Some(charged) => charged.spent,
        None => session::fold(&*store.journal, &row.session).await?.spent(),
    };
    Ok(Totals { spent, is_priced: spec.is_some_and(|spec| spec.model.price.is_some()) })
}

impl SessionLine {
    fn columns(&self) -> [String; 7] {
        let or_none = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
        [
            self.row.session.to_string(),
            show::when(self.row.created_at_ms),
            self.row.status.clone(),
            duration(self.totals.spent.wall_ms),
            or_none(self.totals.cost()),
            or_none(self.model.as_deref().map(|name| short(&inert(name)))),
            or_none(self.dir.as_deref().map(|dir| short(&inert(&of_home(dir))))),
        ]
    }

    fn object(&self) -> Value {
        let mut object = object(&self.row);
        object["model"] = json!(self.model);
        object["dir"] = json!(self.dir);
        object["spent"] = json!(self.totals.spent);
        object["cost"] = json!(self.totals.cost());
        object
    }
}

/// What is known of a session without reading it.
pub(super) fn object(row: &SessionRow) -> Value {
    json!({
        "session": row.session.as_str(),
        "status": row.status,
        "title": row.title,
        "events": row.head.0,
        "created_at_ms": row.created_at_ms,
        "last_at_ms": row.last_at_ms,
    })
}

fn one_line(text: &str) -> String {
    inert(text).replace(['\n', '\t'], " ")
}

/// The end of a text that is too long for its column: there the paths and the models differ.
fn short(text: &str) -> String {
    let more = text.chars().count().saturating_sub(limits::COLUMN_CHARS_MAX);
    if more == 0 {
        return text.to_owned();
    }
    std::iter::once('…').chain(text.chars().skip(more + 1)).collect()
}

/// A path as a shell shows it.
pub(super) fn of_home(path: &str) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    let rest = home.as_ref().and_then(|home| Path::new(path).strip_prefix(home).ok());
    match rest {
        Some(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Some(rest) => format!("~/{}", rest.display()),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::short;

    #[test]
    fn what_is_too_long_loses_its_beginning() {
        assert_eq!(short("~/work/till"), "~/work/till");
        let long = format!("~/{}/till", "x".repeat(90));
        let cut = short(&long);
        assert!(cut.starts_with('…') && cut.ends_with("xx/till"), "{cut}");
        assert_eq!(cut.chars().count(), crate::limits::COLUMN_CHARS_MAX);
    }
}
