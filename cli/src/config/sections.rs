//! Reads the sections of a configuration file: `[defaults]`, `[cluster.NAME]`, `[push.NAME]`, `[check]`, `[run]`, and a
//! section for each alert receiver, such as `[alertmanager.NAME]`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tallyfold::arguments::toml::{Document, Entry, Place, Wrong};
use tallyfold::{Code, Error, MachineOptions};
use tallyfold_export::{Format, PushOptions};
use tallyfold_health::{ReceiverKind, ReceiverOptions};

use super::find::Found;
use super::keys::{CLIENT_SECRET, Form, Reading, Section, example_of, keys, read_value};
use super::settings::{
    AlertReceiver, CheckPlaces, RunParts, Target, take_network_and_labels, take_path,
};
use crate::arguments::given::{Given, Origin, Raw, Setting, listen_address};
use crate::failure::{Failure, Result};

/// The names of sections, except the sections of receivers.
const SECTIONS: [&str; 5] = ["defaults", "cluster", "push", "check", "run"];

/// The content of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// The path of the file.
    pub(crate) path: PathBuf,
    /// The clusters in the order of the file. Their settings override the defaults.
    pub(crate) clusters: Vec<Named>,
    /// The settings in `[defaults]`. The settings in `clusters` include them. They also apply to a cluster that only flags
    /// and the environment describe.
    pub(crate) defaults: Given,
    /// The destinations of pushed counts, in the order of the file.
    pub(crate) targets: Vec<Target>,
    /// The alert receivers, in the order of the file.
    pub(crate) receivers: Vec<AlertReceiver>,
    /// The paths of the files that `check` reads and writes.
    pub(crate) check: CheckPlaces,
    /// The parts of `tallyfold run` that the file selects.
    pub(crate) run: RunParts,
    /// The environment variables that the file names. Such a variable sets only the keys that name it, even if it is also
    /// the usual variable of another option.
    pub(crate) variables: Vec<String>,
}

/// A section with a name.
#[derive(Debug)]
pub(crate) struct Named {
    pub(crate) name: String,
    /// Where the section begins.
    pub(crate) origin: Origin,
    /// The settings in the section.
    pub(crate) given: Given,
}

/// Reads a configuration.
///
/// # Errors
/// For an invalid configuration. Errors name the line and column, or the byte that is not UTF-8. The only values that they quote
/// are names of sections.
pub(crate) fn read(found: &Found) -> Result<Written> {
    let text = text_of(&found.path, &found.bytes)?;
    let document = Document::parse(Some(&found.path), text)?;
    let mut reading = Reading { distrust: found.distrust.clone(), ..Reading::default() };
    let mut written = Written { path: found.path.clone(), ..Written::default() };
    let (mut pushes, mut run) = (Vec::new(), Given::default());
    for entry in document.root().entries() {
        match entry.name {
            "defaults" => {
                written.defaults = settings(&entry, Section::Defaults, &mut reading)?;
                check::<MachineOptions>(&written.defaults, &entry.place().into())?;
            }
            "cluster" => written.clusters = named(&entry, Section::Cluster, &mut reading)?,
            "push" => pushes = named(&entry, Section::Push, &mut reading)?,
            "check" => written.check = places(settings(&entry, Section::Check, &mut reading)?),
            "run" => run = settings(&entry, Section::Run, &mut reading)?,
            name => {
                let kind = ReceiverKind::from_name(name).ok_or_else(|| no_section(&entry))?;
                let found = named(&entry, Section::Receiver(kind), &mut reading)?;
                let all = found.into_iter().map(|one| receiver(one, kind));
                written.receivers.extend(all.collect::<Result<Vec<_>>>()?);
            }
        }
    }
    for cluster in &mut written.clusters {
        let own = std::mem::replace(&mut cluster.given, written.defaults.clone());
        cluster.given.overlay(own);
        check::<MachineOptions>(&cluster.given, &cluster.origin)?;
    }
    written.variables = reading.variables;
    written.targets = pushes.into_iter().map(target).collect::<Result<_>>()?;
    written.run = parts(run, &written)?;
    Ok(written)
}

/// Reads the parts of `tallyfold run`. Checks that each name in a list has a section, and is in the list only once.
fn parts(mut run: Given, written: &Written) -> Result<RunParts> {
    let push = names(run.take("push"), |name| {
        let is_known = written.targets.iter().any(|target| target.name == name);
        is_known.then(|| name.to_owned()).ok_or("push.")
    })?;
    let notify = names(run.take("notify"), |name| {
        let found = written.receivers.iter();
        let mut named = found.map(|one| (one.kind, one.name.clone()));
        let found = named.find(|(kind, own)| name == format!("{kind}.{own}"));
        found.ok_or("")
    })?;
    let dashboard = run.take("dashboard").map(|setting| match setting.raw {
        Raw::Text(text) => listen_address(setting.origin, &text),
        _ => Ok((String::new(), 0)),
    });
    let check = run.take("check").map(|setting| setting.raw);
    Ok(RunParts {
        push,
        check: matches!(check, Some(Raw::Flag(true))) || !notify.is_empty(),
        notify,
        dashboard: dashboard.transpose()?,
    })
}

/// Returns the sections that a list names. `find` returns the section with a name. If there is none, `find` returns the prefix
/// that the error shows before the name, such as `push.`.
fn names<T: PartialEq>(
    list: Option<Setting>,
    find: impl Fn(&str) -> std::result::Result<T, &'static str>,
) -> Result<Vec<T>> {
    let mut found = Vec::new();
    let Some(Setting { raw: Raw::List(items), origin }) = list else {
        return Ok(found);
    };
    for item in items {
        let Raw::Text(name) = item else { continue };
        let one = find(&name).map_err(|prefix| {
            Failure::usage(format!("{origin}: there is no section [{prefix}{name}]"))
        })?;
        if found.contains(&one) {
            let text = format!("{origin}: {name} is listed twice");
            return Err(Failure::usage(text));
        }
        found.push(one);
    }
    Ok(found)
}

/// Returns the error for a key outside of any section, or for an unknown section.
fn no_section(entry: &Entry<'_>) -> Failure {
    match entry.table("") {
        Ok(_) => {
            let receivers = ReceiverKind::ALL.iter().map(|kind| kind.as_str());
            let known: Vec<&str> = SECTIONS.into_iter().chain(receivers).collect();
            entry.unknown_key(&known).into()
        }
        Err(_) => entry.wrong("this is in no section; want it below [cluster.NAME], such as [cluster.eu], or below [defaults]").into(),
    }
}

fn named(entry: &Entry<'_>, section: Section, reading: &mut Reading) -> Result<Vec<Named>> {
    let kind = entry.name;
    let wanted = format!(
        "want a section with a name: [{kind}.NAME], such as [{kind}.{}]",
        match section {
            Section::Push => "prometheus",
            Section::Defaults | Section::Cluster | Section::Check | Section::Run => "eu",
            Section::Receiver(kind) => example_of(kind),
        }
    );
    let mut found = Vec::new();
    for entry in entry.table(&wanted)?.entries() {
        entry.table(&wanted)?;
        if !is_name(entry.name) {
            let wanted = "want a name of 1 to 64 ASCII letters, digits, hyphens and underscores";
            return Err(entry.wrong(wanted).into());
        }
        found.push(Named {
            name: entry.name.to_owned(),
            origin: entry.place().into(),
            given: settings(&entry, section, reading)?,
        });
    }
    Ok(found)
}

/// Returns whether a text is a valid name of a section. The allowed characters are safe in messages, labels and file
/// names.
pub(crate) fn is_name(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (1..=64).contains(&name.len()) && name.bytes().all(is_allowed)
}

fn settings(entry: &Entry<'_>, section: Section, reading: &mut Reading) -> Result<Given> {
    let keys = keys(section);
    let mut given = Given::default();
    for entry in entry.table("want a section of settings")?.entries() {
        let Some(key) = keys.iter().find(|key| key.name == entry.name) else {
            let known = keys.iter().filter(|key| key.is_allowed());
            let known: Vec<&str> = known.map(|key| key.name).collect();
            return Err(entry.unknown_key(&known).into());
        };
        let raw = read_value(&entry, key, reading)?;
        let name = match key.form {
            Form::Secret(_) => CLIENT_SECRET,
            _ => key.name,
        };
        if given.get(name).is_some() {
            let text = "another key already names the place of the secret; want only one of them";
            return Err(entry.wrong(text).into());
        }
        given.set(name, raw, entry.place().into());
    }
    Ok(given)
}

/// Checks the values of the options that `T` declares, without reading secrets.
fn check<T: tallyfold::arguments::Options>(given: &Given, section: &Origin) -> Result<()> {
    let mut given = given.clone();
    for name in ["ca_file", "proxy", "labels", "format", "template"] {
        given.take(name);
    }
    given.check::<T>().map_err(|error| as_failure(&given, section, error))
}

fn places(mut given: Given) -> CheckPlaces {
    let mut path = |name: &str| take_path(&mut given, name);
    CheckPlaces { rules: path("rules"), state: path("state"), history: path("history") }
}

fn receiver(mut section: Named, kind: ReceiverKind) -> Result<AlertReceiver> {
    let name = Raw::Text(section.name.clone());
    section.given.set("name", name, section.origin.clone());
    check::<ReceiverOptions>(&section.given, &section.origin)?;
    if kind.usual_url().is_none() && section.given.get("url").is_none() {
        let origin = &section.origin;
        return Err(Failure::usage(format!("{origin}: url is missing")));
    }
    let (network, _) = take_network_and_labels(&mut section.given);
    let template = take_path(&mut section.given, "template");
    Ok(AlertReceiver { name: section.name, kind, given: section.given, template, network })
}

fn as_failure(given: &Given, section: &Origin, error: Error) -> Failure {
    match (error.code(), error.argument_in(tallyfold::Spelling::Toml)) {
        (Code::MissingArgument, Some(name)) => {
            Failure::usage(format!("{section}: {name} is missing"))
        }
        _ => given.as_failure(error),
    }
}

fn target(mut section: Named) -> Result<Target> {
    check::<PushOptions>(&section.given, &section.origin)?;
    let (network, _) = take_network_and_labels(&mut section.given);
    let names: Vec<&str> = Format::ALL.iter().map(|format| format.as_str()).collect();
    let names = names.join(", ");
    let format = match section.given.take("format") {
        Some(Setting { raw: Raw::Text(name), origin }) => Format::from_name(&name)
            .ok_or_else(|| Failure::usage(format!("{origin}: want one of {names}")))?,
        _ => {
            let origin = &section.origin;
            let text = format!("{origin}: format is missing; want one of {names}");
            return Err(Failure::usage(text));
        }
    };
    Ok(Target { name: section.name, format, push: section.given, network })
}

/// Decodes the bytes of a file as text.
///
/// # Errors
/// At the first byte that is not UTF-8.
fn text_of<'b>(path: &Path, bytes: &'b [u8]) -> Result<&'b str> {
    // Some Windows editors write a byte order mark at the beginning.
    let (skipped, bytes) = match bytes.strip_prefix(b"\xef\xbb\xbf") {
        Some(rest) => (3, rest),
        None => (0, bytes),
    };
    std::str::from_utf8(bytes).map_err(|error| {
        let offset = skipped + error.valid_up_to();
        let path = path.display();
        Failure::usage(format!("{path}: byte {offset}: want UTF-8 text"))
    })
}

impl From<Wrong> for Failure {
    fn from(wrong: Wrong) -> Self {
        Self::usage(wrong.to_string())
    }
}

impl From<Place> for Origin {
    fn from(place: Place) -> Self {
        Self::File {
            path: place.file.unwrap_or_else(|| Arc::from(Path::new(""))),
            line: place.line,
            column: place.column,
            key: place.key,
        }
    }
}

#[cfg(test)]
mod tests;
