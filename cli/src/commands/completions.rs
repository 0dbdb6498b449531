//! `tallyfold completions`: the completion script of a shell.

use clap::{Args, Command};
use clap_complete::{Shell, generate};

use crate::failure::{Exit, Result};
use crate::output::sink::write_to;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold completions bash > ~/.local/share/bash-completion/completions/tallyfold
  tallyfold completions zsh > ~/.zfunc/_tallyfold
      That folder has to be in zsh's fpath.
  tallyfold completions fish > ~/.config/fish/completions/tallyfold.fish
";

/// Flags of the command.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct CompletionsFlags {
    /// The shell
    shell: Shell,
}

/// Runs the command; `command` is the whole command line.
///
/// # Errors
/// If stdout can't be written.
pub(crate) fn run(flags: CompletionsFlags, mut command: Command) -> Result<Exit> {
    let mut script = Vec::new();
    generate(flags.shell, &mut command, "tallyfold", &mut script);
    write_to(None, |_, out| Ok(out.write_all(&script)?))?;
    Ok(Exit::Fine)
}
