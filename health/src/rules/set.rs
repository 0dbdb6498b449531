//! All rules of a file.

use std::collections::BTreeMap;

use tallyfold::{Dimension, Result};

use super::need::{Need, needs};
use super::rule::Rule;
use super::silence::Silence;
use super::standard::STANDARD;

/// Rules, as a TOML file has them: what to look for in counts, and how bad it is.
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
    /// Labels for all findings.
    pub(crate) labels: BTreeMap<String, String>,
    /// The dimensions by which findings are explained.
    pub(crate) dimensions: Vec<Dimension>,
}

impl Rules {
    /// The rules that are used without a file: see [`Rules::STANDARD`].
    ///
    /// # Errors
    /// None; they are read like any file.
    pub fn standard() -> Result<Self> {
        Self::parse(Self::STANDARD)
    }

    /// The rules that are used without a file, as a file.
    pub const STANDARD: &'static str = STANDARD;

    /// The names of the rules, in the order of the file.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.rules.iter().map(|rule| rule.name.as_str()).collect()
    }

    /// Which counts the rules need: for each endpoint its dimensions, the length of windows and how far back.
    #[must_use]
    pub fn needs(&self) -> Vec<Need> {
        needs(&self.rules, &self.dimensions)
    }
}
