//! Describes a finding in one sentence: which events, how many compared with what is usual, since when, and where.

use tallyfold::Dimension;
use tallyfold::text::grouped;

use crate::cause::explanation::{Amount, Cause};
use crate::incidents::finding::{Finding, Status};
use crate::rules::rule::Rule;
use crate::rules::wording::{Said, Seen, rounded};
use crate::shown::{self, near, span, value};

/// Counts of a finding, and the words about them.
struct Counted {
    amount: Amount,
    expected: f64,
    said: Said,
}

impl Counted {
    /// Makes words about some counts of a finding. The expected number and the limits belong to the observed events, so
    /// they are scaled to `amount`.
    fn new(finding: &Finding, rule: &Rule, amount: Amount) -> Self {
        let wholes = finding.observed.whole.zip(amount.whole);
        let scale = match wholes {
            Some((observed, whole)) if observed > 0 => whole as f64 / observed as f64,
            _ => 1.0,
        };
        let scaled = |limit: u64| match limit {
            u64::MAX => u64::MAX,
            limit => rounded(limit as f64 * scale),
        };
        let expected = finding.expected * scale;
        let said = rule.test.judge().said(&Seen {
            measure: finding.measure,
            observed: amount,
            expected,
            low: scaled(finding.low),
            high: finding.high.map(scaled),
        });
        Self {
            amount,
            expected,
            said,
        }
    }

    /// Returns the words with a time, such as `31.5% of attempts failed since 03:00 UTC (422 of 1,341; limit 10%)`.
    fn during(&self, time: &str) -> String {
        let details = match self.said.details.is_empty() {
            true => String::new(),
            false => format!(" ({})", self.said.details.join("; ")),
        };
        format!("{} {time}{details}", self.said.what)
    }
}

/// Returns the sentence of a finding.
pub(crate) fn sentence(finding: &Finding, rule: &Rule) -> String {
    let about = subject(finding, rule);
    let (window, since) = (finding.window, finding.since);
    let mut observed = Counted::new(finding, rule, finding.observed);
    let total = finding.total.filter(|total| total.whole.is_some());
    let total = total.map(|total| Counted::new(finding, rule, total));
    let in_window = observed.during(&format!("from {}", shown::window(window)));
    let mut change = Change::of(finding);
    let (first, last) = match (finding.status, finding.resolved, &total) {
        (Status::Resolved, Some(end), Some(total)) => {
            change.compare(finding, total);
            let all = total.during(&format!("from {}", span(since, end)));
            (all, Some("over".to_owned()))
        }
        (Status::Resolved, Some(end), None) => {
            change.number = None;
            let over = match (window.start() == since, window.end() == end) {
                (true, true) => "over".to_owned(),
                (true, false) => format!("over, it lasted until {} UTC", near(end, since)),
                (false, _) => format!("over, it lasted from {}", span(since, end)),
            };
            (in_window, Some(over))
        }
        (Status::Unjudged, ..) => {
            change.number = None;
            let since = near(since, window.start());
            let seen = finding.seen.short();
            let first = format!(
                "not judged since {seen} UTC (too little traffic); last judged: {in_window}, since {since}"
            );
            (first, None)
        }
        _ if since < window.start() => {
            let since = near(since, window.start());
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
                let since = near(since, window.start());
                (format!("{in_window}, beginning at about {since}"), None)
            }
        },
        _ => {
            change.compare(finding, &observed);
            if let (0, true, Some(usual)) = (
                observed.amount.part,
                observed.said.is_usual,
                observed.said.details.last_mut(),
            ) {
                usual.push_str(&format!(" until {}", near(window.end(), since)));
            }
            (
                observed.during(&format!("since {} UTC", since.short())),
                None,
            )
        }
    };
    let mut parts = vec![format!("{about}: {first}")];
    parts.extend(change.told());
    parts.extend(last);
    if finding.provisional {
        parts.push("these counts may still change".to_owned());
    }
    parts.join("; ")
}

/// Returns the group of a finding and the values that the rule keeps, such as `integration Amazon S3 (event name order)`.
fn subject(finding: &Finding, rule: &Rule) -> String {
    let pairs = finding.group.iter();
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(name.as_str()), value_beside(own)));
    let about = match finding.group.is_empty() {
        true => words(finding.query.metric.as_str()),
        false => pairs.collect::<Vec<_>>().join(", "),
    };
    let kept = rule.only.iter().filter(|(name, _)| !rule.by.contains(name));
    let kept = kept.map(|(name, values)| {
        let values: Vec<String> = values.iter().map(|own| value_beside(own)).collect();
        format!("{} {}", words(name.as_str()), values.join(" or "))
    });
    let kept: Vec<String> = kept.collect();
    match kept.is_empty() {
        true => about,
        false => format!("{about} ({})", kept.join(", ")),
    }
}

fn words(name: &str) -> String {
    name.replace('_', " ")
}

/// By how many events a finding differs from the compared time, and where most of these events are.
#[derive(Debug, Default)]
struct Change {
    /// The difference, such as `410 more than just before`.
    number: Option<String>,
    /// Where the difference is, such as `nearly all from integration Amazon S3`.
    place: Option<String>,
}

/// The sentence names a cause if it explains at least this share of the change.
const WORTH_NAMING: f64 = 0.1;

impl Change {
    /// Returns the change since the finding began, by its causes.
    fn of(finding: &Finding) -> Self {
        let within = || Self {
            number: None,
            place: all_within(finding),
        };
        let (Some(first), Some(last)) = (finding.compared.first(), finding.compared.last()) else {
            return within();
        };
        let all: i128 = finding.causes.iter().map(|cause| cause.events).sum();
        let total = finding.unexplained.saturating_add(all);
        let difference = finding.observed.part as f64 - finding.expected;
        if total == 0 || (total > 0) != (difference > 0.0) {
            return within();
        }
        let is_before = first == last && first.end() == finding.query.start.max(finding.since);
        let to = if is_before { "just before" } else { "usual" };
        Self {
            number: Some(compared(total, to)),
            place: place(finding, total).or_else(|| all_within(finding)),
        }
    }

    /// Sets the number to the difference between these counts and what is usual. It does so only for shares, because the
    /// words about other counts contain the difference already.
    fn compare(&mut self, finding: &Finding, counted: &Counted) {
        if counted.said.is_usual {
            let surplus = i128::from(counted.amount.part) - i128::from(rounded(counted.expected));
            let is_share = counted.amount.whole.is_some() && finding.measure.is_rate();
            self.number = (is_share && surplus != 0).then(|| compared(surplus, "usual"));
        } else if counted.amount != finding.observed {
            self.number = None;
        }
    }

    fn told(self) -> Option<String> {
        let told: Vec<String> = self.number.into_iter().chain(self.place).collect();
        (!told.is_empty()).then(|| told.join(", "))
    }
}

fn compared(events: i128, to: &str) -> String {
    let more = if events > 0 { "more" } else { "fewer" };
    format!("{} {more} than {to}", grouped(events.unsigned_abs()))
}

/// Returns words for the parts that explain most of a change.
fn place(finding: &Finding, total: i128) -> Option<String> {
    let share = |cause: &Cause| cause.events as f64 / total as f64;
    let named = finding.causes.iter().take(2);
    let named = named.filter(|cause| share(cause) >= WORTH_NAMING);
    let mut named: Vec<&Cause> = named.collect();
    named.sort_by(|one, other| share(other).total_cmp(&share(one)));
    let explained: f64 = named.iter().map(|cause| share(cause)).sum();
    let part = match explained {
        share if share >= 0.995 => "all",
        share if share >= 0.9 => "nearly all",
        share if share >= 0.5 => "most",
        _ => return None,
    };
    // Shows the counts of several parts only if they add up to at most the whole. They exceed it if other parts have
    // changed the other way.
    let counts = named.len() > 1 && explained <= 1.0;
    let places = named.into_iter().map(|cause| cause_in_words(cause, counts));
    let places: Vec<String> = places.collect();
    Some(format!("{part} {}", places.join(" and ")))
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
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(name), value_beside(own)));
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
    let pairs = pairs.map(|(name, own)| format!("{} {}", words(name.as_str()), value_beside(own)));
    let pairs: Vec<String> = pairs.collect();
    let all = pairs.join(" and ");
    (!all.is_empty()).then(|| format!("nearly all of its events have {all}"))
}

/// Returns a value for a place among other words, in quotes if it contains punctuation.
fn value_beside(text: &str) -> String {
    let shown = value(text);
    match shown.contains([':', ';', ',']) {
        true => format!("\"{shown}\""),
        false => shown,
    }
}
