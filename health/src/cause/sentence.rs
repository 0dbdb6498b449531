//! An explanation in words.

use super::explanation::{Amount, Cause, Explanation};

/// One sentence that says what changed, and what explains it.
pub(crate) fn sentence(told: &Explanation) -> String {
    let change = format!(
        "{} went from {} to {}",
        told.measure,
        shown(told.before),
        shown(told.now)
    );
    if told.causes.is_empty() {
        return format!("{change}; nothing narrower than everything explains it.");
    }
    let causes: Vec<String> = told.causes.iter().map(named).collect();
    format!(
        "{change}; {} of {:+} events are explained by {}, {} remain.",
        told.change - told.unexplained,
        told.change,
        causes.join(" and by "),
        told.unexplained
    )
}

fn named(cause: &Cause) -> String {
    let pairs = cause.r#where.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name} {value:?}"))
        .collect();
    format!(
        "{} ({:+}: {} before, {} now)",
        pairs.join(" with "),
        cause.events,
        shown(cause.before),
        shown(cause.now)
    )
}

fn shown(amount: Amount) -> String {
    match amount.whole {
        None => amount.part.to_string(),
        Some(whole) => format!("{} of {whole}", amount.part),
    }
}
