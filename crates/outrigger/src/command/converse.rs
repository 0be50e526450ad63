//! `outrigger` alone on a terminal: a conversation about the directory that one is in.
//!
//! Owns what comes from where: keys, the session's notices, what takes long. What it all means
//! is for `conversation` to say, which is pure. Must never do what takes long before there is a
//! prompt.

mod context;
mod face;
mod history;
mod jobs;
mod network;
mod resume;
mod talk;
mod work;

use clap::Args;
use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger_agent::Message;
use outrigger_engine::{EgressQuestion, ensure_shown};
use std::collections::VecDeque;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::config::{Config, ModelChoice};
use crate::conversation::{Action, Conversation, Input, Key, Slash};
use crate::exit::{Failure, Kind, Outcome};
use crate::flags::{Limits, Model, Net, Output};
use crate::network::HostChoice;
use crate::paths::Paths;
use crate::project_file::ProjectFile;
use crate::show::row::Row;
use crate::show::{self, Screen, Tone};
use crate::terminal::{self, Ability};
use crate::{limits, models, picture, session, trust, workspace};
use context::Context;
use face::{Face, Typed};
use jobs::{HostsSeen, JobEnd};
use talk::{Talk, TalkNotice};

/// How a conversation begins.
#[derive(Debug, Args)]
pub(crate) struct Converse {
    /// Go on with the last session of this directory.
    #[arg(long = "continue")]
    pub(crate) again: bool,
    #[command(flatten)]
    pub(crate) net: Net,
    #[command(flatten)]
    pub(crate) model: Model,
}

/// Converses until the person leaves.
pub(crate) async fn execute(paths: &Paths, asked: &Converse) -> Outcome<u8> {
    let mut config = Config::load(paths.configs(), &asked.model, Limits::default())?;
    let network = config.reach(&asked.net)?;
    let model = models::choose(paths, &config.model).await?;
    let dir =
        std::fs::canonicalize(".").map_err(|error| Failure::from_error(Kind::NotFound, &error))?;
    let context = Context::new(paths, config, model, dir);
    if !asked.again {
        context.has_model()?;
        // Before keys are heard one by one.
        let screen = Screen::new(Output { json: None, quiet: false });
        let tree = workspace::tree(&context.dir)?;
        trust::ask(&context.paths, &tree.top, ProjectFile::all(&tree), &screen).await?;
    }
    let mut rim = Rim::new(context, asked.again)?;
    if asked.again {
        // The session that goes on may reach it as well.
        rim.later.extend(network.map(|words| Slash::Net(Some(words))));
    }
    let whole = async move {
        let ended = rim.run().await;
        let Rim { face, conversation, talk, asides, .. } = rim;
        face.close(&conversation, talk.as_ref().map(|talk| &talk.session));
        // The disks of a session that rests are kept; that it rests can wait for the next time.
        let rests = asides.for_each(|_| std::future::ready(()));
        drop(tokio::time::timeout(Duration::from_millis(limits::CLOSE_MS_MAX), rests).await);
        ended
    };
    // The jobs are tasks of it.
    tokio::task::LocalSet::new().run_until(whole).await
}

/// What all of it is connected by.
struct Rim {
    context: Context,
    face: Face,
    conversation: Conversation,
    talk: Option<Talk>,
    /// What takes long, one after the other.
    jobs: VecDeque<LocalBoxFuture<'static, JobEnd>>,
    /// What is done beside it, and shown to nobody while it is.
    asides: FuturesUnordered<LocalBoxFuture<'static, JobEnd>>,
    /// What is said as soon as there is a session.
    unsaid: Vec<String>,
    /// Commands that are followed when the turn is over.
    later: Vec<Slash>,
    /// Rows that are to be printed.
    rows: Vec<Row>,
    drawn: Option<Instant>,
    /// Whether anything came since.
    dirty: bool,
    interrupts: Signal,
    terminates: Signal,
    begun: Instant,
    code: Option<u8>,
    /// Whether it is being looked what hosts are asked for.
    looking_for_hosts: bool,
    /// Answers to hosts: what was looked at before the last of them is not up to date.
    host_answers: u64,
}

impl Rim {
    fn new(context: Context, again: bool) -> Outcome<Self> {
        let listen =
            |kind| signal(kind).map_err(|error| Failure::from_error(Kind::AgentFailed, &error));
        let full = terminal::ability() == Ability::Full;
        let history = if full { history::read(&context.paths) } else { Vec::new() };
        let mut rim = Self {
            face: if full { Face::terminal()? } else { Face::lines() },
            conversation: Conversation::new(terminal::size(), history),
            talk: None,
            jobs: VecDeque::new(),
            asides: FuturesUnordered::new(),
            unsaid: Vec::new(),
            later: Vec::new(),
            rows: work::welcome(&context),
            drawn: None,
            dirty: true,
            interrupts: listen(SignalKind::interrupt())?,
            terminates: listen(SignalKind::terminate())?,
            begun: Instant::now(),
            code: None,
            looking_for_hosts: false,
            host_answers: 0,
            context,
        };
        let footer = rim.context.footer(None);
        rim.conversation.update(0, Input::Footer(footer));
        let begin = if again { jobs::go_on_with_last } else { jobs::look_for_last };
        let job = begin(rim.context.clone());
        if again {
            rim.busy("looking for the last session", job);
        } else {
            rim.asides.push(jobs::as_task(job));
        }
        Ok(rim)
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    async fn run(&mut self) -> Outcome<u8> {
        let mut ticks = tokio::time::interval(Duration::from_millis(limits::STATUS_TICK_MS));
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if let Some(code) = self.code {
                return Ok(code);
            }
            let due = self.drawn.map(|at| at + Duration::from_millis(limits::FRAME_MS));
            let is_due = self.dirty && due.is_none_or(|due| due <= Instant::now());
            if is_due && self.draw().is_err() {
                // Whoever looked at it has gone.
                return Ok(0);
            }
            let frame = tokio::time::sleep_until(due.unwrap_or_else(Instant::now));
            tokio::select! {
                biased;
                typed = self.face.next() => self.typed(typed).await,
                _ = self.interrupts.recv() => self.input(Input::Key(Key::Interrupt)).await,
                _ = self.terminates.recv() => self.code = Some(Kind::Interrupted as u8),
                () = frame, if self.dirty => {}
                end = next(self.jobs.front_mut()) => {
                    self.jobs.pop_front();
                    self.ended(end).await;
                }
                Some(end) = self.asides.next() => self.ended(end).await,
                came = talk::next(self.talk.as_mut()) => self.came(came).await,
                _ = ticks.tick() => {
                    self.look_for_hosts();
                    self.input(Input::Tick).await;
                }
            }
            self.dirty = true;
        }
    }

    fn draw(&mut self) -> std::io::Result<()> {
        let mut rows = std::mem::take(&mut self.rows);
        rows.extend(self.conversation.settled());
        (self.drawn, self.dirty) = (Some(Instant::now()), false);
        self.face.draw(&rows, &self.conversation)
    }

    async fn typed(&mut self, typed: Option<Typed>) {
        let now_ms = self.now_ms();
        let actions = match typed {
            Some(Typed::Input(input)) => self.conversation.update(now_ms, input),
            Some(Typed::Line(line)) => self.conversation.line(now_ms, &line),
            None => vec![Action::Leave],
        };
        // What a key does is shown at once.
        self.drawn = None;
        self.act(actions).await;
    }

    async fn input(&mut self, input: Input) {
        let now_ms = self.now_ms();
        let actions = self.conversation.update(now_ms, input);
        self.act(actions).await;
    }

    /// What the session told.
    async fn came(&mut self, notice: TalkNotice) {
        let Some(talk) = &mut self.talk else { return };
        match talk.take(notice).await {
            Ok(inputs) => {
                for input in inputs {
                    let idle = matches!(input, Input::Idle);
                    self.input(input).await;
                    if idle && let Some(talk) = &self.talk {
                        let job = jobs::after_turn(self.context.clone(), talk.parts());
                        self.asides.push(jobs::as_task(job));
                        self.follow();
                    }
                }
            }
            Err(failure) => self.failed(&failure).await,
        }
    }

    /// Shows an error, after which nothing is under way.
    async fn failed(&mut self, failure: &Failure) {
        self.rows.extend(work::failure(failure));
        self.input(Input::Idle).await;
    }

    async fn act(&mut self, actions: Vec<Action>) {
        let mut actions = VecDeque::from(actions);
        while let Some(action) = actions.pop_front() {
            let done = match action {
                Action::Print(rows) => {
                    // What was written before it stands above it.
                    let settled = self.conversation.settled();
                    self.rows.extend(settled.into_iter().chain(rows));
                    Ok(())
                }
                Action::Leave => {
                    self.code = Some(0);
                    Ok(())
                }
                Action::Redraw => {
                    self.face.redraw();
                    Ok(())
                }
                Action::Say(text) => self.say(text).await,
                Action::Interrupt => self.stop().await,
                Action::Look => self.look().await,
                Action::ListFiles => {
                    self.asides.push(jobs::as_task(jobs::files(self.context.clone())));
                    Ok(())
                }
                Action::Answer(question, decision, standing) => {
                    let given = question.answer(&decision, standing);
                    self.answer(&question.session, given).await
                }
                Action::AnswerHost(question, choice) => {
                    self.answer_host(question, choice);
                    Ok(())
                }
                Action::Command(command) => {
                    self.command(command);
                    Ok(())
                }
            };
            if let Err(failure) = done {
                self.rows.extend(work::failure(&failure));
            }
        }
    }

    fn busy(&mut self, what: &str, job: LocalBoxFuture<'static, JobEnd>) {
        self.jobs.push_back(jobs::as_task(job));
        let now_ms = self.now_ms();
        self.conversation.update(now_ms, Input::Busy(what.to_owned()));
    }

    async fn say(&mut self, text: String) -> Outcome {
        history::add(&self.context.paths, &text);
        if !self.jobs.is_empty() {
            self.unsaid.push(text);
            return Ok(());
        }
        let said = self.show_and_say(&text).await;
        if said.is_err() {
            self.conversation.take_back(&text);
        }
        said
    }

    /// Says something with the pictures that it names.
    async fn show_and_say(&mut self, text: &str) -> Outcome {
        let files = picture::mentioned(text, &self.context.dir)?;
        let pictures = picture::keep(&self.context.paths, files).await?;
        let lines = pictures.iter().map(show::picture);
        let lines: Vec<Row> = lines.map(|line| Row::note(Tone::Detail, &line)).collect();
        let message = Message { pictures, ..session::said(text.to_owned()) };
        match &mut self.talk {
            Some(talk) => {
                talk.say(message).await?;
                let now_ms = self.now_ms();
                self.conversation.update(now_ms, Input::Working);
            }
            None => {
                if let ModelChoice::Provider(model) = &self.context.model {
                    ensure_shown(&model.name, std::iter::empty(), &message.pictures)?;
                }
                let job = jobs::begin(self.context.clone(), message);
                self.busy("copying the directory", job);
            }
        }
        self.rows.extend(lines);
        Ok(())
    }

    async fn stop(&mut self) -> Outcome {
        match &mut self.talk {
            Some(talk) => talk.interrupt().await,
            None => Ok(()),
        }
    }

    async fn look(&mut self) -> Outcome {
        let Some(talk) = &mut self.talk else { return Ok(()) };
        let questions = talk.questions(&self.context.paths).await?;
        self.conversation.reopen();
        let now_ms = self.now_ms();
        let actions = self.conversation.update(now_ms, Input::Asked(questions));
        Box::pin(self.act(actions)).await;
        Ok(())
    }

    async fn answer(
        &mut self,
        session: &outrigger_agent::SessionId,
        given: outrigger_engine::AnswerRequest,
    ) -> Outcome {
        let Some(talk) = &mut self.talk else { return Ok(()) };
        talk.answer(session, given).await?;
        let now_ms = self.now_ms();
        self.conversation.update(now_ms, Input::Working);
        Ok(())
    }

    /// Looks what hosts the sandbox asks for, while something runs in it.
    fn look_for_hosts(&mut self) {
        let driven = self.talk.as_ref().filter(|talk| talk.is_driven());
        if let (Some(talk), false) = (driven, self.looking_for_hosts) {
            self.looking_for_hosts = true;
            self.asides.push(jobs::as_task(jobs::hosts(talk.parts(), self.host_answers)));
        }
    }

    /// Acts on an answer now. What holds for the session is a change of it, for when it rests.
    fn answer_host(&mut self, question: EgressQuestion, choice: HostChoice) {
        let Some(talk) = &self.talk else { return };
        let words = choice.words(&question);
        (self.looking_for_hosts, self.host_answers) = (true, self.host_answers + 1);
        let (context, parts) = (self.context.clone(), talk.parts());
        let job = jobs::answer_host(context, parts, self.host_answers, (question, choice));
        self.asides.push(jobs::as_task(job));
        self.later.extend(words.map(|words| Slash::Net(Some(words))));
    }

    async fn hosts(&mut self, seen: HostsSeen) {
        match seen.answered {
            Ok(rows) => self.rows.extend(rows),
            Err(failure) => self.rows.extend(work::failure(&failure)),
        }
        if seen.answers == self.host_answers {
            self.looking_for_hosts = false;
            if self.talk.as_ref().is_some_and(Talk::is_driven) {
                self.input(Input::Hosts(seen.questions)).await;
            }
        }
    }

    /// Follows the commands that were to wait.
    fn follow(&mut self) {
        let later = std::mem::take(&mut self.later);
        later.into_iter().for_each(|command| self.command(command));
    }

    fn command(&mut self, command: Slash) {
        if self.talk.as_ref().is_some_and(Talk::is_driven) && work::needs_rest(&command) {
            let text = "  that follows when the turn is over; Esc stops it";
            self.rows.push(Row::note(Tone::Detail, text));
            self.later.push(command);
            return;
        }
        if let (Slash::Net(Some(words)), None) = (&command, &self.talk) {
            // For the session that begins with the next message.
            self.context.widen(words);
            self.rows.push(network::row(&self.context.network()));
            return;
        }
        if let Slash::Model(Some(name)) = &command {
            if !self.context.choose(name, &mut self.rows) {
                return;
            }
            if self.talk.is_none() {
                let footer = self.context.footer(None);
                self.conversation.update(0, Input::Footer(footer));
                return;
            }
        }
        if command == Slash::New {
            self.talk = None;
            self.conversation.forget();
            self.rows.push(Row::note(Tone::Detail, "  the next message begins another session"));
            let footer = self.context.footer(None);
            self.conversation.update(0, Input::Footer(footer));
            return;
        }
        let parts = self.talk.as_ref().map(Talk::parts);
        let what = work::what(&command);
        let job = jobs::command(self.context.clone(), parts, command);
        self.busy(what, job);
    }

    /// What takes long has come to its end.
    async fn ended(&mut self, end: JobEnd) {
        let was_busy = self.jobs.is_empty() && !self.talk.as_ref().is_some_and(Talk::is_driven);
        match end {
            JobEnd::Rows(Ok(rows)) => self.rows.extend(rows),
            JobEnd::Hosts(seen) => return self.hosts(*seen).await,
            JobEnd::Files(files) => return self.input(Input::Files(files)).await,
            JobEnd::Applied(Ok((applied, rows))) => {
                self.context.applied = applied;
                self.rows.extend(rows);
            }
            JobEnd::Opened(Ok(opened)) => return Box::pin(self.opened(*opened)).await,
            JobEnd::Rows(Err(failure))
            | JobEnd::Applied(Err(failure))
            | JobEnd::Opened(Err(failure)) => self.rows.extend(work::failure(&failure)),
        }
        if was_busy {
            self.input(Input::Idle).await;
        }
        let unsaid = std::mem::take(&mut self.unsaid);
        for text in unsaid {
            if let Err(failure) = Box::pin(self.say(text)).await {
                self.rows.extend(work::failure(&failure));
            }
        }
    }

    /// Goes on with a session.
    async fn opened(&mut self, opened: resume::OpenedTalk) {
        let resume::OpenedTalk { mut task, before, rows, drive } = opened;
        // Who goes on with the same one holds it already.
        task.lock = task.lock.or_else(|| self.talk.take().and_then(Talk::into_lock));
        self.rows.extend(rows);
        self.conversation.forget();
        self.context.applied.clear();
        let shown = before.last().map(|record| record.seq).unwrap_or_default();
        before.iter().for_each(|record| self.conversation.learn(record));
        let mut talk = Talk::new(task, shown, self.context.paths.clone());
        let footer = self.context.footer(Some(&talk.session));
        self.conversation.update(self.now_ms(), Input::Footer(footer));
        let driven = if drive { talk.drive() } else { Ok(()) };
        self.talk = Some(talk);
        let input = if drive { Input::Working } else { Input::Idle };
        self.input(input).await;
        if !drive {
            self.follow();
        }
        if let Err(failure) = driven {
            self.failed(&failure).await;
        }
        for text in std::mem::take(&mut self.unsaid) {
            if let Err(failure) = Box::pin(self.say(text)).await {
                self.rows.extend(work::failure(&failure));
            }
        }
    }
}

/// What a future comes to, if there is one.
async fn next<T>(job: Option<&mut LocalBoxFuture<'static, T>>) -> T {
    match job {
        Some(job) => job.await,
        None => std::future::pending().await,
    }
}
