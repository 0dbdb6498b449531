//! `tallyfold run`: the scrape endpoint and the pushes of the configuration, in one process that reads each window once.

use std::path::PathBuf;

use clap::Args;

use super::push::destination::DestinationFlags;
use super::serve::{self, Pushing, ServingFlags};
use crate::app::App;
use crate::failure::{Exit, Failure, Result};

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold run --state /var/lib/tallyfold
      Serves totals, and sends revisions to the destinations in the section [run] of the configuration.
  tallyfold run --state /var/lib/tallyfold --by integration,reason --listen 0.0.0.0:9464
      For other machines, with more dimensions.
  curl http://127.0.0.1:9464/-/ready
      Readiness: 200 if windows settle, else 503. /-/healthy shows whether the process answers.
";

/// What the help ends with.
pub(crate) const ENDING: &str = "\
The folder --state contains the totals (serve) and what each destination has not got yet (push-NAME). A destination that is
down holds up neither the totals nor other destinations: /metrics shows it, and its push is tried again for ever.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    serving: ServingFlags,
    /// The folder with the totals, and with what each destination has not got yet
    #[arg(long, value_name = "PATH", help_heading = "Serving")]
    state: PathBuf,
}

/// Serves and pushes until a signal.
///
/// # Errors
/// For flags, settings and states that can't be used, and an address that can't be listened on.
pub(crate) async fn run(app: &App, flags: &RunCommand) -> Result<Exit> {
    let settings = app.loaded()?;
    if settings.run.is_empty() {
        let file = settings.file.as_ref();
        let place = file.map_or("the configuration".to_owned(), |file| {
            file.display().to_string()
        });
        return Err(Failure::usage(format!(
            "run: {place} names no destination; want push = [\"NAME\"] in a section [run], and a section [push.NAME]"
        ))
        .helped_by("tallyfold serve, which only serves totals"));
    }
    let folder = &flags.state;
    let mut destinations = Vec::new();
    for name in &settings.run {
        destinations.push(Pushing {
            name: name.clone(),
            destination: DestinationFlags::named(name).destination(settings, false)?,
            state: folder.join(format!("push-{name}")),
        });
    }
    std::fs::create_dir_all(folder)
        .map_err(|error| Failure::file("make the folder", folder, &error))?;
    serve::serve(app, &flags.serving, &folder.join("serve"), &destinations).await
}
