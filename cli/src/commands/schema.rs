//! `tallyfold schema`: the JSON Schema of each document that the command prints.

use clap::{Args, ValueEnum};
use schemars::schema_for;

use super::explain::ExplainedDocument;
use crate::doctor::diagnosis::Diagnosis;
use crate::failure::{Exit, Result};
use crate::output::check::CheckDocument;
use crate::output::document::ReportDocument;
use crate::output::sink::write_to;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold schema > output.schema.json
  tallyfold schema check > check.schema.json
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct SchemaFlags {
    /// The command that prints the document
    #[arg(value_enum, value_name = "DOCUMENT", default_value = "counts")]
    document: Of,
}

/// A document.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// The document of delivery, ingestion, collect and compare.
    Counts,
    /// The document of check.
    Check,
    /// The document of doctor.
    Doctor,
    /// The document of explain.
    Explain,
}

/// Runs the command.
///
/// # Errors
/// If stdout can't be written.
pub(crate) fn run(flags: &SchemaFlags) -> Result<Exit> {
    let schema = schema(flags.document);
    write_to(None, |_, out| Ok(out.write_all(schema.as_bytes())?))?;
    Ok(Exit::Fine)
}

fn schema(of: Of) -> String {
    let schema = match of {
        Of::Counts => schema_for!(ReportDocument<'static>),
        Of::Check => schema_for!(CheckDocument<'static>),
        Of::Doctor => schema_for!(Diagnosis),
        Of::Explain => schema_for!(ExplainedDocument<'static>),
    };
    // A schema is plain JSON, so this can't fail.
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schemas_are_those_of_the_documents() {
        for (of, name) in [
            (Of::Counts, "output"),
            (Of::Check, "check"),
            (Of::Doctor, "doctor"),
            (Of::Explain, "explain"),
        ] {
            let path = format!(
                "{}/../docs/cli/{name}.schema.json",
                env!("CARGO_MANIFEST_DIR")
            );
            let published = std::fs::read_to_string(path).unwrap_or_default();
            let hint = "write it with scripts/declare.py";
            assert_eq!(published, schema(of), "{name}: {hint}");
        }
    }
}
