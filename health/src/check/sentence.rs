//! Makes the sentence of a finding: the group, the counts with what is usual, the time, and where most of the events are.

use std::cmp::Ordering;

use tallyfold::text::grouped;
use tallyfold::{Dimension, Metric, Timestamp};

use super::causes::Explained;
use crate::cause::explanation::{Amount, Cause};
use crate::incidents::finding::{Finding, Status};
use crate::rules::rule::Rule;
use crate::rules::wording::{Measured, Total, Words, rounded};
use crate::shown::{self, short_near, span, value};

/// Facts for the sentence of a finding that the fields of the finding don't contain.
#[derive(Default)]
pub(super) struct Facts {
    /// The counts of all windows of the finding together, if they are known.
    pub(super) total: Option<Total>,
    /// The causes over the time of `total`, if this time is longer than the time of the finding's own causes.
    pub(super) explained: Option<Explained>,
    /// Whether as many windows were good as the rule requires. If the finding still fires, these windows had too few events
    /// to show that it is over.
    pub(super) is_better: bool,
    /// Whether the finding ended only because its group could not be judged for a long time.
    pub(super) is_gone: bool,
    /// Whether the group has had no events since the finding began; only for a group that is gone.
    pub(super) is_empty: bool,
}

/// Counts of a finding, and the words about them.
struct Counted {
    amount: Amount,
    expected: f64,
    words: Words,
}

impl Counted {
    /// Makes words about the counts of a finding's window.
    fn in_window(finding: &Finding, rule: &Rule) -> Self {
        Self::new(finding, rule, (finding.observed, finding.expected))
    }

    /// Makes words about the counts of all windows of a finding; `None` if they are unknown, can't be added up, or together don't
    /// break a fixed limit.
    fn in_total(finding: &Finding, rule: &Rule, total: &Total) -> Option<Self> {
        let judge = rule.test.judge();
        let amount = finding.total.filter(|total| judge.is_beyond(*total))?;
        let expected = match finding.observed.whole.zip(amount.whole) {
            // The expected number is for the events of the window, so it is scaled to the whole time.
            Some((observed, whole)) => finding.expected * (whole as f64 / observed.max(1) as f64),
            None => judge.expected_in_total(total)?,
        };
        Some(Self::new(finding, rule, (amount, expected)))
    }

    /// Makes words about an amount. The limits of the finding are for its window, so they are scaled to the amount.
    fn new(finding: &Finding, rule: &Rule, (amount, expected): (Amount, f64)) -> Self {
        let wholes = finding.observed.whole.zip(amount.whole);
        let scale = match wholes {
            Some((observed, whole)) if observed > 0 => whole as f64 / observed as f64,
            _ => 1.0,
        };
        let scaled = |limit: u64| match limit {
            u64::MAX => u64::MAX,
            limit => rounded(limit as f64 * scale),
        };
        let words = rule.test.judge().words(&Measured {
            measure: finding.measure,
            stage: stage(finding),
            observed: amount,
            expected,
            low: scaled(finding.low),
            high: finding.high.map(scaled),
        });
        Self { amount, expected, words }
    }

    /// Adds a time to the last detail, which is the usual number.
    fn date_usual(&mut self, time: &str) {
        if let Some(usual) = self.words.details.last_mut() {
            usual.push_str(&format!(" {time}"));
        }
    }

    /// Returns the words with a time, such as `31.5% of attempts failed since 03:00 UTC (422 of 1,341; limit 10%)`.
    fn during(&self, time: &str) -> String {
        let details = match self.words.details.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.words.details.join("; ")),
        };
        format!("{} {time}{details}", self.words.what)
    }
}

/// Returns the sentence of a finding.
pub(super) fn sentence(finding: &Finding, rule: &Rule, facts: &Facts) -> String {
    let about = subject(finding, rule);
    let (window, since) = (finding.window, finding.since);
    let mut observed = Counted::in_window(finding, rule);
    let total = facts.total.as_ref();
    let total = total.and_then(|total| Counted::in_total(finding, rule, total));
    let in_window = observed.during(&format!("from {}", shown::window(window)));
    let mut change = Change::of(finding, facts.explained.as_ref());
    let mut in_total = |end: Timestamp| match &total {
        Some(total) => {
            change.compare(finding, total);
            total.during(&format!("from {}", span(since, end)))
        }
        None => {
            change.number = None;
            let all = span(since, end);
            match (window.start().cmp(&since), window.end().cmp(&end)) {
                (Ordering::Equal, Ordering::Equal) => in_window.clone(),
                (Ordering::Less, _) | (_, Ordering::Greater) => {
                    format!("{in_window}; it lasted from {all}")
                }
                _ => format!("{in_window}, part of an incident from {all}"),
            }
        }
    };
    let (first, last) = match (finding.status, finding.resolved) {
        (Status::Resolved, Some(_)) if facts.is_empty => {
            change.number = None;
            observed.date_usual(&format!("from {}", shown::window(window)));
            let first = observed.during(&format!("since {} UTC", since.short()));
            let over = "closed without a recovery, after a week or more without events";
            (first, Some(over.to_owned()))
        }
        (Status::Resolved, Some(end)) => {
            let over = match facts.is_gone {
                true => GONE,
                false => rule.test.judge().over(),
            };
            (in_total(end), Some(over.to_owned()))
        }
        (Status::Unjudged, _) => {
            change.number = None;
            let since = short_near(since, window.start());
            let seen = finding.seen.short();
            let first = format!(
                "not judged since {seen} UTC (too little traffic); last judged: {in_window}, since {since}"
            );
            (first, None)
        }
        (Status::Firing, _) if facts.is_better => {
            let last = "better since then, but too few events to call it over";
            (in_total(window.end()), Some(last.to_owned()))
        }
        _ if since < window.start() => {
            let since = short_near(since, window.start());
            let total = total.filter(|_| finding.measure.is_rate());
            let total = total.map(|total| {
                let whole = total.amount.whole.unwrap_or_default();
                format!("{} of {}", grouped(total.amount.part), grouped(whole))
            });
            let numbers = total.into_iter().chain(change.number.take());
            let numbers: Vec<String> = numbers.collect();
            match numbers.is_empty() {
                true => (format!("{in_window}, since {since}"), None),
                false => {
                    change.number = Some(format!("since {since} UTC: {}", numbers.join(", ")));
                    (in_window, None)
                }
            }
        }
        _ if since > window.start() => match &total {
            Some(total) => {
                change.compare(finding, total);
                (total.during(&format!("since {} UTC", since.short())), None)
            }
            None => {
                let since = short_near(since, window.start());
                (format!("{in_window}, beginning at about {since}"), None)
            }
        },
        _ => {
            change.compare(finding, &observed);
            if observed.amount.part == 0 && observed.words.is_usual {
                observed.date_usual(&format!("until {}", short_near(window.end(), since)));
            }
            (observed.during(&format!("since {} UTC", since.short())), None)
        }
    };
    let mut parts = vec![format!("{about}: {first}")];
    parts.extend(change.words());
    parts.extend(last);
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// The end of the sentence of a finding whose group has some events, but too few to judge.
const GONE: &str =
    "closed without a recovery: for a week or more, there were too few events to judge";

/// Returns where the events of a finding were counted. Without a group, the sentence begins with the endpoint.
fn stage(finding: &Finding) -> &'static str {
    match finding.query.metric {
        _ if finding.group.is_empty() => "",
        Metric::EventIngestion => " at ingestion",
        Metric::EventDelivery => " at delivery",
    }
}

/// Returns the group of a finding and the values that the rule keeps, such as `integration Amazon S3 (event name order)`.
fn subject(finding: &Finding, rule: &Rule) -> String {
    let pairs = finding.group.iter();
    let pairs = pairs.map(|(name, own)| pair(name.as_str(), own));
    let about = match finding.group.is_empty() {
        true => spaced(finding.query.metric.as_str()),
        false => pairs.collect::<Vec<_>>().join(", "),
    };
    let kept = rule.only.iter().filter(|(name, _)| !rule.by.contains(name));
    let kept = kept.map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|own| quoted_value(own)).collect();
        format!("{} {}", spaced(name.as_str()), values.join(" or "))
    });
    let kept: Vec<String> = kept.collect();
    match kept.is_empty() {
        true => about,
        false => format!("{about} ({})", kept.join(", ")),
    }
}

/// Returns a dimension and its value in words, such as `event name order`.
fn pair(name: &str, value: &str) -> String {
    format!("{} {}", spaced(name), quoted_value(value))
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

/// By how many events a finding differs from the compared time, and where most of these events are.
#[derive(Debug, Default)]
struct Change {
    /// The difference, such as `410 more than just before`.
    number: Option<String>,
    /// Where the difference is, such as `nearly all` and `from integration Amazon S3`.
    place: Option<(&'static str, String)>,
    /// The values that nearly all events of the group usually have.
    within: Option<String>,
    /// The name of the events in the difference, for a sentence without their number.
    events: &'static str,
}

/// The sentence names a cause if it explains at least this share of the change.
const WORTH_NAMING: f64 = 0.1;

impl Change {
    /// Returns the change since the finding began, from `explained` or else from the causes of the finding.
    fn of(finding: &Finding, explained: Option<&Explained>) -> Self {
        let (causes, unexplained, compared_with) = match explained {
            Some(Explained { explanation, compared }) => {
                (&explanation.causes, explanation.unexplained, compared)
            }
            None => (&finding.causes, finding.unexplained, &finding.compared),
        };
        let difference = finding.observed.part as f64 - finding.expected;
        let within = Self {
            within: all_within(finding).filter(|_| causes.is_empty()),
            events: match () {
                () if finding.expected <= 0.0 => "these events",
                () if difference < 0.0 => "the missing events",
                () => "the additional events",
            },
            ..Self::default()
        };
        let (Some(first), Some(last)) = (compared_with.first(), compared_with.last()) else {
            return within;
        };
        let all: i128 = causes.iter().map(|cause| cause.events).sum();
        let total = unexplained.saturating_add(all);
        if total == 0 || (total > 0) != (difference > 0.0) {
            return within;
        }
        let is_before = first == last && first.end() == finding.query.start.max(finding.since);
        let to = if is_before { "just before" } else { "usual" };
        Self { number: Some(compared(total, to)), place: place(finding, causes, total), ..within }
    }

    /// For a share, sets the number to the difference between these counts and what is usual. For other counts that are compared
    /// with what is usual, removes the number, because the words about them show the difference already. For counts that are
    /// compared with a fixed limit, keeps the number only if they are the counts of the finding's window.
    fn compare(&mut self, finding: &Finding, counted: &Counted) {
        if counted.words.is_usual {
            let surplus = i128::from(counted.amount.part) - i128::from(rounded(counted.expected));
            let is_share = counted.amount.whole.is_some() && finding.measure.is_rate();
            self.number = (is_share && surplus != 0).then(|| compared(surplus, "usual"));
        } else if counted.amount != finding.observed {
            self.number = None;
        }
    }

    /// Returns the parts of the sentence about the change.
    fn words(self) -> impl Iterator<Item = String> {
        let change = match (self.number, self.place) {
            (Some(number), Some((share, place))) => Some(format!("{number}, {share} {place}")),
            (None, Some((share, place))) => Some(format!("{share} of {} are {place}", self.events)),
            (number, None) => number,
        };
        change.into_iter().chain(self.within)
    }
}

fn compared(events: i128, to: &str) -> String {
    let more = if events > 0 { "more" } else { "fewer" };
    format!("{} {more} than {to}", grouped(events.unsigned_abs()))
}

/// Returns words for the parts that explain most of a change.
fn place(finding: &Finding, causes: &[Cause], total: i128) -> Option<(&'static str, String)> {
    let share = |cause: &Cause| cause.events as f64 / total as f64;
    let named = causes.iter().take(2);
    let named = named.filter(|cause| share(cause) >= WORTH_NAMING);
    let mut named: Vec<&Cause> = named.collect();
    named.sort_by(|one, other| share(other).total_cmp(&share(one)));
    // The sentence already begins with the values that the query keeps, so a cause with only these values adds nothing.
    let is_named = |(name, own): &(String, String)| {
        let mut kept = finding.query.r#where.iter();
        kept.any(|(kept, values)| kept.as_str() == name && std::slice::from_ref(own) == values)
    };
    if named.iter().any(|cause| cause.r#where.iter().all(is_named)) {
        return None;
    }
    let explained: f64 = named.iter().map(|cause| share(cause)).sum();
    let part = match explained {
        share if share >= 0.995 => "all",
        share if share >= 0.9 => "nearly all",
        share if share >= 0.5 => "most",
        _ => return None,
    };
    // Shows the counts of several parts only if their sum is at most the whole change. The sum exceeds it if other parts have
    // changed in the opposite direction.
    let counts = named.len() > 1 && explained <= 1.0;
    let places = named.into_iter().map(|cause| cause_in_words(cause, counts));
    let places: Vec<String> = places.collect();
    Some((part, places.join(" and ")))
}

/// Returns the values of a cause in words, such as `from integration Amazon S3 with event name order` or `for reason
/// consent denied`.
fn cause_in_words(cause: &Cause, is_counted: bool) -> String {
    let is_reason = |name: &str| name == Dimension::Reason.as_str();
    let preposition = match cause.r#where.first() {
        Some((name, _)) if is_reason(name) => "for",
        _ => "from",
    };
    let pairs = cause.r#where.iter();
    let pairs = pairs.map(|(name, own)| pair(name, own));
    let pairs: Vec<String> = pairs.collect();
    let events = match is_counted {
        true => format!(" ({})", grouped(cause.events.unsigned_abs())),
        false => String::new(),
    };
    format!("{preposition} {}{events}", pairs.join(" with "))
}

/// Returns words for the values that nearly all events of the group have.
fn all_within(finding: &Finding) -> Option<String> {
    if finding.group.is_empty() {
        return None;
    }
    let pairs = finding.within.iter();
    let pairs = pairs.map(|(name, own)| pair(name.as_str(), own));
    let pairs: Vec<String> = pairs.collect();
    let all = pairs.join(" and ");
    let events = match finding.expected {
        expected if expected <= 0.0 => "these events have",
        _ => "its usual traffic has",
    };
    (!all.is_empty()).then(|| format!("nearly all of {events} {all}"))
}

/// Returns a value in a form for a sentence: in quotes if it contains a colon, a semicolon or a comma.
fn quoted_value(text: &str) -> String {
    let shown = value(text);
    match shown.contains([':', ';', ',']) {
        true => format!("\"{shown}\""),
        false => shown,
    }
}
