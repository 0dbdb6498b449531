//! What explains a change: causes with exact counts, and a sentence.

use serde::{Deserialize, Serialize};
use tallyfold::Window;
use tallyfold::text::{grouped, signed};

use super::chance::NORMAL;
use super::leaves::{Leaves, Suspect, Suspects, Tally, sums_of};
use crate::measure::Measure;
use crate::shown::{percent, percent_unlike};

/// What explains a change: its causes, with exact numbers of events.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// What changed.
    pub measure: Measure,
    /// All events before.
    pub before: Amount,
    /// All events now.
    pub now: Amount,
    /// The events now minus the expected events: for a volume, the events before; for a rate, the events at the rate
    /// before.
    pub change: i128,
    /// The causes, most important first. No event belongs to two of them: each counts only events that belong to no
    /// cause before it.
    pub causes: Vec<Cause>,
    /// Further candidates that were not named, best first. They may overlap with causes and with each other.
    pub others: Vec<Cause>,
    /// The part of the change that no cause explains: `change` minus the `events` of all causes.
    pub unexplained: i128,
    /// Whether all groups changed alike, so that there is no narrower cause.
    pub is_global: bool,
    /// Whether counts vary this much by chance alone. If so, no cause is named.
    pub is_normal: bool,
    /// The probability, from 0 to 1, that all events together vary at least this much by chance.
    pub probability: f64,
    /// The earlier windows that were left out because their rate is unusual. A window that is also one of the
    /// current windows is never left out.
    pub left_out: Vec<Window>,
    /// The explanation in one sentence.
    pub sentence: String,
}

/// A combination of attribute values, and what it explains.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Cause {
    /// The values, in the order of the attributes. Attributes that are not named may have any value.
    #[serde(with = "crate::pairs")]
    #[cfg_attr(feature = "surface", schemars(with = "std::collections::BTreeMap<String, String>"))]
    pub r#where: Vec<(String, String)>,
    /// Its events before.
    pub before: Amount,
    /// Its events now.
    pub now: Amount,
    /// The expected number of counted events now.
    pub expected: f64,
    /// The events now minus the expected ones, rounded to whole events.
    pub events: i128,
    /// The share of these events in the whole change; 0 if nothing changed.
    pub share: f64,
    /// How much better the counts are explained with this cause than without it: a difference of log likelihoods, for
    /// ranking only.
    pub score: f64,
}

/// Events of a group in one time range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Amount {
    /// The events that are counted.
    pub part: u64,
    /// For a rate, the events that they are a share of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub whole: Option<u64>,
}

impl Amount {
    /// Returns an amount for a volume.
    pub(crate) const fn count(part: u64) -> Self {
        Self { part, whole: None }
    }
}

/// Turns the suspects into an explanation with exact counts.
pub(crate) fn explained(
    leaves: &Leaves,
    measure: Measure,
    suspects: &Suspects,
    left_out: Vec<Window>,
) -> Explanation {
    let [before, now] = leaves.totals();
    let change = excess([before, now], before, measure.is_rate());
    let is_normal = suspects.causes.is_empty() && (change == 0 || suspects.probability > NORMAL);
    let mut explanation = Explanation {
        measure,
        before: amount(before, measure),
        now: amount(now, measure),
        change,
        causes: Vec::new(),
        others: Vec::new(),
        unexplained: change,
        is_global: suspects.is_global && !is_normal,
        is_normal,
        probability: suspects.probability,
        left_out,
        sentence: String::new(),
    };
    let mut free = vec![true; leaves.len()];
    for found in &suspects.causes {
        let sums = sums_of(leaves, found.element, &mut free, true);
        let cause = cause(leaves, measure, found, sums, before, change);
        explanation.unexplained = explanation.unexplained.saturating_sub(cause.events);
        explanation.causes.push(cause);
    }
    free.fill(true);
    for found in &suspects.others {
        let sums = sums_of(leaves, found.element, &mut free, false);
        explanation.others.push(cause(leaves, measure, found, sums, before, change));
    }
    explanation.sentence = sentence(&explanation);
    explanation
}

fn cause(
    leaves: &Leaves,
    measure: Measure,
    found: &Suspect,
    sums: [Tally; 2],
    all: Tally,
    change: i128,
) -> Cause {
    let events = excess(sums, all, measure.is_rate());
    let [before, now] = sums;
    let share = if change == 0 { 0.0 } else { events as f64 / change as f64 };
    let attributes = leaves.attributes.iter().enumerate();
    let named = attributes.filter(|(place, _)| found.element.names(*place));
    let named = named.map(|(place, attribute)| {
        let value = attribute.values.value(found.element.values[place]);
        (attribute.name.clone(), value.to_owned())
    });
    Cause {
        r#where: named.collect(),
        before: amount(before, measure),
        now: amount(now, measure),
        expected: now.part as f64 - events as f64,
        events,
        share,
        score: found.score,
    }
}

fn amount(tally: Tally, measure: Measure) -> Amount {
    Amount { part: tally.part, whole: measure.is_rate().then_some(tally.whole) }
}

/// Returns by how many events the current count differs from the expected count, rounded. For a volume, the count before
/// is expected. For a rate, the expected count follows from the rate before, or from the overall rate before if the group
/// had no events before.
fn excess([before, now]: [Tally; 2], all: Tally, is_rate: bool) -> i128 {
    if !is_rate {
        return i128::from(now.part) - i128::from(before.part);
    }
    let reference = if before.whole == 0 { all } else { before };
    let half = u128::from(reference.whole / 2);
    // The sum is at most (2^64 - 1)^2 + 2^63, which fits into 128 bits.
    let expected = (u128::from(now.whole) * u128::from(reference.part) + half)
        .checked_div(u128::from(reference.whole))
        .unwrap_or_default();
    i128::from(now.part).saturating_sub_unsigned(expected)
}

/// Returns one sentence about what changed and what explains the change.
pub(crate) fn sentence(explanation: &Explanation) -> String {
    let difference = match explanation.change {
        0 => "no difference".to_owned(),
        change => format!(
            "{} {} {} than {}",
            grouped(change.unsigned_abs()),
            if change.unsigned_abs() == 1 { "event" } else { "events" },
            if change < 0 { "fewer" } else { "more" },
            match explanation.measure.is_rate() {
                true => "at the rate before",
                false => "before",
            }
        ),
    };
    let change = format!(
        "{}: {} now, {} before, {difference}",
        explanation.measure,
        shown(explanation.now, explanation.before),
        shown(explanation.before, explanation.now),
    );
    let left_out = match explanation.left_out.len() {
        0 => String::new(),
        1 => " One unusual earlier window was left out.".to_owned(),
        windows => format!(" {} unusual earlier windows were left out.", grouped(windows)),
    };
    if explanation.is_normal {
        let percent = libm::round(explanation.probability * 100.0);
        return format!(
            "{change}: within normal variation (probability {percent}%), no cause named.{left_out}"
        );
    }
    if explanation.causes.is_empty() {
        return format!(
            "{change}; everything changed alike, so there is no narrower cause.{left_out}"
        );
    }
    let causes: Vec<String> = explanation.causes.iter().map(named).collect();
    format!(
        "{change}: {}; {} elsewhere.{left_out}",
        causes.join(", "),
        signed(explanation.unexplained)
    )
}

/// Returns a cause with the events that it explains, such as `+3,096 from integration "Mail" (3,120 of 5,520 now, 24 of 5,424
/// before)`.
fn named(cause: &Cause) -> String {
    let pairs = cause.r#where.iter();
    let pairs: Vec<String> = pairs.map(|(name, value)| format!("{name} {value:?}")).collect();
    format!(
        "{} from {} ({} now, {} before)",
        signed(cause.events),
        pairs.join(" with "),
        counts(cause.now),
        counts(cause.before)
    )
}

/// Returns a share with its counts, precise enough to differ from the share of `other`. Without a whole, it returns only
/// the count.
fn shown(amount: Amount, other: Amount) -> String {
    let share = |amount: Amount| match amount.whole {
        Some(whole) if whole > 0 => Some(amount.part as f64 / whole as f64),
        _ => None,
    };
    match (share(amount), share(other)) {
        (Some(own), other) => {
            let other = other.filter(|other| own != *other).map(percent).unwrap_or_default();
            format!("{} ({})", percent_unlike(own, &other), counts(amount))
        }
        (None, _) => counts(amount),
    }
}

fn counts(amount: Amount) -> String {
    match amount.whole {
        None => grouped(amount.part),
        Some(whole) => format!("{} of {}", grouped(amount.part), grouped(whole)),
    }
}
