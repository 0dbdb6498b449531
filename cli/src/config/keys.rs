//! Lists the keys of each section of a configuration, and reads their values. Keys for options of the library crates come from
//! the declarations in these crates.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::arguments::toml::{Entry, Table};
use tallyfold::arguments::{Argument, Kind, Options, Unit};
use tallyfold::text::milliseconds;
use tallyfold::{MachineOptions, Spelling};
use tallyfold_export::PushOptions;
use tallyfold_health::{ReceiverKind, ReceiverOptions};

use crate::arguments::given::{Given, Raw, wanted};
use crate::arguments::secret::{Place, Program, Source};
use crate::failure::{Failure, Result};

/// Client options that are not keys of a configuration: they are for web apps, and for programs that get tokens
/// themselves.
const NOT_IN_FILES: [&str; 4] =
    ["host_tokens", "tokenless", "in_browser", "dangerously_allow_browser"];

/// A kind of section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// `[defaults]`, for all clusters.
    Defaults,
    /// `[cluster.NAME]`.
    Cluster,
    /// `[push.NAME]`.
    Push,
    /// `[check]`.
    Check,
    /// `[run]`.
    Run,
    /// The section of an alert receiver, such as `[alertmanager.NAME]`.
    Receiver(ReceiverKind),
}

/// A key of a section.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// The name of the key in the file.
    pub(crate) name: &'static str,
    /// The kind of value.
    pub(crate) form: Form,
}

/// The kind of a key's value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// An option that one of the library crates declares.
    Declared(&'static Argument),
    /// An option that the section must not contain. The text is the reason.
    Refused(&'static str),
    /// The place of a secret.
    Secret(SecretIn),
    /// The names of other sections. The text is the error for any other value.
    Names(&'static str),
    /// True or false.
    Flag,
    /// The path of a file.
    Path,
    Address,
    Text,
    /// Labels: texts by name. Exports contain them, so they must not be secret.
    Labels,
}

/// The kind of place that contains a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretIn {
    /// `client_secret_env`.
    Variable,
    /// `client_secret_file`.
    File,
    /// `client_secret_command`.
    Command,
}

/// The option that each of the [`SECRET_KEYS`] sets.
pub(crate) const CLIENT_SECRET: &str = "client_secret";

/// The keys for the place of the client secret.
pub(crate) const SECRET_KEYS: [(&str, SecretIn); 3] = [
    ("client_secret_env", SecretIn::Variable),
    ("client_secret_file", SecretIn::File),
    ("client_secret_command", SecretIn::Command),
];

const NO_SECRET: &str = "a configuration must not contain secrets; want client_secret_env, client_secret_file or client_secret_command";

const NO_DEFAULT: &str =
    "each cluster has its own address; write it into its section [cluster.NAME]";

const PUSHES: &str = "want names of sections [push.NAME], such as [\"prometheus\"]";

const RECEIVERS: &str =
    "want names of sections of receivers, such as [\"slack.oncall\"] for [slack.oncall]";

/// Returns the keys of a section, in the order of the documentation.
pub(crate) fn keys(section: Section) -> Vec<Key> {
    let mut keys = Vec::new();
    match section {
        Section::Push => {
            keys.push(key("format", Form::Text));
            keys.extend(declared_keys::<PushOptions>());
        }
        Section::Defaults | Section::Cluster => keys.extend(declared_keys::<MachineOptions>()),
        Section::Check => {
            return ["rules", "state", "history"].map(|name| key(name, Form::Path)).into();
        }
        Section::Run => {
            return vec![
                key("push", Form::Names(PUSHES)),
                key("check", Form::Flag),
                key("notify", Form::Names(RECEIVERS)),
                key("dashboard", Form::Text),
            ];
        }
        Section::Receiver(kind) => {
            let own = kind.own_options();
            let common = ["url", "headers", "allow_http"];
            let is_key = |key: &Key| common.contains(&key.name) || own.contains(&key.name);
            keys.extend(declared_keys::<ReceiverOptions>().into_iter().filter(is_key));
            for key in keys.iter_mut().filter(|key| key.name == "template") {
                key.form = Form::Path;
            }
        }
    }
    if section == Section::Defaults {
        for key in &mut keys {
            if key.name == "cluster_endpoint" {
                key.form = Form::Refused(NO_DEFAULT);
            }
        }
    }
    keys.push(key("ca_file", Form::Path));
    keys.push(key("proxy", Form::Address));
    if matches!(section, Section::Defaults | Section::Cluster) {
        keys.push(key("labels", Form::Labels));
    }
    keys
}

fn key(name: &'static str, form: Form) -> Key {
    Key { name, form }
}

fn declared_keys<T: Options>() -> Vec<Key> {
    let mut keys = Vec::new();
    for argument in T::ARGUMENTS {
        match argument.kind {
            Kind::Host => {}
            _ if NOT_IN_FILES.contains(&argument.name) => {}
            Kind::Secret if argument.name == CLIENT_SECRET => {
                keys.push(key(CLIENT_SECRET, Form::Refused(NO_SECRET)));
                let places = SECRET_KEYS.map(|(name, place)| key(name, Form::Secret(place)));
                keys.extend(places);
            }
            _ => keys.push(key(toml_name(argument), Form::Declared(argument))),
        }
    }
    keys
}

/// Returns the name of a receiver in examples.
pub(crate) fn example_of(kind: ReceiverKind) -> &'static str {
    match kind {
        ReceiverKind::Webhook => "chat",
        _ => "main",
    }
}

/// Returns the name of an option in a file, such as `timeout` for `timeout_ms`: in a file, the unit of a time is a part
/// of its value.
pub(crate) fn toml_name(argument: &'static Argument) -> &'static str {
    let spelled = argument.spelled(Spelling::Toml);
    argument.name.get(..spelled.len()).unwrap_or(argument.name)
}

impl Key {
    /// Returns whether the section may contain the key.
    pub(crate) fn is_allowed(&self) -> bool {
        !matches!(self.form, Form::Refused(_))
    }
}

const WANT_ADDRESS: &str = "want an address such as https://receiver.example, or where to read it, such as { env = \"NAME\" }";
const WANT_COMMAND: &str = "want a command: a program and its arguments such as [\"pass\", \"show\", \"tallyfold\"], or a text for the shell";
const WANT_PLACE: &str = "want one of { env = \"NAME\" }, { file = \"PATH\" } and { command = [\"PROGRAM\", \"ARGUMENT\"] }";
const WANT_TIME: &str = "want a length of time in whole seconds such as 30s, 15m or 24h";
const SECRET: &str = "a configuration must not contain secrets";
const SECRET_ADDRESS: &str =
    "an address with a user or a password is a secret, so it must not be in a configuration";
const SECRET_HEADER: &str =
    "by its name, this header contains a secret, which must not be in a configuration";

/// State that is shared while all sections of a configuration are read.
#[derive(Debug, Default)]
pub(super) struct Reading {
    /// The environment variables that the file names.
    pub(super) variables: Vec<String>,
    /// If somebody else can change the file, the reason why its commands are not run.
    pub(super) distrust: Option<String>,
}

/// Reads a value, and adds the environment variables that it names to `reading`.
///
/// # Errors
/// For a value of the wrong type; the error names the place of the value.
pub(super) fn read_value(entry: &Entry<'_>, key: &Key, reading: &mut Reading) -> Result<Raw> {
    match key.form {
        Form::Refused(why) => Err(entry.wrong(why).into()),
        Form::Declared(argument) => declared_value(entry, argument, reading),
        Form::Secret(place) => Ok(source(place_of(entry, place, reading)?)),
        Form::Path => resolved_path(entry, entry.text("want the path of a file")?).map(Raw::Path),
        Form::Names(wanted) => {
            let names = entry.texts(wanted)?;
            Ok(Raw::List(names.into_iter().map(Raw::Text).collect()))
        }
        Form::Flag => Ok(Raw::Flag(entry.flag("want true or false")?)),
        Form::Address => address(entry, reading),
        Form::Text => Ok(Raw::Text(entry.text("want text")?.to_owned())),
        Form::Labels => labels(entry),
    }
}

fn declared_value(entry: &Entry<'_>, argument: &Argument, reading: &mut Reading) -> Result<Raw> {
    let wanted = wanted(argument.kind, Spelling::Toml);
    Ok(match argument.kind {
        Kind::Address => address(entry, reading)?,
        Kind::Secret => match entry.as_text() {
            Some(_) => return Err(secret(entry, SECRET)),
            None => source(place_in(entry, reading)?),
        },
        Kind::Texts => {
            let texts = entry.texts(wanted)?;
            Raw::List(texts.into_iter().map(Raw::Text).collect())
        }
        Kind::Flag => Raw::Flag(entry.flag(wanted)?),
        Kind::Whole if argument.unit() == Some(Unit::Seconds) => Raw::Whole(seconds(entry)?),
        Kind::Whole => Raw::Whole(entry.whole(wanted)?),
        Kind::Mapping => headers(entry, wanted, reading)?,
        Kind::Nested(arguments) => nested(&entry.table(wanted)?, arguments, reading)?,
        // In a file, times are written as text, too. The core parses them.
        _ => Raw::Text(entry.text(wanted)?.to_owned()),
    })
}

fn nested(table: &Table<'_>, arguments: &'static [Argument], reading: &mut Reading) -> Result<Raw> {
    let names: Vec<&str> = arguments.iter().map(toml_name).collect();
    let mut given = Given::default();
    for entry in table.entries() {
        let argument = arguments.iter().find(|argument| toml_name(argument) == entry.name);
        let argument = argument.ok_or_else(|| entry.unknown_key(&names))?;
        let raw = declared_value(&entry, argument, reading)?;
        given.set(entry.name, raw, entry.place().into());
    }
    Ok(Raw::Table(given))
}

fn seconds(entry: &Entry<'_>) -> Result<i128> {
    let ms = milliseconds(entry.text(WANT_TIME)?).filter(|ms| ms % 1_000 == 0);
    ms.map(|ms| i128::from(ms / 1_000)).ok_or_else(|| entry.wrong(WANT_TIME).into())
}

fn headers(entry: &Entry<'_>, wanted: &str, reading: &mut Reading) -> Result<Raw> {
    let mut given = Given::default();
    for header in entry.table(wanted)?.entries() {
        // Header names are case-insensitive.
        let name = header.name.to_ascii_lowercase();
        let raw = match header.as_text() {
            Some(_) if is_secret(&name) => return Err(secret(&header, SECRET_HEADER)),
            Some(text) => Raw::Text(text.to_owned()),
            None => source(place_in(&header, reading)?),
        };
        if given.get(&name).is_some() {
            return Err(header.wrong("the same header is written twice").into());
        }
        given.set(name, raw, header.place().into());
    }
    Ok(Raw::Table(given))
}

/// Returns whether the name of a header suggests that its value is a credential.
fn is_secret(name: &str) -> bool {
    let words =
        ["auth", "cookie", "credential", "key", "passw", "secret", "session", "signature", "token"];
    words.iter().any(|word| name.contains(word))
}

fn labels(entry: &Entry<'_>) -> Result<Raw> {
    let mut given = Given::default();
    for label in entry.table("want labels, such as { region = \"eu\" }")?.entries() {
        let text = label.text("want text")?.to_owned();
        let pair = [(label.name.to_owned(), text.clone())];
        if let Err(error) = tallyfold_export::Labels::new(pair) {
            return Err(label.wrong(error.message()).into());
        }
        given.set(label.name, Raw::Text(text), label.place().into());
    }
    Ok(Raw::Table(given))
}

fn address(entry: &Entry<'_>, reading: &mut Reading) -> Result<Raw> {
    match entry.as_text() {
        Some(text) if has_user(text) => Err(secret(entry, SECRET_ADDRESS)),
        Some(text) => Ok(Raw::Text(text.to_owned())),
        None => {
            entry.table(WANT_ADDRESS)?;
            Ok(source(place_in(entry, reading)?))
        }
    }
}

/// Returns the error of a value that must not be in the file.
fn secret(entry: &Entry<'_>, why: &str) -> Failure {
    entry.wrong(format_args!("{why}; {WANT_PLACE}")).into()
}

/// Returns whether an address names a user, perhaps with a password.
fn has_user(address: &str) -> bool {
    let rest = address.split_once("//").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@')
}

/// Reads the place of a secret, such as `{ env = "NAME" }`.
fn place_in(entry: &Entry<'_>, reading: &mut Reading) -> Result<Place> {
    let entries = entry.table(WANT_PLACE)?.entries();
    let known =
        [("env", SecretIn::Variable), ("file", SecretIn::File), ("command", SecretIn::Command)];
    let mut places = Vec::new();
    for place in &entries {
        let found = known.iter().find(|(name, _)| *name == place.name);
        let (_, kind) = found.ok_or_else(|| place.unknown_key(&known.map(|(name, _)| name)))?;
        places.push(place_of(place, *kind, reading)?);
    }
    match (places.pop(), places.is_empty()) {
        (Some(place), true) => Ok(place),
        _ => Err(entry.wrong(WANT_PLACE).into()),
    }
}

fn place_of(entry: &Entry<'_>, kind: SecretIn, reading: &mut Reading) -> Result<Place> {
    match kind {
        SecretIn::Variable => {
            let wanted =
                "want the name of an environment variable, of letters, digits and underscores";
            let name = entry.text(wanted)?;
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
            if name.is_empty() || !name.bytes().all(is_allowed) {
                return Err(entry.wrong(wanted).into());
            }
            reading.variables.push(name.to_owned());
            Ok(Place::Variable(name.to_owned()))
        }
        SecretIn::File => {
            let text = entry.text("want the path of a file that holds the secret")?;
            Ok(Place::File(resolved_path(entry, text)?))
        }
        SecretIn::Command => program(entry, reading).map(Place::Command),
    }
}

fn program(entry: &Entry<'_>, reading: &Reading) -> Result<Program> {
    let program = match entry.as_text() {
        Some(text) => Program::Shell(text.to_owned()),
        None => Program::Words(entry.texts(WANT_COMMAND)?),
    };
    let is_empty = match &program {
        Program::Shell(text) => text.trim().is_empty(),
        Program::Words(words) => words.first().is_none_or(String::is_empty),
    };
    if is_empty {
        return Err(entry.wrong(WANT_COMMAND).into());
    }
    match &reading.distrust {
        Some(why) => {
            Err(entry.wrong(format_args!("commands in this file are not run: {why}")).into())
        }
        None => Ok(program),
    }
}

/// Resolves a path relative to the folder of the configuration, so that it does not depend on the working directory.
fn resolved_path(entry: &Entry<'_>, text: &str) -> Result<PathBuf> {
    if text.is_empty() {
        return Err(entry.wrong("want the path of a file").into());
    }
    let folder = entry.file().and_then(Path::parent).unwrap_or(Path::new(""));
    Ok(match text.strip_prefix("~/").and_then(|rest| Some(std::env::home_dir()?.join(rest))) {
        Some(path) => path,
        None => folder.join(text),
    })
}

fn source(place: Place) -> Raw {
    Raw::Source(Arc::new(Source::new(place)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_option_is_either_a_key_or_excluded() {
        let keys = keys(Section::Cluster);
        for argument in MachineOptions::ARGUMENTS {
            let name = argument.spelled(Spelling::Toml);
            assert_eq!(name, toml_name(argument));
            let is_key = keys.iter().any(|key| key.name == name);
            let is_excluded =
                matches!(argument.kind, Kind::Host) || NOT_IN_FILES.contains(&argument.name);
            assert_ne!(is_key, is_excluded, "{name}");
        }
        for name in NOT_IN_FILES {
            assert!(MachineOptions::ARGUMENTS.iter().any(|argument| argument.name == name));
        }
    }

    #[test]
    fn the_only_secret_options_are_client_secret_and_routing_key() {
        let secrets = |arguments: &'static [Argument]| {
            let secrets = arguments.iter().filter(|argument| matches!(argument.kind, Kind::Secret));
            secrets.map(|argument| argument.name).collect::<Vec<_>>()
        };
        assert_eq!(secrets(MachineOptions::ARGUMENTS), [CLIENT_SECRET]);
        assert_eq!(secrets(PushOptions::ARGUMENTS), [""; 0]);
        assert_eq!(secrets(ReceiverOptions::ARGUMENTS), ["routing_key"]);
    }

    #[test]
    fn an_address_with_a_user_is_recognized() {
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
    fn headers_that_contain_credentials_are_recognized() {
        for name in ["authorization", "x-api-key", "dd-api-key", "x-vault-token", "cookie"] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["x-team", "user-agent", "x-scope-orgid"] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
