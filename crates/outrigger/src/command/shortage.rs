//! What a person is told where a session's own limits leave too little: what is needed, what is
//! left, and the flag that allows more.

use outrigger_agent::{Item, Measure, Shortage, State};

use crate::show::amounts::{self, amount};

/// Nano-dollars of a cent.
const CENT: u64 = 10_000_000;

/// Why the next step does not fit, and what helps.
pub(super) fn told(state: &State) -> (String, String) {
    let Some(Shortage { measure, needed, left }) = Shortage::of(state) else {
        let (spent, budget) = (state.spent(), state.budget());
        let used = amounts::used(spent, budget);
        let too_little =
            |whose| format!("what was left of {whose} was too little; used are {used}");
        let gone = |measure: &Measure| budget.left(spent).of(*measure) == Some(0);
        let gone = Measure::ALL.into_iter().find(gone).and_then(|it| Some((it, budget.of(it)?)));
        return match gone {
            Some((measure, limit)) => {
                (too_little("the session's limits"), allow(measure, limit.saturating_add(1)))
            }
            None => {
                (too_little("the limits of the session or of an account"), ALLOW_ANY.to_owned())
            }
        };
    };
    let limit = state.budget().of(measure).unwrap_or_default();
    let text = format!(
        "the next step needs at least {}, and {} of {} {} left to the session",
        said(measure, needed),
        amount(measure, left),
        said(measure, limit),
        if matches!(measure, Measure::Steps | Measure::Tokens) && left != 1 { "are" } else { "is" },
    );
    let least = limit.saturating_sub(left).saturating_add(needed);
    (text, allow(measure, least))
}

fn allow(measure: Measure, least: u64) -> String {
    format!("Allow more with {} or above.", flag(measure, least))
}

/// What helps where it is not known of what there was too little.
const ALLOW_ANY: &str = "Allow more, with --max-tokens, --max-dollars and their like, or `outrigger budget set` for an account.";

/// What helps where an answer was cut.
pub(super) fn of_a_cut_answer(state: &State) -> &'static str {
    let written = state.conversation().iter().rev().find_map(|item| match item {
        Item::Reply(reply) => Some(reply.usage.output_tokens),
        _ => None,
    });
    let most = state.spec().map_or(0, |spec| spec.model.output_tokens_max);
    let limited = [Measure::Tokens, Measure::Money].map(|it| state.budget().of(it).is_some());
    match written {
        Some(1..) if limited.contains(&true) && written < Some(most) => {
            "The limits of the session or of an account left no more for it: allow more with --max-tokens or --max-dollars, or with `outrigger budget set`."
        }
        Some(1..) if written < Some(most) => {
            "Raise model.output_tokens_max in the configuration, or, if an account left no more for it, its limit: `outrigger budget show` says what is used."
        }
        _ => "Raise model.output_tokens_max in the configuration.",
    }
}

/// An amount with what it is of, where its unit does not say so.
fn said(measure: Measure, number: u64) -> String {
    match (measure, number) {
        (Measure::Steps, 1) => "1 step".to_owned(),
        (Measure::Tokens, 1) => "1 token".to_owned(),
        (Measure::Steps | Measure::Tokens, _) => format!("{number} {}", measure.words()),
        (Measure::Cpu, _) => format!("{} of processors", amount(measure, number)),
        (Measure::Money | Measure::Wall | Measure::Egress, _) => amount(measure, number),
    }
}

/// The flag of `outrigger sessions resume` that allows so much.
fn flag(measure: Measure, least: u64) -> String {
    match measure {
        Measure::Steps => "--max-steps 1".to_owned(),
        Measure::Tokens => format!("--max-tokens {least}"),
        Measure::Money => {
            let dollars = amounts::money(least.div_ceil(CENT).saturating_mul(CENT));
            format!("--max-dollars {}", dollars.trim_start_matches('$'))
        }
        Measure::Wall => format!("--max-seconds {}", least.div_ceil(1_000)),
        Measure::Cpu => format!("--max-cpu-seconds {}", least.div_ceil(1_000)),
        Measure::Egress => format!("--max-egress-bytes {least}"),
    }
}
