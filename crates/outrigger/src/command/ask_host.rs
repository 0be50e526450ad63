//! Puts hosts that sandboxes ask for to whoever sits at the terminal, one after the other, while
//! the command waits.
//!
//! Owns that a line answers the host that was shown last, and what holds beyond the turn.

use outrigger_agent::{SessionId, TurnEnd};
use outrigger_engine::{Egress, EgressQuestion, Engine};

use crate::exit::Outcome;
use crate::network::{self, HostChoice, Words};
use crate::paths::Paths;
use crate::show::{Screen, Tone, inert};

/// Whoever asks about hosts. Nobody is asked where there is no terminal.
#[derive(Debug)]
pub(crate) struct HostAsker<'a> {
    paths: &'a Paths,
    egress: Option<&'a dyn Egress>,
    open: Option<EgressQuestion>,
    /// What the session may reach from now on as well.
    words: Vec<Words>,
}

impl<'a> HostAsker<'a> {
    /// From now on what is not allowed is asked about.
    pub(crate) fn new(paths: &'a Paths, engine: &'a Engine, screen: &Screen) -> Self {
        let egress = engine.egress().filter(|_| screen.can_ask()).map(|egress| &**egress);
        egress.inspect(|egress| egress.attend());
        Self { paths, egress, open: None, words: Vec::new() }
    }

    /// Whether somebody looks at a question.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Something else is asked first. This is asked again after it.
    pub(crate) fn give_way(&mut self) {
        self.open = None;
    }

    /// Puts the next question, if there is one; says it if that which was put is over.
    pub(crate) async fn look(&mut self, screen: &Screen) {
        let Some(egress) = self.egress else { return };
        let questions = egress.questions().await;
        if let Some(open) = &self.open {
            if questions.contains(open) {
                return;
            }
            screen.note(Tone::Detail, format!("  nobody waits for {} any more", open.words));
            self.open = None;
        }
        if let Some(question) = questions.into_iter().next() {
            screen.forget_lines().await;
            screen.note(Tone::Warning, format!("? {} is to be reached", inert(&question.words)));
            screen.note(Tone::Strong, format!("  {}", HostChoice::shown(&question)));
            self.open = Some(question);
        }
    }

    /// Somebody typed a line.
    pub(crate) async fn take(&mut self, line: Option<String>, screen: &Screen) -> Outcome {
        let (Some(egress), Some(question)) = (self.egress, &self.open) else { return Ok(()) };
        let Some(line) = line else {
            // Nobody is there to answer: what is asked from now on is refused after its time.
            self.egress = None;
            self.open = None;
            return Ok(());
        };
        let Some(choice) = HostChoice::parse(&line, question) else {
            let (said, choices) = (inert(line.trim()), HostChoice::shown(question));
            screen.note(Tone::Strong, format!("  `{said}` is none of: {choices}"));
            return Ok(());
        };
        let said = network::act(egress, self.paths, question, choice).await?;
        screen.note(Tone::Detail, said);
        self.words.extend(choice.words(question));
        self.open = None;
        Ok(())
    }

    /// The turn is over: what was allowed in the session becomes a part of it.
    pub(crate) async fn settle(
        self,
        engine: &Engine,
        session: &SessionId,
        screen: &Screen,
    ) -> Outcome {
        let words = self.words.iter().fold(Words::default(), |all, words| all.with(words));
        if words == Words::default() {
            return Ok(());
        }
        let state = engine.state(session).await?;
        if !matches!(state.ended(), Some(TurnEnd::Answered)) {
            // It would begin anew by it.
            let text = format!("  allow {words} again where it goes on, with `--net`");
            screen.note(Tone::Detail, text);
            return Ok(());
        }
        network::widen(engine, session, &words).await.map(drop)
    }
}
