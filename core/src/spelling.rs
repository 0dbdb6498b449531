//! Names of arguments as each host spells them, and sentences that mention such names.

use std::borrow::Cow;
use std::fmt::{self, Display};

/// How a host spells the names of arguments. A new spelling breaks each program that matches on it, on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Spelling {
    /// `settle_ms`, `default_token_lifetime_s`: the unit is at the end.
    Rust,
    /// `settle`, `default_token_lifetime`: times are seconds.
    Python,
    /// `settleMs`, `defaultTokenLifetime`: times are in milliseconds if the name ends in `Ms`,
    /// otherwise in seconds.
    JavaScript,
    /// `--settle`, `--default-token-lifetime`: flags of a command, whose times have a unit (`30s`).
    Flag,
    /// `settle`, `default_token_lifetime`: keys of a TOML file, whose times have a unit (`"30s"`).
    Toml,
}

/// The name of an argument.
///
/// ```
/// # use tallyfold::{Name, Spelling};
/// let name = Name::from("settle_ms");
/// assert_eq!(name.spelled(Spelling::Python), "settle");
/// assert_eq!(name.spelled(Spelling::JavaScript), "settleMs");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(Source);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Source {
    /// An argument of this library, as Rust spells it.
    Ours(&'static str),
    /// A name as a caller wrote it, which is repeated unchanged.
    Caller(String),
}

impl Name {
    /// A name that only the caller knows, such as an unknown option.
    #[must_use]
    pub fn of_caller(name: &str) -> Self {
        Self(Source::Caller(name.to_owned()))
    }

    /// The name as Rust spells it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match &self.0 {
            Source::Ours(name) => name,
            Source::Caller(name) => name,
        }
    }

    /// The name as callers of that host write it.
    #[must_use]
    pub fn spelled(&self, spelling: Spelling) -> Cow<'_, str> {
        let name = match &self.0 {
            Source::Caller(name) => return Cow::Borrowed(name),
            Source::Ours(name) => *name,
        };
        match spelling {
            Spelling::Rust => Cow::Borrowed(name),
            Spelling::Python | Spelling::Toml => Cow::Borrowed(without_unit(name)),
            Spelling::Flag => Cow::Owned(["--", &without_unit(name).replace('_', "-")].concat()),
            Spelling::JavaScript => Cow::Owned(camel_case(without_seconds(name))),
        }
    }
}

impl From<&'static str> for Name {
    fn from(name: &'static str) -> Self {
        Self(Source::Ours(name))
    }
}

fn without_seconds(name: &str) -> &str {
    name.strip_suffix("_s").unwrap_or(name)
}

fn without_unit(name: &str) -> &str {
    name.strip_suffix("_ms").unwrap_or(without_seconds(name))
}

fn camel_case(snake_case: &str) -> String {
    let mut words = snake_case.split('_');
    let mut name = words.next().unwrap_or_default().to_owned();
    for word in words {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    name
}

/// A sentence that may contain names of arguments. They are spelled for a host when the sentence is
/// shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words(Vec<Word>);

/// A piece of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Word {
    /// Text as it is.
    Text(Cow<'static, str>),
    /// The name of an argument.
    Name(Name),
}

impl Words {
    /// The same sentence with another piece added at its end.
    #[must_use]
    pub fn and(mut self, word: impl Into<Word>) -> Self {
        self.0.push(word.into());
        self
    }

    /// The same sentence with another piece before it.
    #[must_use]
    pub(crate) fn after(mut self, word: impl Into<Word>) -> Self {
        self.0.insert(0, word.into());
        self
    }

    /// The names of arguments in it.
    pub(crate) fn names(&mut self) -> impl Iterator<Item = &mut Name> {
        self.0.iter_mut().filter_map(|word| match word {
            Word::Text(_) => None,
            Word::Name(name) => Some(name),
        })
    }

    /// The sentence for the callers of a host.
    pub(crate) fn write(&self, f: &mut fmt::Formatter<'_>, spelling: Spelling) -> fmt::Result {
        self.0.iter().try_for_each(|word| match word {
            Word::Text(text) => f.write_str(text),
            Word::Name(name) => f.write_str(&name.spelled(spelling)),
        })
    }
}

impl Display for Words {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, Spelling::Rust)
    }
}

impl From<&str> for Words {
    fn from(text: &str) -> Self {
        Self::from(text.to_owned())
    }
}

impl From<String> for Words {
    fn from(text: String) -> Self {
        Self(vec![Word::Text(Cow::Owned(text))])
    }
}

impl From<&'static str> for Word {
    fn from(text: &'static str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }
}

impl From<String> for Word {
    fn from(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<Name> for Word {
    fn from(name: Name) -> Self {
        Self::Name(name)
    }
}

/// A sentence in pieces: `words!["pass ", name!("access_token"), " instead"]`.
macro_rules! words {
    ($($piece:expr),+ $(,)?) => { $crate::spelling::Words::default()$(.and($piece))+ };
}
pub(crate) use words;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_units_of_their_host() {
        for (rust, python, javascript, flag) in [
            ("window", "window", "window", "--window"),
            ("group_by", "group_by", "groupBy", "--group-by"),
            ("settle_ms", "settle", "settleMs", "--settle"),
            (
                "default_token_lifetime_s",
                "default_token_lifetime",
                "defaultTokenLifetime",
                "--default-token-lifetime",
            ),
        ] {
            let name = Name::from(rust);
            assert_eq!(name.spelled(Spelling::Rust), rust);
            assert_eq!(name.spelled(Spelling::Python), python);
            assert_eq!(name.spelled(Spelling::JavaScript), javascript);
            assert_eq!(name.spelled(Spelling::Flag), flag);
            assert_eq!(name.spelled(Spelling::Toml), python);
        }
    }

    #[test]
    fn what_a_caller_wrote_is_repeated_as_it_is() {
        let name = Name::of_caller("settle_ms");
        for spelling in [Spelling::Rust, Spelling::Python, Spelling::JavaScript] {
            assert_eq!(name.spelled(spelling), "settle_ms");
        }
    }
}
