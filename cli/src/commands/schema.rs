//! `tallyfold schema`: the JSON Schema of `--format json`.

use crate::exit::Exit;
use crate::failure::Result;
use crate::output::document::schema;
use crate::output::sink::write_to;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold schema > output.schema.json
";

/// Runs the command.
///
/// # Errors
/// For a stdout that can't be written.
pub(crate) fn run() -> Result<Exit> {
    write_to(None, |_, out| Ok(out.write_all(schema().as_bytes())?))?;
    Ok(Exit::Fine)
}
