//! Contains settings by name, from flags, environment variables and files, and converts them to the core's options.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::arguments::{self, Arguments, Kind, Options, Value};
use tallyfold::text;
use tallyfold::{Code, Error, Name, Secret, Spelling};

use super::secret::{Place, Source};
use crate::failure::{Failure, Result};

/// Settings by name. The names are spelled as in a TOML file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Given(BTreeMap<String, Setting>);

#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The value.
    pub(crate) raw: Raw,
    /// Where it was written.
    pub(crate) origin: Origin,
}

/// A value as it was written.
#[derive(Clone, Debug)]
pub(crate) enum Raw {
    /// Text, which may have to be parsed.
    Text(String),
    /// A secret.
    Secret(Secret),
    /// The path of a file.
    Path(PathBuf),
    /// The place of a secret. The secret is read on first use.
    Source(Arc<Source>),
    /// Several values.
    List(Vec<Raw>),
    /// True or false.
    Flag(bool),
    /// A whole number.
    Whole(i128),
    /// Nested settings.
    Table(Given),
}

/// Where a setting was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// On the command line.
    Flag,
    /// In the environment variable with that name.
    Variable(String),
    /// In a file.
    File {
        /// Which file.
        path: Arc<Path>,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// The key with the sections that it is in, such as `cluster.eu.timeout`.
        key: String,
    },
}

impl Given {
    /// Sets a value, and replaces an earlier one.
    pub(crate) fn set(&mut self, name: impl Into<String>, raw: Raw, origin: Origin) {
        self.0.insert(name.into(), Setting { raw, origin });
    }

    /// Overrides these settings with all settings of `other`. Tables are merged, setting by setting.
    pub(crate) fn overlay(&mut self, other: Self) {
        for (name, setting) in other.0 {
            let own = self.0.get_mut(&name).map(|own| &mut own.raw);
            match (own, setting.raw) {
                (Some(Raw::Table(own)), Raw::Table(other)) => own.overlay(other),
                (_, raw) => self.set(name, raw, setting.origin),
            }
        }
    }

    /// Returns the setting with that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }

    /// Returns the text of a setting, if a flag has set it.
    pub(crate) fn flag(&self, name: &str) -> Option<&str> {
        match self.get(name) {
            Some(Setting { raw: Raw::Text(text), origin: Origin::Flag }) => Some(text),
            _ => None,
        }
    }

    /// Removes and returns a setting.
    pub(crate) fn take(&mut self, name: &str) -> Option<Setting> {
        self.0.remove(name)
    }

    /// Returns whether nothing is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns all settings, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Setting)> {
        self.0.iter().map(|(name, setting)| (name.as_str(), setting))
    }

    /// Returns the places of all secrets, including secrets in nested settings such as headers.
    pub(crate) fn sources(&self) -> Vec<Arc<Source>> {
        let of = |setting: &Setting| match &setting.raw {
            Raw::Source(source) => vec![Arc::clone(source)],
            Raw::Table(nested) => nested.sources(),
            _ => Vec::new(),
        };
        self.0.values().flat_map(of).collect()
    }

    /// Adds headers whose values are in environment variables and in files. They override headers of the same name, in upper or
    /// lower case.
    ///
    /// # Errors
    /// For a text without a name or a place, for a header that is given twice, and for values that can't be read. The error does
    /// not quote the place, because a user may have entered the secret there.
    pub(crate) fn add_headers(&mut self, env: &[String], file: &[String]) -> Result<()> {
        let mut given = Self::default();
        let mut add = |flag: &str, name: &str, place| {
            let value = value(flag, name, place)?;
            let name = name.to_ascii_lowercase();
            if given.get(&name).is_some() {
                return Err(Failure::usage(format!("{flag} {name}: this header is given twice")));
            }
            given.set(name, Raw::Secret(value), Origin::Flag);
            Ok(())
        };
        for flag in env {
            let (name, variable) = pair("--header-env", "VARIABLE", flag)?;
            add("--header-env", name, Place::Variable(variable.to_owned()))?;
        }
        for flag in file {
            let (name, path) = pair("--header-file", "FILE", flag)?;
            let as_failure = |error: io::Error| {
                let kind = error.kind();
                Failure::usage(format!("--header-file {name}: the file can't be read: {kind}"))
            };
            File::open(path).map_err(as_failure)?;
            add("--header-file", name, Place::File(path.into()))?;
        }
        let mut headers = match self.get("headers").map(|setting| &setting.raw) {
            Some(Raw::Table(headers)) => headers.clone(),
            _ => Self::default(),
        };
        headers.0.retain(|name, _| given.get(&name.to_ascii_lowercase()).is_none());
        headers.overlay(given);
        if !headers.is_empty() {
            self.set("headers", Raw::Table(headers), Origin::Flag);
        }
        Ok(())
    }

    /// Converts the settings to options of the core, and reads the secrets from their places.
    ///
    /// # Errors
    /// For invalid or missing settings, and for secrets that can't be read. The error names the place of the setting, unless the
    /// setting is missing.
    pub(crate) fn read<T: Options>(&self) -> Result<T> {
        let found = self.with_secrets(&Setting::secret)?;
        arguments::read(&found, &[]).map_err(|error: Error| self.as_failure(error))
    }

    /// Overrides `options`, which the command has set, with these settings.
    ///
    /// # Errors
    /// Same as [`Given::read`].
    pub(crate) fn read_over<T: Options>(&self, options: T) -> Result<T> {
        let found = self.with_secrets(&Setting::secret)?;
        arguments::read_over(options, &found, &[]).map_err(|error: Error| self.as_failure(error))
    }

    /// Returns a copy with only the settings that have these names.
    pub(crate) fn only(&self, names: &[&str]) -> Self {
        let kept = self.0.iter();
        let kept = kept.filter(|(name, _)| names.contains(&name.as_str()));
        Self(kept.map(|(name, setting)| (name.clone(), setting.clone())).collect())
    }

    /// Checks the settings without reading secrets.
    ///
    /// # Errors
    /// The core's error for invalid or missing settings. [`Given::as_failure`] adds the place of the setting.
    pub(crate) fn check<T: Options>(&self) -> Result<(), Error> {
        let blank = |_: &Setting| Ok(Some(Secret::from("unread".to_owned())));
        match self.with_secrets(&blank) {
            Ok(found) => arguments::read::<T, Self>(&found, &[]).map(|_| ()),
            Err(_) => Ok(()),
        }
    }

    /// Returns a copy in which secrets replace their places. `secret` returns the secret of a setting, or `None` to keep the
    /// place.
    fn with_secrets(&self, secret: &dyn Fn(&Setting) -> Result<Option<Secret>>) -> Result<Self> {
        let settings = self.0.iter().map(|(name, setting)| {
            let raw = match &setting.raw {
                Raw::Table(given) => Raw::Table(given.with_secrets(secret)?),
                raw @ Raw::Source(_) => secret(setting)?.map_or_else(|| raw.clone(), Raw::Secret),
                raw => raw.clone(),
            };
            let origin = setting.origin.clone();
            Ok((name.clone(), Setting { raw, origin }))
        });
        Ok(Self(settings.collect::<Result<_>>()?))
    }

    /// Converts an error about one of these settings, and adds the place of that setting.
    pub(crate) fn as_failure(&self, error: Error) -> Failure {
        let name =
            error.argument_in(Spelling::Toml).map_or_else(String::new, |name| name.into_owned());
        let origin = self.origin_of(&name);
        match origin {
            Some(origin @ Origin::File { .. }) => located(origin, &error, Spelling::Toml),
            Some(origin @ Origin::Variable(_)) => located(origin, &error, Spelling::Flag),
            Some(Origin::Flag) => error.with_argument(flag_of(&name)).into(),
            None => error.into(),
        }
    }

    /// Returns where a setting was written. Also finds settings in nested tables.
    fn origin_of(&self, name: &str) -> Option<&Origin> {
        if let Some(setting) = self.get(name) {
            return Some(&setting.origin);
        }
        self.0.values().find_map(|setting| match &setting.raw {
            Raw::Table(given) => given.origin_of(name),
            _ => None,
        })
    }
}

impl Setting {
    /// Returns the text of the setting, or the secret from the place that it names; `None` for other values.
    ///
    /// # Errors
    /// If the secret can't be read; the error names the place of the setting.
    pub(crate) fn secret(&self) -> Result<Option<Secret>> {
        match &self.raw {
            Raw::Text(text) => Ok(Some(text.clone().into())),
            Raw::Secret(secret) => Ok(Some(secret.clone())),
            Raw::Source(source) => {
                let refused = |text| match &self.origin {
                    Origin::Flag => Failure::usage(format!("{}: {text}", source.flag())),
                    origin => Failure::usage(format!("{origin}: {text}")),
                };
                source.secret().map(Some).map_err(refused)
            }
            _ => Ok(None),
        }
    }
}

/// Splits the value of a flag into the name of a header and the place of the header's value. `kind` is the kind of place.
fn pair<'a>(flag: &str, kind: &str, text: &'a str) -> Result<(&'a str, &'a str)> {
    // The error does not quote the text, because a user may have entered the secret there.
    let wanted = || Failure::usage(format!("{flag}: want HEADER={kind}"));
    let (name, place) = text.split_once('=').ok_or_else(wanted)?;
    let (name, place) = (name.trim(), place.trim());
    // A secret in base64 may end with `=`, and the split would then return the secret as the name.
    match name.is_empty() || place.trim_matches('=').is_empty() {
        true => Err(wanted()),
        false => Ok((name, place)),
    }
}

/// Reads the value of a header. The error does not quote the place, which may be the secret itself.
fn value(flag: &str, name: &str, place: Place) -> Result<Secret> {
    let secret = Source::new(place).secret();
    secret.map_err(|wrong| Failure::usage(format!("{flag} {name}: {wrong}")))
}

/// Returns the flag for a key of a configuration file.
fn flag_of(name: &str) -> Name {
    Name::of_caller(&format!("--{}", name.replace('_', "-")))
}

/// Prefixes an error with the place of the setting. The place includes the name of the setting.
fn located(origin: &Origin, error: &Error, spelling: Spelling) -> Failure {
    let mut failure = Failure::from(error.clone());
    let text = error.sentence_in(spelling);
    failure.text = format!("{origin}: {text}");
    failure
}

/// Describes the expected value, in a TOML file or on a command line. In both, durations have a unit.
pub(crate) fn wanted(kind: Kind, spelling: Spelling) -> &'static str {
    let is_toml = spelling == Spelling::Toml;
    match kind {
        Kind::Text | Kind::Secret => "want text",
        Kind::Texts if is_toml => "want an array of texts",
        Kind::Texts => "want texts separated by commas",
        Kind::Address => "want an address such as https://cluster.example",
        Kind::Instant => "want a timestamp such as 2026-01-31T09:00:00Z",
        Kind::Window => "want two timestamps",
        Kind::Step => "want a step such as 15m, 1h or 1d",
        Kind::Flag => "want true or false",
        Kind::Whole => "want a whole number",
        Kind::Pair if is_toml => "want two whole numbers such as [0, 4]",
        Kind::Pair => "want two whole numbers such as 0/4",
        Kind::Milliseconds => "want a length of time such as 500ms, 30s, 15m or 2h",
        Kind::Patience => "want a length of time such as 30s or 15m, or none",
        Kind::Mapping => "want texts by names",
        Kind::Nested(_) => "want a table of settings",
        Kind::Host => "want another value",
    }
}

fn refused(name: &str, kind: Kind, spelling: Spelling) -> Error {
    let wanted = wanted(kind, spelling);
    Error::argument(Name::of_caller(name), Code::InvalidArgument, wanted)
}

impl Arguments for Given {
    type Error = Error;

    const SPELLING: Spelling = Spelling::Toml;

    fn value(&self, name: &str, kind: Kind) -> Result<Option<Value>, Error> {
        let Some(setting) = self.get(name) else {
            return Ok(None);
        };
        let spelling = match setting.origin {
            Origin::File { .. } => Spelling::Toml,
            Origin::Flag | Origin::Variable(_) => Spelling::Flag,
        };
        let value = value_of(&setting.raw, kind).map(Some);
        value.ok_or_else(|| refused(name, kind, spelling))
    }

    fn nested(&self, name: &str) -> Result<Option<Self>, Error> {
        match self.get(name).map(|setting| &setting.raw) {
            None => Ok(None),
            Some(Raw::Table(given)) => Ok(Some(given.clone())),
            Some(_) => Err(refused(name, Kind::Nested(&[]), Spelling::Toml)),
        }
    }

    fn names(&self) -> Result<Vec<String>, Error> {
        Ok(self.0.keys().cloned().collect())
    }
}

/// Converts a value to that kind; `None` if it has another type.
fn value_of(raw: &Raw, kind: Kind) -> Option<Value> {
    match (kind, raw) {
        (Kind::Text | Kind::Address | Kind::Instant | Kind::Step, Raw::Text(text)) => {
            Some(Value::Text(text.clone()))
        }
        // A text or an address may come from the place of a secret, because an address may contain a password.
        (Kind::Text | Kind::Address, Raw::Secret(secret)) => {
            Some(Value::Text(secret.expose().to_owned()))
        }
        (Kind::Secret, Raw::Secret(secret)) => Some(Value::Secret(secret.clone())),
        (Kind::Secret, Raw::Text(text)) => Some(Value::Secret(text.clone().into())),
        (Kind::Flag, Raw::Flag(flag)) => Some(Value::Flag(*flag)),
        (Kind::Flag, Raw::Text(text)) => text.parse().ok().map(Value::Flag),
        (Kind::Whole, Raw::Whole(number)) => Some(Value::Whole(*number)),
        (Kind::Whole, Raw::Text(text)) => text::whole(text).map(Value::Whole),
        (Kind::Patience, Raw::Text(text)) if text == "none" => Some(Value::Endless),
        // Only 0 needs no unit.
        (Kind::Milliseconds | Kind::Patience, Raw::Whole(0)) => Some(Value::Whole(0)),
        (Kind::Milliseconds | Kind::Patience, Raw::Text(text)) => {
            text::milliseconds(text).map(|ms| Value::Whole(ms.into()))
        }
        (Kind::Texts, Raw::Text(text)) => Some(Value::Texts(text::list(text))),
        (Kind::Texts, Raw::List(items)) => texts(items).map(Value::Texts),
        (Kind::Pair, Raw::Text(text)) => {
            let (one, other) = text.split_once('/')?;
            Some(Value::Pair([text::whole(one)?, text::whole(other)?]))
        }
        (Kind::Pair, Raw::List(items)) => match items[..] {
            [Raw::Whole(one), Raw::Whole(other)] => Some(Value::Pair([one, other])),
            _ => None,
        },
        (Kind::Mapping, Raw::Table(given)) => {
            let pairs = given.iter().map(|(name, setting)| {
                let text = match &setting.raw {
                    Raw::Text(text) => text.clone(),
                    Raw::Secret(secret) => secret.expose().to_owned(),
                    _ => return None,
                };
                Some([name.to_owned(), text])
            });
            let pairs: Option<Vec<[String; 2]>> = pairs.collect();
            Some(Value::Texts(pairs?.into_iter().flatten().collect()))
        }
        _ => None,
    }
}

fn texts(items: &[Raw]) -> Option<Vec<String>> {
    let texts = items.iter().map(|item| match item {
        Raw::Text(text) => Some(text.clone()),
        _ => None,
    });
    texts.collect()
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag => f.write_str("a flag"),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::File { path, line, column, key } => {
                write!(f, "{}:{line}:{column}: {key}", path.display())
            }
        }
    }
}

/// Parses an address and a port to listen on. Errors begin with `what`, the flag or the place in a file.
///
/// # Errors
/// If the text isn't an address and a port.
pub(crate) fn listen_address(what: impl fmt::Display, listen: &str) -> Result<(String, u16)> {
    let wanted =
        || Failure::usage(format!("{what}: want an address and a port, such as 127.0.0.1:9464"));
    let (host, port) = listen.rsplit_once(':').ok_or_else(wanted)?;
    let port = port.parse().map_err(|_| wanted())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.is_empty() {
        true => Err(wanted()),
        false => Ok((host.to_owned(), port)),
    }
}
