//! `tallyfold follow`: counts of windows as they close.

use std::cell::RefCell;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use futures_util::future::join_all;
use tallyfold::FollowOptions;
use tallyfold_export::Labels;

use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::following::FollowFlags;
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Failure, Result};
use crate::host::clock::unix_ms;
use crate::host::files::StateFile;
use crate::host::ranges::{FollowEvent, Following};
use crate::host::session::Session;
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::output::revision::{Origin, Printed, Printer, RevisionFormat};
use crate::output::safe::Terminal;

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold follow --by integration,reason
      Each window of 15 minutes when it closes, and again when late events have changed it.
  tallyfold follow --since 24h --state follow.json --format ndjson >> changes.ndjson
      Begins a day back; started again, it goes on where it ended.
  tallyfold follow --from 2026-01-31T00:00:00Z --until 2026-02-01T00:00:00Z --format csv
      Ends when all windows of that day are settled.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct FollowCommand {
    #[command(flatten)]
    follow: FollowFlags,
    #[command(flatten)]
    endurance: Declared<Endurance>,
    /// Where to go on next time: a file, or a folder with a file for each cluster that has a name
    ///
    /// It is stored after a revision was written. So whatever ends the process, no revision is missing after a restart; the last
    /// one may be written a second time, with the same number.
    #[arg(long, value_name = "PATH", help_heading = "Following")]
    state: Option<PathBuf>,
    /// How revisions are written [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: RevisionFormat,
    /// A label for each row of csv and ndjson, such as env=production; may be repeated
    #[arg(
        long = "label",
        value_name = "NAME=VALUE",
        hide_short_help = true,
        help_heading = "Output"
    )]
    labels: Vec<String>,
}

/// How long a follow waits for a service that is down.
#[derive(Clone, Debug)]
struct Endurance;

impl Flags for Endurance {
    type Options = FollowOptions;

    const NAMES: &'static [&'static str] = &["patience_ms"];
    const HEADING: &'static str = "Following";
}

/// The follow of one cluster, and where its revisions go.
struct Printing<'a> {
    app: &'a App,
    cluster: Cluster,
    labels: Labels,
    following: Following,
    file: Option<StateFile>,
    printer: Rc<RefCell<Printer<Box<dyn Write>>>>,
    /// Whether a window was read.
    has_read: bool,
}

/// Prints revisions until all windows are settled, or until a signal.
///
/// # Errors
/// For flags, settings and states that can't be used; no request is sent then.
pub(crate) async fn run(app: &App, flags: &FollowCommand) -> Result<Exit> {
    let out: Box<dyn Write> = match io::stdout().is_terminal() {
        true => Box::new(Terminal::new(io::stdout(), false)),
        false => Box::new(io::stdout()),
    };
    let printer = Rc::new(RefCell::new(Printer::new(out, flags.format)));
    let mut all = Vec::new();
    for (cluster, session) in app.sessions()? {
        all.push(begin(app, flags, cluster, session, &printer).await?);
    }
    let shutdown = Shutdown::new();
    let work = join_all(all.iter_mut().map(|one| one.run(&shutdown)));
    Ok(match until_shut_down(&app.stop, &shutdown, work).await {
        Err(exit) => exit,
        Ok(results) => Exit::of_clusters(&results),
    })
}

async fn begin<'a>(
    app: &'a App,
    flags: &FollowCommand,
    cluster: Cluster,
    session: Rc<Session>,
    printer: &Rc<RefCell<Printer<Box<dyn Write>>>>,
) -> Result<Printing<'a>> {
    let labels = labels_of(&app.settings, &cluster, &flags.labels)?;
    let path = flags.state.as_deref();
    let file = path
        .map(|path| StateFile::of_cluster(path, &app.settings, &cluster))
        .transpose()?;
    let stored = file.as_ref().map(StateFile::read).transpose()?.flatten();
    // The core rejects a state that is not UTF-8 as damaged.
    let stored = stored.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    let mut given = flags.follow.given(stored.as_deref(), unix_ms())?;
    given.overlay(flags.endurance.given.clone());
    let options: FollowOptions = given.read()?;
    let following = Following::new(session, &options).map_err(|error| match &file {
        Some(file) if error.argument_name() == Some("state") => file.as_failure(error),
        _ => error.into(),
    })?;
    if let (Some(file), None) = (&file, stored) {
        file.replace(following.state()).await?;
    }
    Ok(Printing {
        app,
        labels,
        cluster,
        following,
        file,
        printer: Rc::clone(printer),
        has_read: false,
    })
}

impl Printing<'_> {
    /// Prints all revisions. A failure is written at once, because other clusters may continue for days.
    async fn run(&mut self, shutdown: &Shutdown) -> Option<Exit> {
        let result = self.print_all(shutdown).await;
        self.app.fail_if(&self.cluster.name, result)
    }

    async fn print_all(&mut self, shutdown: &Shutdown) -> Result<()> {
        while let Some(found) = shutdown.unless_begun(self.following.next()).await {
            match found {
                FollowEvent::Done => break,
                FollowEvent::Ahead(error) => {
                    return Err(match &self.file {
                        Some(file) => file.as_failure(error),
                        None => error.into(),
                    });
                }
                FollowEvent::Failed(window, error) => {
                    let failure = Failure::from(error);
                    if !self.has_read {
                        return Err(failure.of_cluster(&self.cluster.name));
                    }
                    self.app.warn_unread(&self.cluster.name, window, &failure);
                }
                FollowEvent::Revision(revision) => {
                    self.has_read = true;
                    self.app.warn_contradiction(&self.cluster.name, &revision);
                    let origin = Origin {
                        cluster: self
                            .app
                            .settings
                            .is_named
                            .then_some(self.cluster.name.as_str()),
                        labels: &self.labels,
                    };
                    let printed = self.printer.borrow_mut().print(&origin, &revision)?;
                    if printed == Printed::NobodyReads {
                        shutdown.begin();
                        break;
                    }
                    if let Some(file) = &self.file {
                        file.replace(self.following.state()).await?;
                    }
                }
            }
        }
        Ok(())
    }
}
