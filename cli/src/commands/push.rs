//! `tallyfold push`: sends counts to another system.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use tallyfold::{CollectOptions, Keep, Metric};
use tallyfold_export::{Export, Push};

use super::counts::read;
use super::each::{each, sessions};
use super::receiver::{Destination, ReceiverFlags};
use super::sending::{self, Plan};
use super::telling::{fail, warn};
use crate::app::App;
use crate::arguments::following::FollowFlags;
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::labels::labels_of;
use crate::arguments::query::{Query, QueryFlags};
use crate::config::settings::Cluster;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::host::clock::unix_ms;
use crate::host::ending::Ending;
use crate::host::session::Session;
use crate::output::pushed::{Pushed, PushedFormat, write};

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold push --to remote-write http://127.0.0.1:9090/api/v1/write --since 24h
      The settled windows of the last day, once.
  tallyfold push --to otlp https://otlp.example/v1/metrics --header-env authorization=OTLP_TOKEN \\
      --follow --state otlp.json
      Each window as it closes, and its corrections; started again, it goes on where it ended.
  tallyfold push grafana --follow --state /var/lib/tallyfold
      To the receiver in the section [push.grafana] of the configuration.
";

/// How far back a single push goes. The windows of the last hour are not settled yet.
const USUAL_SINCE: &str = "24h";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct PushCommand {
    #[command(flatten)]
    receiver: ReceiverFlags,
    /// Sends windows as they close, and their corrections, until Ctrl-C, SIGTERM or --until
    #[arg(long, requires = "state", help_heading = "Following")]
    follow: bool,
    /// Where --follow keeps what is not sent yet, and where to go on: a file, or a folder with a file for each cluster that has a name
    #[arg(
        long,
        value_name = "PATH",
        requires = "follow",
        help_heading = "Following"
    )]
    state: Option<PathBuf>,
    #[command(flatten)]
    what: FollowFlags,
    /// Keeps only counts with this value; may be repeated
    #[arg(
        long = "where",
        value_name = "DIMENSION=VALUE",
        conflicts_with = "follow",
        help_heading = "Query"
    )]
    only: Vec<String>,
    /// A label that each count gets, such as env=production; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", help_heading = "Receiver")]
    labels: Vec<String>,
    /// How the report of what was sent is written [default: table]
    #[arg(
        long,
        value_enum,
        default_value = "table",
        hide_default_value = true,
        help_heading = "Output"
    )]
    format: PushedFormat,
}

/// Sends counts.
///
/// # Errors
/// For flags, settings and states that can't be used; nothing is sent then.
pub(crate) async fn run(app: &App, flags: &PushCommand) -> Result<Exit> {
    let destination = flags.receiver.destination(&app.settings)?;
    let (pushed, exit) = match &flags.state {
        None => tokio::select! {
            exit = app.stop.asked() => return Ok(exit),
            done = once(app, flags, &destination) => done?,
        },
        Some(state) => {
            let plan = Plan {
                follow: &flags.what,
                destination: &destination,
                labels: &flags.labels,
                state,
            };
            sending::run(app, &plan).await?
        }
    };
    write(&pushed, flags.format)?;
    Ok(match exit {
        Exit::Fine if pushed.iter().any(is_short) => Exit::Response,
        exit => exit,
    })
}

/// Whether the receiver may lack counts that were sent.
fn is_short(pushed: &Pushed) -> bool {
    !pushed.report.rejected.is_empty() || pushed.report.unsure > 0
}

/// What became of a cluster's counts, and what is missing.
struct Sent {
    pushed: Pushed,
    has_gaps: bool,
    /// Why the receiver did not take everything.
    refused: Option<Exit>,
}

async fn once(
    app: &App,
    flags: &PushCommand,
    destination: &Destination,
) -> Result<(Vec<Pushed>, Exit)> {
    let query = QueryFlags {
        by: flags.what.by.clone(),
        only: flags.only.clone(),
    };
    let query = query.query()?;
    let options = options(flags, &query)?;
    let sessions = sessions(app)?;
    for (cluster, _) in &sessions {
        labels_of(&app.settings, cluster, &flags.labels)?;
    }
    let (sent, missing) = each(&sessions, |cluster, session| {
        let (options, query) = (options.clone(), query.clone());
        async move {
            send(
                app,
                flags,
                destination,
                (cluster, session),
                (options, query),
            )
            .await
        }
    })
    .await;
    for one in &missing {
        fail(app, &one.cluster, &one.failure);
    }
    let refused = sent.iter().find_map(|one| one.refused);
    let has_gaps = sent.iter().any(|one| one.has_gaps);
    let exit = match (refused, missing.first()) {
        (Some(exit), _) => exit,
        (None, Some(missing)) if sent.is_empty() => missing.failure.exit,
        (None, None) if !has_gaps => Exit::Fine,
        (None, _) => Exit::Missing,
    };
    Ok((sent.into_iter().map(|one| one.pushed).collect(), exit))
}

fn options(flags: &PushCommand, query: &Query) -> Result<CollectOptions> {
    let range = flags.what.closed(USUAL_SINCE, unix_ms())?;
    let mut given = Given::default();
    let mut set = |name: &str, raw: Raw| given.set(name, raw, Origin::Flag);
    set(
        "metric",
        Raw::Text(Metric::from(flags.what.metric).to_string()),
    );
    set("start", Raw::Text(range.start().to_string()));
    set("end", Raw::Text(range.end().to_string()));
    set("window", Raw::Text(flags.what.window.clone()));
    set(
        "dimensions",
        Raw::List(query.asked.iter().cloned().map(Raw::Text).collect()),
    );
    if let Some(settle) = flags.what.pacing.given.get("settle") {
        set("settle", settle.raw.clone());
    }
    let mut options: CollectOptions = given.read()?;
    options.keep = Keep::Step(flags.what.step()?);
    Ok(options)
}

async fn send(
    app: &App,
    flags: &PushCommand,
    destination: &Destination,
    (cluster, session): (Cluster, Rc<Session>),
    (options, query): (CollectOptions, Query),
) -> Result<Sent> {
    let (table, gaps, failure) = read(&session, options, &query).await?;
    if let Some(failure) = failure {
        fail(app, &cluster.name, &failure);
    }
    let series = Arc::new(table.by_window(Some(flags.what.step()?))?);
    let labels = labels_of(&app.settings, &cluster, &flags.labels)?;
    let export = Export::new(&series, &destination.export(&labels))?;
    for note in export.notes() {
        warn(app, &cluster.name, &note.message);
    }
    let mut push = Push::new(export, &destination.push(0))?;
    let mut carrier = destination.carrier(&app.voice)?;
    let carried = carrier
        .carry(&mut push, &Ending::new(), async |_| Ok(()))
        .await;
    let report = push.report().clone();
    for rejected in &report.rejected {
        warn(
            app,
            &cluster.name,
            format_args!("the receiver has rejected samples: {}", rejected.message),
        );
    }
    let refused = carried
        .err()
        .map(|failure| told(app, &cluster, failure, report.samples));
    Ok(Sent {
        pushed: Pushed {
            cluster: cluster.name,
            report,
        },
        has_gaps: !gaps.is_empty(),
        refused,
    })
}

fn told(app: &App, cluster: &Cluster, mut failure: Failure, samples: u64) -> Exit {
    failure.text = format!("{}; {samples} samples were taken before", failure.text);
    fail(app, &cluster.name, &failure);
    failure.exit
}
