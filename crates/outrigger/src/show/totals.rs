//! What a session took in all, in one line.

use outrigger_agent::{Amounts, SessionId, State};

use super::amounts::{compact, cost, count, duration};

/// What a session took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Totals {
    pub(crate) spent: Amounts,
    /// Whether somebody said what its model costs.
    pub(crate) is_priced: bool,
}

impl Totals {
    pub(crate) fn of(state: &State) -> Self {
        let is_priced = state.spec().is_some_and(|spec| spec.model.price.is_some());
        Self { spent: state.spent(), is_priced }
    }

    /// The money, where it is known.
    pub(crate) fn cost(&self) -> Option<String> {
        let money = self.spent.money_nanos;
        (self.is_priced || money > 0).then(|| cost(money))
    }

    /// `12 steps · 34.6k tokens · $0.12 · 1 min 20 s`.
    pub(crate) fn words(&self) -> String {
        let Amounts { steps, tokens, wall_ms, .. } = self.spent;
        let mut parts = vec![count(steps, "step"), compact_tokens(tokens)];
        parts.extend(self.cost());
        parts.push(duration(wall_ms));
        parts.join(" · ")
    }

    /// The last line of a run.
    pub(crate) fn line(&self, session: &SessionId, next: &str) -> String {
        format!("● session {session} · {} · go on: {next}", self.words())
    }
}

fn compact_tokens(tokens: u64) -> String {
    format!("{} token{}", compact(tokens), if tokens == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn the_last_line() {
        let session = SessionId::new("fix-login").unwrap();
        let spent = Amounts {
            steps: 12,
            tokens: 34_567,
            money_nanos: 123_456_789,
            wall_ms: 80_400,
            ..Amounts::default()
        };
        let one = Amounts { steps: 1, tokens: 1, wall_ms: 1, ..Amounts::default() };
        let line = |spent: Amounts, is_priced: bool| {
            Totals { spent, is_priced }.line(&session, "outrigger run --continue \"...\"")
        };
        expect![[r#"● session fix-login · 12 steps · 34.6k tokens · $0.12 · 1 min 20 s · go on: outrigger run --continue "...""#]].assert_eq(&line(spent, true));
        expect![[r#"● session fix-login · 1 step · 1 token · 0.0 s · go on: outrigger run --continue "...""#]].assert_eq(&line(one, false));
    }
}
