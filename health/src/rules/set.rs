//! Rules and their common settings, the counts that they need, silences and calendars.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use tallyfold::{Code, Dimension, Error, Metric, Result, TimeStep, Timestamp};

use super::kinds::{RuleKind, Test};
use super::rule::Rule;
use crate::columns::page_head::SumsBy;
use crate::measure::Measure;
use crate::usual::calendar::Local;

/// The maximum number of rules, of silences, and of calendars.
pub(crate) const MOST: usize = 1_000;

/// Rules: what to look for in counts, and how severe it is. [`Rules::parse`] reads rules from a TOML file, and
/// [`Rules::new`] takes them as values.
///
/// ```
/// # use tallyfold_health::Rules;
/// let rules = Rules::parse(r#"
///     [[rule]]
///     name = "integrations fail"
///     kind = "threshold"
///     measure = "error_rate"
///     by = ["integration"]
///     above = "5%"
/// "#)?;
/// assert_eq!(rules.names(), ["integrations fail"]);
/// let error = Rules::parse("[[rule]]\nname = 'x'\nkind = 'treshold'").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "invalid_rules: line 3, column 1: rule[0].kind: there is no such kind; did you mean threshold?"
/// );
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    pub(crate) silences: Vec<Silence>,
    pub(crate) calendars: Vec<LocalDays>,
    /// Labels for all findings.
    pub(crate) labels: BTreeMap<String, String>,
    /// The dimensions by which findings are explained.
    pub(crate) dimensions: Vec<Dimension>,
}

/// The first lines of [`Rules::kinds`].
const KINDS: &str = r#"
# Every kind of rule, with its keys and their defaults where there are any. To use a rule, remove the # in front of its lines.
# Any rule may have: metric = "event_delivery" or "event_ingestion"; by; where = { integration = ["Webhook"] }; window = "15m";
# for = 1 (bad windows in a row until it fires; 2 for volume and day_off); clear = 2 (good ones until it is resolved);
# severity = "info", "warning" or "critical"; least (the minimum number of events in a window); labels = { team = "data" };
# note and runbook, for the people who receive its findings.
"#;

/// An example of a calendar, as text of a rules file.
const CALENDAR: &str = r#"# A calendar: the time zone and the holidays of some groups.
[[calendar]]
rule = ["volume is unusual"]
where = { write_key = ["web-us"] }
zone = "America/New_York"
holidays = [2026-11-26, 2026-12-25]
comment = "closed on Thanksgiving"
"#;

/// An example of a silence, as text of a rules file.
const SILENCE: &str = r#"# A silence: findings of its rules are not sent.
[[silence]]
rule = ["too many errors"]
where = { integration = ["Webhook"] }
from = 2026-03-28T22:00:00Z
until = 2026-03-29T04:00:00Z
comment = "maintenance"
"#;

impl Rules {
    /// The default rules, as the text of a rules file.
    pub const STANDARD: &'static str = include_str!("standard.toml");

    /// Returns comments for a rules file: every kind of rule with its keys, a calendar and a silence. A line that starts
    /// with `#` and no space becomes a setting when its `#` is removed.
    #[must_use]
    pub fn kinds() -> String {
        let mut text = KINDS.to_owned();
        let examples = RuleKind::ALL.iter().map(|kind| kind.example());
        for example in examples.chain([CALENDAR, SILENCE]) {
            text.push('\n');
            for line in example.lines() {
                let is_comment = line.is_empty() || line.starts_with('#');
                let mark = if is_comment { "" } else { "#" };
                text.push_str(&format!("{mark}{line}\n"));
            }
        }
        text
    }

    /// Returns the default rules, [`Rules::STANDARD`].
    ///
    /// # Errors
    /// Never, because the default rules are valid.
    pub fn standard() -> Result<Self> {
        Self::parse(Self::STANDARD)
    }

    /// Makes rules from values. Findings are explained by all dimensions.
    ///
    /// # Errors
    /// `invalid_rules` if a setting is invalid, if two rules have the same name, or if there are no rules or too many.
    pub fn new(rules: impl IntoIterator<Item = Rule>) -> Result<Self> {
        let rules: Vec<Rule> = rules.into_iter().collect();
        if !(1..=MOST).contains(&rules.len()) {
            return Err(invalid(format!("want 1 to {MOST} rules")));
        }
        for (place, rule) in rules.iter().enumerate() {
            if let Some(misfit) = rule.misfit() {
                let key = match misfit.key {
                    "" => String::new(),
                    key => format!("{key}: "),
                };
                let text = format!("the rule {:?}: {key}{}", rule.name, misfit.text);
                return Err(invalid(text));
            }
            if rules[..place].iter().any(|other| other.name == rule.name) {
                let text = format!("the rule {:?}: another rule has this name", rule.name);
                return Err(invalid(text));
            }
        }
        Ok(Self {
            rules,
            silences: Vec::new(),
            calendars: Vec::new(),
            labels: BTreeMap::new(),
            dimensions: Dimension::ALL.to_vec(),
        })
    }

    /// Explains findings by these dimensions only, which must include the dimensions of all rules.
    ///
    /// # Errors
    /// `invalid_rules` if a rule uses another dimension.
    pub fn explained_by(mut self, dimensions: impl IntoIterator<Item = Dimension>) -> Result<Self> {
        self.dimensions = dimensions.into_iter().collect();
        match self.unexplained() {
            Some((rule, missing)) => {
                Err(invalid(format!("the rule {:?} uses {missing} too", rule.name)))
            }
            None => Ok(self),
        }
    }

    /// Adds a label to all findings.
    #[must_use]
    pub fn label(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.labels.insert(name.into(), text.into());
        self
    }

    /// Returns the first rule with a dimension that `dimensions` lacks, and this dimension.
    pub(crate) fn unexplained(&self) -> Option<(&Rule, Dimension)> {
        self.rules.iter().find_map(|rule| {
            let mut own = rule.dimensions();
            let missing = own.find(|own| !self.dimensions.contains(own));
            missing.map(|missing| (rule, missing))
        })
    }

    /// Returns the names of the rules, in order.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.rules.iter().map(|rule| rule.name.as_str()).collect()
    }

    /// Returns the sums of an endpoint's counts that the rules judge. Pages of counts must contain these sums.
    #[must_use]
    pub fn sums(&self, metric: Metric) -> Vec<SumsBy> {
        let all = self.rules.iter().flat_map(|rule| {
            let own = (rule.metric, rule.own());
            std::iter::once(own).chain(rule.other())
        });
        let own = all.filter(|(of, _)| *of == metric);
        let mut sums: Vec<SumsBy> = own.map(|(_, sums)| sums).collect();
        sums.sort();
        sums.dedup();
        sums
    }

    /// Returns which counts the rules need. For each endpoint, these are the dimensions, the window length, and the
    /// length of the history.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        let needs = Metric::ALL.iter().filter_map(|metric| {
            let rules = self.rules.iter().filter(|rule| rule.needs(*metric));
            let rules: Vec<&Rule> = rules.collect();
            let is_named = |dimension: Dimension| {
                self.dimensions.contains(&dimension)
                    || rules.iter().any(|rule| rule.dimensions().any(|own| own == dimension))
            };
            let dimensions = Dimension::ALL.iter().copied();
            let dimensions = dimensions.filter(|own| metric.has(*own) && is_named(*own));
            let window = rules.iter().map(|rule| rule.window).reduce(common)?;
            let back = rules.iter().map(|rule| rule.back()).max();
            Some(Need {
                metric: *metric,
                dimensions: dimensions.collect(),
                window_s: window.seconds().into(),
                back_s: back.unwrap_or_default(),
            })
        });
        needs.collect()
    }

    /// Returns the budgets of the rules of kind `budget`, in the order of the rules.
    #[must_use]
    pub fn budgets(&self) -> Vec<ErrorBudget> {
        let budgets = self.rules.iter().filter_map(|rule| {
            let Test::Budget(budget) = &rule.test else {
                return None;
            };
            let only = rule.only.iter().cloned();
            Some(ErrorBudget {
                rule: rule.name.clone(),
                metric: rule.metric,
                measure: rule.measure,
                dimensions: rule.by.clone(),
                r#where: only.map(|(dimension, values)| (dimension.as_str(), values)).collect(),
                share: budget.share().as_f64(),
            })
        });
        budgets.collect()
    }
}

fn invalid(text: String) -> Error {
    Error::new(Code::InvalidRules, text)
}

/// Returns the longest step that divides both steps.
fn common(one: TimeStep, other: TimeStep) -> TimeStep {
    let (mut a, mut b) = (one.seconds(), other.seconds());
    while b > 0 {
        (a, b) = (b, a % b);
    }
    // This can't fail: both steps divide a day, so their common divisor does, too.
    TimeStep::from_seconds(a.into()).unwrap_or(one)
}

/// The counts of one endpoint that rules need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Need {
    /// The endpoint.
    pub metric: Metric,
    /// The dimensions that all rules together need.
    pub dimensions: Vec<Dimension>,
    /// The length of the windows, such as `15m`: a divisor of the window length of each rule.
    #[serde(rename = "window", serialize_with = "as_step")]
    #[cfg_attr(feature = "surface", schemars(with = "String", extend("format" = "step")))]
    pub window_s: u64,
    /// How long before now the first window starts.
    #[serde(rename = "backMs", serialize_with = "as_ms")]
    #[cfg_attr(feature = "surface", schemars(with = "f64"))]
    pub back_s: u64,
}

/// How many events may fail or be filtered, according to a rule of kind `budget`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct ErrorBudget {
    /// The name of the rule.
    pub rule: String,
    /// The endpoint.
    pub metric: Metric,
    /// Which events the budget limits.
    pub measure: Measure,
    /// The dimensions to group by. Each group has its own budget.
    pub dimensions: Vec<Dimension>,
    /// For each restricted dimension, the values to keep.
    pub r#where: BTreeMap<&'static str, Vec<String>>,
    /// The share of events that may fail or be filtered: 0.05 for 5%.
    pub share: f64,
}

/// Writes seconds as a step, as queries do, such as `15m`.
fn as_step<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    match TimeStep::from_seconds(*seconds) {
        Ok(step) => serializer.collect_str(&step),
        Err(_) => serializer.collect_str(&format_args!("{seconds}s")),
    }
}

/// Writes seconds as milliseconds, which are below 2^53.
fn as_ms<S: Serializer>(seconds: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(*seconds as f64 * 1000.0)
}

/// A silence: matching findings are reported, but marked as silenced.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Silence {
    /// The names of the rules; empty for all rules.
    pub(crate) rules: Vec<String>,
    /// The values that a finding's group must have: one of the values listed for each dimension.
    pub(crate) group: Vec<(Dimension, Vec<String>)>,
    /// When the silence begins; `None` if it has no beginning.
    pub(crate) from: Option<Timestamp>,
    /// When the silence ends; `None` if it has no end.
    pub(crate) until: Option<Timestamp>,
}

impl Silence {
    /// Returns whether the silence covers, at the time `at`, a finding of this rule in this group.
    pub(crate) fn covers(&self, rule: &str, group: &[(Dimension, &str)], at: Timestamp) -> bool {
        let has = |(dimension, values): &(Dimension, Vec<String>)| {
            group
                .iter()
                .any(|(own, value)| own == dimension && values.iter().any(|wanted| wanted == value))
        };
        (self.rules.is_empty() || self.rules.iter().any(|name| name == rule))
            && self.group.iter().all(has)
            && self.from.is_none_or(|from| from <= at)
            && self.until.is_none_or(|until| at < until)
    }
}

/// A calendar: the time zone and the holidays of some groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocalDays {
    /// The names of the rules; empty for all rules.
    pub(crate) rules: Vec<String>,
    /// The values that a group must have: one of the values listed for each dimension.
    pub(crate) group: Vec<(Dimension, Vec<String>)>,
    /// The time zone and the holidays.
    pub(crate) local: Local,
}

impl LocalDays {
    /// Returns whether the calendar may apply to groups of a rule.
    pub(crate) fn is_of(&self, rule: &Rule) -> bool {
        self.rules.is_empty() || self.rules.contains(&rule.name)
    }

    /// Returns whether the calendar applies to a group of a rule. For each of its dimensions, the calendar must list
    /// the group's value or all values that the rule keeps.
    pub(crate) fn covers(&self, rule: &Rule, group: &[(Dimension, &str)]) -> bool {
        self.group.iter().all(|(dimension, wanted)| {
            let is_wanted = |value: &str| wanted.iter().any(|one| one == value);
            let mut own = group.iter().filter(|(own, _)| own == dimension);
            let mut kept = rule.only.iter().filter(|(own, _)| own == dimension);
            own.any(|(_, value)| is_wanted(value))
                || kept.any(|(_, values)| values.iter().all(|value| is_wanted(value)))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::read::COMMON;

    #[test]
    fn the_commented_rules_are_valid_and_have_every_kind_and_key() {
        let kinds = Rules::kinds();
        let used = kinds.lines().map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => "",
        });
        let used: Vec<&str> = used.collect();
        Rules::parse(&used.join("\n")).unwrap();
        for key in COMMON {
            let setting = format!("{key} = ");
            assert!(used.iter().any(|line| line.starts_with(&setting)), "{key}");
        }
        for kind in RuleKind::ALL {
            for key in kind.form().keys {
                let setting = format!("\n{key} = ");
                assert!(kind.example().contains(&setting), "{kind}: {key}");
            }
        }
    }
}
