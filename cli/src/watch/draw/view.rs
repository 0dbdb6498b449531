//! Draws a state into a buffer, at any size.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use super::canvas::{Canvas, Look};
use super::text::{delivered, instant, minutes, number, percent, seconds, signed, window};
use super::{help, panel, table};
use crate::output::safe::{fit, harmless, width};
use crate::watch::history::{Line, Stage, Sums};
use crate::watch::state::{Mode, State};

/// The smallest screen that is drawn on: columns and rows.
const SMALLEST: (u16, u16) = (40, 10);

/// From this many rows on there is a panel below the table.
const TALL: u16 = 30;

/// Draws all of it.
pub(crate) fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let mut canvas = Canvas::new(buffer, area, look);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(&mut canvas);
        return;
    }
    let rows = state.rows();
    let top = head(state, &rows, &mut canvas);
    let below = area.height - 2;
    let panel = match area.height >= TALL {
        true => panel::height(state, area.height),
        false => 0,
    };
    table::draw(state, &rows, &mut canvas, top..below - panel);
    if panel > 0 {
        panel::draw(state, &rows, &mut canvas, below - panel..below);
    }
    status(state, &mut canvas, below);
    keys(state, &mut canvas, below + 1);
    if state.mode == Mode::Help {
        help::draw(&mut canvas);
    }
}

/// Draws what is printed once: no keys, no selection, all rows. Gives how many lines it takes.
pub(crate) fn draw_once(state: &State, look: Look, area: Rect, buffer: &mut Buffer) -> u16 {
    let mut canvas = Canvas::new(buffer, area, look);
    let rows = state.rows();
    let top = head(state, &rows, &mut canvas);
    let below = table::draw(state, &rows, &mut canvas, top..area.height);
    let lines = match status_text(state).is_some() || !legend(state).is_empty() {
        true => {
            status(state, &mut canvas, below);
            below + 1
        }
        false => below,
    };
    lines.min(area.height)
}

/// How many lines the printed view takes at most, beside its rows.
pub(crate) const AROUND: u16 = 8;

fn too_small(canvas: &mut Canvas<'_>) {
    let (columns, rows) = SMALLEST;
    let is = format!("{}x{}", canvas.area.width, canvas.area.height);
    let lines = [
        "Too small:".to_owned(),
        is,
        format!("Want {columns}x{rows}"),
        "q quits".to_owned(),
    ];
    for (y, line) in (0..).zip(&lines) {
        canvas.left(y, line, canvas.look.plain());
    }
}

/// Draws the first lines and gives the number of the next.
fn head(state: &State, rows: &[&Line], canvas: &mut Canvas<'_>) -> u16 {
    let cluster = state.cluster();
    canvas.both(
        0,
        (&title(state), canvas.look.title()),
        (&clusters(state, canvas.columns() / 2), canvas.look.plain()),
    );
    let span = cluster.history.span_ms();
    let windows = format!(
        "{} – {} UTC, {} windows of {}",
        instant(span.start),
        minutes(span.end),
        cluster.history.starts().len(),
        cluster.history.step()
    );
    let read = match cluster.read_ms {
        None => "not read yet".to_owned(),
        Some(ms) => format!("read {}", seconds(ms)),
    };
    let plain = canvas.look.plain();
    canvas.both(1, (&windows, plain), (&read, plain));
    let stages = cluster.history.stages();
    let is_read = |stage: &&Stage| matches!(stage, Stage::Provisional | Stage::Settled);
    let missing = match stages.iter().filter(is_read).count() {
        known if known == stages.len() => String::new(),
        known => format!("{known}/{} windows", stages.len()),
    };
    canvas.both(2, (&sums(state, rows), plain), (&missing, plain));
    match state.mode == Mode::Filter || !state.filter.is_empty() {
        true => {
            filter(state, rows, canvas);
            4
        }
        false => 3,
    }
}

fn title(state: &State) -> String {
    let title = &state.title;
    let by = match title.by.is_empty() {
        true => String::new(),
        false => format!(" by {}", title.by.join(", ")),
    };
    let only = match title.only.is_empty() {
        true => String::new(),
        false => format!(" where {}", harmless(&title.only.join(", "))),
    };
    format!("tallyfold watch: {}{by}{only}", title.metric)
}

/// The names of the clusters if there is room for them, otherwise the one that is shown.
fn clusters(state: &State, room: usize) -> String {
    if !state.title.is_named {
        return String::new();
    }
    let names = (0..).zip(&state.clusters).map(|(position, cluster)| {
        let sign = if cluster.is_troubled() { "!" } else { "" };
        let name = harmless(&cluster.name);
        match position == state.current {
            true => format!("[{name}{sign}]"),
            false => format!("{name}{sign}"),
        }
    });
    let all = names.collect::<Vec<_>>().join(" ");
    if width(&all) <= room {
        return all;
    }
    let place = format!(" {} of {}", state.current + 1, state.clusters.len());
    let name = harmless(&state.cluster().name);
    format!(
        "{}{place}",
        fit(&name, room.saturating_sub(place.len()).max(4))
    )
}

fn sums(state: &State, rows: &[&Line]) -> String {
    let mut sums = Sums::default();
    let mut change = Some(0);
    for row in rows {
        sums.success += row.sums.success;
        sums.errors += row.sums.errors;
        sums.filtered += row.sums.filtered;
        change = change
            .zip(row.change)
            .map(|(change, more): (i128, i128)| change + more);
    }
    let change = match (change, rows.is_empty()) {
        (Some(change), false) => format!(" ({})", signed(change)),
        _ => String::new(),
    };
    format!(
        "errors {}{change}  filtered {}  {} {}  {}",
        number(sums.errors),
        number(sums.filtered),
        delivered(state.title.metric),
        number(sums.success),
        percent(sums.error_rate())
    )
}

fn filter(state: &State, rows: &[&Line], canvas: &mut Canvas<'_>) {
    let cursor = if state.mode == Mode::Filter { "_" } else { "" };
    let text = format!("filter: {}{cursor}", harmless(&state.filter));
    let all = state.cluster().history.lines().len();
    let shown = format!("{} of {all} rows", rows.len());
    canvas.both(
        3,
        (&text, canvas.look.title()),
        (&shown, canvas.look.plain()),
    );
}

fn status(state: &State, canvas: &mut Canvas<'_>, y: u16) {
    let (text, is_bad) = status_text(state).unwrap_or_default();
    let style = match is_bad {
        true => canvas.look.bad(),
        false => canvas.look.plain(),
    };
    // What is wrong needs the room.
    let legend = match is_bad {
        true => String::new(),
        false => legend(state),
    };
    canvas.both(y, (&text, style), (&legend, canvas.look.plain()));
}

/// What is said of the cluster, and whether it is bad.
fn status_text(state: &State) -> Option<(String, bool)> {
    let cluster = state.cluster();
    let step_ms = cluster.history.step_ms();
    if let Some(outage) = &cluster.outage {
        let left_ms = outage.next_ms.saturating_sub(state.now_ms).max(0);
        let seconds = left_ms.unsigned_abs().div_ceil(1_000);
        let next = match seconds {
            0 => "trying again".to_owned(),
            seconds => format!("next try in {seconds} s"),
        };
        return Some((format!("! {}; {next}", outage.text), true));
    }
    if let Some((start, text)) = cluster.history.failure() {
        let window = window(start, start + step_ms);
        return Some((format!("! {window}: {}", harmless(text)), true));
    }
    if let Some(first) = cluster.findings.first() {
        let more = match cluster.findings.len() - 1 {
            0 => String::new(),
            more => format!(" (+{more} more)"),
        };
        return Some((format!("{}{more}", harmless(&first.text)), first.is_bad));
    }
    let correction = cluster.correction?;
    let window = window(correction.start_ms, correction.start_ms + step_ms);
    let errors = signed(correction.errors);
    Some((format!("{window} corrected: {errors} errors"), false))
}

/// The signs above the windows that are in use.
fn legend(state: &State) -> String {
    let stages = state.cluster().history.stages();
    let signs = [
        (Stage::Provisional, "~ may still change"),
        (Stage::Failed, "! not read"),
    ];
    let used = signs
        .iter()
        .filter(|(stage, _)| stages.contains(stage))
        .map(|(_, text)| *text);
    used.collect::<Vec<_>>().join("  ")
}

/// The keys, as many as there is room for.
fn keys(state: &State, canvas: &mut Canvas<'_>, y: u16) {
    let all: &[&str] = match state.mode {
        Mode::Filter => &["Enter keep", "Esc clear", "Ctrl-C quit"],
        Mode::Help => &["any key closes the help"],
        Mode::Rows => &[
            "q quit",
            "? help",
            "↑↓ move",
            "s sort",
            "/ filter",
            "r read now",
            "c cluster",
        ],
    };
    let is_alone = state.clusters.len() < 2;
    let mut text = String::new();
    for key in all {
        let longer = match text.is_empty() {
            true => (*key).to_owned(),
            false => format!("{text}  {key}"),
        };
        let is_useless = is_alone && *key == "c cluster";
        if !is_useless && width(&longer) <= canvas.columns() {
            text = longer;
        }
    }
    canvas.left(y, &text, canvas.look.keys());
}
