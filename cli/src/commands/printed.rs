//! `tallyfold man` prints manual pages. `tallyfold schema` prints the JSON Schema of a document.

use std::io;
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::{Args, Command, ValueEnum};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::explain::ExplainedDocument;
use crate::doctor::diagnosis::Diagnosis;
use crate::failure::{Exit, Failure, Result};
use crate::output::check::CheckDocument;
use crate::output::document::{ReportDocument, schema_of};
use crate::output::sink::write_to;

/// The examples at the start of the help of `man`.
pub(crate) const MAN_EXAMPLES: &str = "\
Examples:
  tallyfold man | man -l -
      Shows the main page.
  tallyfold man ~/.local/share/man/man1
      Writes a page for each command, such as the page that `man tallyfold-delivery` shows.
";

/// Flags of `man`.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManFlags {
    /// The folder for a page of each command, created if missing [default: print only the main page]
    folder: Option<PathBuf>,
}

/// Prints the main page, or writes a page for each command. `command` is the whole command line.
///
/// # Errors
/// If the folder or stdout can't be written.
pub(crate) fn run_man(flags: &ManFlags, command: Command) -> Result<Exit> {
    let command = whole(command);
    match &flags.folder {
        None => write_to(None, |_, out| Ok(out.write_all(&page(&command)?)?))?,
        Some(folder) => {
            let as_failure = |error| Failure::file("write", folder, &error);
            std::fs::create_dir_all(folder).map_err(as_failure)?;
            write_pages(&command, folder).map_err(as_failure)?;
        }
    }
    Ok(Exit::Fine)
}

/// Prepares the command line, so that the pages show all commands and options.
fn whole(command: Command) -> Command {
    let mut command = with_all_options(command.disable_help_subcommand(true));
    command.build();
    command
}

/// Shows the help of all options of a command. Without this, `clap_mangen` omits the options that `-h` omits.
fn with_all_options(command: Command) -> Command {
    let command = command.mut_args(|argument| argument.hide_short_help(false));
    command.mut_subcommands(with_all_options)
}

/// Writes the page of a command and the pages of its subcommands.
fn write_pages(command: &Command, folder: &Path) -> io::Result<()> {
    let name = Man::new(command.clone()).get_filename();
    std::fs::write(folder.join(name), page(command)?)?;
    let mut commands = command.get_subcommands().filter(|command| !command.is_hide_set());
    commands.try_for_each(|command| write_pages(command, folder))
}

/// Returns the page of a command. Unlike the pages that `clap_mangen` renders, it has the examples, and does not reflow tables.
fn page(command: &Command) -> io::Result<Vec<u8>> {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    section("EXAMPLES", command.get_before_help(), &mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    section("NOTES", command.get_after_help(), &mut page)?;
    Ok(page)
}

/// Adds a section to a page, and keeps the line breaks of its text.
fn section(heading: &str, text: Option<&StyledStr>, page: &mut Vec<u8>) -> io::Result<()> {
    let Some(text) = text.map(ToString::to_string) else {
        return Ok(());
    };
    let mut roff = Roff::default();
    roff.control("SH", [heading]);
    roff.control("nf", []);
    for line in text.trim_end().lines().filter(|line| *line != "Examples:") {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(page)
}

/// The examples at the start of the help of `schema`.
pub(crate) const SCHEMA_EXAMPLES: &str = "\
Examples:
  tallyfold schema > output.schema.json
  tallyfold schema check > check.schema.json
";

/// Flags of `schema`.
#[derive(Args, Clone, Debug)]
pub(crate) struct SchemaFlags {
    /// The document that the schema describes
    #[arg(value_enum, value_name = "DOCUMENT", default_value = "counts")]
    document: Document,
}

/// A document that has a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Document {
    /// The JSON output of delivery, ingestion, collect and compare.
    Counts,
    /// The JSON output of check.
    Check,
    /// The JSON output of doctor.
    Doctor,
    /// The JSON output of explain.
    Explain,
}

/// Prints the schema of a document.
///
/// # Errors
/// If stdout can't be written.
pub(crate) fn run_schema(flags: &SchemaFlags) -> Result<Exit> {
    let schema = schema(flags.document);
    write_to(None, |_, out| Ok(out.write_all(schema.as_bytes())?))?;
    Ok(Exit::Fine)
}

fn schema(document: Document) -> String {
    let schema = match document {
        Document::Counts => schema_of::<ReportDocument<'static>>(),
        Document::Check => schema_of::<CheckDocument<'static>>(),
        Document::Doctor => schema_of::<Diagnosis>(),
        Document::Explain => schema_of::<ExplainedDocument<'static>>(),
    };
    // A schema is plain JSON, so this can't fail.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use clap::Arg;

    use super::*;

    #[test]
    fn a_page_has_examples_as_they_are_and_explains_options_that_are_rarely_needed() {
        let rare = Arg::new("rare").long("rare").help("Rarely needed");
        let eat = Command::new("eat")
            .about("Eats")
            .before_help("Examples:\n  food eat    --rare\n  .food")
            .arg(rare.hide_short_help(true));
        let command = whole(Command::new("food").subcommand(eat).after_help("1  2"));
        let text = |command: &Command| String::from_utf8(page(command).unwrap()).unwrap();
        let eat = text(command.find_subcommand("eat").unwrap());
        assert!(eat.contains(".TH food-eat 1"), "{eat}");
        assert!(eat.contains(".SH EXAMPLES\n.nf\n  food eat    \\-\\-rare\n"), "{eat}");
        assert!(eat.contains("Rarely needed"), "{eat}");
        assert!(!eat.contains("\n.food"), "{eat}");
        let food = text(&command);
        assert!(food.contains(".SH NOTES\n.nf\n1  2\n.fi"), "{food}");
        assert!(!food.contains("EXAMPLES"), "{food}");
    }

    #[test]
    fn the_published_schemas_are_current() {
        for (document, name) in [
            (Document::Counts, "output"),
            (Document::Check, "check"),
            (Document::Doctor, "doctor"),
            (Document::Explain, "explain"),
        ] {
            let path = format!("{}/../docs/cli/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            let published = std::fs::read_to_string(path).unwrap_or_default();
            let hint = "write it with scripts/declare.py";
            assert_eq!(published, schema(document), "{name}: {hint}");
        }
    }
}
