//! The loop of a conversation: what came goes to `conversation`, and what that asks for is done.
//!
//! Owns what comes from where: keys, the session's notices, what takes long. What it all means
//! is for `conversation` to say, which is pure.

use futures_util::StreamExt;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::FuturesUnordered;
use outrigger_engine::EgressQuestion;
use std::collections::VecDeque;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use super::context::Context;
use super::face::{Face, Typed};
use super::jobs::{self, HostsSeen, JobEnd};
use super::source::{OpenedTalk, Talk};
use super::{history, work};
use crate::conversation::{Action, Conversation, Input, Key, Slash};
use crate::exit::{Failure, Kind, Outcome};
use crate::limits;
use crate::network::HostChoice;
use crate::question::{Decision, Question};
use crate::show::row::Row;
use crate::show::{Tone, inert};
use crate::terminal::{self, Ability};

/// What all of it is connected by.
pub(super) struct Rim {
    context: Context,
    pub(super) face: Face,
    pub(super) conversation: Conversation,
    pub(super) talk: Option<Box<dyn Talk>>,
    /// What takes long, one after the other.
    jobs: VecDeque<LocalBoxFuture<'static, JobEnd>>,
    /// What is done beside it, and shown to nobody while it is.
    pub(super) asides: FuturesUnordered<LocalBoxFuture<'static, JobEnd>>,
    /// With what a session is being begun.
    beginning: Option<String>,
    /// What is said as soon as there is a session.
    unsaid: Vec<String>,
    /// Commands that are followed when the turn is over.
    pub(super) later: Vec<Slash>,
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
    pub(super) fn new(context: Context, again: bool) -> Outcome<Self> {
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
            beginning: None,
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

    pub(super) async fn run(&mut self) -> Outcome<u8> {
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
                () = something(self.talk.as_mut()) => self.came().await,
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
    async fn came(&mut self) {
        let Some(talk) = &mut self.talk else { return };
        match talk.take().await {
            Ok(inputs) => {
                for input in inputs {
                    let idle = matches!(input, Input::Idle);
                    self.input(input).await;
                    if idle && let Some(talk) = &self.talk {
                        self.asides.push(jobs::as_task(jobs::after_turn(talk.work())));
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
                    self.answer(&question, &decision, standing).await
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
        let (message, rows) = self.context.sessions.message(text).await?;
        match &mut self.talk {
            Some(talk) => {
                talk.say(message).await?;
                let now_ms = self.now_ms();
                self.conversation.update(now_ms, Input::Working);
            }
            None => {
                self.beginning = Some(text.to_owned());
                let job = jobs::begin(self.context.clone(), message);
                self.busy("copying the directory", job);
            }
        }
        self.rows.extend(rows);
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
        let inputs = talk.look().await?;
        self.conversation.reopen();
        for input in inputs {
            let now_ms = self.now_ms();
            let actions = self.conversation.update(now_ms, input);
            Box::pin(self.act(actions)).await;
        }
        Ok(())
    }

    async fn answer(
        &mut self,
        question: &Question,
        decision: &Decision,
        standing: Option<outrigger_agent::Seq>,
    ) -> Outcome {
        let Some(talk) = &mut self.talk else { return Ok(()) };
        talk.answer(question, decision, standing).await?;
        let now_ms = self.now_ms();
        self.conversation.update(now_ms, Input::Working);
        Ok(())
    }

    /// Looks what hosts the sandbox asks for, while something runs in it.
    fn look_for_hosts(&mut self) {
        let driven = self.talk.as_ref().filter(|talk| talk.is_driven());
        if let (Some(talk), false) = (driven, self.looking_for_hosts) {
            self.looking_for_hosts = true;
            self.asides.push(jobs::as_task(jobs::hosts(talk.work(), self.host_answers)));
        }
    }

    /// Acts on an answer now. What holds for the session is a change of it, for when it rests.
    fn answer_host(&mut self, question: EgressQuestion, choice: HostChoice) {
        let Some(talk) = &self.talk else { return };
        let words = choice.words(&question);
        (self.looking_for_hosts, self.host_answers) = (true, self.host_answers + 1);
        let job = jobs::answer_host(talk.work(), self.host_answers, (question, choice));
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
            if self.is_driven() {
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
        if self.is_driven() && work::needs_rest(&command) {
            let text = "  that follows when the turn is over; Esc stops it";
            self.rows.push(Row::note(Tone::Detail, text));
            self.later.push(command);
            return;
        }
        if let (Slash::Net(Some(words)), None) = (&command, &self.talk) {
            // For the session that begins with the next message.
            self.context.sessions.widen(words);
            self.rows.push(work::network(&self.context.sessions.network()));
            return;
        }
        if let Slash::Model(Some(name)) = &command {
            if let Err(failure) = self.context.sessions.choose(name) {
                self.rows.extend(work::failure(&failure));
                return;
            }
            if self.talk.is_none() {
                let footer = self.context.footer(None);
                self.conversation.update(0, Input::Footer(footer));
                return;
            }
        }
        if command == Slash::New {
            let text = match self.talk.take().map(|talk| talk.work()) {
                Some(work) => {
                    let left = work.session();
                    format!("  the next message begins another session; /sessions {left} goes back")
                }
                None => "  the next message begins another session".to_owned(),
            };
            self.conversation.forget();
            self.rows.push(Row::note(Tone::Detail, &text));
            let footer = self.context.footer(None);
            self.conversation.update(0, Input::Footer(footer));
            return;
        }
        let work = self.talk.as_ref().map(|talk| talk.work());
        let what = work::what(&command);
        let job = jobs::command(self.context.clone(), work, command);
        self.busy(what, job);
    }

    /// What takes long has come to its end.
    async fn ended(&mut self, end: JobEnd) {
        let was_busy = self.jobs.is_empty() && !self.is_driven();
        match end {
            JobEnd::Rows(Ok(rows)) => self.rows.extend(rows),
            JobEnd::Hosts(seen) => return self.hosts(*seen).await,
            JobEnd::Files(files) => return self.input(Input::Files(files)).await,
            JobEnd::Opened(Ok(opened)) => return Box::pin(self.opened(opened)).await,
            JobEnd::Opened(Err(failure)) => {
                self.rows.extend(work::failure(&failure));
                // Nobody heard it: it can be said again.
                let text = self.beginning.take();
                text.iter().for_each(|text| self.conversation.take_back(text));
            }
            JobEnd::Rows(Err(failure)) => self.rows.extend(work::failure(&failure)),
        }
        if was_busy {
            self.input(Input::Idle).await;
        } else if self.jobs.is_empty() && self.is_driven() {
            self.input(Input::Working).await;
        }
        self.say_the_rest().await;
    }

    /// Says what was to be said as soon as nothing else is done.
    async fn say_the_rest(&mut self) {
        for text in std::mem::take(&mut self.unsaid) {
            if let Err(failure) = Box::pin(self.say(text)).await {
                self.rows.extend(work::failure(&failure));
            }
        }
    }

    fn is_driven(&self) -> bool {
        self.talk.as_ref().is_some_and(|talk| talk.is_driven())
    }

    /// What is told at the end: what stays, and what was not done.
    pub(super) async fn farewell(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if let Some(work) = self.talk.as_ref().map(|talk| talk.work()) {
            let session = work.session();
            let cut = if self.is_driven() { ", its turn cut off" } else { "" };
            let is_here =
                work.source().await.map_or(true, |source| self.context.dir.starts_with(source));
            let next = match is_here {
                true => "`outrigger --continue` goes on with it here".to_owned(),
                false => format!("`outrigger sessions say {session} \"...\"` goes on with it"),
            };
            let text = format!("session {session} stays{cut}; {next}");
            rows.push(Row::note(Tone::Detail, &text));
        }
        let queued = self.conversation.queued().chain(self.unsaid.iter().map(String::as_str));
        let unsent = queued.map(|text| ("not sent", text));
        let unheard =
            self.conversation.unheard().map(|text| ("the session may not have heard", text));
        rows.extend(unheard.chain(unsent).map(|(what, text)| {
            let line = text.lines().next().unwrap_or_default();
            Row::note(Tone::Warning, &format!("! {what}: {}", inert(line)))
        }));
        let undone = self.later.iter().filter_map(work::written);
        rows.extend(undone.map(|it| Row::note(Tone::Warning, &format!("! not done: {it}"))));
        rows
    }

    /// Goes on with a session.
    async fn opened(&mut self, opened: OpenedTalk) {
        let OpenedTalk { talk, before, rows } = opened;
        self.beginning = None;
        self.rows.extend(rows);
        self.conversation.forget();
        before.iter().for_each(|record| self.conversation.learn(record));
        let footer = self.context.footer(Some(talk.work().session()));
        self.conversation.update(self.now_ms(), Input::Footer(footer));
        let is_driven = talk.is_driven();
        self.talk = Some(talk);
        let input = if is_driven { Input::Working } else { Input::Idle };
        self.input(input).await;
        if !is_driven {
            self.follow();
        }
        self.say_the_rest().await;
    }
}

/// Ends when something came of a session, if there is one.
async fn something(talk: Option<&mut Box<dyn Talk>>) {
    match talk {
        Some(talk) => talk.wait().await,
        None => std::future::pending().await,
    }
}

/// What a future comes to, if there is one.
async fn next<T>(job: Option<&mut LocalBoxFuture<'static, T>>) -> T {
    match job {
        Some(job) => job.await,
        None => std::future::pending().await,
    }
}
