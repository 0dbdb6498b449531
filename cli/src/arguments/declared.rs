//! Generates flags from the core's declarations of options. A declaration contains the option's name, kind of value, default and
//! meaning.

use std::ffi::OsStr;
use std::marker::PhantomData;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};
use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use tallyfold::Spelling;
use tallyfold::arguments::{Argument, Kind, Options, Unit, Value};
use tallyfold::text::{duration, milliseconds};

use super::given::{Given, Origin, Raw};

/// The parser of a flag that accepts any text. Shells complete the suggested texts. The command checks the text later.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suggested(pub(crate) fn() -> Vec<String>);

impl TypedValueParser for Suggested {
    type Value = String;

    fn parse_ref(
        &self,
        command: &Command,
        arg: Option<&Arg>,
        value: &OsStr,
    ) -> std::result::Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

/// Returns common lengths of windows, which shells complete.
pub(crate) fn steps() -> Vec<String> {
    ["5m", "15m", "1h", "1d"].map(str::to_owned).into()
}

/// Selects which options of a core function become flags of a command.
pub(crate) trait Flags: Clone {
    /// The function's options.
    type Options: Options;

    /// The names of the options that are flags, as Rust spells them.
    const NAMES: &'static [&'static str];

    /// This command's defaults, where they differ from the core's: each option's name as Rust spells it, and the value as a
    /// user would write it.
    const USUAL: &'static [(&'static str, &'static str)] = &[];

    /// How the help describes defaults that the command computes: each option's name as Rust spells it, and the description.
    const COMPUTED: &'static [(&'static str, &'static str)] = &[];

    /// The values that shells complete: each option's name as Rust spells it, and its values. Flags accept other values, too.
    /// For a step without an entry here, shells complete the lengths in [`steps`].
    const SUGGESTED: &'static [(&'static str, Suggested)] = &[];

    /// The heading of these flags in the help.
    const HEADING: &'static str;

    /// Whether `-h` shows these flags, too. `--help` always does.
    const IS_COMMON: bool = false;
}

/// The values of the flags that `F` selects. A flag that is not set has the command's default in [`Flags::USUAL`], if any.
#[derive(Clone, Debug)]
pub(crate) struct Declared<F> {
    /// The values, by their names in a TOML file.
    pub(crate) given: Given,
    flags: PhantomData<F>,
}

impl<F> Default for Declared<F> {
    fn default() -> Self {
        Self { given: Given::default(), flags: PhantomData }
    }
}

impl<F: Flags> Args for Declared<F> {
    fn augment_args(command: Command) -> Command {
        arguments::<F>().fold(command, |command, argument| command.arg(flag::<F>(argument)))
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
                    .or_else(|| entry_of(F::USUAL, argument).map(str::to_owned))
                    .map(|text| in_unit(text, argument)),
            };
            if let Some(raw) = raw {
                given.set(argument.spelled(Spelling::Toml), raw, Origin::Flag);
            }
        }
        Ok(Self { given, flags: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Converts the value of a flag. If the core expects a duration in whole seconds, also accepts a unit, as other durations have.
fn in_unit(text: String, argument: &Argument) -> Raw {
    let ms = match argument.unit() {
        Some(Unit::Seconds) => milliseconds(&text).filter(|ms| ms % 1_000 == 0),
        _ => None,
    };
    ms.map_or(Raw::Text(text), |ms| Raw::Whole((ms / 1_000).into()))
}

fn arguments<F: Flags>() -> impl Iterator<Item = &'static Argument> {
    let all = F::Options::ARGUMENTS.iter();
    all.filter(|argument| F::NAMES.contains(&argument.name))
}

fn flag<F: Flags>(argument: &'static Argument) -> Arg {
    let (mut paragraphs, default) = described(argument, F::Options::ARGUMENTS, Spelling::Flag);
    let shown = entry_of(F::COMPUTED, argument).or_else(|| entry_of(F::USUAL, argument));
    let default = shown.map(str::to_owned).or(default);
    let mut summary = paragraphs.first().cloned().unwrap_or_default();
    summary.truncate(summary.trim_end_matches('.').len());
    if let Some(default) = default {
        summary = format!("{summary} [default: {default}]");
    }
    if let Some(first) = paragraphs.first_mut() {
        first.clone_from(&summary);
    }
    let arg = Arg::new(argument.name)
        .long(argument.spelled(Spelling::Toml).replace('_', "-"))
        .help(summary)
        .long_help(paragraphs.join("\n\n"))
        .help_heading(F::HEADING)
        .hide_short_help(!F::IS_COMMON);
    let choices = argument.surface.map(|surface| (surface.choices)());
    match (argument.kind, choices) {
        (Kind::Flag, _) => arg.action(ArgAction::SetTrue),
        (Kind::Text, Some(choices)) if !choices.is_empty() => {
            arg.value_name("NAME").value_parser(PossibleValuesParser::new(choices))
        }
        (kind @ Kind::Step, _) => arg
            .value_name(value_name(kind))
            .value_parser(entry_of(F::SUGGESTED, argument).unwrap_or(Suggested(steps)))
            .hide_possible_values(true),
        (kind, _) => arg.value_name(value_name(kind)),
    }
}

/// Returns the entry of an option in a list of names and entries.
fn entry_of<T: Copy>(entries: &[(&'static str, T)], argument: &Argument) -> Option<T> {
    let found = entries.iter().find(|(name, _)| *name == argument.name);
    found.map(|(_, entry)| *entry)
}

/// Adds a paragraph to the help of a flag that several commands share.
pub(crate) fn with_paragraph(arg: Arg, text: &str) -> Arg {
    let help = arg.get_long_help().or(arg.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    arg.long_help(format!("{help}\n\n{text}"))
}

/// Returns the description of an option as paragraphs, and its default as a user would write it. The first paragraph is the
/// summary. `spelling` decides whether the description names other options as flags or as keys of a file.
pub(crate) fn described(
    argument: &Argument,
    known: &[Argument],
    spelling: Spelling,
) -> (Vec<String>, Option<String>) {
    let Some(surface) = argument.surface else {
        return (Vec::new(), None);
    };
    let default = surface.default.and_then(|default| default());
    let default = default.and_then(|value| match value {
        Value::Endless => Some("none, which means no limit".to_owned()),
        value => written(&value, argument),
    });
    (surface.paragraphs(known, spelling), default)
}

/// Formats a default as a user would write it; returns `None` if there is nothing to show.
pub(crate) fn written(value: &Value, argument: &Argument) -> Option<String> {
    match value {
        Value::Text(text) => Some(text.clone()),
        Value::Endless => Some("none".to_owned()),
        Value::Whole(number) => Some(match argument.unit() {
            None => number.to_string(),
            Some(Unit::Milliseconds) => duration(u64::try_from(*number).ok()?),
            Some(Unit::Seconds) => duration(u64::try_from(*number).ok()?.checked_mul(1_000)?),
        }),
        _ => None,
    }
}

fn value_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Address => "URL",
        Kind::Instant => "TIMESTAMP",
        Kind::Step => "STEP",
        Kind::Whole => "N",
        Kind::Pair => "I/N",
        Kind::Milliseconds | Kind::Patience => "TIME",
        Kind::Texts => "A,B",
        _ => "TEXT",
    }
}
