//! Whether a person trusts the files by which a repository speaks to agents.
//!
//! Owns what a file is taken for: as trusted only where a person said so of these very contents.
//! Changed, it is asked about again; where nobody can be asked, it stays the word of nobody.

mod question;
mod record;
mod standing;

use std::path::Path;

use crate::exit::Outcome;
use crate::limits;
use crate::paths::Paths;
use crate::project_file::{ProjectFile, Purpose};
use crate::show::{Screen, Tone, inert, word};

pub(crate) use question::{effects, lines};
pub(crate) use record::{FileTrust, TrustAnswer, TrustDecision, TrustRecord, all, change};
pub(crate) use standing::{JudgedFile, Standing, decide, judge};

/// How files of a directory stand, after whoever sits there was asked about what is new or
/// changed. How each stands then is said.
pub(crate) async fn settle(
    paths: &Paths,
    dir: &Path,
    files: impl IntoIterator<Item = ProjectFile>,
    screen: &Screen,
) -> Outcome<Vec<JudgedFile>> {
    let all = ask(paths, dir, files, screen).await?;
    for judged in &all {
        let (tone, text) = told(dir, judged);
        screen.note(tone, text);
    }
    Ok(all)
}

/// Asks whoever sits there about what is new or changed, and says nothing else.
pub(crate) async fn ask(
    paths: &Paths,
    dir: &Path,
    files: impl IntoIterator<Item = ProjectFile>,
    screen: &Screen,
) -> Outcome<Vec<JudgedFile>> {
    let mut all = judge(paths, dir, files)?;
    for judged in all.iter_mut().filter(|judged| judged.standing.is_open()) {
        if screen.can_ask()
            && let Some(answer) = question::ask(judged, screen).await?
        {
            decide(paths, dir, judged, answer)?;
        }
    }
    Ok(all)
}

/// One line that says how a file stands, and what would change it.
fn told(dir: &Path, judged: &JudgedFile) -> (Tone, String) {
    let name = inert(&judged.file.name);
    let command = format!("outrigger trust --dir {}", word(&dir.display().to_string()));
    let so = match judged.file.purpose {
        Purpose::Guide => "it is only data",
        Purpose::Servers => "its servers are left out",
        Purpose::Image => "nothing is made of it",
    };
    match judged.standing {
        Standing::Trusted => (Tone::Detail, format!("{name} is trusted")),
        Standing::Declined => {
            (Tone::Detail, format!("{name} is not trusted, so {so}: `{command}`"))
        }
        Standing::New => {
            let text = format!("! {name} is new here and not trusted, so {so}: `{command}`");
            (Tone::Warning, text)
        }
        Standing::Changed => {
            let text =
                format!("! {name} changed since it was trusted, so {so}: `{command}` shows it");
            (Tone::Warning, text)
        }
        Standing::Oversized => {
            let most = limits::GUIDE_BYTES_MAX >> 10;
            let text = format!("! {name} has more than {most} KiB and can't be trusted, so {so}");
            (Tone::Warning, text)
        }
    }
}
