//! `tallyfold doctor`: says what is wrong, and what to do next.

use clap::Args;
use futures_util::future::join_all;

use crate::app::App;
use crate::doctor::check::Diagnosis;
use crate::doctor::examination::examine;
use crate::doctor::shown::print;
use crate::exit::Exit;
use crate::failure::Result;
use crate::output::sink::write_to;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold doctor
      Checks the settings, the way to each address, both tokens, and one query of each kind.
  tallyfold doctor --cluster eu --timeout 30s
      Checks one cluster of the configuration; no check takes longer than 30 seconds.
  tallyfold doctor --json > diagnosis.json
      The same for a script, or to show to somebody: it holds no secret.
";

/// What the help ends with.
pub(crate) const ENDING: &str = "\
No check takes longer than 10 seconds, or --timeout. Nothing is tried again.
Exit codes: 0 if all is well, warnings included; that of the first failed check (2 settings or clock, 3 credentials or
tokens, 4 the service or the way to it, 5 its responses); 6 if some clusters are well and others are not.";

/// Flags of the doctor.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorFlags {
    /// Prints one JSON document, described by a JSON Schema (tallyfold schema doctor)
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// For a place that can't be written.
pub(crate) async fn run(app: &App, flags: &DoctorFlags) -> Result<Exit> {
    let clusters = app.settings.clusters.iter();
    let examined = clusters.map(|cluster| examine(cluster, &app.voice));
    let diagnosis = Diagnosis::new(join_all(examined).await);
    write_to(None, |screen, out| {
        if flags.json {
            serde_json::to_writer_pretty(&mut *out, &diagnosis).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            print(&diagnosis, app.settings.is_named, screen, out)?;
        }
        Ok(())
    })?;
    Ok(diagnosis.exit())
}
