//! The arguments of the program: `--name value`, in any order.

use std::path::PathBuf;
use std::process::ExitCode;

/// The words after the name of a grade.
#[derive(Debug, Default)]
pub(crate) struct Arguments(Vec<(String, String)>);

impl Arguments {
    /// Reads pairs, each of which must have one of the known names. An empty value is ignored, so that a Makefile can
    /// pass variables that are not set.
    pub(crate) fn parse(words: &[String], known: &[&str]) -> Result<Self, String> {
        let mut words = words.iter();
        let mut pairs = Vec::new();
        while let Some(word) = words.next() {
            let name = word.trim_start_matches("--");
            if !word.starts_with("--") || !known.contains(&name) {
                return Err(format!("there is no {word}; want --{}", known.join(", --")));
            }
            let value = words.next().ok_or_else(|| format!("{word} wants a value"))?;
            if !value.is_empty() {
                pairs.push((name.to_owned(), value.clone()));
            }
        }
        Ok(Self(pairs))
    }

    /// The value with that name.
    pub(crate) fn value(&self, name: &str) -> Option<&str> {
        let mut pairs = self.0.iter();
        let found = pairs.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The path with that name, or the usual one.
    pub(crate) fn path(&self, name: &str, usual: &str) -> PathBuf {
        PathBuf::from(self.value(name).unwrap_or(usual))
    }
}

/// Prints the result of a grade, or its error.
pub(crate) fn printed(answer: Result<String, String>) -> ExitCode {
    match answer {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_known_and_empty_values_are_none() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let read = |text: &str| Arguments::parse(&words(text), &["data", "json"]);
        let arguments = read("--data folder --json ").unwrap();
        assert_eq!(arguments.value("data"), Some("folder"));
        assert_eq!(arguments.value("json"), None);
        assert_eq!(arguments.path("json", "usual"), PathBuf::from("usual"));
        assert!(read("--date folder").unwrap_err().contains("--data, --json"));
        assert!(read("--data").is_err());
    }
}
