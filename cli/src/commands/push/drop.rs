//! `tallyfold push drop`: gives up a revision that its destination permanently refuses.

use std::path::PathBuf;

use clap::Args;
use tallyfold_export::Outbox;

use crate::failure::{Exit, Result};
use crate::host::state::StateFile;
use crate::stderr::Stderr;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold push drop --state otlp.json
      Gives up the revision that push --follow can't send, and prints what is lost. The next run resumes after it.
  tallyfold push drop --state /var/lib/tallyfold --cluster eu
      The same where the state is a folder with a file for each cluster.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct DropFlags {
    /// The state of push --follow
    #[arg(long, value_name = "PATH")]
    state: PathBuf,
    /// The cluster, if the state is a folder
    #[arg(long, value_name = "NAME")]
    cluster: Option<String>,
}

/// Gives up the pending revision of a state.
///
/// # Errors
/// For a state that can't be read or written, and one that a running push uses.
pub(crate) async fn run(flags: &DropFlags, stderr: &Stderr) -> Result<Exit> {
    let file = StateFile::existing(&flags.state, flags.cluster.as_deref())?;
    let bytes = file.read()?.unwrap_or_default();
    let mut outbox = Outbox::from_json(&bytes).map_err(|error| file.as_failure(error))?;
    let Some(lost) = outbox.pending_changes() else {
        stderr.note("nothing is pending");
        return Ok(Exit::Fine);
    };
    outbox.clear();
    file.replace(outbox.to_json()).await?;
    let [success, errors, filtered] = lost.changes.map(tallyfold::text::signed);
    stderr.note(format_args!(
        "dropped revision {} of [{}, {}), which was for {}; {} of its {} samples were finished; in total, it changes \
         success by {success}, errors by {errors} and filtered by {filtered}",
        lost.revision,
        lost.window.start(),
        lost.window.end(),
        lost.format,
        lost.finished,
        lost.samples,
    ));
    Ok(Exit::Fine)
}
