//! Makes findings from the state of a group.

use tallyfold::{Dimension, Timestamp};

use super::finding::{Finding, Query, Status};
use super::identity::id_of;
use super::sentence::sentence;
use super::state::Live;
use crate::cause::explanation::Explanation;
use crate::rules::names::Severity;
use crate::rules::rule::Rule;
use crate::rules::set::Rules;

/// What is said about a finding besides its numbers.
#[derive(Clone, Debug)]
pub(crate) struct Telling<'r> {
    /// All rules.
    pub(crate) rules: &'r Rules,
    /// Its rule.
    pub(crate) rule: &'r Rule,
    /// The instant for which silences are looked up.
    pub(crate) at: Timestamp,
    /// Whether it is from counts that may still change.
    pub(crate) provisional: bool,
}

/// A finding.
pub(crate) fn told(
    telling: &Telling<'_>,
    live: &Live,
    resolved: Option<Timestamp>,
    explanation: Option<Explanation>,
) -> Finding {
    let (rule, rules) = (telling.rule, telling.rules);
    let group: Vec<(Dimension, &str)> = pairs(live);
    let silences = rules.silences.iter();
    let mut labels = rules.labels.clone();
    labels.extend(rule.labels.clone());
    let most = match telling.provisional {
        true => Severity::Warning,
        false => Severity::Critical,
    };
    let (causes, unexplained) =
        explanation.map_or((Vec::new(), 0), |told| (told.causes, told.unexplained));
    let mut finding = Finding {
        id: id(rule, live),
        rule: rule.name.clone(),
        kind: rule.kind,
        severity: live.numbers.severity.min(most),
        status: match (resolved, live.fired) {
            (Some(_), _) => Status::Resolved,
            (None, Some(_)) => Status::Firing,
            (None, None) => Status::Pending,
        },
        group: live.group.clone(),
        window: live.numbers.window,
        since: live.since,
        fired: live.fired,
        resolved,
        measure: rule.measure,
        observed: live.numbers.observed,
        expected: live.numbers.expected,
        low: live.numbers.normal.0,
        high: live.numbers.normal.1,
        ln_p: live.numbers.ln_p,
        causes,
        unexplained,
        silenced: silences
            .into_iter()
            .any(|silence| silence.covers(&rule.name, &group, telling.at)),
        provisional: telling.provisional,
        labels,
        sentence: String::new(),
        query: query(rules, rule, live),
    };
    finding.sentence = sentence(&finding, rule);
    finding
}

/// The values of a finding's group.
fn pairs(live: &Live) -> Vec<(Dimension, &str)> {
    let pairs = live.group.iter();
    pairs.map(|(name, value)| (*name, value.as_str())).collect()
}

fn id(rule: &Rule, live: &Live) -> String {
    let group = pairs(live)
        .into_iter()
        .flat_map(|(name, value)| [name.as_str(), value]);
    id_of(std::iter::once(rule.name.as_str()).chain(group))
}

/// The query that shows a finding: the counts of its group, by the dimensions that explain it.
fn query(rules: &Rules, rule: &Rule, live: &Live) -> Query {
    let metric = rule.metric;
    let fixed = rule
        .only
        .iter()
        .filter(|(name, _)| !rule.by.contains(name))
        .cloned();
    let own = live
        .group
        .iter()
        .map(|(name, value)| (*name, vec![value.clone()]));
    let mut wanted: Vec<(Dimension, Vec<String>)> = own.chain(fixed).collect();
    wanted.sort();
    let dimensions = Dimension::ALL.iter().copied().filter(|name| {
        metric.has(*name)
            && (rules.dimensions.contains(name) || wanted.iter().any(|(own, _)| own == name))
    });
    Query {
        metric,
        start: live.since.min(live.numbers.window.start()),
        end: live.numbers.window.end(),
        dimensions: dimensions.collect(),
        r#where: wanted,
    }
}
