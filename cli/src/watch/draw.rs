//! Draws the live view into a buffer of any size, or prints it as text. The view has a head, a table, a panel, a status line,
//! a line of keys, and the help.

use std::io::{self, Write};

use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Text;
use ratatui::widgets::{Block, Clear, Padding, Paragraph, Widget};

use self::text::{
    KEYS, PLAIN, TITLE, both, cut, delivered, instant, left, line_of, minutes, number, percent,
    seconds, signed, window,
};
use crate::arguments::query::joined;
use crate::output::safe::{escaped, fit, width};
use crate::watch::history::{Line, Stage, Sums};
use crate::watch::state::{Mode, State};

mod table;
mod text;

pub(crate) use self::text::Look;

/// The minimum size of the screen: columns and rows.
const SMALLEST: (u16, u16) = (40, 10);

/// A screen with at least this many rows shows a panel below the table.
const TALL: u16 = 30;

/// Draws the whole view.
pub(crate) fn draw(state: &State, look: Look, area: Rect, buffer: &mut Buffer) {
    let area = area.intersection(buffer.area);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(area, buffer);
        return;
    }
    let rows = state.rows();
    let panel_height = match area.height >= TALL {
        true => table::panel_height(state, area.height),
        false => 0,
    };
    let [head_area, table_area, panel_area, status_line, keys_line] = Layout::vertical([
        Constraint::Length(head_height(state)),
        Constraint::Fill(1),
        Constraint::Length(panel_height),
        Constraint::Length(1),
        Constraint::Length(1),
    ])
    .areas(area);
    head(state, &rows, head_area, buffer);
    table::draw(state, &rows, look, table_area, buffer);
    if panel_height > 0 {
        table::draw_panel(state, &rows, look, panel_area, buffer);
    }
    status(state, look, status_line, buffer);
    left(keys_line, &keys(state, area.width.into()), KEYS, buffer);
    if state.mode == Mode::Help {
        help(area, buffer);
    }
}

/// Draws the view for printing: all rows, without keys or a selection. Returns the number of lines.
fn draw_once(state: &State, look: Look, area: Rect, buffer: &mut Buffer) -> u16 {
    let rows = state.rows();
    let [head_area, body] =
        Layout::vertical([Constraint::Length(head_height(state)), Constraint::Fill(1)]).areas(area);
    head(state, &rows, head_area, buffer);
    let below = head_area.height + table::draw(state, &rows, look, body, buffer);
    let lines = match status_text(state).is_some() || !legend(state).is_empty() {
        true => {
            status(state, look, line_of(area, below), buffer);
            below + 1
        }
        false => below,
    };
    lines.min(area.height)
}

/// The maximum number of lines of the printed view besides the rows of its table.
const AROUND: u16 = 8;

fn too_small(area: Rect, buffer: &mut Buffer) {
    let (columns, rows) = SMALLEST;
    let lines = [
        "Too small:".to_owned(),
        format!("{}x{}", area.width, area.height),
        format!("Want {columns}x{rows}"),
        "q quits".to_owned(),
    ];
    let lines = lines.map(|line| cut(&line, area.width.into()));
    Text::from_iter(lines).render(area, buffer);
}

/// Returns the height of the head: three lines, and a fourth one for a filter.
fn head_height(state: &State) -> u16 {
    match is_filtering(state) {
        true => 4,
        false => 3,
    }
}

fn is_filtering(state: &State) -> bool {
    state.mode == Mode::Filter || !state.filter.is_empty()
}

fn head(state: &State, rows: &[&Line], area: Rect, buffer: &mut Buffer) {
    let cluster = state.cluster();
    let names = clusters(state, usize::from(area.width) / 2);
    both(line_of(area, 0), (&title(state), TITLE), (&names, PLAIN), buffer);
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
    both(line_of(area, 1), (&windows, PLAIN), (&read, PLAIN), buffer);
    let stages = cluster.history.stages();
    let is_read = |stage: &&Stage| matches!(stage, Stage::Provisional | Stage::Settled);
    let missing = match stages.iter().filter(is_read).count() {
        known if known == stages.len() => String::new(),
        known => format!("{known}/{} windows", stages.len()),
    };
    let sums = sums(state, rows);
    both(line_of(area, 2), (&sums, PLAIN), (&missing, PLAIN), buffer);
    if is_filtering(state) {
        let cursor = if state.mode == Mode::Filter { "_" } else { "" };
        let filter = format!("filter: {}{cursor}", escaped(&state.filter));
        let all = cluster.history.lines().len();
        let shown = format!("{} of {all} rows", rows.len());
        both(line_of(area, 3), (&filter, TITLE), (&shown, PLAIN), buffer);
    }
}

fn title(state: &State) -> String {
    let title = &state.title;
    let by = match title.by.is_empty() {
        true => String::new(),
        false => format!(" by {}", joined(&title.by, ", ")),
    };
    let only = match title.only.is_empty() {
        true => String::new(),
        false => format!(" where {}", escaped(&title.only.join(", "))),
    };
    format!("tallyfold watch: {}{by}{only}", title.metric)
}

/// Returns the names of all clusters if they fit, otherwise only the name and the number of the current one.
fn clusters(state: &State, room: usize) -> String {
    if !state.title.is_named {
        return String::new();
    }
    let names = (0..).zip(&state.clusters).map(|(position, cluster)| {
        let sign = if cluster.is_troubled() { "!" } else { "" };
        let name = escaped(&cluster.name);
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
    let name = escaped(&state.cluster().name);
    format!("{}{place}", fit(&name, room.saturating_sub(place.len()).max(4)))
}

fn sums(state: &State, rows: &[&Line]) -> String {
    let mut sums = Sums::default();
    let mut change = Some(0);
    for row in rows {
        sums.success += row.sums.success;
        sums.errors += row.sums.errors;
        sums.filtered += row.sums.filtered;
        change = change.zip(row.change).map(|(change, more): (i128, i128)| change + more);
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
        sums.error_rate()
            .map_or_else(String::new, |rate| format!("error rate {}", percent(Some(rate))))
    )
}

fn status(state: &State, look: Look, line: Rect, buffer: &mut Buffer) {
    let (text, is_bad) = status_text(state).unwrap_or_default();
    // An error takes the whole line, so the legend is omitted.
    let (style, legend) = match is_bad {
        true => (look.bad(), String::new()),
        false => (PLAIN, legend(state)),
    };
    both(line, (&text, style), (&legend, PLAIN), buffer);
}

/// Returns the status of the cluster, and whether the status is an error.
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
        return Some((format!("! {window}: {}", escaped(text)), true));
    }
    if let Some(first) = cluster.findings.first() {
        let more = match cluster.findings.len() - 1 {
            0 => String::new(),
            more => format!(" (+{more} more)"),
        };
        return Some((format!("{}{more}", escaped(&first.text)), first.is_bad));
    }
    let correction = cluster.correction?;
    let window = window(correction.start_ms, correction.start_ms + step_ms);
    let errors = signed(correction.errors);
    Some((format!("{window} corrected: {errors} errors"), false))
}

/// Explains the marks `~` and `!`, each only if a window of the history has it.
fn legend(state: &State) -> String {
    let stages = state.cluster().history.stages();
    let signs = [(Stage::Provisional, "~ may still change"), (Stage::Failed, "! read failed")];
    let used = signs.iter().filter(|(stage, _)| stages.contains(stage)).map(|(_, text)| *text);
    used.collect::<Vec<_>>().join("  ")
}

/// Returns the descriptions of the keys, as far as they fit.
fn keys(state: &State, room: usize) -> String {
    let all: &[&str] = match state.mode {
        Mode::Filter => &["Enter keep", "Esc clear", "Ctrl-C quit"],
        Mode::Help => &["any key closes the help"],
        Mode::Rows => {
            &["q quit", "? help", "↑↓ move", "s sort", "/ filter", "r read now", "c cluster"]
        }
    };
    let is_alone = state.clusters.len() < 2;
    let mut text = String::new();
    for key in all {
        let longer = match text.is_empty() {
            true => (*key).to_owned(),
            false => format!("{text}  {key}"),
        };
        let is_useless = is_alone && *key == "c cluster";
        if !is_useless && width(&longer) <= room {
            text = longer;
        }
    }
    text
}

/// The lines of the help. The keys come first, because a small screen shows only the beginning.
const HELP: [&str; 14] = [
    "q Ctrl-C   quit",
    "↑↓ j k     move; PgUp PgDn g G jump",
    "s          rank by the next column",
    "/ Esc      filter rows; show all",
    "c          next cluster",
    "r          reread windows marked ~",
    "~ may still change   ! read failed",
    "· no errors   ? not read yet",
    "",
    "errors    events lost to an error",
    "filtered  events dropped on purpose",
    "change    errors of the newest window",
    "          minus the previous window's",
    "rate      errors as a share of attempts",
];

/// Draws the help in the middle of the view, above the line of keys.
fn help(area: Rect, buffer: &mut Buffer) {
    let above_keys = Rect { height: area.height - 1, ..area };
    let longest = HELP.iter().map(|line| width(line)).max().unwrap_or(0);
    // The sizes of `HELP` fit into a `u16`.
    let width = (longest as u16 + 4).min(above_keys.width);
    let height = (HELP.len() as u16 + 2).min(above_keys.height);
    let area = Rect {
        x: area.x + (above_keys.width - width) / 2,
        y: area.y + (above_keys.height - height) / 2,
        width,
        height,
    };
    Clear.render(area, buffer);
    Paragraph::new(Text::from_iter(HELP))
        .block(Block::bordered().title(" Help ").padding(Padding::horizontal(1)))
        .render(area, buffer);
}

/// The width of output that isn't a terminal, in columns.
const USUAL_WIDTH: usize = 100;

/// The maximum number of printed rows. It limits the memory, because all rows are drawn before the first one is written.
const MOST_ROWS: usize = 2_000;

/// Prints the clusters of a state, one after the other.
///
/// # Errors
/// If the text can't be written.
pub(crate) fn print(
    state: &mut State,
    width: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let width = width.unwrap_or(USUAL_WIDTH).clamp(40, 300);
    for position in 0..state.clusters.len() {
        state.current = position;
        if position > 0 {
            writeln!(out)?;
        }
        for line in lines(state, width) {
            writeln!(out, "{line}")?;
        }
        if let Some(more @ 1..) = state.rows().len().checked_sub(MOST_ROWS) {
            writeln!(out, "and {more} more rows")?;
        }
    }
    Ok(())
}

/// Returns the lines of the current cluster as text.
fn lines(state: &State, width: usize) -> Vec<String> {
    let look = Look { color: false, is_live: false };
    let rows = state.rows().len().min(MOST_ROWS);
    // Both values fit into a `u16`.
    let area = Rect::new(0, 0, width as u16, rows as u16 + AROUND);
    let mut buffer = Buffer::empty(area);
    let drawn = draw_once(state, look, area, &mut buffer);
    (0..drawn).map(|y| text_of(&buffer, y)).collect()
}

/// Returns a line of a buffer as text, without trailing spaces.
fn text_of(buffer: &Buffer, y: u16) -> String {
    let mut text = String::new();
    let mut x = 0;
    while x < buffer.area.width {
        let symbol = buffer.cell((x, y)).map_or(" ", |cell| cell.symbol());
        text.push_str(symbol);
        // A wide character occupies the next cell, too.
        x += width(symbol).max(1) as u16;
    }
    text.trim_end().to_owned()
}

/// Compares screens with files. `SNAPSHOTS=overwrite cargo test -p tallyfold-cli` writes the files. Check each file after that.
#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::buffer::Buffer;
    use ratatui::style::{Color, Modifier};
    use snapbox::{assert_data_eq, file};

    use super::*;
    use crate::watch::state::tests::{Sample, counts, history, state, view, window};
    use crate::watch::state::{Mode, Order, Outage, State};

    const LIVE: Look = Look { color: true, is_live: true };

    fn buffer(state: &State, look: Look, (columns, rows): (u16, u16)) -> Buffer {
        let mut terminal = Terminal::new(TestBackend::new(columns, rows)).unwrap();
        let drawn = |frame: &mut ratatui::Frame<'_>| {
            draw(state, look, frame.area(), frame.buffer_mut());
        };
        terminal.draw(drawn).unwrap();
        terminal.backend().buffer().clone()
    }

    fn text(buffer: &Buffer) -> String {
        let lines = (0..buffer.area.height).map(|y| text_of(buffer, y) + "\n");
        lines.collect()
    }

    fn screen(state: &State, size: (u16, u16)) -> String {
        text(&buffer(state, LIVE, size))
    }

    /// Returns the view of a morning: one integration begins to fail, and the last windows may still change.
    fn morning() -> State {
        let groups: Vec<(&str, Sample)> = vec![
            ("Warehouse", |n| counts(12_000 + n, 10 * n * n, 300)),
            ("Webhooks", |n| counts(4_000, if n == 7 { 0 } else { 40 }, 0)),
            ("CRM", |_| counts(900, 0, 77)),
            ("Search Index", |n| counts(1_000_000, 250 - 10 * n, 1)),
            ("Data Lake", |n| counts(50, if n == 11 { 9 } else { 0 }, 0)),
        ];
        state(vec![view("default", history(&groups, 12, 8))])
    }

    #[test]
    fn the_view_is_drawn_at_each_size() {
        let state = morning();
        assert_data_eq!(screen(&state, (80, 24)), file!["draw/snapshots/morning-80x24.txt"].raw());
        assert_data_eq!(
            screen(&state, (200, 60)),
            file!["draw/snapshots/morning-200x60.txt"].raw()
        );
        assert_data_eq!(screen(&state, (40, 10)), file!["draw/snapshots/morning-40x10.txt"].raw());
        assert_data_eq!(screen(&state, (80, 40)), file!["draw/snapshots/morning-80x40.txt"].raw());
        assert_data_eq!(
            lines(&state, 100).join("\n"),
            file!["draw/snapshots/morning-once.txt"].raw()
        );
    }

    #[test]
    fn unread_windows_and_windows_without_events_look_different() {
        let unread = state(vec![view("default", history(&[], 0, 0))]);
        assert_data_eq!(screen(&unread, (80, 24)), file!["draw/snapshots/unread-80x24.txt"].raw());
        let quiet = state(vec![view("default", history(&[], 12, 12))]);
        assert_data_eq!(screen(&quiet, (40, 10)), file!["draw/snapshots/quiet-40x10.txt"].raw());
    }

    #[test]
    fn an_outage_of_one_of_three_clusters_is_shown() {
        let mut state = morning();
        state.title.is_named = true;
        let groups: Vec<(&str, Sample)> = vec![("Warehouse", |n| counts(5 + n, n, 0))];
        let mut down = view("eu-north", history(&groups, 7, 7));
        down.outage = Some(Outage {
            text: "the service answers with status 503".to_owned(),
            next_ms: state.now_ms + 11_001,
        });
        state.clusters[0].name = "us".to_owned();
        state.clusters.push(down);
        state.clusters.push(view("asia", history(&[], 0, 0)));
        state.clusters[2].history.fail(window(3), "token \x1b[31mrefused".to_owned());
        assert!(screen(&state, (80, 24)).contains("[us] eu-north! asia!"));
        state.next_cluster();
        assert_data_eq!(screen(&state, (80, 24)), file!["draw/snapshots/down-80x24.txt"].raw());
        assert_data_eq!(screen(&state, (40, 10)), file!["draw/snapshots/down-40x10.txt"].raw());
        assert_data_eq!(screen(&state, (200, 60)), file!["draw/snapshots/down-200x60.txt"].raw());
        state.next_cluster();
        let text = screen(&state, (80, 24));
        assert!(text.contains("! 09:45–10:00: token \\x1b[31mrefused"), "{text}");
    }

    #[test]
    fn a_filter_is_shown_with_its_rows() {
        let mut state = morning();
        state.filter = "WARE".to_owned();
        state.mode = Mode::Filter;
        assert_data_eq!(screen(&state, (80, 24)), file!["draw/snapshots/filter-80x24.txt"].raw());
        state.filter = "nobody".to_owned();
        state.mode = Mode::Rows;
        assert!(
            screen(&state, (80, 24)).contains("no row contains the filter's text; Esc shows all")
        );
    }

    #[test]
    fn long_wide_and_hostile_names_stay_in_their_column() {
        let groups: Vec<(&str, Sample)> = vec![
            ("倉庫への配信と分析のための統合", |_| counts(1, 1, 1)),
            ("a name that is far longer than any column for names may be", |_| counts(2, 2, 2)),
            ("\x1b[2J\x1b[31mred\r\n\u{202e}", |_| counts(3, 3, 3)),
            ("👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀 e\u{301}", |_| counts(4, 4, 4)),
            ("", |_| counts(u64::MAX, u64::MAX, u64::MAX)),
        ];
        let state = state(vec![view("default", history(&groups, 12, 12))]);
        assert_data_eq!(screen(&state, (80, 24)), file!["draw/snapshots/names-80x24.txt"].raw());
        assert_data_eq!(screen(&state, (40, 10)), file!["draw/snapshots/names-40x10.txt"].raw());
    }

    #[test]
    fn the_help_names_each_key() {
        let mut state = morning();
        state.mode = Mode::Help;
        assert_data_eq!(screen(&state, (80, 24)), file!["draw/snapshots/help-80x24.txt"].raw());
        assert_data_eq!(screen(&state, (40, 10)), file!["draw/snapshots/help-40x10.txt"].raw());
    }

    #[test]
    fn every_size_is_drawn_and_a_small_one_shows_the_minimum() {
        let mut state = morning();
        let widths = (0..=90).chain([129, 130, 1_000]);
        let widths = widths.flat_map(|columns| [3, 10, 30].map(|rows| (columns, rows)));
        let heights = (0..=12).chain([24, 29, 30, 31, 100]);
        let heights = heights.flat_map(|rows| [11, 40, 80].map(|columns| (columns, rows)));
        for (columns, rows) in widths.chain(heights) {
            for mode in [Mode::Rows, Mode::Help, Mode::Filter] {
                state.mode = mode;
                let text = screen(&state, (columns, rows));
                let is_small = columns < 40 || rows < 10;
                if columns >= 12 && rows >= 4 {
                    assert_eq!(text.contains("Too small"), is_small, "{columns}x{rows}");
                    assert_eq!(text.contains("Want 40x10"), is_small, "{columns}x{rows}");
                }
            }
        }
    }

    #[test]
    fn all_columns_fit_into_80() {
        let text = screen(&morning(), (80, 24));
        for name in [
            "integration",
            "errors▼",
            "change",
            "filtered",
            "delivered",
            "rate",
            "errors by window",
        ] {
            assert!(text.contains(name), "{name}: {text}");
        }
    }

    #[test]
    fn the_selected_row_is_always_on_the_screen() {
        let names: Vec<String> = (0..100).map(|n| format!("integration {n:02}")).collect();
        let groups: Vec<(&str, Sample)> =
            names.iter().map(|name| (name.as_str(), (|_| counts(9, 1, 0)) as Sample)).collect();
        let mut state = state(vec![view("default", history(&groups, 12, 12))]);
        for (by, expected) in [(0, 0), (1, 1), (40, 41), (100, 99), (-1, 98), (isize::MIN, 0)] {
            state.step(by);
            for size in [(80, 24), (40, 10), (200, 60)] {
                let text = screen(&state, size);
                let selected: Vec<&str> =
                    text.lines().filter(|line| line.trim_start().starts_with('>')).collect();
                // The smallest screen omits the column of ranks, and with it the mark of the selected row.
                if size.0 > 40 {
                    assert_eq!(selected.len(), 1, "{text}");
                    assert!(selected[0].contains(&format!("integration {expected:02}")), "{text}");
                }
            }
        }
    }

    #[test]
    fn colours_show_nothing_that_is_not_also_text_or_style() {
        let state = morning();
        let plain = Look { color: false, is_live: true };
        let without = buffer(&state, plain, (80, 24));
        let with = buffer(&state, LIVE, (80, 24));
        assert_eq!(text(&without), text(&with));
        assert!(
            without.content.iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
        );
        assert!(with.content.iter().any(|cell| cell.fg == Color::Red));
        let is = |cell: &ratatui::buffer::Cell, modifier| cell.modifier.contains(modifier);
        assert!(without.content.iter().any(|cell| is(cell, Modifier::REVERSED)));
        let provisional = without.content.iter().filter(|cell| is(cell, Modifier::ITALIC));
        // Four of the twelve windows are provisional. Each is drawn in five rows and in the line of marks, so the number of
        // italic cells is a multiple of 24.
        let cells = provisional.filter(|cell| cell.symbol() != " ").count();
        assert_eq!(cells % 24, 0);
        assert!(cells > 0);
    }

    #[test]
    fn each_order_marks_its_column() {
        let mut state = morning();
        for (order, mark) in [
            (Order::Errors, "errors▼"),
            (Order::Change, "change▼"),
            (Order::Filtered, "filtered▼"),
            (Order::Delivered, "delivered▼"),
            (Order::Rate, "rate▼"),
            (Order::Name, "integration▲"),
        ] {
            state.order = order;
            assert!(screen(&state, (80, 24)).contains(mark), "{order:?}");
        }
    }
}
