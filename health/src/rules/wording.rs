//! Describes the numbers of a finding, for the sentences of several kinds of rules.

use tallyfold::text::{Fraction, grouped};

use crate::cause::explanation::Amount;
use crate::measure::Measure;
use crate::shown::{percent, percent_unlike};

/// The numbers that a sentence describes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The measure that the rule judges.
    pub(crate) measure: Measure,
    /// Which endpoint counted the events: ` at ingestion` or ` at delivery`. Empty if the sentence names it elsewhere.
    pub(crate) stage: &'static str,
    /// The events that were counted.
    pub(crate) observed: Amount,
    /// How many events of the part were expected.
    pub(crate) expected: f64,
    /// The fewest events of the part that would be normal.
    pub(crate) low: u64,
    /// The most events of the part that would be normal; `None` without an upper limit.
    pub(crate) high: Option<u64>,
}

/// The counts of all windows of a finding together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Total {
    /// The events of the group.
    pub(crate) own: Amount,
    /// How many events of the group the other endpoint has counted, for a kind that compares both endpoints.
    pub(crate) other: Option<u64>,
    /// The events of the group at the same time in earlier weeks, if they are known and the kind compares the total with them.
    pub(crate) usual: Option<f64>,
}

/// The part of a sentence that describes the numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// What was counted, such as `31.5% of attempts failed`.
    pub(crate) what: String,
    /// The counts behind `what`, and what they are compared with, such as `422 of 1,341` and `limit 10%`.
    pub(crate) details: Vec<String>,
    /// Whether the counts are compared with what is usual instead of a fixed limit.
    pub(crate) is_usual: bool,
}

/// Returns words for a share or a number of events, and for the limit that it is compared with. A share has enough digits
/// to differ from the limit.
pub(crate) fn limited(measured: &Measured, word: &str, limit: &str) -> Words {
    let part = measured.observed.part;
    let Some(whole) = measured.observed.whole else {
        let what = match measured.measure {
            Measure::Success => format!("{} delivered", events(part)),
            Measure::Errors => format!("{} failed", events(part)),
            Measure::Filtered => format!("{} filtered", events(part)),
            _ => format!("{}{}", events(part), measured.stage),
        };
        return Words { what, details: vec![format!("{word} {limit}")], is_usual: false };
    };
    let share = percent_unlike(ratio(part as f64, whole), limit);
    let noun = match measured.measure {
        Measure::FilteredRate => "of events filtered",
        _ => "of attempts failed",
    };
    Words {
        what: format!("{share} {noun}"),
        details: vec![
            format!("{} of {}", grouped(part), grouped(whole)),
            format!("{word} {limit}"),
        ],
        is_usual: false,
    }
}

/// Returns words for a share or a number of events, and for what is usual.
pub(crate) fn compared(measured: &Measured) -> Words {
    let usual = match measured.observed.whole {
        Some(whole) => percent(ratio(measured.expected, whole)),
        None => grouped(rounded(measured.expected)),
    };
    let words = limited(measured, "usually", &usual);
    if measured.observed.whole.is_some() {
        return Words { is_usual: true, ..words };
    }
    let part = grouped(measured.observed.part);
    let noun = match measured.measure {
        Measure::Success => "delivered events".to_owned(),
        Measure::Errors => "failed events".to_owned(),
        Measure::Filtered => "filtered events".to_owned(),
        _ => format!("events{}", measured.stage),
    };
    match times(measured, &noun) {
        _ if measured.observed.part == 0 => Words {
            what: format!("no {noun}"),
            details: vec![format!("usually {usual}")],
            is_usual: true,
        },
        None => words,
        Some(what) => {
            Words { what, details: vec![part, format!("usually {usual}")], is_usual: true }
        }
    }
}

/// Returns words for how many times the usual number of events was counted; `None` if hardly any are usual.
pub(crate) fn times(measured: &Measured, noun: &str) -> Option<String> {
    let times = measured.observed.part as f64 / measured.expected;
    match times {
        _ if !times.is_finite() || times > 999.0 => None,
        _ if times >= 1.1 => Some(format!("{times:.1} times the usual {noun}")),
        _ => {
            let only = if times < 1.0 { "only " } else { "" };
            let share = percent_unlike(times, "100%");
            Some(format!("{only}{share} of the usual {noun}"))
        }
    }
}

/// Returns the limit in words. For a share, it is the limit of the rule if there is one, because the share computed from
/// a whole number of events differs slightly. For a count, it is a number of events.
pub(crate) fn limit(measured: &Measured, named: Option<Fraction>, events: u64) -> String {
    match (measured.observed.whole, named) {
        (Some(_), Some(named)) => named.to_string(),
        (Some(whole), None) => percent(ratio(events as f64, whole)),
        (None, _) => grouped(events),
    }
}

fn ratio(part: f64, whole: u64) -> f64 {
    match whole {
        0 => 0.0,
        whole => part / whole as f64,
    }
}

/// Returns a number of events in words, such as `1 event` or `1,204 events`.
pub(crate) fn events(events: u64) -> String {
    let noun = if events == 1 { "event" } else { "events" };
    format!("{} {noun}", grouped(events))
}

/// Returns the nearest whole number. The conversion saturates.
pub(crate) fn rounded(number: f64) -> u64 {
    (number + 0.5) as u64
}
