//! `tallyfold man`: manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_mangen::{Man, generate_to};

use crate::command::CommandLine;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::output::sink::write_to;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold man | man -l -
      Shows the main page.
  tallyfold man ~/.local/share/man/man1
      Writes a page for each command: `man tallyfold-delivery`.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ManFlags {
    /// The folder to write a page for each command into, which is made if there is none [default: only the main page, to stdout]
    folder: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// For a folder that can't be written.
pub(crate) fn run(flags: &ManFlags) -> Result<Exit> {
    let command = CommandLine::command().disable_help_subcommand(true);
    match &flags.folder {
        None => {
            let page = Man::new(command);
            write_to(None, |_, out| Ok(page.render(out)?))?;
        }
        Some(folder) => {
            let told = |error| Failure::file("write", folder, &error);
            std::fs::create_dir_all(folder).map_err(told)?;
            generate_to(command, folder).map_err(told)?;
        }
    }
    Ok(Exit::Fine)
}
