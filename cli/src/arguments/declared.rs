//! Flags generated from the core's declarations, which define the name, kind of value, default and meaning of each.

use std::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use tallyfold::Spelling;
use tallyfold::arguments::{Argument, Kind, Options};
use tallyfold::text::duration;

use super::given::{Given, Origin, Raw};

/// Selects the options of a function that become flags of a command.
pub(crate) trait Flags: Clone {
    /// The function's options.
    type Options: Options;

    /// The names of the options that are flags, as Rust spells them.
    const NAMES: &'static [&'static str];

    /// The defaults of this command that differ from the core's defaults: the name of the option as Rust spells it, and
    /// the value as a user would write it.
    const USUAL: &'static [(&'static str, &'static str)] = &[];

    /// The heading of these flags in the help.
    const HEADING: &'static str;

    /// Whether `-h` shows them too, not only `--help`.
    const IS_COMMON: bool = false;
}

/// The flags that were given.
#[derive(Clone, Debug)]
pub(crate) struct Declared<F> {
    /// The values, by their names in a TOML file.
    pub(crate) given: Given,
    flags: PhantomData<F>,
}

impl<F: Flags> Args for Declared<F> {
    fn augment_args(command: Command) -> Command {
        arguments::<F>().fold(command, |command, argument| {
            command.arg(flag::<F>(argument))
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<F: Flags> FromArgMatches for Declared<F> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Given::default();
        for argument in arguments::<F>() {
            let raw = match argument.kind {
                Kind::Flag => matches.get_flag(argument.name).then_some(Raw::Flag(true)),
                _ => matches
                    .get_one::<String>(argument.name)
                    .cloned()
                    .or_else(|| usual::<F>(argument).map(str::to_owned))
                    .map(Raw::Text),
            };
            if let Some(raw) = raw {
                given.set(argument.spelled(Spelling::Toml), raw, Origin::Flag);
            }
        }
        Ok(Self {
            given,
            flags: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

fn arguments<F: Flags>() -> impl Iterator<Item = &'static Argument> {
    let all = F::Options::ARGUMENTS.iter();
    all.filter(|argument| F::NAMES.contains(&argument.name))
}

fn flag<F: Flags>(argument: &'static Argument) -> Arg {
    let long = argument.spelled(Spelling::Flag);
    let about = about::<F>(argument);
    let short = about
        .split_inclusive(". ")
        .next()
        .unwrap_or_default()
        .trim();
    let arg = Arg::new(argument.name)
        .long(long.trim_start_matches("--").to_owned())
        .help(short.trim_end_matches('.').to_owned())
        .long_help(about.clone())
        .help_heading(F::HEADING)
        .hide_short_help(!F::IS_COMMON);
    match argument.kind {
        Kind::Flag => arg.action(ArgAction::SetTrue),
        kind => arg.value_name(value_name(kind)),
    }
}

/// The help of an option: its description, with the names of other options as flags, and its default.
fn about<F: Flags>(argument: &Argument) -> String {
    let (doc, default) = described(argument, F::Options::ARGUMENTS, Spelling::Flag);
    match usual::<F>(argument).map(str::to_owned).or(default) {
        Some(default) => format!("{doc} [default: {default}]"),
        None => doc,
    }
}

/// The default that the command sets for an option, if it differs from the core's.
fn usual<F: Flags>(argument: &Argument) -> Option<&'static str> {
    let mut usual = F::USUAL.iter();
    usual
        .find(|(name, _)| *name == argument.name)
        .map(|(_, value)| *value)
}

/// The description of an option, with the names of other options as flags or keys, and its default.
pub(crate) fn described(
    argument: &Argument,
    known: &[Argument],
    spelling: Spelling,
) -> (String, Option<String>) {
    let Some(surface) = argument.surface else {
        return (String::new(), None);
    };
    let lines = surface.doc.lines().map(str::trim);
    let doc = lines
        .filter(|line| !line.is_empty())
        .collect::<Vec<_>>()
        .join(" ");
    let default = surface.default.map(|default| default());
    let default = default.and_then(|text| shown(&text, argument.kind));
    (plain(&doc, known, spelling), default)
}

/// A doc comment without link brackets, with option names spelled as flags or keys.
fn plain(doc: &str, known: &[Argument], spelling: Spelling) -> String {
    let mut text = String::new();
    let mut rest = doc;
    while let Some(start) = rest.find("[`") {
        text.push_str(&rest[..start]);
        let link = &rest[start + 1..];
        let end = link.find(']').unwrap_or(link.len());
        text.push_str(&link[..end]);
        rest = link.get(end + 1..).unwrap_or_default();
        if rest.starts_with('(') {
            rest = rest
                .find(')')
                .and_then(|end| rest.get(end + 1..))
                .unwrap_or_default();
        }
    }
    text.push_str(rest);
    spelled_names(&without_sections(&text), known, spelling)
}

/// Removes references to sections of the service reference, because readers of the help don't have that document.
fn without_sections(text: &str) -> String {
    let mut pieces = text.split(" (service reference");
    let mut shown = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        shown.push_str(piece.split_once(')').map_or("", |(_, rest)| rest));
    }
    shown
}

/// Names of options in backticks, spelled as flags or keys.
fn spelled_names(text: &str, known: &[Argument], spelling: Spelling) -> String {
    let pieces = text.split('`').enumerate().map(|(index, piece)| {
        let argument = known.iter().find(|argument| argument.name == piece);
        match argument {
            Some(argument) if index % 2 == 1 => argument.spelled(spelling),
            None if index % 2 == 1 => format!("`{piece}`"),
            _ => piece.to_owned(),
        }
    });
    pieces.collect()
}

/// A default as a user would write it for the flag; `None` if there is nothing to show.
fn shown(debug: &str, kind: Kind) -> Option<String> {
    match kind {
        Kind::Flag | Kind::Nested(_) | Kind::Mapping | Kind::Secret => None,
        _ if debug == "None" => None,
        _ if debug.ends_with("Endless") => Some("none".to_owned()),
        Kind::Milliseconds | Kind::Patience => {
            let digits: String = debug.chars().filter(char::is_ascii_digit).collect();
            digits.parse().ok().map(duration)
        }
        _ => Some(debug.trim_matches('"').to_owned()),
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Address => "URL",
        Kind::Instant => "INSTANT",
        Kind::Step => "STEP",
        Kind::Whole => "N",
        Kind::Pair => "I/N",
        Kind::Milliseconds | Kind::Patience => "TIME",
        Kind::Texts => "A,B",
        _ => "TEXT",
    }
}
