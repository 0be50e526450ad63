//! Puts the questions of a session to whoever sits at the terminal, line by line, while it goes
//! on or waits.
//!
//! Owns that nothing is answered that was not shown, and that what nobody answers stays in the
//! inbox. Asks nobody where there is no terminal.

use async_trait::async_trait;
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

/// Where the questions of a session come from, and where answers go.
#[async_trait(?Send)]
pub(crate) trait QuestionSource {
    /// The first question, of the session or of a subagent, that was not left.
    async fn first(&self, left: &BTreeSet<String>) -> Outcome<Option<Question>>;

    /// All questions of these.
    async fn all(&self) -> Outcome<Vec<Question>> {
        let (mut all, mut seen) = (Vec::new(), BTreeSet::new());
        while let Some(question) = self.first(&seen).await? {
            seen.insert(question.id.clone());
            all.push(question);
        }
        Ok(all)
    }

    /// Takes an answer in. `standing`: the effect about which the same was answered before.
    async fn answer(
        &self,
        question: &Question,
        decision: &Decision,
        standing: Option<Seq>,
    ) -> Outcome<AnswerReceipt>;

    /// Where a session stands.
    async fn head(&self, session: &SessionId) -> Outcome<Seq>;

    /// Whether the question of that name is still asked.
    async fn is_asked(&self, id: &str) -> Outcome<bool>;
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AnswerReceipt {
    Taken,
    /// It is asked as it stands now, or not any more; why.
    Over(String),
    /// Somebody else has to answer; why.
    NotEntitled(String),
}

/// The questions of a session that this process drives.
pub(crate) struct OwnQuestions<'a> {
    pub(crate) paths: &'a Paths,
    pub(crate) engine: &'a Engine,
    pub(crate) journal: &'a dyn Journal,
    pub(crate) session: &'a SessionId,
}

#[async_trait(?Send)]
impl QuestionSource for OwnQuestions<'_> {
    async fn first(&self, left: &BTreeSet<String>) -> Outcome<Option<Question>> {
        let waiting = PendingApproval::below(self.journal, self.session).await?;
        let rules = ConfiguredRules::read(self.paths)?.current().ok();
        for one in waiting.iter().filter(|one| !left.contains(&one.id())) {
            if let Some(question) = Question::of(self.engine, rules.as_ref(), one).await? {
                return Ok(Some(question));
            }
        }
        Ok(None)
    }

    async fn answer(
        &self,
        question: &Question,
        decision: &Decision,
        standing: Option<Seq>,
    ) -> Outcome<AnswerReceipt> {
        let given = question.answer(decision, standing);
        match self.engine.answer(&question.session, given).await {
            Ok(()) => Ok(AnswerReceipt::Taken),
            Err(error @ Error::Unanswerable { .. }) => Ok(AnswerReceipt::Over(error.to_string())),
            Err(error @ Error::NotEntitled { .. }) => {
                Ok(AnswerReceipt::NotEntitled(error.to_string()))
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn head(&self, session: &SessionId) -> Outcome<Seq> {
        Ok(self.journal.head(session).await?)
    }

    async fn is_asked(&self, id: &str) -> Outcome<bool> {
        Ok(PendingApproval::find(self.journal, id).await?.asked().is_some())
    }
}

/// Whoever asks the questions of one session.
pub(crate) struct Asker<S> {
    source: S,
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

impl<S: QuestionSource> Asker<S> {
    pub(crate) fn new(source: S) -> Self {
        let (left, standing) = (BTreeSet::new(), StandingAnswers::default());
        Self { source, open: None, left, standing }
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
        let Some(question) = self.source.first(&self.left).await? else {
            return Ok(AskOutcome::Left);
        };
        if let Some(before) = self.standing.covers(&question) {
            let answered = self.source.answer(&question, &Decision::Yes, Some(before)).await?;
            if answered == AnswerReceipt::Taken {
                screen.note(Tone::Good, format!("  ● approved as before: {}", question.title()));
                return Ok(AskOutcome::Answered);
            }
        }
        let head = self.source.head(&question.session).await?;
        self.put(question, head, screen).await;
        Ok(AskOutcome::Open)
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
        let head = self.source.head(&open.question.session).await?;
        if std::mem::replace(&mut open.head, head) == head {
            return Ok(false);
        }
        let over = !self.source.is_asked(&open.question.id).await?;
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
        match self.source.answer(&open.question, decision, None).await? {
            AnswerReceipt::Taken => {}
            // It is asked again as it stands now, or not any more.
            AnswerReceipt::Over(why) => {
                screen.note(Tone::Warning, format!("! {why}"));
                return Ok(AskOutcome::Answered);
            }
            AnswerReceipt::NotEntitled(why) => {
                screen.note(Tone::Warning, format!("! {why}"));
                self.left.insert(open.question.id);
                return Ok(AskOutcome::Left);
            }
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
