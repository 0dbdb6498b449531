//! Counts and limits in words, for the sentences of several kinds of rules.

use tallyfold::text::{Fraction, grouped};

use crate::cause::explanation::Amount;
use crate::measure::Measure;
use crate::shown::{percent, share};

/// The numbers of a finding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Seen {
    /// What is judged.
    pub(crate) measure: Measure,
    /// The events that were counted.
    pub(crate) observed: Amount,
    /// How many events of the part were expected.
    pub(crate) expected: f64,
    /// The fewest events of the part that would be normal.
    pub(crate) low: u64,
    /// The most events of the part that would be normal.
    pub(crate) high: u64,
}

/// What was counted: `1,204 of 9,880 attempts failed (12.2%)`.
pub(crate) fn counted(measure: Measure, amount: Amount) -> String {
    let part = grouped(amount.part);
    let whole = amount.whole.unwrap_or_default();
    let share = share(amount.part, whole);
    match measure {
        Measure::ErrorRate => format!("{part} of {} attempts failed ({share})", grouped(whole)),
        Measure::FilteredRate => {
            format!(
                "{part} of {} events were filtered ({share})",
                grouped(whole)
            )
        }
        Measure::Success => format!("{} delivered", events(amount.part)),
        Measure::Errors => format!("{} failed", events(amount.part)),
        Measure::Filtered => format!("{} filtered", events(amount.part)),
        Measure::Events => events(amount.part),
    }
}

/// What would be usual: `up to 1,300 is normal`. `most` is the highest good share, if the rule names one. `word`
/// describes good counts, such as `normal`.
pub(crate) fn usual(seen: &Seen, most: Option<Fraction>, word: &str) -> String {
    let (part, whole) = (seen.observed.part, seen.observed.whole);
    if part > seen.high {
        return format!("up to {} is {word}", amount(seen.high, whole, most));
    }
    if part < seen.low {
        return format!("at least {} is {word}", amount(seen.low, whole, None));
    }
    let expected = match whole {
        Some(whole) if whole > 0 => percent(seen.expected / whole as f64),
        _ => grouped(rounded(seen.expected)),
    };
    format!("about {expected} is {word}")
}

/// A number of events, or their share of a whole. A share that the rule names is written as in the rule, because the
/// share of a whole number of events is slightly lower.
pub(crate) fn amount(events: u64, whole: Option<u64>, named: Option<Fraction>) -> String {
    match (whole, named) {
        (Some(_), Some(named)) => named.to_string(),
        (Some(whole), None) => share(events, whole),
        (None, _) => grouped(events),
    }
}

/// A number of events in words: `1 event`, `1,204 events`.
pub(crate) fn events(events: u64) -> String {
    let noun = if events == 1 { "event" } else { "events" };
    format!("{} {noun}", grouped(events))
}

/// The nearest whole number. The conversion saturates.
pub(crate) fn rounded(number: f64) -> u64 {
    (number + 0.5) as u64
}

/// States that there were no events, and how many would be normal.
pub(crate) fn no_events(seen: &Seen) -> (String, Option<String>) {
    let normal = grouped(rounded(seen.expected));
    let usual = format!("about {normal} would be normal");
    ("no events".to_owned(), Some(usual))
}
