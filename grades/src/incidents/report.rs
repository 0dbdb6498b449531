//! The table of results, and a line of JSON for each incident.

use std::fmt::Write;

use serde_json::{Value, json};

use super::alarm::Values;
use super::incident::Kind;
use super::score::{Outcome, Score};
use super::tables::start;

/// The figures of several outcomes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) incidents: usize,
    pub(super) found: usize,
    /// Incidents whose cause was among the first three.
    pub(super) explained: usize,
    /// Times in windows: until the first window that raised an alarm, and until the alarm was sent.
    pub(super) median_delay: Option<usize>,
    pub(super) median_told: Option<usize>,
}

impl Figures {
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Self {
        Self {
            incidents: outcomes.clone().count(),
            found: outcomes.clone().filter_map(Outcome::delay).count(),
            explained: outcomes.clone().filter(|one| one.is_explained()).count(),
            median_delay: median(outcomes.clone().filter_map(Outcome::delay).collect()),
            median_told: median(outcomes.filter_map(Outcome::told).collect()),
        }
    }

    fn row(&self) -> String {
        let shown = |delay: Option<usize>| delay.map_or("-".to_owned(), |delay| delay.to_string());
        format!(
            "{:>9} {:>6} {:>9} {:>6} {:>5}",
            self.incidents,
            self.found,
            self.explained,
            shown(self.median_delay),
            shown(self.median_told)
        )
    }
}

/// The median; of an even number, the larger one of the two in the middle.
fn median(mut all: Vec<usize>) -> Option<usize> {
    all.sort_unstable();
    all.get(all.len() / 2).copied()
}

/// The share of alarms that are about an incident. All alarms about one incident count as one.
pub(super) fn precision(scores: &[Score]) -> f64 {
    let found = scores.iter().flat_map(|score| &score.outcomes);
    let found = found.filter(|one| !one.alarms.is_empty()).count();
    let wrong: usize = scores.iter().map(|score| score.false_alarms.len()).sum();
    ratio(found, found + wrong)
}

pub(super) fn recall(scores: &[Score]) -> f64 {
    let all = Figures::of(scores.iter().flat_map(|score| &score.outcomes));
    ratio(all.found, all.incidents)
}

pub(super) fn explained(scores: &[Score]) -> f64 {
    let all = Figures::of(scores.iter().flat_map(|score| &score.outcomes));
    ratio(all.explained, all.incidents)
}

fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The results by kind and by seed, and what they come to.
pub(super) fn table(scores: &[Score]) -> String {
    let mut text = String::new();
    let head = "incidents  found explained  delay  told";
    let _ = writeln!(text, "{:<20} {head}", "kind");
    let outcomes = || scores.iter().flat_map(|score| &score.outcomes);
    for kind in Kind::ALL {
        let of_kind = Figures::of(outcomes().filter(|one| one.incident.kind == kind));
        let _ = writeln!(text, "{:<20} {}", kind.name(), of_kind.row());
    }
    let _ = writeln!(text, "{:<20} {}\n", "all", Figures::of(outcomes()).row());
    let _ = writeln!(text, "{:<20} {head}  false alarms", "seed");
    for score in scores {
        let figures = Figures::of(score.outcomes.iter());
        let wrong = score.false_alarms.len();
        let weeks = score.weeks;
        let _ = writeln!(
            text,
            "{:<20} {}  {wrong} in {weeks} weeks",
            score.seed,
            figures.row()
        );
    }
    let weeks: usize = scores.iter().map(|score| score.weeks).sum();
    let wrong: usize = scores.iter().map(|score| score.false_alarms.len()).sum();
    let _ = writeln!(
        text,
        "\nrecall {:.3}, precision {:.3}, cause among the first three {:.3}, false alarms a week {:.2}",
        recall(scores),
        precision(scores),
        explained(scores),
        wrong as f64 / weeks.max(1) as f64,
    );
    text
}

/// Every incident and every false alarm in detail.
pub(super) fn details(score: &Score) -> String {
    let mut text = String::new();
    let at =
        |window: usize| start(window).map_or_else(|_| String::new(), |start| start.to_string());
    for (number, one) in score.outcomes.iter().enumerate() {
        let incident = &one.incident;
        let _ = writeln!(
            text,
            "{}-{:02} {:<18} {} for {:>2} windows, size {:.2}, {:?}\n      delay {:?}, told {:?}, cause {:?} of {:?}",
            score.seed,
            number + 1,
            incident.kind.name(),
            at(incident.start),
            incident.end - incident.start,
            incident.size,
            incident.cause(),
            one.delay(),
            one.told(),
            one.right,
            one.causes,
        );
        for alarm in &one.alarms {
            let _ = writeln!(
                text,
                "      {} {:?} {}..{}: {}",
                alarm.rule, alarm.group, alarm.first, alarm.last, alarm.sentence
            );
        }
    }
    for alarms in &score.false_alarms {
        for (place, alarm) in alarms.iter().enumerate() {
            let mark = if place == 0 { "false" } else { "     " };
            let _ = writeln!(
                text,
                "{mark} {} {} {:?} for {} windows: {}",
                at(alarm.first),
                alarm.rule,
                alarm.group,
                alarm.last - alarm.first + 1,
                alarm.sentence
            );
        }
    }
    text
}

/// A line of JSON for each incident.
pub(super) fn lines(score: &Score) -> String {
    let line = |(number, one): (usize, &Outcome)| {
        let shown = |values: &Values| -> Value {
            values
                .iter()
                .map(|(name, value)| (name.clone(), json!(value)))
                .collect()
        };
        let causes = one.causes.iter();
        let causes = causes.map(|cause| json!({"where": shown(cause), "named": true}));
        let line = json!({
            "case": format!("seed-{}-{:02}", score.seed, number + 1),
            "causes": causes.collect::<Vec<_>>(),
            "kind": one.incident.kind.name(),
            "truth": one.incident.cause(),
            "found": !one.alarms.is_empty(),
            "delay": one.delay(),
            "told": one.told(),
        });
        format!("{line}\n")
    };
    score.outcomes.iter().enumerate().map(line).collect()
}
