//! `tallyfold run`: serves totals, and runs the parts that the configuration names: pushes, checks with their notifications, and
//! the dashboard. The process reads each window once for all parts.

use std::cell::{Cell, RefCell};
use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use futures_util::future::{OptionFuture, join_all, join3};
use hyper::body::Incoming;
use hyper::{Request, StatusCode};
use tallyfold::{Dimension, FollowOptions, Metric};
use tallyfold_export::{Scrape, Seconds};
use tokio::time::sleep;

use super::check::{Checking, Checks};
use super::dashboard::{Entry, EntryFlags, Opening, secret_text};
use super::push::destination::{Destination, DestinationFlags};
use super::push::follow::{Part, Plan, Progress};
use super::serve::exporter::Meter;
use super::serve::{ServingFlags, Site, Totals, answer, listening};
use crate::app::App;
use crate::config::settings::RunParts;
use crate::failure::{Exit, Failure, Result};
use crate::health::files::places_below;
use crate::host::server::{Server, plain};
use crate::host::session::unix_ms;
use crate::host::shared::{Reader, Readings};
use crate::host::shutdown::{Hangups, Shutdown, until_shut_down};

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold run --state /var/lib/tallyfold
      Serves totals, and runs the parts that the section [run] of the configuration names.
  tallyfold run --state /var/lib/tallyfold --by integration,reason --listen 0.0.0.0:9464
      The same for other machines, by more dimensions.
  curl http://127.0.0.1:9464/-/ready
      Readiness: 200 if windows settle, else 503. /-/healthy shows whether the process answers.
  kill -HUP PID
      Reads the configuration again. If any of it is invalid, nothing changes.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
The folder --state contains the totals (serve), the counts that each destination has not received
yet (push-NAME), and the state and the history of the rules (check, history). The section [check]
can name other places for the state and the history. A part that fails, such as a push to a
destination that is down, does not affect the other parts: run retries it without limit, and
/metrics shows the failure.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    serving: ServingFlags,
    /// The folder for the totals and for the states of all other parts
    #[arg(long, value_name = "PATH", help_heading = "Serving")]
    state: PathBuf,
    /// Resumes the push NAME at its new address in the configuration; needed only once after the destination has moved
    ///
    /// A reload does not accept another address.
    #[arg(long, value_name = "NAME", help_heading = "Pushes")]
    moved: Vec<String>,
    #[command(flatten)]
    entry: EntryFlags,
}

/// The pause before the next attempt to start the parts, if they could not start after a reload.
const RESTART_PAUSE: Duration = Duration::from_secs(10);

/// Runs until Ctrl-C or SIGTERM. After SIGHUP, loads the configuration again.
///
/// # Errors
/// For flags, settings and states that can't be used, and an address that can't be listened on.
pub(crate) async fn run(app: &App, flags: &RunCommand, hangups: Hangups) -> Result<Exit> {
    let (host, port) = listening(&flags.serving.listen)?;
    tokio::select! {
        exit = app.stop.asked() => return Ok(exit),
        () = app.loaded()?.read_secrets() => {}
    }
    let wanted = Wanted::of(app, flags)?;
    for name in &flags.moved {
        if !wanted.pushes.iter().any(|pushing| pushing.name == name) {
            return Err(Failure::usage(format!(
                "--moved {name}: the section [run] names no such push"
            )));
        }
    }
    let server = Server::listen(&host, port).await?;
    let mut process = Process {
        flags,
        moved: flags.moved.clone(),
        session: secret_text()?,
        url: Some(server.url()),
        hangups,
        site: Rc::default(),
        is_reloaded: Rc::new(Cell::new(true)),
    };
    let site = Rc::clone(&process.site);
    let handler = move |request: Request<Incoming>| {
        let starting = || match request.uri().path() {
            "/-/healthy" => plain(StatusCode::OK, "ok\n"),
            _ => plain(StatusCode::SERVICE_UNAVAILABLE, "starting\n"),
        };
        let site = site.borrow();
        let answer = site.as_ref().map(|site| answer(site, &request));
        std::future::ready(answer.unwrap_or_else(starting))
    };
    let mut exit = Ok(Exit::Fine);
    let work = async { exit = process.run(app).await };
    server.serve(handler, work).await;
    exit
}

/// A destination that gets the revisions of all clusters.
struct Pushing<'a> {
    /// The name of its section in the configuration.
    name: &'a str,
    destination: Destination,
    /// The file or folder with the samples that are not sent yet.
    state: PathBuf,
}

/// The parts that a configuration names, with validated settings. Their states are not open yet, because the parts of the
/// previous configuration may still use them.
struct Wanted<'a> {
    pushes: Vec<Pushing<'a>>,
    checking: Option<Checking<'a>>,
    /// The dashboard's address and port, and how it authenticates a browser.
    dashboard: Option<(&'a str, u16, Entry)>,
}

impl<'a> Wanted<'a> {
    fn of(app: &'a App, flags: &RunCommand) -> Result<Self> {
        let settings = app.loaded()?;
        let RunParts { push, check, dashboard, .. } = &settings.run;
        if push.is_empty() && !check && dashboard.is_none() {
            let file = settings.file.as_ref();
            let place = file.map_or("the configuration".into(), |file| file.to_string_lossy());
            return Err(Failure::usage(format!(
                "run: {place} names nothing to do; want push, check, notify or dashboard in a section [run]"
            ))
            .helped_by("tallyfold serve, which only serves totals"));
        }
        app.sessions()?;
        let pushing = |name: &'a String| {
            Ok(Pushing {
                name,
                destination: DestinationFlags::named(name).destination(settings, false)?,
                state: flags.state.join(format!("push-{name}")),
            })
        };
        let checking = check.then(|| Checking::new(app, &flags.state, &flags.serving.follow));
        let dashboard = dashboard.as_ref().map(|(host, port)| {
            let entry = flags.entry.read(("run.dashboard:", host), &app.stderr)?;
            // The dashboard prints its tokens to stdout. If stdout is not a terminal, it is usually a log.
            match matches!(entry, Entry::Token(_)) && !io::stdout().is_terminal() {
                true => Err(Failure::usage(
                    "run: the dashboard would print its token into a log; want --password-file FILE, or --trust-header NAME \
                     behind a proxy",
                )),
                false => Ok((host.as_str(), *port, entry)),
            }
        });
        Ok(Self {
            pushes: push.iter().map(pushing).collect::<Result<_>>()?,
            checking: checking.transpose()?,
            dashboard: dashboard.transpose()?,
        })
    }
}

/// What stays the same when another configuration replaces the current one.
struct Process<'a> {
    flags: &'a RunCommand,
    /// The names of the pushes whose destination may have moved; empty after the parts have begun once.
    moved: Vec<String>,
    /// The value of the dashboard's session cookie.
    session: String,
    /// The address of the server; `None` after it was written to stderr.
    url: Option<String>,
    hangups: Hangups,
    /// What the server needs to answer requests; `None` while no states are open.
    site: Rc<RefCell<Option<Rc<Site>>>>,
    /// Whether the last reload was successful.
    is_reloaded: Rc<Cell<bool>>,
}

/// How the work with one configuration ended.
enum Ended {
    Exit(Exit),
    /// A new configuration replaces the current one. These are its settings.
    Reloaded(Rc<App>),
}

impl Process<'_> {
    async fn run(&mut self, app: &App) -> Result<Exit> {
        let (mut app, mut previous) = (Rc::new(app.clone()), None);
        loop {
            match self.work(&app).await {
                Ok(Ended::Exit(exit)) => return Ok(exit),
                Ok(Ended::Reloaded(next)) => previous = Some(std::mem::replace(&mut app, next)),
                Err(failure) => match previous.take() {
                    Some(former) => {
                        app = former;
                        keep(&app, &self.is_reloaded, &failure);
                    }
                    // The first start has failed.
                    None if self.url.is_some() => return Err(failure),
                    // The parts have already run with this configuration, so try again: the cause may be temporary, such as a
                    // full disk.
                    None => {
                        let seconds = RESTART_PAUSE.as_secs();
                        app.stderr.error(format_args!("{failure}; retrying in {seconds} s"));
                        let flags = self.flags;
                        let hangups = (&mut self.hangups, &*self.is_reloaded);
                        let shutdown = Shutdown::new();
                        tokio::select! {
                            exit = app.stop.asked() => return Ok(exit),
                            () = sleep(RESTART_PAUSE) => {}
                            Some(next) = reloaded(&app, flags, hangups, &shutdown) => app = next,
                        }
                    }
                },
            }
        }
    }

    /// Runs what a configuration names, until a signal or a reload.
    async fn work(&mut self, app: &App) -> Result<Ended> {
        let flags = self.flags;
        let folder = &flags.state;
        std::fs::create_dir_all(folder)
            .map_err(|error| Failure::file("make the folder", folder, &error))?;
        let Wanted { pushes, mut checking, dashboard } = Wanted::of(app, flags)?;
        let follow = flags.serving.follow.options(None, unix_ms())?;
        let mut by = vec![(follow.metric, follow.dimensions.clone())];
        let follower = Reader { settle_ms: follow.settle_ms, looks_back: false };
        let mut readers = vec![follower; 1 + pushes.len()];
        if let Some(checking) = &mut checking {
            checking.try_states()?;
            by.extend(checking.by(follow.window));
            readers.push(Reader { looks_back: true, ..follower });
        }
        if dashboard.is_some() {
            // The dashboard has no flag for the settle time, so use the default.
            let usual = FollowOptions::new(follow.metric, follow.start, &[], follow.window);
            readers.push(Reader { settle_ms: usual.settle_ms, looks_back: true });
        }
        let (mut of_totals, mut of_checks, mut of_pages) = (Vec::new(), Vec::new(), Vec::new());
        let (mut parts, mut meters) = (Vec::new(), Vec::new());
        for (cluster, session) in app.sessions()? {
            let sharers = Readings::shared_by(&readers, united(&by)).into_iter();
            let mut own = sharers.map(|sharer| (cluster.clone(), session.shared(sharer)));
            of_totals.extend(own.next());
            for (pushing, own) in pushes.iter().zip(own.by_ref()) {
                let plan = Plan {
                    follow: &flags.serving.follow,
                    destination: &pushing.destination,
                    labels: &flags.serving.labels,
                    state: &pushing.state,
                    has_moved: self.moved.iter().any(|name| name == pushing.name),
                    name: Some(pushing.name),
                };
                let part = Part::new(app, plan, own).await?;
                let names = [cluster.name.clone(), pushing.name.to_owned()];
                meters.push((names, part.progress()));
                parts.push(part);
            }
            if checking.is_some() {
                let own = own.next();
                of_checks.extend(own.map(|(cluster, session)| (cluster, Ok(session))));
            }
            of_pages.extend(own.next());
        }
        let others = {
            let checks = checking.as_ref().map(Checking::checks);
            let is_reloaded = Rc::clone(&self.is_reloaded);
            move |scrape: &mut Scrape| {
                RELOADED.of(scrape).sample([], u8::from(is_reloaded.get()));
                for ([cluster, push], progress) in &meters {
                    add_push(scrape, [("cluster", cluster), ("push", push)], progress);
                }
                if let Some(checks) = &checks {
                    add_checks(scrape, checks);
                }
            }
        };
        let (state, others) = (folder.join("serve"), Box::new(others));
        let mut totals = Totals::open(app, &flags.serving, &state, of_totals, others).await?;
        let dashboard = match dashboard {
            None => None,
            Some((host, port, entry)) => {
                let opening = Opening {
                    entry,
                    hosts: &flags.serving.hosts,
                    places: &places_below(&app.settings.check, folder),
                    session: self.session.clone(),
                };
                let server = Server::listen(host, port);
                Some(opening.listen(of_pages, server).await?)
            }
        };
        self.moved.clear();
        self.site.replace(Some(Rc::clone(&totals.site)));
        match self.url.take() {
            Some(url) => app.stderr.note(format_args!("serving {url}/metrics")),
            None if self.is_reloaded.get() => {
                app.stderr.note("the configuration is loaded again");
            }
            // The former configuration is in use again.
            None => {}
        }
        totals.announce(app);
        if let Some(dashboard) = &dashboard {
            match io::stdout().is_terminal() {
                true => dashboard.print(),
                false => {
                    let address = dashboard.address();
                    app.stderr.note(format_args!("dashboard {address}"));
                }
            }
        }
        let shutdown = Shutdown::new();
        let work = async {
            let pushing = join_all(parts.iter_mut().map(|part| part.run(&shutdown)));
            let checking = checking.as_ref();
            let checking = checking.map(|checking| checking.run(&of_checks, &shutdown));
            let pages = dashboard.map(|dashboard| dashboard.serve(shutdown.begun()));
            let other_parts =
                join3(pushing, OptionFuture::from(checking), OptionFuture::from(pages));
            let reloaded = reloaded(app, flags, (&mut self.hangups, &self.is_reloaded), &shutdown);
            let (results, _, next) = join3(totals.run(app, &shutdown), other_parts, reloaded).await;
            (results, next)
        };
        let ended = until_shut_down(&app.stop, &shutdown, work).await;
        // Drop the site, which owns the states of the totals. The next configuration opens these states again.
        self.site.take();
        Ok(match ended {
            Err(exit) => Ended::Exit(exit),
            Ok((_, Some(next))) if shutdown.signal().is_none() => Ended::Reloaded(next),
            Ok((results, _)) => Ended::Exit(Exit::of_clusters(&results)),
        })
    }
}

/// Waits for a reload with a valid configuration, and then begins the shutdown. Returns the new settings, or `None` if the
/// shutdown began for another reason.
async fn reloaded(
    app: &App,
    flags: &RunCommand,
    (hangups, is_reloaded): (&mut Hangups, &Cell<bool>),
    shutdown: &Shutdown,
) -> Option<Rc<App>> {
    loop {
        shutdown.unless_begun(hangups.next()).await?;
        let next = async {
            let next = app.reloaded()?;
            next.settings.read_secrets().await;
            Wanted::of(&next, flags).map(drop)?;
            Ok(next)
        };
        match shutdown.unless_begun(next).await? {
            Ok(next) => {
                is_reloaded.set(true);
                shutdown.begin();
                return Some(Rc::new(next));
            }
            Err(failure) => keep(app, is_reloaded, &failure),
        }
    }
}

/// Reports that a new configuration can't be used and that `app` keeps its settings.
fn keep(app: &App, is_reloaded: &Cell<bool>, failure: &Failure) {
    is_reloaded.set(false);
    app.stderr.error(format_args!("the configuration stays as it was: {failure}"));
    app.stderr.suggest(failure);
}

/// Returns the union of the dimensions for each metric.
fn united(lists: &[(Metric, Vec<Dimension>)]) -> Vec<(Metric, Vec<Dimension>)> {
    let of = |metric: Metric| {
        let lists = lists.iter().filter(|(of, _)| *of == metric);
        let listed: Vec<Dimension> = lists.flat_map(|(_, by)| by.clone()).collect();
        let all = Dimension::ALL.iter().copied();
        (metric, all.filter(|one| listed.contains(one)).collect())
    };
    let metrics = [Metric::EventDelivery, Metric::EventIngestion].map(of);
    metrics.into_iter().filter(|(_, by): &(_, Vec<_>)| !by.is_empty()).collect()
}

const RELOADED: Meter = Meter::gauge(
    "tallyfold_run_last_reload_successful",
    "Whether the last reload of the configuration was successful: 1 or 0",
);

/// A metric of each push, and the function that computes its value. The function's second argument is the wall clock's time, in
/// milliseconds since 1970.
type PushMeter = (Meter, fn(&Progress, i64) -> i64);

const PUSHES: [PushMeter; 5] = [
    (
        Meter::gauge(
            "tallyfold_run_push_healthy",
            "1, or 0 after a failure until the destination accepts a revision",
        ),
        |progress, _| i64::from(progress.failures_in_a_row.get() == 0),
    ),
    (
        Meter::counter("tallyfold_run_push_failures", "How often the push has failed"),
        |progress, _| i64::try_from(progress.failures.get()).unwrap_or(i64::MAX),
    ),
    (
        Meter::counter(
            "tallyfold_run_push_unacknowledged_samples",
            "Samples that the destination did not acknowledge and that are not sent again",
        ),
        |progress, _| i64::try_from(progress.unacknowledged.get()).unwrap_or(i64::MAX),
    ),
    (
        Meter::counter("tallyfold_run_push_samples", "Samples that the destination has accepted"),
        |progress, _| i64::try_from(progress.samples.get()).unwrap_or(i64::MAX),
    ),
    (
        Meter::seconds(
            "tallyfold_run_push_waiting_seconds",
            "How long the current revision has waited for the destination to accept it; 0 if none waits",
        ),
        |progress, now_ms| {
            let since = progress.waiting_since.get();
            since.map_or(0, |since| now_ms.saturating_sub(since).max(0))
        },
    ),
];

fn add_push(scrape: &mut Scrape, labels: [(&str, &str); 2], progress: &Progress) {
    let now_ms = unix_ms();
    for (meter, value) in &PUSHES {
        let value = value(progress, now_ms);
        let family = meter.of(scrape);
        match meter.2 {
            "seconds" => family.sample(labels, Seconds(value)),
            _ => family.sample(labels, value),
        }
    }
}

const CHECK_HEALTHY: Meter = Meter::gauge(
    "tallyfold_run_check_healthy",
    "Whether the last check of each cluster read, judged and stored everything, and each receiver accepted its messages: 1 or 0",
);
const CHECK_FAILURES: Meter =
    Meter::counter("tallyfold_run_check_failures", "Failed checks of all clusters");
const CHECK_AGE: Meter = Meter::seconds(
    "tallyfold_run_check_age_seconds",
    "Time since the last successful check, or since the start or reload if none succeeded, for the cluster where this time is longest",
);
const INCIDENTS: Meter = Meter::gauge(
    "tallyfold_run_incidents",
    "Incidents that fire and are neither acknowledged nor silenced, by severity",
);

fn add_checks(scrape: &mut Scrape, checks: &Checks) {
    let family = CHECK_HEALTHY.of(scrape);
    if let Some(is_failing) = checks.is_failing() {
        family.sample([], u8::from(!is_failing));
    }
    CHECK_FAILURES.of(scrape).sample([], checks.failures.get());
    let family = CHECK_AGE.of(scrape);
    if let Some(succeeded) = checks.succeeded() {
        let age_ms = i64::try_from(succeeded.elapsed().as_millis());
        family.sample([], Seconds(age_ms.unwrap_or(i64::MAX)));
    }
    let family = INCIDENTS.of(scrape);
    for (cluster, severity, count) in checks.firing() {
        let labels = [("cluster", &*cluster), ("severity", severity.as_str())];
        family.sample(labels, count);
    }
}
