//! The end of a drive: the changes are taken out of the sandbox, kept as a patch,
//! shown, and written back if that was asked for.

mod back;
mod branch;
mod durable;
mod ending;
mod since;

use outrigger_agent::{SessionId, Spec, State, TurnEnd};
use outrigger_beneath::Dir;
use outrigger_engine::Engine;
use outrigger_engine::workspace::{self, Changes};
use outrigger_repository::{Accept, Change, Error, Grade, Hazard, Rules, hazards};
use outrigger_sandbox::Sandbox;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::drive::resume_hint;
use crate::compose::Store;
use crate::config::Notify;
use crate::exit::{Failure, Kind, Outcome};
use crate::paths::Paths;
use crate::show::{self, Screen, Tone, Totals, word};
use crate::waiting::{self, PendingApproval};
use crate::{limits, notify, own_files, repository, session};

pub(crate) use back::Back;
use branch::CommittedWork;
pub(crate) use durable::write;
pub(crate) use ending::{ending, waits};
pub(crate) use since::since;

/// What finishing needs.
#[derive(Debug)]
pub(crate) struct Finish<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) store: &'a Store,
    pub(crate) engine: &'a Engine,
    pub(crate) session: &'a SessionId,
    pub(crate) back: Back,
    pub(crate) retention_ms: u64,
    pub(crate) notify: &'a Notify,
}

/// What came out of a drive.
#[derive(Debug)]
struct Work<'a> {
    /// None, if there is no sandbox to take any from.
    changes: Option<Vec<Change>>,
    hazards: Vec<Hazard>,
    /// The directory that the work began with.
    source: Option<&'a Path>,
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

impl Finish<'_> {
    /// Finishes, and gives the exit code. Safe to repeat.
    pub(crate) async fn execute(&self, state: &State, screen: &mut Screen) -> Outcome<u8> {
        let waiting = PendingApproval::below(&*self.store.journal, self.session).await?;
        let done = match waits(&waiting) {
            Some(failure) => self.object(state, &waiting, None, &GivenBack::Nothing).tell(
                "",
                Some(failure),
                screen,
            ),
            None => self.take_out(state, screen).await,
        };
        // Whatever became of it, nothing runs on for nobody.
        self.tidy(screen).await;
        if !waiting.is_empty() {
            notify::tell(self.paths, self.notify, &waiting::list(&waiting), screen).await;
        }
        if let Ok(next) = self.next(state, &waiting).await {
            screen.note(Tone::Detail, Totals::of(state).line(self.session, &next));
        }
        done
    }

    /// The command that goes on from here.
    async fn next(&self, state: &State, waiting: &[PendingApproval]) -> Outcome<String> {
        let session = self.session;
        if let Some(first) = waiting.first() {
            return Ok(format!("outrigger approve {}", first.id()));
        }
        if state.is_cancelled() {
            return Ok(format!("outrigger sessions show {session}"));
        }
        if !matches!(state.ended(), Some(TurnEnd::Answered)) {
            return Ok(format!("outrigger sessions resume {session}"));
        }
        let here = std::env::current_dir().and_then(fs::canonicalize);
        let last = match &here {
            Ok(here) => session::last_in(self.store, here).await?,
            Err(_) => None,
        };
        let is_last = last.is_some_and(|last| last.session == *session);
        let which =
            if is_last { "run --continue".to_owned() } else { format!("sessions say {session}") };
        Ok(format!("outrigger {which} \"...\""))
    }

    /// Takes the changes out, keeps, shows and writes them back, and tells the answer.
    async fn take_out(&self, state: &State, screen: &mut Screen) -> Outcome<u8> {
        let changes = screen.during("taking the changes out", self.changes(state)).await?;
        let (changes, special) = changes.map(|it| (it.changed, it.special)).unzip();
        let special: Vec<String> = special.unwrap_or_default();
        let special = special.iter().map(|path| format!("{path}: a FIFO, device or socket"));
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let source = source.map(|it| Path::new(it.source.as_str()));
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
        let work = Work { changes, hazards, source, kept };
        let (given, failure) = match Box::pin(self.give_back(state, &work, screen)).await {
            Ok(given) => (given, None),
            Err(failure) => (GivenBack::Nothing, Some(failure)),
        };
        // What was answered is told, whatever became of the files.
        let (answer, failure) = match ending(state, self.session) {
            Ok(()) => (outrigger_agent::answer(state.conversation()), failure),
            Err(ending) => (String::new(), Some(failure.unwrap_or(ending))),
        };
        self.object(state, &[], Some(&work), &given).tell(&answer, failure, screen)
    }

    /// Writes the changes or the commits back if that was asked for and can be; says how a
    /// person does it where it was not.
    async fn give_back(
        &self,
        state: &State,
        work: &Work<'_>,
        screen: &Screen,
    ) -> Outcome<GivenBack> {
        let answered = matches!(state.ended(), Some(TurnEnd::Answered));
        let Work { changes, hazards, source, kept } = work;
        // Half of the work is never written back: the other half would not fit on it.
        if let (Back::Apply(accept), true, Some(changes), Some(dir)) =
            (self.back, answered, changes, source)
        {
            own_files::stay_untouched(self.paths, dir, changes)?;
            let accept = accepted(accept, hazards, screen).await?;
            outrigger_repository::apply(dir, changes, accept).map_err(|error| {
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
            if !changes.is_empty() {
                let files = show::count(changes.len() as u64, "file");
                screen.note(Tone::Good, format!("● {files} written back to {}", dir.display()));
            }
            return Ok(GivenBack::Files);
        }
        let is_branch = self.back == Back::Branch && answered;
        if let (true, Some(changes)) = (is_branch, changes)
            && let Some(made) = self.branch(state, changes, screen).await?
        {
            return Ok(GivenBack::Commits(made));
        }
        if let (Some(path), Some(dir)) = (kept, source) {
            if self.back != Back::Patch && !(is_branch && changes.is_some()) {
                let why = if answered {
                    "there is no sandbox to take it from"
                } else {
                    "the work is not done"
                };
                screen.note(Tone::Warning, format!("! nothing was written back: {why}"));
            }
            if can_be_accepted(hazards) {
                let by_hand = apply_by_hand(dir, path);
                screen.note(Tone::Detail, format!("apply it with: {by_hand}"));
                let ours = format!("or: outrigger sessions apply {}", self.session);
                screen.note(Tone::Detail, ours);
            } else {
                let text = "! don't apply this patch as it is: it has what is never written back";
                screen.note(Tone::Warning, text);
            }
        }
        Ok(GivenBack::Nothing)
    }

    /// Makes what was committed a branch, and says so. Nothing where nothing was.
    pub(super) async fn branch(
        &self,
        state: &State,
        changes: &[Change],
        screen: &Screen,
    ) -> Outcome<Option<CommittedWork>> {
        let source = state.spec().and_then(|spec| spec.workspace.as_ref());
        let Some(source) = source.map(|it| Path::new(&it.source)) else { return Ok(None) };
        let (session, sandbox) = (self.session, self.sandbox(state).await?);
        let made = branch::give(session, sandbox.as_deref(), (source, changes), screen).await?;
        made.iter().for_each(|made| made.tell(screen));
        Ok(made)
    }

    /// The sandbox whose changes come out, if it is still there.
    async fn sandbox(&self, state: &State) -> Outcome<Option<Arc<dyn Sandbox>>> {
        let Some(spec) = state.spec() else { return Ok(None) };
        let name = first_sandbox(spec);
        let found = outrigger_engine::reattach(self.engine, self.session, state, name).await;
        Ok(found.map_err(|error| failed(&error))?.map(|found| found.sandbox))
    }

    /// After the answer was shown. Failing here fails nothing: it is tried again.
    pub(super) async fn tidy(&self, screen: &Screen) {
        // Also after an answer: more may be said. What nobody asks for is collected.
        let mut warnings =
            outrigger_engine::suspend(self.engine, self.session).await.unwrap_or_default();
        warnings.extend(outrigger_engine::gc(self.engine, self.retention_ms).await.warnings);
        warnings.iter().for_each(|warning| screen.warning(warning));
    }

    /// The changes; `None` if there is no sandbox any more that could have any. They
    /// are those of the first sandbox: the others are for what is not to come out.
    pub(super) async fn changes(&self, state: &State) -> Outcome<Option<Changes>> {
        let Some(spec) = state.spec() else { return Ok(Some(Changes::default())) };
        let name = first_sandbox(spec);
        // Before it was filled, what is in a workspace is nobody's work.
        let Some(content) = spec.content(name).filter(|_| state.last_ready(name).is_some()) else {
            return Ok(Some(Changes::default()));
        };
        // Who cancelled the session deletes its sandbox, which must not come back here.
        if state.is_cancelled() {
            return Ok(None);
        }
        let found = outrigger_engine::reattach(self.engine, self.session, state, name).await;
        let Some(found) = found.map_err(|error| failed(&error))? else { return Ok(None) };
        if !found.whole && !spec.sandbox(name).is_none_or(|asked| asked.scope.is_thread()) {
            // Another session filled it, so that there is nothing to compare it with.
            return Ok(None);
        }
        if !found.whole {
            let text = "the sandbox died, and what is left of its disk can't be told from a half-filled one";
            return Err(Failure::new(Kind::SandboxUnavailable, text)
                .hint("Nothing was deleted. `outrigger sessions logs` has every step.")
                .hint(resume_hint(self.session)));
        }
        let sandbox = found.sandbox;
        let blobs = &self.store.blobs;
        let open = async || blobs.open(&content.archive).await.map_err(workspace::Error::Blob);
        let archive = open().await.map_err(|error| failed(&error))?;
        let ignored = tokio::task::spawn_blocking(move || Rules::of_archive(archive)).await;
        let ignored = ignored.map_err(|panic| failed(&panic))?.map_err(|error| failed(&error))?;
        // Folders of what comes along are passed over; there are single files, too.
        let comes_along = |path: &str| content.dependencies.iter().any(|it| it == path);
        let keep = |path: &str| !ignored.covers(path) && !comes_along(path);
        let changes = workspace::changes(&*sandbox, open, &content.dependencies, keep).await;
        changes.map(Some).map_err(|error| failed(&error).hint(resume_hint(self.session)))
    }

    fn patch_path(&self) -> PathBuf {
        self.paths.patch(self.session.as_str())
    }

    /// Keeps the patch, durably. If it is empty there is none, nor one of before.
    pub(super) fn keep(&self, patch: &[u8]) -> Outcome<Option<PathBuf>> {
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

    fn object(
        &self,
        state: &State,
        waiting: &[PendingApproval],
        work: Option<&Work<'_>>,
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

/// The sandbox that the directory was copied into.
pub(super) fn first_sandbox(spec: &Spec) -> &str {
    let first = spec.sandboxes.first().map(|sandbox| sandbox.name.as_str());
    first.unwrap_or(limits::SANDBOX_NAME_DEFAULT)
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

fn failed(error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::from_error(Kind::SandboxUnavailable, error)
}
