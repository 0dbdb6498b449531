//! The tables of results, and a line of JSON for each incident.

use std::fmt::Write;

use serde_json::{Value, json};

use super::alarm::Values;
use super::change::{Incident, Life};
use super::clock::HOUR;
use super::score::{About, Message, Outcome, Score};
use super::tables::start;
use super::world::World;

/// The figures of a detector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Figures {
    pub(super) incidents: usize,
    pub(super) found: usize,
    /// Found incidents whose cause was among the first three.
    pub(super) explained: usize,
    /// Incidents with alarms that were all reported as over too early.
    pub(super) early: usize,
    /// The median and the 90% quantile of the hours from the beginning of an incident to the end of the window that led
    /// to the first message.
    pub(super) median_delay: Option<f64>,
    pub(super) late_delay: Option<f64>,
}

impl Figures {
    pub(super) fn of<'a>(outcomes: impl Iterator<Item = &'a Outcome> + Clone) -> Self {
        let mut delays: Vec<usize> = outcomes.clone().filter_map(Outcome::delay).collect();
        delays.sort_unstable();
        let quantile = |share: f64| {
            let place = (delays.len() as f64 * share) as usize;
            delays.get(place).map(|delay| *delay as f64 / HOUR as f64)
        };
        Self {
            incidents: outcomes.clone().count(),
            found: delays.len(),
            explained: outcomes.clone().filter(|one| one.is_explained()).count(),
            early: outcomes.filter(|one| one.is_called_over).count(),
            median_delay: quantile(0.5),
            late_delay: quantile(0.9),
        }
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// The scores of both detectors, of the same seeds in the same order.
pub(super) type Pair<'a> = [&'a [Score]; 2];

pub(super) fn figures(scores: &[Score]) -> Figures {
    Figures::of(scores.iter().flat_map(|score| &score.outcomes))
}

/// Formats hours; a dash without a delay.
fn hours(delay: Option<f64>) -> String {
    delay.map_or("-".to_owned(), |delay| format!("{delay:.2}"))
}

/// The results by kind of incident, as a whole, and by kind of life.
pub(super) fn tables(both: Pair<'_>) -> String {
    let mut text = String::new();
    let head = "found  cause  median    90%  early";
    let _ = writeln!(text, "{:<24} {:>9}  | {head}  | peer: {head}", "incident", "number");
    let row = |text: &mut String, name: &str, wanted: Option<Incident>| {
        let of = both.map(|scores| {
            let outcomes = scores.iter().flat_map(|score| &score.outcomes);
            Figures::of(outcomes.filter(|one| wanted.is_none_or(|kind| one.kind == kind)))
        });
        let _ = write!(text, "{name:<24} {:>9}  |", of[0].incidents);
        for (place, of) in of.into_iter().enumerate() {
            let gap = if place == 0 { " " } else { "  |       " };
            let _ = write!(
                text,
                "{gap}{:>5} {:>6} {:>7} {:>6} {:>6}",
                of.found,
                of.explained,
                hours(of.median_delay),
                hours(of.late_delay),
                of.early
            );
        }
        text.push('\n');
    };
    for kind in Incident::ALL {
        row(&mut text, kind.name(), Some(kind));
    }
    row(&mut text, "all", None);
    let _ = writeln!(text, "\n{:<44} {:>22} {:>22}", "", "tallyfold", "peer");
    let [ours, peers] = both.map(sums);
    for ((name, ours), (_, peers)) in ours.into_iter().zip(peers) {
        let _ = writeln!(text, "{name:<44} {ours:>22} {peers:>22}");
    }
    text.push('\n');
    text.push_str(&life(both));
    text
}

/// The results in total.
fn sums(scores: &[Score]) -> Vec<(&'static str, String)> {
    let all = figures(scores);
    let messages: Vec<&Message> = scores.iter().flat_map(|score| &score.messages).collect();
    let findings: Vec<&About> = scores.iter().flat_map(|score| &score.findings).collect();
    let touching = findings.iter().filter(|about| ***about == About::Incident);
    let useful = messages.iter().filter(|message| !message.about.is_false());
    let retired: usize = scores.iter().map(|score| score.retired).sum();
    let weeks: usize = scores.iter().map(|score| score.weeks).sum();
    let a_week = |count: usize| format!("{:.2}", count as f64 / weeks.max(1) as f64);
    let outcomes = || scores.iter().flat_map(|score| &score.outcomes);
    let of_found = |count: usize| format!("{:.2}", ratio(count, all.found));
    let share = |part, whole| format!("{:.3} ({part} of {whole})", ratio(part, whole));
    let floods = scores.iter().filter_map(|score| score.flood);
    let flood = floods.max_by_key(|flood| flood.messages);
    let joined = outcomes().filter(|one| one.messages.is_empty() && !one.alarms.is_empty());
    let right = messages.iter().filter(|one| one.about == About::Incident);
    vec![
        ("recall", share(all.found, all.incidents)),
        ("messages that touch an incident", share(right.count(), messages.len())),
        (
            "messages that touch an incident or an outage",
            share(useful.clone().count(), messages.len()),
        ),
        (
            "the same, or the first about a retired name",
            share(useful.count() + retired, messages.len()),
        ),
        ("findings that touch an incident", share(touching.count(), findings.len())),
        ("false episodes a week", a_week(scores.iter().map(|score| score.episodes).sum())),
        ("findings per found incident", of_found(outcomes().map(|one| one.alarms.len()).sum())),
        ("messages per found incident", of_found(outcomes().map(|one| one.messages.len()).sum())),
        ("incidents that only joined another message", joined.count().to_string()),
        (
            "most messages within two hours (about)",
            flood.map_or("-".to_owned(), |flood| {
                format!("{} ({})", flood.messages, flood.about.name())
            }),
        ),
        ("delay in hours: median", hours(all.median_delay)),
        ("delay in hours: 90% within", hours(all.late_delay)),
        ("cause among the first three, of found", share(all.explained, all.found)),
        ("called over too early, of all", share(all.early, all.incidents)),
        ("infos a week", a_week(scores.iter().map(|score| score.infos.len()).sum())),
    ]
}

/// How often each kind of life was reported.
fn life(both: Pair<'_>) -> String {
    let mut text = String::new();
    let head = "reported  findings  messages";
    let _ = writeln!(text, "{:<24} {:>9}  | {head}  | peer: {head}", "life", "number");
    let kinds = Life::ALL.map(About::Life).into_iter();
    for about in kinds.chain([About::Nothing]) {
        let noticed = both.map(|scores| {
            let all = scores.iter().flat_map(|score| &score.life);
            let own = all.filter(|noticed| About::Life(noticed.life) == about);
            own.fold([0, 0], |[occurred, reported], noticed| {
                [occurred + noticed.occurred, reported + noticed.noticed]
            })
        });
        let [occurred, _] = noticed[0];
        if occurred == 0 && about != About::Nothing {
            continue;
        }
        let shown = |count: usize| match about {
            About::Nothing => "-".to_owned(),
            _ => count.to_string(),
        };
        let _ = write!(text, "{:<24} {:>9}  |", about.name(), shown(occurred));
        for (place, scores) in both.into_iter().enumerate() {
            let gap = if place == 0 { " " } else { "  |       " };
            let messages = scores.iter().flat_map(|score| &score.messages);
            let findings = scores.iter().flat_map(|score| &score.findings);
            let _ = write!(
                text,
                "{gap}{:>8} {:>9} {:>9}",
                shown(noticed[place][1]),
                findings.filter(|own| **own == about).count(),
                messages.filter(|message| message.about == about).count()
            );
        }
        text.push('\n');
    }
    text
}

/// Describes every incident and every false message in detail.
pub(super) fn details(world: &World, score: &Score) -> String {
    let mut text = String::new();
    let at = |window: usize| {
        let start = start(world, window);
        start.map_or_else(|_| String::new(), |start| start.to_string())
    };
    for (number, one) in score.outcomes.iter().enumerate() {
        let change = &one.change;
        let _ = writeln!(
            text,
            "{}-{}-{:02} {} {} for {} windows, {:?}, {:?}\n      delay {:?}, messages {:?}, called over {}, cause {:?} of {:?}",
            score.setting.name(),
            score.seed,
            number + 1,
            one.kind.name(),
            at(change.start),
            change.end - change.start,
            change.effect,
            change.values(),
            one.delay(),
            one.messages,
            one.is_called_over,
            one.right,
            one.causes,
        );
        for alarm in &one.alarms {
            let _ = writeln!(
                text,
                "      {} {} {:?} {}..{}: {}",
                alarm.incident, alarm.rule, alarm.group, alarm.first, alarm.last, alarm.sentence
            );
        }
    }
    let wrong = score.messages.iter().filter(|one| one.about.is_false());
    for message in wrong {
        let _ = writeln!(text, "false {} {}", at(message.told), message.about.name());
        for (alarm, about) in &message.alarms {
            let _ = writeln!(
                text,
                "      {} {} {} {:?} for {} windows: {}",
                alarm.incident,
                about.name(),
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
            let values = values.iter();
            values.map(|(name, value)| (name.clone(), json!(value))).collect()
        };
        let causes = one.causes.iter();
        let causes = causes.map(|cause| json!({"where": shown(cause), "named": true}));
        let line = json!({
            "case": format!("{}-{}-{:02}", score.setting.name(), score.seed, number + 1),
            "causes": causes.collect::<Vec<_>>(),
            "kind": one.kind.name(),
            "truth": one.change.values(),
            "found": !one.messages.is_empty(),
            "delay": one.delay(),
            "messages": one.messages.len(),
            "calledOver": one.is_called_over,
        });
        format!("{line}\n")
    };
    score.outcomes.iter().enumerate().map(line).collect()
}
