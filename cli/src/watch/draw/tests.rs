//! Compares screens with files. `SNAPSHOTS=overwrite cargo test -p tallyfold-cli` writes the files. Check each file after that.

use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;
use ratatui::style::{Color, Modifier};
use snapbox::{assert_data_eq, file};

use super::text::Look;
use super::{draw, lines, text_of};
use crate::watch::state::tests::{Sample, counts, history, state, view, window};
use crate::watch::state::{Mode, Order, Outage, State};

const LIVE: Look = Look {
    color: true,
    is_live: true,
};

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
        ("Webhooks", |n| {
            counts(4_000, if n == 7 { 0 } else { 40 }, 0)
        }),
        ("CRM", |_| counts(900, 0, 77)),
        ("Search Index", |n| counts(1_000_000, 250 - 10 * n, 1)),
        ("Data Lake", |n| counts(50, if n == 11 { 9 } else { 0 }, 0)),
    ];
    state(vec![view("default", history(&groups, 12, 8))])
}

#[test]
fn a_morning_at_three_sizes() {
    let state = morning();
    assert_data_eq!(
        screen(&state, (80, 24)),
        file!["snapshots/morning-80x24.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (200, 60)),
        file!["snapshots/morning-200x60.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (40, 10)),
        file!["snapshots/morning-40x10.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (80, 40)),
        file!["snapshots/morning-80x40.txt"].raw()
    );
    assert_data_eq!(
        lines(&state, 100).join("\n"),
        file!["snapshots/morning-once.txt"].raw()
    );
}

#[test]
fn nothing_read_yet_and_no_events_are_told_apart() {
    let unread = state(vec![view("default", history(&[], 0, 0))]);
    assert_data_eq!(
        screen(&unread, (80, 24)),
        file!["snapshots/unread-80x24.txt"].raw()
    );
    let quiet = state(vec![view("default", history(&[], 12, 12))]);
    assert_data_eq!(
        screen(&quiet, (40, 10)),
        file!["snapshots/quiet-40x10.txt"].raw()
    );
}

#[test]
fn one_of_three_clusters_is_down() {
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
    state.clusters[2]
        .history
        .fail(window(3), "token \x1b[31mrefused".to_owned());
    assert!(screen(&state, (80, 24)).contains("[us] eu-north! asia!"));
    state.next_cluster();
    assert_data_eq!(
        screen(&state, (80, 24)),
        file!["snapshots/down-80x24.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (40, 10)),
        file!["snapshots/down-40x10.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (200, 60)),
        file!["snapshots/down-200x60.txt"].raw()
    );
    state.next_cluster();
    let text = screen(&state, (80, 24));
    assert!(
        text.contains("! 09:45–10:00: token \\x1b[31mrefused"),
        "{text}"
    );
}

#[test]
fn a_filter_is_shown_with_its_rows() {
    let mut state = morning();
    state.filter = "WARE".to_owned();
    state.mode = Mode::Filter;
    assert_data_eq!(
        screen(&state, (80, 24)),
        file!["snapshots/filter-80x24.txt"].raw()
    );
    state.filter = "nobody".to_owned();
    state.mode = Mode::Rows;
    assert!(screen(&state, (80, 24)).contains("no row contains the filter's text; Esc shows all"));
}

#[test]
fn long_wide_and_hostile_names_stay_in_their_column() {
    let groups: Vec<(&str, Sample)> = vec![
        ("倉庫への配信と分析のための統合", |_| {
            counts(1, 1, 1)
        }),
        (
            "a name that is far longer than any column for names may be",
            |_| counts(2, 2, 2),
        ),
        ("\x1b[2J\x1b[31mred\r\n\u{202e}", |_| counts(3, 3, 3)),
        ("👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀👩‍🚀 e\u{301}", |_| counts(4, 4, 4)),
        ("", |_| counts(u64::MAX, u64::MAX, u64::MAX)),
    ];
    let state = state(vec![view("default", history(&groups, 12, 12))]);
    assert_data_eq!(
        screen(&state, (80, 24)),
        file!["snapshots/names-80x24.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (40, 10)),
        file!["snapshots/names-40x10.txt"].raw()
    );
}

#[test]
fn the_help_names_each_key() {
    let mut state = morning();
    state.mode = Mode::Help;
    assert_data_eq!(
        screen(&state, (80, 24)),
        file!["snapshots/help-80x24.txt"].raw()
    );
    assert_data_eq!(
        screen(&state, (40, 10)),
        file!["snapshots/help-40x10.txt"].raw()
    );
}

#[test]
fn every_size_is_drawn_without_a_panic_and_a_small_one_says_what_is_wanted() {
    let mut state = morning();
    for columns in (0..=90).chain([129, 130, 1_000]) {
        for rows in (0..=12).chain([24, 29, 30, 31, 100]) {
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
fn the_selected_row_is_on_the_screen_wherever_it_is() {
    let names: Vec<String> = (0..100).map(|n| format!("integration {n:02}")).collect();
    let groups: Vec<(&str, Sample)> = names
        .iter()
        .map(|name| (name.as_str(), (|_| counts(9, 1, 0)) as Sample))
        .collect();
    let mut state = state(vec![view("default", history(&groups, 12, 12))]);
    for (by, expected) in [
        (0, 0),
        (1, 1),
        (40, 41),
        (100, 99),
        (-1, 98),
        (isize::MIN, 0),
    ] {
        state.step(by);
        for size in [(80, 24), (40, 10), (200, 60)] {
            let text = screen(&state, size);
            let selected: Vec<&str> = text
                .lines()
                .filter(|line| line.trim_start().starts_with('>'))
                .collect();
            // The smallest screen omits the column of ranks, and with it the mark of the selected row.
            if size.0 > 40 {
                assert_eq!(selected.len(), 1, "{text}");
                assert!(
                    selected[0].contains(&format!("integration {expected:02}")),
                    "{text}"
                );
            }
        }
    }
}

#[test]
fn nothing_is_said_by_colour_alone() {
    let state = morning();
    let plain = Look {
        color: false,
        is_live: true,
    };
    let without = buffer(&state, plain, (80, 24));
    let with = buffer(&state, LIVE, (80, 24));
    assert_eq!(text(&without), text(&with));
    assert!(
        without
            .content
            .iter()
            .all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset)
    );
    assert!(with.content.iter().any(|cell| cell.fg == Color::Red));
    let is = |cell: &ratatui::buffer::Cell, modifier| cell.modifier.contains(modifier);
    assert!(
        without
            .content
            .iter()
            .any(|cell| is(cell, Modifier::REVERSED))
    );
    let provisional = without
        .content
        .iter()
        .filter(|cell| is(cell, Modifier::ITALIC));
    // Four of the twelve windows are provisional. Each is drawn in five rows and in the line of marks, so the number of
    // italic cells is a multiple of 24.
    let windows = provisional.filter(|cell| cell.symbol() != " ").count();
    assert_eq!(windows % 24, 0);
    assert!(windows > 0);
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
