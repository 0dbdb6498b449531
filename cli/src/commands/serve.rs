//! `tallyfold serve`: serves running totals of settled windows to scrapes.

mod dashboards;
pub(super) mod exporter;

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use clap::{ArgGroup, Args};
use futures_util::future::join_all;
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::{Method, Request, Response, StatusCode};
use tallyfold::Timestamp;
use tallyfold_export::{ExportOptions, Format, Ledger, Names, Scrape, ScrapeFormat};
use tokio::sync::Semaphore;

use self::dashboards::{Board, Subject};
use self::exporter::{BUILD, Exporter, Meters, SCRAPE_ERRORS};
use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::following::FollowFlags;
use crate::arguments::given::listen_address;
use crate::arguments::query::{dimensions_in, length};
use crate::config::settings::{Cluster, labels_of};
use crate::failure::{Exit, Result};
use crate::host::ranges::Following;
use crate::host::server::{
    Answer, Server, encode, host_name, is_for, packed, plain, takes_gzip, whole, with_permit,
};
use crate::host::session::{Session, unix_ms};
use crate::host::shutdown::{Shutdown, until_shut_down};
use crate::host::state::StateFile;
use crate::output::sink::write_to;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold serve --state totals.json
      Counts from now on, and serves http://127.0.0.1:9464/metrics.
  tallyfold serve --state /var/lib/tallyfold --by integration,reason --listen 0.0.0.0:9464
      The same for other machines and for several clusters: the folder contains a file for each cluster.
  curl http://127.0.0.1:9464/healthz
      Health check: 200 if windows settle, else 503.
  tallyfold serve --by integration,reason --dashboard grafana > dashboard.json
  tallyfold serve --by integration,reason --rules > tallyfold.rules.yml
      Prints a Grafana dashboard, or alert and recording rules for Prometheus, for these counts.
";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
#[command(group = ArgGroup::new("work").required(true).args(["state", "dashboard", "rules"]))]
pub(crate) struct ServeCommand {
    #[command(flatten)]
    serving: ServingFlags,
    /// Where to store the totals: a file, or a folder with a file for each named cluster
    ///
    /// Totals are stored before a scrape sees them, so a counter never goes down, even after a crash.
    #[arg(long, value_name = "PATH", help_heading = "Serving")]
    state: Option<PathBuf>,
    /// Prints a dashboard for these counts, and exits
    #[arg(long, value_enum, value_name = "KIND", help_heading = "Printing")]
    dashboard: Option<Board>,
    /// Prints Prometheus alert and recording rules for these counts, and exits
    #[arg(long, help_heading = "Printing")]
    rules: bool,
}

/// The flags for what to serve, and where.
#[derive(Args, Clone, Debug)]
pub(crate) struct ServingFlags {
    /// The address and port to listen on; port 0 selects a free one, and 0.0.0.0 accepts connections from other machines
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9464",
        help_heading = "Serving"
    )]
    pub(super) listen: String,
    /// Reports unhealthy if no window settles for this long [default: --settle plus --delay plus twice --window or --reread,
    /// whichever is longer]
    #[arg(long, value_name = "TIME", help_heading = "Serving")]
    stale_after: Option<String>,
    /// Accepts only requests for this hostname, such as metrics.example; may be repeated [default: any hostname]
    ///
    /// This prevents web pages from reading the totals by DNS rebinding.
    #[arg(long = "allow-host", value_name = "NAME", value_parser = host_name, help_heading = "Serving")]
    pub(super) hosts: Vec<String>,
    /// A label for each total, such as env=production; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", help_heading = "Serving")]
    pub(super) labels: Vec<String>,
    #[command(flatten)]
    export: Declared<ExportFlags>,
    #[command(flatten)]
    pub(super) follow: FollowFlags,
}

impl ServingFlags {
    /// Returns the prefix of the counts' names, if the user has set one.
    fn stem(&self) -> Result<Option<String>> {
        let export = ExportOptions::with_defaults(Format::OpenMetrics);
        Ok(self.export.given.read_over(export)?.name)
    }
}

/// The flags for the names of totals.
#[derive(Clone, Debug)]
struct ExportFlags;

impl Flags for ExportFlags {
    type Options = ExportOptions;

    const NAMES: &'static [&'static str] = &["name"];
    const HEADING: &'static str = "Serving";
}

/// What the server needs to answer requests.
pub(super) struct Site {
    exporters: Vec<Exporter>,
    /// Adds the metrics of the process's other parts to a scrape.
    others: Box<dyn Fn(&mut Scrape)>,
    stale_ms: u64,
    /// The number of scrapes that could not be answered.
    scrape_errors: Cell<u64>,
    /// The hosts that requests may be for; empty for any.
    hosts: Vec<String>,
    /// The current documents, one for each format and encoding. Scrapes share them.
    rendered: RefCell<Vec<Rendered>>,
    /// The permits for scrapes. A scrape holds one until its response is sent.
    scrapes: Arc<Semaphore>,
}

/// The maximum number of scrapes that are answered at the same time.
const MOST_SCRAPES: usize = 32;

/// For how many milliseconds scrapes share a document, as long as no total changes.
const SHARED_MS: u64 = 1_000;

/// A document with all metrics, as scrapes get it.
struct Rendered {
    format: ScrapeFormat,
    is_packed: bool,
    at_ms: u64,
    /// How often totals had changed when the document was rendered.
    changes: u64,
    bytes: Bytes,
}

/// Serves totals until Ctrl-C or SIGTERM. With `--dashboard` or `--rules`, only prints a dashboard or rules.
///
/// # Errors
/// For flags, settings and states that can't be used, an address that can't be listened on, and a stdout that can't be written.
pub(crate) async fn run(app: &App, flags: &ServeCommand) -> Result<Exit> {
    let Some(state) = &flags.state else {
        return print(flags);
    };
    let flags = &flags.serving;
    let (host, port) = listening(&flags.listen)?;
    let mut totals = Totals::open(app, flags, state, app.sessions()?, Box::new(|_| ())).await?;
    let server = Server::listen(&host, port).await?;
    app.stderr.note(format_args!("serving {}/metrics", server.url()));
    totals.announce(app);
    let shutdown = Shutdown::new();
    let mut results = Vec::new();
    let site = Rc::clone(&totals.site);
    let work = async { results = totals.run(app, &shutdown).await };
    let handler = move |request| std::future::ready(answer(&site, &request));
    let served = until_shut_down(&app.stop, &shutdown, server.serve(handler, work)).await;
    Ok(match served {
        Err(exit) => exit,
        Ok(()) => Exit::of_clusters(&results),
    })
}

/// Reads the address and port of `--listen`.
///
/// # Errors
/// For a text that is not an address with a port.
pub(super) fn listening(listen: &str) -> Result<(String, u16)> {
    listen_address(format_args!("--listen {listen}"), listen)
}

/// The running totals of all clusters.
pub(super) struct Totals {
    /// What the server needs to answer requests.
    pub(super) site: Rc<Site>,
    followings: Vec<Following>,
    /// Roughly when the first counters appear; `None` if every cluster has counters.
    first: Option<Timestamp>,
}

impl Totals {
    /// Opens the states of all clusters. `others` adds the metrics of the process's other parts to a scrape.
    ///
    /// # Errors
    /// For flags, settings and states that can't be used.
    pub(super) async fn open(
        app: &App,
        flags: &ServingFlags,
        state: &Path,
        sessions: Vec<(Cluster, Rc<Session>)>,
        others: Box<dyn Fn(&mut Scrape)>,
    ) -> Result<Self> {
        let stale_ms = stale_ms(flags)?;
        let (mut exporters, mut followings) = (Vec::new(), Vec::new());
        for (cluster, session) in sessions {
            let (exporter, following) = begin(app, flags, state, &cluster, session).await?;
            exporters.push(exporter);
            followings.push(following);
        }
        let is_new = |one: &Exporter| one.ledger.borrow().settled_until().is_none();
        let first = match exporters.iter().any(is_new) {
            true => first_settled(flags)?,
            false => None,
        };
        let site = Rc::new(Site {
            exporters,
            others,
            stale_ms,
            scrape_errors: Cell::new(0),
            hosts: flags.hosts.clone(),
            rendered: RefCell::default(),
            scrapes: Arc::new(Semaphore::new(MOST_SCRAPES)),
        });
        Ok(Self { site, followings, first })
    }

    /// Writes a note about when the first counters appear.
    pub(super) fn announce(&self, app: &App) {
        if let Some(first) = self.first {
            let text =
                format_args!("the first counters appear when a window is settled, about {first}");
            app.stderr.note(text);
        }
    }

    /// Adds up settled windows until the shutdown begins. If the totals of one cluster can't continue, begins the shutdown,
    /// because scrapes would otherwise show these totals as current. Returns for each cluster the exit code of its failure, or
    /// `None` if it has not failed.
    pub(super) async fn run(&mut self, app: &App, shutdown: &Shutdown) -> Vec<Option<Exit>> {
        let followings = std::mem::take(&mut self.followings);
        let runs = self.site.exporters.iter().zip(followings);
        join_all(runs.map(|(exporter, following)| async {
            let result = exporter.run(app, following, shutdown).await;
            match &result {
                Ok(()) => shutdown.begun().await,
                Err(_) => shutdown.begin(),
            }
            app.fail_if(&exporter.name, result)
        }))
        .await
    }
}

/// Prints a dashboard or rules.
///
/// # Errors
/// For flags that can't be used, and if stdout can't be written.
fn print(flags: &ServeCommand) -> Result<Exit> {
    let metric = flags.serving.follow.metric.into();
    let dimensions = dimensions_in(&flags.serving.follow.by)?;
    let stem = flags.serving.stem()?;
    let subject = Subject {
        metric,
        names: Names::new(metric, &dimensions, stem.as_deref())?,
        dimensions,
        window: flags.serving.follow.step()?.to_string(),
    };
    let text = match flags.dashboard {
        Some(board) => subject.board(board),
        None => subject.rules(),
    };
    write_to(None, |_, out| Ok(out.write_all(text.as_bytes())?))?;
    Ok(Exit::Fine)
}

/// Returns when a follow that begins now settles its first window.
fn first_settled(flags: &ServingFlags) -> Result<Option<Timestamp>> {
    let now_ms = unix_ms();
    let options = flags.follow.options(None, now_ms)?;
    let end = options.window.after(flags.follow.start(now_ms)?);
    let settled = end.and_then(|end| end.unix_ms().checked_add_unsigned(options.settle_ms));
    Ok(settled.and_then(|ms| whole_second(ms.max(now_ms))))
}

/// Rounds a time up to a whole second, which is easier to read.
fn whole_second(unix_ms: i64) -> Option<Timestamp> {
    let rest_ms = (-unix_ms).rem_euclid(1000);
    Timestamp::from_unix_ms(unix_ms.checked_add(rest_ms)?)
}

async fn begin(
    app: &App,
    flags: &ServingFlags,
    state: &Path,
    cluster: &Cluster,
    session: Rc<Session>,
) -> Result<(Exporter, Following)> {
    let labels = labels_of(&app.settings, cluster, &flags.labels)?;
    let file = StateFile::of_cluster(state, &app.settings, cluster)?;
    let mut ledger = file.load(Ledger::from_json)?;
    let clock = session.clock;
    // After a failed reload, the session and its clock are older than this exporter, so begin at the clock's time and not at 0.
    let meters = Rc::new(RefCell::new(Meters::new(clock.now().monotonic_ms)));
    let measured = Rc::clone(&meters);
    session.watch(Box::new(move |attempt| {
        measured.borrow_mut().take(attempt, clock.now().monotonic_ms);
    }));
    let options = flags.follow.options(ledger.state(), unix_ms())?;
    let following = Following::new(session, &options, Some(&file))?;
    let stem = flags.stem()?;
    // Report invalid labels and names now, not in a scrape.
    ledger.add_to(&mut Scrape::default(), &labels, stem.as_deref())?;
    ledger.begin(following.state());
    // If the state can't be written, fail now and not after the first window.
    let stored = file.replace(ledger.to_json()).await;
    stored.map_err(|failure| failure.helped_by("another --state, where this user can write"))?;
    let exporter = Exporter {
        name: cluster.name.clone(),
        is_named: app.settings.is_named,
        labels,
        stem,
        file,
        ledger: RefCell::new(ledger),
        changes: Cell::new(0),
        clock,
        meters,
    };
    Ok((exporter, following))
}

/// Returns how many milliseconds without a settled window make a cluster unhealthy.
fn stale_ms(flags: &ServingFlags) -> Result<u64> {
    if let Some(time) = &flags.stale_after {
        return length("--stale-after", time, "such as 2h", 0);
    }
    let options = flags.follow.options(None, unix_ms())?;
    // A window settles only when it is read again after its settle time. Up to `reread_ms` can pass before that.
    let window_ms = u64::from(options.window.seconds()) * 1000;
    let reread_ms = options.reread_ms.unwrap_or(window_ms).max(window_ms);
    let pauses_ms = reread_ms.saturating_mul(2);
    Ok(pauses_ms.saturating_add(options.settle_ms).saturating_add(options.delay_ms))
}

/// Returns the response to a request.
pub(super) fn answer(site: &Site, request: &Request<Incoming>) -> Answer {
    if !site.hosts.is_empty() && !is_for(&site.hosts, request.headers()) {
        return plain(
            StatusCode::MISDIRECTED_REQUEST,
            "This server does not answer for that host.\n",
        );
    }
    let path = request.uri().path();
    let paths = ["/", "/metrics", "/healthz", "/-/healthy", "/-/ready"];
    if !paths.contains(&path) {
        return plain(StatusCode::NOT_FOUND, "Want /metrics or /healthz.\n");
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, "Want GET or HEAD.\n");
        refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refusal;
    }
    match path {
        "/metrics" => metrics(site, request),
        "/healthz" | "/-/ready" => health(site),
        "/-/healthy" => plain(StatusCode::OK, "ok\n"),
        _ => {
            plain(StatusCode::OK, "tallyfold: /metrics for scrapes, /healthz for health checks.\n")
        }
    }
}

fn metrics(site: &Site, request: &Request<Incoming>) -> Answer {
    let accept = request.headers().get_all(ACCEPT).iter();
    let format = wanted(accept.filter_map(|value| value.to_str().ok()));
    let is_packed = takes_gzip(request.headers());
    let Ok(permit) = Arc::clone(&site.scrapes).try_acquire_owned() else {
        let mut busy = plain(StatusCode::SERVICE_UNAVAILABLE, "Too many scrapes at once.\n");
        busy.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        return busy;
    };
    let bytes = match rendered(site, format, is_packed) {
        Ok(bytes) => bytes,
        Err(text) => return plain(StatusCode::INTERNAL_SERVER_ERROR, text),
    };
    let mut response = Response::new(whole(with_permit(bytes, permit)));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(format.media_type()));
    encode(headers, "accept, accept-encoding", is_packed);
    response
}

/// Returns the document with all metrics. Scrapes within [`SHARED_MS`] share it if no total changes in between.
///
/// # Errors
/// The text of the response if the metrics can't be written.
fn rendered(site: &Site, format: ScrapeFormat, is_packed: bool) -> Result<Bytes, String> {
    let clock = site.exporters.first().map(|exporter| exporter.clock);
    let at_ms = clock.map_or(0, |clock| clock.now().monotonic_ms);
    let changes: u64 = site.exporters.iter().map(|one| one.changes.get()).sum();
    let mut all = site.rendered.borrow_mut();
    all.retain(|one| one.changes == changes && at_ms.saturating_sub(one.at_ms) < SHARED_MS);
    let is_it = |one: &&Rendered| (one.format, one.is_packed) == (format, is_packed);
    if let Some(found) = all.iter().find(is_it) {
        return Ok(found.bytes.clone());
    }
    let text = text(site, format)?;
    let bytes = match is_packed {
        true => Bytes::from(packed(text.as_bytes())),
        false => text.into(),
    };
    all.push(Rendered { format, is_packed, at_ms, changes, bytes: bytes.clone() });
    Ok(bytes)
}

fn text(site: &Site, format: ScrapeFormat) -> Result<String, String> {
    let mut scrape = Scrape::default();
    for exporter in &site.exporters {
        if let Err(error) = exporter.add_totals(&mut scrape) {
            site.scrape_errors.set(site.scrape_errors.get() + 1);
            return Err(format!("{}: {}\n", exporter.name, error.message()));
        }
    }
    for exporter in &site.exporters {
        exporter.add_meters(&mut scrape, site.stale_ms);
    }
    (site.others)(&mut scrape);
    let errors = site.scrape_errors.get();
    SCRAPE_ERRORS.of(&mut scrape).sample([], errors);
    let version = ("version", env!("CARGO_PKG_VERSION"));
    BUILD.of(&mut scrape).sample([version], 1);
    scrape.leave_out_empty();
    Ok(scrape.text(format))
}

/// Returns the format for these values of `Accept`: OpenMetrics if its quality is above 0 and not below the quality of plain
/// text.
fn wanted<'a>(accept: impl Iterator<Item = &'a str>) -> ScrapeFormat {
    let (mut open, mut plain) = (0.0, 0.0);
    for range in accept.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let (mut quality, mut is_known) = (1.0, true);
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            match name.trim() {
                "q" => quality = value.trim().parse().unwrap_or(0.0),
                "version" => is_known = matches!(value.trim(), "0.0.1" | "1.0.0" | "0.0.4"),
                _ => {}
            }
        }
        match kind.as_str() {
            "application/openmetrics-text" if is_known => open = f64::max(open, quality),
            "text/plain" => plain = f64::max(plain, quality),
            _ => {}
        }
    }
    match open > 0.0 && open >= plain {
        true => ScrapeFormat::OpenMetrics,
        false => ScrapeFormat::Prometheus,
    }
}

fn health(site: &Site) -> Answer {
    let complaint = |one: &Exporter| {
        let text = one.complaint(site.stale_ms)?;
        Some(match one.is_named {
            true => format!("{}: {text}", one.name),
            false => text,
        })
    };
    let complaints: Vec<String> = site.exporters.iter().filter_map(complaint).collect();
    match complaints.is_empty() {
        true => plain(StatusCode::OK, "ok\n"),
        false => plain(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", complaints.join("; "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_rounded_up_to_whole_seconds() {
        for (ms, text) in [
            (1_767_225_600_000, "2026-01-01T00:00:00Z"),
            (1_767_225_600_001, "2026-01-01T00:00:01Z"),
            (1_767_225_600_999, "2026-01-01T00:00:01Z"),
        ] {
            assert_eq!(whole_second(ms).unwrap().to_string(), text);
        }
    }

    #[test]
    fn the_scraper_selects_the_format() {
        let prometheus = "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,\
                          text/plain;version=0.0.4;q=0.5,*/*;q=0.1";
        for (accept, media) in [
            (prometheus, ScrapeFormat::OpenMetrics),
            // What VictoriaMetrics, curl and a browser send.
            ("text/plain;version=0.0.4;q=1,*/*;q=0.1", ScrapeFormat::Prometheus),
            ("*/*", ScrapeFormat::Prometheus),
            ("text/html,application/xhtml+xml,*/*;q=0.8", ScrapeFormat::Prometheus),
            ("", ScrapeFormat::Prometheus),
            ("application/openmetrics-text; version=2.0.0", ScrapeFormat::Prometheus),
            ("application/openmetrics-text;q=0", ScrapeFormat::Prometheus),
            ("application/openmetrics-text;q=0.3,text/plain;q=0.5", ScrapeFormat::Prometheus),
            ("Application/OpenMetrics-Text", ScrapeFormat::OpenMetrics),
        ] {
            assert_eq!(wanted([accept].into_iter()), media, "{accept}");
        }
    }
}
