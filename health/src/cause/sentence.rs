//! An explanation in words.

use super::explanation::{Amount, Cause, Explanation};
use crate::check::shown::count;

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
        "{change}; {} of {} events are explained by {}, {} remain.",
        grouped(told.change - told.unexplained),
        signed(told.change),
        causes.join(" and by "),
        grouped(told.unexplained)
    )
}

fn named(cause: &Cause) -> String {
    let pairs = cause.r#where.iter();
    let pairs: Vec<String> = pairs
        .map(|(name, value)| format!("{name} {value:?}"))
        .collect();
    format!(
        "{} ({}: {} before, {} now)",
        pairs.join(" with "),
        signed(cause.events),
        shown(cause.before),
        shown(cause.now)
    )
}

fn shown(amount: Amount) -> String {
    match amount.whole {
        None => count(amount.part.into()),
        Some(whole) => format!("{} of {}", count(amount.part.into()), count(whole.into())),
    }
}

/// With a minus if it is below 0.
fn grouped(number: i128) -> String {
    let sign = if number < 0 { "-" } else { "" };
    format!("{sign}{}", count(number.unsigned_abs()))
}

/// With a plus or a minus.
fn signed(number: i128) -> String {
    let sign = if number < 0 { "" } else { "+" };
    format!("{sign}{}", grouped(number))
}
