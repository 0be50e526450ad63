//! `outrigger inbox --remind`: those whom `[notify]` names are told again of what waits.
//!
//! It is for a timetable: it changes nothing, and what is told twice does no harm.

use outrigger_engine::{Clock, SystemClock};
use serde_json::json;

use crate::compose::Store;
use crate::config::Config;
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::Output;
use crate::notify;
use crate::paths::Paths;
use crate::show::{self, Screen, Tone};
use crate::waiting::{self, PendingApproval};

/// Tells of everything that waits, but for what is still left to those who were asked first.
pub(crate) async fn execute(paths: &Paths, store: &Store, output: Output) -> Outcome<u8> {
    let config = Config::of_files(paths.configs())?;
    let notify = &config.notify;
    if notify.command.is_empty() && notify.webhook.is_none() {
        let text = "the configuration names nobody who could be told";
        return Err(Failure::new(Kind::Usage, text)
            .hint("`[notify]` names a command or a webhook: see docs/configuration.md."));
    }
    let now_ms = SystemClock.now_ms();
    let mut waiting = PendingApproval::all(&*store.journal).await?;
    waiting.retain(|one| one.is_pressing(now_ms));
    let screen = Screen::new(output);
    let ids: Vec<_> = waiting.iter().map(PendingApproval::id).collect();
    let notice = waiting::notice(&waiting, None);
    if !ids.is_empty() && !notify::tell(paths, notify, &notice, &screen).await {
        let text = format!("not everybody was told of {}", ids.join(", "));
        return Err(Failure::new(Kind::Usage, text)
            .hint("`[notify]` in the configuration names whom; nothing that waits was changed."));
    }
    if output.json.is_some() {
        show::line(&json!({ "type": "reminded", "of": ids }))?;
    } else if ids.is_empty() {
        screen.note(Tone::Detail, "nothing waits that anybody has to be reminded of");
    } else {
        screen.note(Tone::Good, format!("● told of {}", ids.join(", ")));
    }
    Ok(0)
}
