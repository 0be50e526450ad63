//! What can turn out not to hold of a run.

use outrigger_agent::{Seq, SessionId};

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A command or a changing file operation was started twice in one life of its sandbox.
    #[error("`{0}` was started twice")]
    StartedTwice(String),
    /// A word that is written once per command stands in the log more than once.
    #[error("`{0}` was written twice")]
    WrittenTwice(String),
    /// An effect was started without a decision that permits it.
    #[error("effect {0} was started without being permitted")]
    Undecided(Seq),
    /// An effect was settled twice, or without having been proposed.
    #[error("effect {0} was settled out of order")]
    SettledTwice(Seq),
    /// What a process knew of an effect was thrown away because the store refused it.
    #[error("what became of effect {0} was known, and thrown away")]
    OutcomeDropped(Seq),
    /// More was reserved than the budget has.
    #[error("effect {0} was started beyond the budget")]
    Overspent(Seq),
    /// An effect was started, or begun, although the rules in force there do not let it.
    #[error("effect {0} was begun although the rules do not permit it")]
    Forbidden(Seq),
    /// Something was done before it was durable that it is about to be.
    #[error("`{0}` was begun without a durable intent")]
    NoIntent(String),
    /// An effect was begun after it was over.
    #[error("effect {0} was begun after it was settled")]
    BegunAfterEnd(Seq),
    /// Something was appended at a place that was not the end of the journal.
    #[error("an append after {0} went past the fence")]
    Unfenced(Seq),
    /// The provider charges more tokens than the session's budget knows of.
    #[error("{burnt} tokens were used, and fewer are spent and reserved")]
    Undercharged {
        /// How many.
        burnt: u64,
    },
    /// A call of a tool outside was made again that must not be, or under another key.
    #[error("`{0}` was called again")]
    CalledAgain(String),
    /// Something was started although the account was stopped.
    #[error("something was started although its account was stopped")]
    StartedStopped,
    /// The sessions of an account may owe more than it has.
    #[error("{owed} tokens are spent and reserved of an account that has {most}")]
    AccountOverdrawn {
        /// By all sessions together.
        owed: u64,
        /// The limit.
        most: u64,
    },
    /// A subagent is not the business of a call that is under way: it goes on, or begins,
    /// although the session above believes it over, or has believed it over too early.
    #[error("subagent {0} goes on although its call is over, or is over although it goes on")]
    Orphan(SessionId),
    /// A subagent may do, spend or forget something that the session above may not.
    #[error("subagent {0} has more than the session above could give it")]
    Wider(SessionId),
    /// What a subagent was charged is not what its call was settled with.
    #[error("subagent {0} was settled with something else than it spent")]
    Miscounted(SessionId),
    /// What a subagent was told by others does not label its answer.
    #[error("the answer of subagent {0} hides where it comes from")]
    Unlabelled(SessionId),
    /// Something was left of a subagent that is over.
    #[error("`{0}` was left of a subagent that is over")]
    Left(String),
    /// The journal's chain does not verify.
    #[error("the journal does not verify")]
    Broken,
    /// Somebody answered about an effect that was answered before, or is over.
    #[error("effect {0} could be answered twice")]
    AnsweredTwice(Seq),
    /// The session neither ended nor waits for a named reason.
    #[error("the session was started {0} times and still does not wait")]
    Livelock(u32),
    /// The journal has another shape than without crashes.
    #[error("the journal differs at line {line}: `{crashed}` instead of `{calm}`")]
    Shape {
        /// Which line, from 0.
        line: usize,
        /// Without crashes.
        calm: String,
        /// With them.
        crashed: String,
    },
    /// The session waits although an effect is not settled.
    #[error("effect {0} was never settled")]
    Unsettled(Seq),
    /// A tool call of a reply has no result in the conversation, or several.
    #[error("call `{call}` has {results} results")]
    Results {
        /// The provider's id of the call.
        call: String,
        /// How many results it has.
        results: usize,
    },
    /// An effect was started although a person had stopped the turn or ended the session.
    #[error("effect {0} was started after a person had stopped it")]
    StartedAfterStop(Seq),
    /// A turn that a person stopped did not end as stopped, or the session does not wait as it should.
    #[error("a person had stopped it, and it waits as {0}")]
    StopUnheard(String),
    /// A sandbox began another life and the model was not told of the loss of the one before.
    #[error("the model was not told of the loss of {0}")]
    Untold(String),
    /// An effect was begun again although nobody had died.
    #[error("effect {0} was begun again although nobody had died")]
    Repeated(Seq),
    /// No sandbox could be made although none was lost: such a run shows nothing.
    #[error("no sandbox could be made: {0}")]
    NoSandbox(String),
    /// The engine stopped with an error that no crash explains.
    #[error("the engine stopped: {0}")]
    Engine(String),
}
