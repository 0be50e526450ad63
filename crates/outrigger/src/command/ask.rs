//! Puts the questions of a session to whoever sits at the terminal, line by line, while it goes
//! on or waits.
//!
//! Owns that nothing is answered that was not shown, and that what nobody answers stays in the
//! inbox. Asks nobody where there is no terminal.

use outrigger_agent::{Cause, Event, Record, Seq, SessionId};
use outrigger_engine::{Engine, Error, RuleSource};
use outrigger_policy::Verdict;
use outrigger_store::Journal;
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::time::Instant;

use crate::exit::Outcome;
use crate::limits;
use crate::paths::Paths;
use crate::question::{Choice, Decision, Question, StandingAnswers};
use crate::rules::ConfiguredRules;
use crate::show::{Screen, Tone};
use crate::waiting::PendingApproval;

/// Whoever asks the questions of one session.
pub(crate) struct Asker<'a> {
    paths: &'a Paths,
    engine: &'a Engine,
    journal: &'a dyn Journal,
    session: &'a SessionId,
    open: Option<OpenQuestion>,
    /// What nobody is asked about any more here: it waits in the inbox.
    left: BTreeSet<String>,
    standing: StandingAnswers,
}

/// A question that somebody looks at.
struct OpenQuestion {
    question: Question,
    /// Where its session stood when it was put.
    head: Seq,
    until: Instant,
    expects: Expects,
}

/// What the next line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expects {
    Choice,
    Reason,
    Instead,
}

/// What came of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AskOutcome {
    /// The session can go on.
    Answered,
    /// Somebody still looks at it.
    Open,
    /// It waits in the inbox.
    Left,
}

/// Whether an event is one after which somebody may be asked.
pub(crate) fn asks(record: &Record) -> bool {
    match &record.event {
        Event::Decided { verdict: Verdict::Ask { .. }, .. } => true,
        Event::Withheld { shortfall, .. } => matches!(shortfall.cause, Cause::Soft(_)),
        _ => false,
    }
}

impl<'a> Asker<'a> {
    pub(crate) fn new(
        paths: &'a Paths,
        engine: &'a Engine,
        journal: &'a dyn Journal,
        session: &'a SessionId,
    ) -> Self {
        let (left, standing) = (BTreeSet::new(), StandingAnswers::default());
        Self { paths, engine, journal, session, open: None, left, standing }
    }

    /// Whether somebody looks at a question.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Puts the next question that was not left, or answers it as it was answered before.
    pub(crate) async fn look(&mut self, screen: &Screen) -> Outcome<AskOutcome> {
        if !screen.can_ask() {
            return Ok(AskOutcome::Left);
        }
        if self.open.is_some() {
            return Ok(AskOutcome::Open);
        }
        let waiting = PendingApproval::below(self.journal, self.session).await?;
        let rules = ConfiguredRules::read(self.paths)?.current().ok();
        for one in waiting.iter().filter(|one| !self.left.contains(&one.id())) {
            let Some(question) = Question::of(self.engine, rules.as_ref(), one).await? else {
                continue;
            };
            if let Some(before) = self.standing.covers(&question) {
                let given = question.answer(&Decision::Yes, Some(before));
                self.engine.answer(&question.session, given).await?;
                screen.note(Tone::Good, format!("  ● approved as before: {}", question.title()));
                return Ok(AskOutcome::Answered);
            }
            let head = self.journal.head(&question.session).await?;
            self.put(question, head, screen).await;
            return Ok(AskOutcome::Open);
        }
        Ok(AskOutcome::Left)
    }

    async fn put(&mut self, question: Question, head: Seq, screen: &Screen) {
        screen.forget_lines().await;
        screen.note(Tone::Warning, format!("? {}", question.title()));
        for line in &question.lines {
            screen.note(Tone::Plain, format!("  {line}"));
        }
        if let Some(diff) = &question.diff {
            screen.whole_diff(diff);
        }
        screen.note(Tone::Strong, format!("  {}", question.choices()));
        let until = Instant::now() + Duration::from_millis(limits::QUESTION_MS_MAX);
        self.open = Some(OpenQuestion { question, head, until, expects: Expects::Choice });
    }

    /// Ends when nobody answered for long.
    pub(crate) async fn patience(&self) {
        match &self.open {
            Some(open) => tokio::time::sleep_until(open.until).await,
            None => std::future::pending().await,
        }
    }

    /// Nobody answers now: it stays in the inbox.
    pub(crate) fn leave(&mut self, screen: &Screen, why: &str) {
        if let Some(open) = self.open.take() {
            screen.note(Tone::Warning, format!("! {why}; it stays in the inbox"));
            self.left.insert(open.question.id);
        }
    }

    /// Whether the question was answered elsewhere, or is over.
    pub(crate) async fn is_over(&mut self, screen: &Screen) -> Outcome<bool> {
        let Some(open) = &mut self.open else { return Ok(false) };
        let head = self.journal.head(&open.question.session).await?;
        if std::mem::replace(&mut open.head, head) == head {
            return Ok(false);
        }
        let waiting = PendingApproval::find(self.journal, &open.question.id).await?;
        let over = waiting.asked().is_none();
        if over {
            screen.note(Tone::Detail, "  it was answered elsewhere");
            self.open = None;
        }
        Ok(over)
    }

    /// Somebody typed a line.
    pub(crate) async fn take(
        &mut self,
        line: Option<String>,
        screen: &Screen,
    ) -> Outcome<AskOutcome> {
        let Some(open) = &mut self.open else { return Ok(AskOutcome::Open) };
        let Some(line) = line else {
            self.leave(screen, "nobody is there to answer");
            return Ok(AskOutcome::Left);
        };
        let text = line.trim_end_matches(['\r', '\n']).to_owned();
        let decision = match (open.expects, Choice::parse(&text)) {
            (Expects::Reason, _) => Decision::No(text),
            (Expects::Instead, _) if text.trim().is_empty() => {
                open.expects = Expects::Choice;
                screen.note(Tone::Strong, format!("  {}", open.question.choices()));
                return Ok(AskOutcome::Open);
            }
            (Expects::Instead, _) => Decision::Instead(text),
            (Expects::Choice, Some(Choice::Yes)) => Decision::Yes,
            (Expects::Choice, Some(Choice::Always)) if open.question.can_stand() => {
                Decision::Always
            }
            (Expects::Choice, Some(Choice::Later)) => {
                self.leave(screen, "left for later");
                return Ok(AskOutcome::Left);
            }
            (Expects::Choice, other) => {
                open.explain(other, screen);
                return Ok(AskOutcome::Open);
            }
        };
        self.answer(&decision, screen).await
    }

    async fn answer(&mut self, decision: &Decision, screen: &Screen) -> Outcome<AskOutcome> {
        let Some(open) = self.open.take() else { return Ok(AskOutcome::Open) };
        let given = open.question.answer(decision, None);
        match self.engine.answer(&open.question.session, given).await {
            Ok(()) => {}
            // It is asked again as it stands now, or not any more.
            Err(error @ (Error::Unanswerable { .. } | Error::NotEntitled { .. })) => {
                screen.note(Tone::Warning, format!("! {error}"));
                if matches!(error, Error::NotEntitled { .. }) {
                    self.left.insert(open.question.id);
                    return Ok(AskOutcome::Left);
                }
                return Ok(AskOutcome::Answered);
            }
            Err(error) => return Err(error.into()),
        }
        if *decision == Decision::Always {
            self.standing.add(&open.question);
        }
        Ok(AskOutcome::Answered)
    }
}

impl OpenQuestion {
    /// What is no answer yet leads on to one.
    fn explain(&mut self, choice: Option<Choice>, screen: &Screen) {
        match choice {
            Some(Choice::No) => {
                self.expects = Expects::Reason;
                screen.note(Tone::Strong, "  why not? The model is told; Enter for no reason");
            }
            Some(Choice::Edit) if self.question.draft().is_some() => {
                self.expects = Expects::Instead;
                let draft = self.question.draft().unwrap_or_default();
                screen.note(Tone::Detail, format!("  now it is: {draft}"));
                screen.note(Tone::Strong, "  what is to be done instead? Enter leaves it");
            }
            Some(Choice::Why) => {
                for line in &self.question.why {
                    screen.note(Tone::Detail, format!("  {line}"));
                }
                screen.note(Tone::Strong, format!("  {}", self.question.choices()));
            }
            _ => screen.note(Tone::Strong, format!("  {}", self.question.choices())),
        }
    }
}
