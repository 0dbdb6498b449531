//! `tallyfold watch`: a live view of lost events.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use clap::Args;
use tallyfold::text;
use tallyfold::{
    CollectOptions, Counts, FollowOptions, Frame, Keep, Metric, Patience, Series, TimeStep, Window,
};
use tallyfold_health::Rules;
use tokio::sync::Notify;

use crate::app::{App, each};
use crate::arguments::declared::{Declared, Flags, Suggested, steps};
use crate::arguments::query::{MetricFlag, Query, QueryFlags, ranges, step};
use crate::failure::{Exit, Failure, Result};
use crate::health::files::rules as read_rules;
use crate::host::ranges::read;
use crate::host::session::unix_ms;
use crate::output::report::{Asked, Counted, Part, Report};
use crate::output::sink::{WriteError, write_to};
use crate::stderr::Stderr;
use crate::watch::draw;
use crate::watch::findings::{FindingLine, LiveRules, findings_in, simple};
use crate::watch::history::History;
use crate::watch::live::{Reader, Screen, Shared, run as show, window_of};
use crate::watch::state::{ClusterView, Order, State, Title};

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold watch
      A live view of the last three hours: integrations ranked by the events that they have lost.
  tallyfold watch --by integration,reason --since 12h --window 30m
  tallyfold watch --once --order change --top 10
      Prints the view once: the ten integrations whose errors have risen most.
";

/// The maximum number of windows in the view.
const MOST_WINDOWS: u64 = 1_000;

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct WatchFlags {
    /// Prints the view once, as text, and exits
    #[arg(long)]
    once: bool,
    /// How far back the view begins: 1h, 3h, 1d
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = Suggested(ranges), hide_possible_values = true)]
    since: String,
    /// The length of the windows: 5m, 15m, 1h
    #[arg(long, value_name = "STEP", default_value = "15m", value_parser = Suggested(steps), hide_possible_values = true)]
    window: String,
    /// The metric to count
    #[arg(long, value_enum, default_value = "delivery")]
    metric: MetricFlag,
    /// The initial order of rows
    #[arg(long, value_enum, value_name = "COLUMN", default_value = "errors")]
    order: Order,
    /// Shows only this many rows, the highest-ranking ones
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// A file with the rules whose findings the view shows [default: rules that fire if more than 10% of attempts fail, or if the
    /// error rate has risen]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    #[command(flatten)]
    query: QueryFlags,
    #[command(flatten)]
    following: Declared<Following>,
    #[command(flatten)]
    waiting: Declared<Waiting>,
}

/// The flags for reading each window when it has ended.
#[derive(Clone, Debug)]
pub(crate) struct Following;

impl Flags for Following {
    type Options = FollowOptions;

    const NAMES: &'static [&'static str] = &["delay_ms", "reread_ms", "settle_ms"];
    const HEADING: &'static str = "Reading";
}

/// The flags for reading many windows, and for outages.
#[derive(Clone, Debug)]
pub(crate) struct Waiting;

impl Flags for Waiting {
    type Options = CollectOptions;

    const NAMES: &'static [&'static str] = &["concurrency", "patience_ms"];
    const HEADING: &'static str = "Reading";
    const COMPUTED: &'static [(&'static str, &'static str)] =
        &[("patience_ms", "15m for the first reading, then without limit; 0s with --once")];
}

/// The validated query and options.
#[derive(Clone)]
struct Plan {
    metric: Metric,
    query: Query,
    step: TimeStep,
    windows: usize,
    follow: FollowOptions,
    collect: CollectOptions,
    range: Window,
    now_ms: i64,
}

/// Shows the live view. With `--once`, prints the view as text instead.
///
/// # Errors
/// For flags and settings that can't be used, and for a terminal that can't show the view.
pub(crate) async fn run(app: &App, flags: &WatchFlags) -> Result<Exit> {
    let plan = plan(flags, unix_ms())?;
    let rules = match &flags.rules {
        Some(path) => read_rules(Some(path))?,
        None => simple(plan.metric, &plan.query.by, plan.step)?,
    };
    let rules = Rc::new(rules);
    match flags.once {
        true => print(app, flags, &plan, &rules).await,
        false => live(app, flags, plan, &rules).await,
    }
}

async fn live(app: &App, flags: &WatchFlags, plan: Plan, rules: &Rc<Rules>) -> Result<Exit> {
    Screen::check()?;
    // Messages on stderr would overwrite the view, so turn them off.
    let silent = Rc::new(Stderr::silent());
    let sessions = app.loaded()?.clusters.iter().map(|cluster| {
        let mut session = app.session(cluster)?;
        session.stderr = Rc::clone(&silent);
        Ok(Rc::new(session))
    });
    let sessions = sessions.collect::<Result<Vec<_>>>()?;
    let shared = Rc::new(Shared {
        state: RefCell::new(state(app, flags, &plan)),
        changed: Notify::new(),
        wanted: sessions.iter().map(|_| Notify::new()).collect(),
    });
    let workers = usize::try_from(plan.collect.concurrency).unwrap_or(usize::MAX);
    let readers = sessions.iter().enumerate().map(|(position, session)| {
        let asked = (plan.follow.clone(), plan.query.clone());
        let rules = LiveRules::new(Rc::clone(rules), plan.metric);
        Reader::new(&shared, position, session, asked, (workers, rules))
    });
    let readers = readers.collect::<Result<Vec<_>>>()?;
    show(&shared, readers).await
}

async fn print(app: &App, flags: &WatchFlags, plan: &Plan, rules: &Rules) -> Result<Exit> {
    let sessions = app.sessions_of(&[])?;
    let (parts, missing) = each(&sessions, |cluster, session| {
        let (collect, query, step) = (plan.collect.clone(), plan.query.clone(), plan.step);
        async move {
            let (table, gaps, failure) = read(&session, collect, &query).await?;
            let findings = findings_in(rules, plan.metric, &table, unix_ms());
            let series = Arc::new(table.by_window(Some(step))?);
            let part = Part::new(&cluster, Counted::Series(series), gaps, failure);
            Ok((part, findings))
        }
    })
    .await;
    let (parts, findings): (Vec<Part>, Vec<Vec<FindingLine>>) = parts.into_iter().unzip();
    let report = Report {
        asked: Asked::new(plan.metric, &plan.query, plan.range, &plan.collect),
        parts,
        missing,
        is_named: app.settings.is_named,
    };
    app.fail_missing(&report);
    if !report.parts.is_empty() {
        let mut state = state(app, flags, plan);
        let parts = report.parts.iter().zip(findings);
        state.clusters = parts
            .map(|(part, findings)| {
                let mut view = view(plan, &part.cluster);
                fill(&mut view, part, unix_ms());
                ClusterView { findings, ..view }
            })
            .collect();
        write_to(None, |screen, out| {
            draw::print(&mut state, screen.width, out).map_err(WriteError::Io)
        })?;
    }
    Ok(report.exit())
}

/// Returns the view of a cluster before anything is read.
fn view(plan: &Plan, cluster: &str) -> ClusterView {
    let history = History::new(plan.step, plan.windows, plan.now_ms);
    ClusterView::new(cluster.to_owned(), history)
}

/// Fills a view with the counts and gaps of a cluster.
fn fill(view: &mut ClusterView, part: &Part, now_ms: i64) {
    let Counted::Series(series) = &part.found else {
        return;
    };
    for (id, of) in (0..).zip(series.windows()) {
        view.settle(of.window, rows(series, id), !of.provisional, now_ms);
        if !of.complete {
            view.history.fail(of.window, "part of it is missing".to_owned());
        }
    }
    for gap in &part.gaps {
        let is_in = |start: &i64| gap.start().unix_ms() <= *start && *start < gap.end().unix_ms();
        let starts: Vec<i64> = view.history.starts().filter(is_in).collect();
        for start in starts {
            let end = start + view.history.step_ms();
            if let Ok(window) = window_of(start, end) {
                // The error itself is on stderr.
                view.history.fail(window, "it could not be read".to_owned());
            }
        }
    }
}

fn rows(series: &Series, window: u32) -> impl Iterator<Item = (Vec<String>, Counts)> {
    let rows = series.rows();
    let ids = series.window_ids();
    let of_window = rows.filter(move |row| ids[row.index()] == window);
    of_window.map(|row| (row.values().map(str::to_owned).collect(), row.counts()))
}

/// Returns the view before anything is read.
fn state(app: &App, flags: &WatchFlags, plan: &Plan) -> State {
    let title = Title {
        metric: plan.metric,
        by: plan.query.by.clone(),
        only: flags.query.only.clone(),
        is_named: app.settings.is_named || app.settings.clusters.len() > 1,
    };
    let clusters = app.settings.clusters.iter();
    let views = clusters.map(|cluster| view(plan, &cluster.name)).collect();
    let mut state = State::new(title, views, flags.order, plan.now_ms);
    state.top = flags.top;
    state
}

fn plan(flags: &WatchFlags, now_ms: i64) -> Result<Plan> {
    let step = step("--window", &flags.window)?;
    let windows = windows(&flags.since, step)?;
    let metric = flags.metric.into();
    let query = flags.query.query()?;
    let range = |now_ms| {
        let span = History::new(step, windows, now_ms).span_ms();
        window_of(span.start, span.end)
    };
    let follow = FollowOptions::new(metric, range(now_ms)?.start(), &query.requested, step);
    let mut follow = flags.following.given.read_over(follow)?;
    let now_ms = now_ms.saturating_sub_unsigned(follow.delay_ms);
    let range = range(now_ms)?;
    let mut collect = query.collect(metric, range, &flags.waiting.given)?;
    if flags.waiting.given.get("patience").is_some() {
        follow.patience_ms = collect.patience_ms;
    } else if flags.once {
        // With `--once`, the user waits for the result, so do not wait out an outage.
        collect.patience_ms = Patience::Milliseconds(0);
    }
    collect.window = step;
    collect.finest = step.min(TimeStep::MINUTE);
    collect.keep = Keep::Step(step);
    collect.settle_ms = follow.settle_ms;
    Ok(Plan { metric, query, step, windows, follow, collect, range, now_ms })
}

/// Returns the number of windows in the time span of `--since`.
fn windows(since: &str, step: TimeStep) -> Result<usize> {
    let wanted = || {
        Failure::usage(format!(
            "--since: want a length of time such as 3h that spans at most {MOST_WINDOWS} windows of {step}, not {since:?}"
        ))
    };
    let ms = text::milliseconds(since).ok_or_else(wanted)?;
    let windows = ms.div_ceil(u64::from(step.seconds()) * 1_000);
    let windows = (1..=MOST_WINDOWS).contains(&windows).then_some(windows);
    windows.and_then(|windows| usize::try_from(windows).ok()).ok_or_else(wanted)
}
