//! Reads what is written under a key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::Spelling;
use tallyfold::arguments::{Argument, Kind};
use tallyfold::text::milliseconds;
use toml::de::DeValue;

use super::document::{Entry, Table};
use super::keys::{Form, Key, SecretIn, toml_name};
use super::run::Program;
use super::secret::{Place, Source};
use crate::arguments::given::{Given, Raw};
use crate::failure::Result;

const WANT_ADDRESS: &str =
    "want an address such as https://receiver.example, or where it is, such as { env = \"NAME\" }";
const WANT_COMMAND: &str = "want a command: a program and its arguments such as [\"pass\", \"show\", \"tallyfold\"], or a text for the shell";
const WANT_PLACE: &str = "want one of { env = \"NAME\" }, { file = \"PATH\" } and { command = [\"PROGRAM\", \"ARGUMENT\"] }";
const WANT_TIME: &str = "want a length of time in whole seconds such as 30s, 15m or 24h";
const SECRET_ADDRESS: &str = "an address with a user or a password is a secret, which is not written into a configuration; \
     want { env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }";
const SECRET_HEADER: &str = "the value of such a header is a secret, which is not written into a configuration; \
     want { env = \"NAME\" }, { file = \"PATH\" } or { command = [\"PROGRAM\", \"ARGUMENT\"] }";

/// Reads a value, and says in `variables` which environment variables it names.
///
/// # Errors
/// For another type of value, with its place.
pub(super) fn read(entry: &Entry<'_>, key: &Key, variables: &mut Vec<String>) -> Result<Raw> {
    match key.form {
        Form::Refused(why) => Err(entry.wrong(why)),
        Form::Declared(argument) => declared(entry, argument, variables),
        Form::Secret(place) => Ok(source(place_of(entry, place, variables)?)),
        Form::Path => {
            let path = beside(entry, entry.text("want the path of a file")?)?;
            Ok(Raw::Text(path.to_string_lossy().into_owned()))
        }
        Form::Address => address(entry, variables),
        Form::Text => Ok(Raw::Text(entry.text("want text")?.to_owned())),
        Form::Labels => labels(entry),
    }
}

fn declared(entry: &Entry<'_>, argument: &Argument, variables: &mut Vec<String>) -> Result<Raw> {
    let wanted = argument.kind.wanted(Spelling::Toml);
    Ok(match argument.kind {
        Kind::Address => address(entry, variables)?,
        Kind::Texts => {
            let texts = entry.texts(wanted)?;
            Raw::List(texts.into_iter().map(Raw::Text).collect())
        }
        Kind::Flag => match entry.value {
            DeValue::Boolean(flag) => Raw::Flag(*flag),
            _ => return Err(entry.wrong(wanted)),
        },
        Kind::Whole if argument.name.ends_with("_s") => Raw::Whole(seconds(entry)?),
        Kind::Whole => Raw::Whole(entry.whole(wanted)?),
        Kind::Mapping => headers(entry, wanted, variables)?,
        Kind::Nested(arguments) => nested(&entry.table(wanted)?, arguments, variables)?,
        // Times, too, are text, which the core's reader parses.
        _ => Raw::Text(entry.text(wanted)?.to_owned()),
    })
}

fn nested(
    table: &Table<'_>,
    arguments: &'static [Argument],
    variables: &mut Vec<String>,
) -> Result<Raw> {
    let names: Vec<&str> = arguments.iter().map(toml_name).collect();
    let mut given = Given::default();
    for entry in table.entries() {
        let argument = arguments
            .iter()
            .find(|argument| toml_name(argument) == entry.name);
        let argument = argument.ok_or_else(|| entry.unknown(&names))?;
        let raw = declared(&entry, argument, variables)?;
        given.set(entry.name, raw, entry.origin());
    }
    Ok(Raw::Table(given))
}

fn seconds(entry: &Entry<'_>) -> Result<i128> {
    let ms = milliseconds(entry.text(WANT_TIME)?).filter(|ms| ms % 1_000 == 0);
    ms.map(|ms| i128::from(ms / 1_000))
        .ok_or_else(|| entry.wrong(WANT_TIME))
}

fn headers(entry: &Entry<'_>, wanted: &str, variables: &mut Vec<String>) -> Result<Raw> {
    let mut given = Given::default();
    for header in entry.table(wanted)?.entries() {
        // Names of headers are the same in any case.
        let name = header.name.to_ascii_lowercase();
        let raw = match header.value {
            DeValue::String(_) if is_secret(&name) => return Err(header.wrong(SECRET_HEADER)),
            DeValue::String(text) => Raw::Text(text.to_string()),
            _ => source(place_in(&header, variables)?),
        };
        if given.get(&name).is_some() {
            return Err(header.wrong("the same header is written twice"));
        }
        given.set(name, raw, header.origin());
    }
    Ok(Raw::Table(given))
}

/// Whether a header, by its name, holds what lets a caller in.
fn is_secret(name: &str) -> bool {
    let words = [
        "auth",
        "cookie",
        "credential",
        "key",
        "passw",
        "secret",
        "session",
        "signature",
        "token",
    ];
    words.iter().any(|word| name.contains(word))
}

fn labels(entry: &Entry<'_>) -> Result<Raw> {
    let mut given = Given::default();
    for label in entry
        .table("want labels, such as { region = \"eu\" }")?
        .entries()
    {
        let text = label.text("want text")?.to_owned();
        let pair = [(label.name.to_owned(), text.clone())];
        if let Err(error) = tallyfold_export::Labels::new(pair) {
            return Err(label.wrong(error.message()));
        }
        given.set(label.name, Raw::Text(text), label.origin());
    }
    Ok(Raw::Table(given))
}

fn address(entry: &Entry<'_>, variables: &mut Vec<String>) -> Result<Raw> {
    match entry.value {
        DeValue::String(text) if has_user(text) => Err(entry.wrong(SECRET_ADDRESS)),
        DeValue::String(text) => Ok(Raw::Text(text.to_string())),
        DeValue::Table(_) => Ok(source(place_in(entry, variables)?)),
        _ => Err(entry.wrong(WANT_ADDRESS)),
    }
}

/// Whether an address names a user, perhaps with a password.
fn has_user(address: &str) -> bool {
    let rest = address.split_once("//").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}

/// Where a secret is: `{ env = "NAME" }`.
fn place_in(entry: &Entry<'_>, variables: &mut Vec<String>) -> Result<Place> {
    let entries = entry.table(WANT_PLACE)?.entries();
    let known = [
        ("env", SecretIn::Variable),
        ("file", SecretIn::File),
        ("command", SecretIn::Command),
    ];
    let mut places = Vec::new();
    for place in &entries {
        let found = known.iter().find(|(name, _)| *name == place.name);
        let (_, kind) = found.ok_or_else(|| place.unknown(&known.map(|(name, _)| name)))?;
        places.push(place_of(place, *kind, variables)?);
    }
    match (places.pop(), places.is_empty()) {
        (Some(place), true) => Ok(place),
        _ => Err(entry.wrong(WANT_PLACE)),
    }
}

fn place_of(entry: &Entry<'_>, kind: SecretIn, variables: &mut Vec<String>) -> Result<Place> {
    match kind {
        SecretIn::Variable => {
            let wanted =
                "want the name of an environment variable, of letters, digits and underscores";
            let name = entry.text(wanted)?;
            let is_of_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_of_name) {
                return Err(entry.wrong(wanted));
            }
            variables.push(name.to_owned());
            Ok(Place::Variable(name.to_owned()))
        }
        SecretIn::File => {
            let text = entry.text("want the path of a file that holds the secret")?;
            Ok(Place::File(beside(entry, text)?))
        }
        SecretIn::Command => program(entry).map(Place::Command),
    }
}

fn program(entry: &Entry<'_>) -> Result<Program> {
    let program = match entry.value {
        DeValue::String(text) => Program::Shell(text.to_string()),
        _ => Program::Words(entry.texts(WANT_COMMAND)?),
    };
    let is_empty = match &program {
        Program::Shell(text) => text.trim().is_empty(),
        Program::Words(words) => words.first().is_none_or(String::is_empty),
    };
    if is_empty {
        return Err(entry.wrong(WANT_COMMAND));
    }
    match &entry.document.distrust {
        Some(why) => Err(entry.wrong(format_args!("no command is run that stands here: {why}"))),
        None => Ok(program),
    }
}

/// A path, which is relative to the folder of the configuration, wherever a job happens to run.
fn beside(entry: &Entry<'_>, text: &str) -> Result<PathBuf> {
    if text.is_empty() {
        return Err(entry.wrong("want the path of a file"));
    }
    let folder = entry.document.path().parent().unwrap_or(Path::new(""));
    Ok(
        match text
            .strip_prefix("~/")
            .and_then(|rest| Some(std::env::home_dir()?.join(rest)))
        {
            Some(path) => path,
            None => folder.join(text),
        },
    )
}

fn source(place: Place) -> Raw {
    Raw::Source(Arc::new(Source::new(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_a_user_is_known() {
        for (address, expected) in [
            ("https://a.example", false),
            ("https://a.example/@me", false),
            ("https://a.example?to=a@b", false),
            ("https://me@a.example", true),
            ("http://me:word@a.example:3128/x", true),
            ("me:word@a.example", true),
            ("", false),
        ] {
            assert_eq!(has_user(address), expected, "{address}");
        }
    }

    #[test]
    fn headers_that_let_in_are_known() {
        for name in [
            "authorization",
            "x-api-key",
            "dd-api-key",
            "x-vault-token",
            "cookie",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["x-team", "user-agent", "x-scope-orgid"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
