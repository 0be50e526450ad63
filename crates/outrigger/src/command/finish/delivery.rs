//! What came out of a session, on its way to a person's directory: kept as a patch, shown, and
//! written back if that was asked for.

use outrigger_agent::{SessionId, State, TurnEnd};
use outrigger_beneath::Dir;
use outrigger_engine::workspace::Changes;
use outrigger_repository::{Accept, Change, Error, Grade, Hazard, hazards};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

use super::back::Back;
use super::branch::CommittedWork;
use super::durable::write;
use super::ending::ending;
use super::written::WrittenChanges;
use crate::command::drive::resume_hint;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, word};
use crate::waiting::PendingApproval;
use crate::{own_files, repository};

/// Where what came out of a session goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Delivery<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) session: &'a SessionId,
    pub(crate) back: Back,
    /// The directory that the work began with, if it is on this machine.
    pub(crate) source: Option<&'a Path>,
}

/// What came out of a drive.
#[derive(Debug)]
struct Work {
    /// None, if there is no sandbox to take any from.
    changes: Option<Vec<Change>>,
    hazards: Vec<Hazard>,
    /// Where the patch is, if it is not empty.
    kept: Option<PathBuf>,
}

/// What became of it.
#[derive(Debug)]
enum GivenBack {
    /// It is in the patch.
    Nothing,
    /// It is in the directory.
    Files,
    /// What of it was committed is a branch.
    Commits(CommittedWork),
}

impl Delivery<'_> {
    /// Keeps, shows and writes back the changes, and tells the answer. `changes`: nothing if there
    /// is no sandbox any more that could have any. `commits` makes what was committed a branch.
    pub(crate) async fn deliver(
        &self,
        state: &State,
        changes: Option<Changes>,
        commits: impl AsyncFnOnce(&[Change]) -> Outcome<Option<CommittedWork>>,
        screen: &Screen,
    ) -> Outcome<u8> {
        let (changes, special) = changes.map(|it| (it.changed, it.special)).unzip();
        let special: Vec<String> = special.unwrap_or_default();
        let special = special.iter().map(|path| format!("{path}: a FIFO, device or socket"));
        let source = self.source;
        let dir = source.and_then(|dir| Dir::open(dir).ok());
        let hazards = changes.as_ref().map(|changes| hazards(dir.as_ref(), changes));
        let hazards = hazards.unwrap_or_default();
        let patch = match &changes {
            Some(changes) => outrigger_repository::patch(changes, &hazards),
            None => fs::read(self.patch_path()).unwrap_or_default(),
        };
        let kept = self.keep(&patch)?;
        for tree in outrigger_repository::generated(source, changes.as_deref().unwrap_or_default())
        {
            let text = format!("! {tree}: list it in .gitignore, if it can be made again");
            screen.note(Tone::Warning, text);
        }
        if let Some(path) = &kept {
            screen.note(Tone::Plain, "");
            screen.patch(&patch);
            screen.note(Tone::Detail, format!("patch: {}", path.display()));
        }
        let special = show::not_copied(&special.collect::<Vec<_>>());
        special.into_iter().for_each(|text| screen.note(Tone::Warning, text));
        for text in show::warnings("", &hazards) {
            screen.note(Tone::Warning, text);
        }
        let work = Work { changes, hazards, kept };
        let giving = Box::pin(self.give_back(state, &work, commits, screen));
        let (given, failure) = match giving.await {
            Ok(given) => (given, None),
            Err(failure) => (GivenBack::Nothing, Some(failure)),
        };
        // What was answered is told, whatever became of the files.
        let (answer, failure) = match ending(state, self.session) {
            // It was not asked how the session ended.
            Err(_) if matches!(self.back, Back::Now(_)) => (String::new(), failure),
            Ok(()) => (outrigger_agent::answer(state.conversation()), failure),
            Err(ending) => (String::new(), Some(failure.unwrap_or(ending))),
        };
        self.report(state, &[], Some(&work), &given).tell(&answer, failure, screen)
    }

    /// Writes the changes or the commits back if that was asked for and can be; says how a
    /// person does it where it was not.
    async fn give_back(
        &self,
        state: &State,
        work: &Work,
        commits: impl AsyncFnOnce(&[Change]) -> Outcome<Option<CommittedWork>>,
        screen: &Screen,
    ) -> Outcome<GivenBack> {
        let answered = matches!(state.ended(), Some(TurnEnd::Answered));
        let Work { changes, hazards, kept } = work;
        let source = self.source;
        let accept = match self.back {
            // Half of the work is not written back by itself: the other half would not fit on it.
            Back::Apply(accept) => Some(accept).filter(|_| answered),
            Back::Now(accept) => Some(accept).filter(|_| !state.in_turn()),
            Back::Patch | Back::Branch => None,
        };
        if let (Some(accept), Some(changes), Some(dir)) = (accept, changes, source) {
            let mut written = WrittenChanges::load(self.paths, self.session)?;
            let rest = outrigger_repository::since(dir, &written.changes(), changes.clone());
            own_files::stay_untouched(self.paths, dir, &rest)?;
            let accept = accepted(accept, hazards, screen).await?;
            let files = outrigger_repository::apply(dir, &rest, accept).map_err(|error| {
                let failure = repository::failed(dir, &error);
                match (kept, error) {
                    // What was refused for safety is not to be done by hand instead.
                    (Some(path), _) if failure.kind == Kind::Conflict => failure
                        .hint(format!("`{} --reject` takes what fits.", apply_by_hand(dir, path))),
                    (_, Error::Hazards(all)) if can_be_accepted(&all) => failure.hint(format!(
                        "`outrigger sessions apply {} --all` accepts them.",
                        self.session
                    )),
                    _ => failure,
                }
            })?;
            written.add(&rest)?;
            let is_nothing = changes.is_empty() && rest.is_empty();
            if is_nothing && matches!(self.back, Back::Now(_)) {
                screen.note(Tone::Plain, format!("session {} changed nothing", self.session));
            }
            if !is_nothing {
                let text = match files as u64 {
                    0 => format!("● {} has all of it already", dir.display()),
                    new => {
                        let files = show::count(new, "file");
                        format!("● {files} written back to {}", dir.display())
                    }
                };
                screen.note(Tone::Good, text);
            }
            return Ok(GivenBack::Files);
        }
        let is_branch = self.back == Back::Branch && answered;
        if let (true, Some(changes)) = (is_branch, changes)
            && let Some(made) = commits(changes).await?
        {
            return Ok(GivenBack::Commits(made));
        }
        if let (Some(path), Some(dir)) = (kept, source) {
            let now = matches!(self.back, Back::Now(_));
            if self.back != Back::Patch && !now && !(is_branch && changes.is_some()) {
                screen.note(Tone::Warning, format!("! {}", self.unwritten(state)));
            }
            self.tell_how(work, (path, dir), screen);
        }
        match self.back {
            Back::Now(_) => Err(Failure::new(Kind::Conflict, self.unwritten(state))),
            Back::Patch | Back::Apply(_) | Back::Branch => Ok(GivenBack::Nothing),
        }
    }

    /// Says how a person writes the changes back.
    fn tell_how(&self, work: &Work, (patch, dir): (&Path, &Path), screen: &Screen) {
        if !can_be_accepted(&work.hazards) {
            let text = "! don't apply this patch as it is: it has what is never written back";
            return screen.note(Tone::Warning, text);
        }
        let ours = format!("outrigger sessions apply {}", self.session);
        if let Some(changes) = &work.changes {
            let written = WrittenChanges::load(self.paths, self.session);
            let written = written.map(|it| it.changes()).unwrap_or_default();
            let rest = outrigger_repository::since(dir, &written, changes.clone());
            let there = outrigger_repository::already_there(dir, &rest);
            if there == rest.len() {
                let text = format!("{} has all of it already", dir.display());
                return screen.note(Tone::Detail, text);
            }
            if there > 0 || rest != *changes {
                // As a whole it fits no more.
                return screen.note(Tone::Detail, format!("the rest comes with: {ours}"));
            }
        }
        let text = format!("apply it with: {}", apply_by_hand(dir, patch));
        screen.note(Tone::Detail, text);
        if !matches!(self.back, Back::Now(_)) {
            screen.note(Tone::Detail, format!("or: {ours}"));
        }
    }

    /// Why nothing was written back.
    fn unwritten(&self, state: &State) -> String {
        let why = match state.ended() {
            _ if self.source.is_none() => "it began with no directory",
            _ if state.in_turn() => "its turn is not over",
            Some(TurnEnd::Answered) => "there is no sandbox to take it from",
            _ => "the work is not done",
        };
        format!("nothing was written back: {why}")
    }

    fn patch_path(&self) -> PathBuf {
        self.paths.patch(self.session.as_str())
    }

    /// Keeps the patch, durably. If it is empty there is none, nor one of before.
    pub(crate) fn keep(&self, patch: &[u8]) -> Outcome<Option<PathBuf>> {
        let path = self.patch_path();
        let kept = match patch {
            [] => fs::remove_file(&path).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            }),
            patch => write(&path, patch),
        };
        kept.map_err(|error| {
            Failure::new(Kind::Storage, format!("{}: {error}", path.display()))
                .hint(resume_hint(self.session))
        })?;
        Ok((!patch.is_empty()).then_some(path))
    }

    /// Tells that it waits for a person, which is an error.
    pub(crate) fn tell_waiting(
        &self,
        state: &State,
        waiting: &[PendingApproval],
        failure: Failure,
        screen: &Screen,
    ) -> Outcome<u8> {
        self.report(state, waiting, None, &GivenBack::Nothing).tell("", Some(failure), screen)
    }

    /// What programs are told at the end.
    fn report(
        &self,
        state: &State,
        waiting: &[PendingApproval],
        work: Option<&Work>,
        given: &GivenBack,
    ) -> RunReport {
        let spec = state.spec();
        let waiting = waiting.iter().map(PendingApproval::id);
        RunReport(json!({
            "type": "result",
            "session": self.session.as_str(),
            "status": state.status(),
            "answer": outrigger_agent::answer(state.conversation()),
            "scripted": spec.is_some_and(|spec| spec.model.scripted),
            "model": spec.map(|spec| spec.model.name.as_str()),
            "patch": work.and_then(|work| work.kept.as_ref()).map(|path| path.display().to_string()),
            "applied": matches!(given, GivenBack::Files),
            "branch": match given {
                GivenBack::Commits(made) => made.object(),
                GivenBack::Nothing | GivenBack::Files => serde_json::Value::Null,
            },
            "hazards": work.map(|work| work.hazards.iter().map(told).collect::<Vec<_>>()),
            "steps": state.spent().steps,
            "tokens": state.spent().tokens,
            "spent": state.spent(),
            "waiting": waiting.collect::<Vec<_>>(),
        }))
    }
}

/// What programs are told at the end.
struct RunReport(serde_json::Value);

impl RunReport {
    /// Tells the answer, or the one object, in which an error stands as well.
    fn tell(mut self, answer: &str, failure: Option<Failure>, screen: &Screen) -> Outcome<u8> {
        if let Some(failure) = &failure {
            self.0["error"] = failure.object();
        }
        let is_told = screen.is_json() || !answer.is_empty() || failure.is_none();
        if is_told {
            screen.note(Tone::Plain, "");
            screen.result(answer, &self.0).map_err(|failure| {
                let session = self.0["session"].as_str().unwrap_or_default();
                failure.hint(format!("`outrigger sessions show {session}` prints the answer."))
            })?;
        }
        match failure {
            Some(failure) if screen.is_json() => Err(failure.told()),
            Some(failure) => Err(failure),
            None => Ok(0),
        }
    }
}

/// What may be written back: a person who sits there is asked about what can be accepted.
async fn accepted(given: Accept, hazards: &[Hazard], screen: &Screen) -> Outcome<Accept> {
    let is_question = !hazards.is_empty() && can_be_accepted(hazards);
    if given == Accept::Named || !is_question || !screen.can_ask() {
        return Ok(given);
    }
    let files = show::count(hazards.len() as u64, "file");
    if screen
        .ask(&format!(
            "Write back also the {files} above, which programs run or obey by themselves?"
        ))
        .await?
    {
        return Ok(Accept::Named);
    }
    let text = "nothing was written back, because not all of it was accepted";
    Err(Failure::new(Kind::Denied, text).hint("The changes are kept in the patch."))
}

fn can_be_accepted(hazards: &[Hazard]) -> bool {
    hazards.iter().all(|hazard| hazard.grade == Grade::Named)
}

fn told(hazard: &Hazard) -> serde_json::Value {
    let refused = hazard.grade == Grade::Refused;
    json!({ "path": hazard.path, "why": hazard.why, "refused": refused })
}

/// The command with which a person applies a patch. In a part of a repository git
/// takes paths from its root, and passes over all others without a word.
fn apply_by_hand(dir: &Path, patch: &Path) -> String {
    let root = dir.ancestors().find(|path| path.join(".git").exists());
    let part = root.and_then(|root| dir.strip_prefix(root).ok());
    let part = part.filter(|part| !part.as_os_str().is_empty());
    let directory = part.map_or_else(String::new, |part| {
        format!(" {}", word(&format!("--directory={}", part.display())))
    });
    format!(
        "git -C {} apply{directory} {}",
        word(&dir.display().to_string()),
        word(&patch.display().to_string())
    )
}
