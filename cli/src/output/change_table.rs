//! Comparisons as a table, for a person at a terminal: one count before and after, and its change.

use std::io::Write;

use tallyfold::text::{grouped, signed};
use tallyfold::{Comparison, CountName, Deltas, Frame, Presence};

use super::grid::{Cells, Column, Grid, Holds};
use super::numerals::share;
use super::pick::{Line, Picked};
use super::remarks::{PROVISIONAL, span, spans};
use super::report::{Counted, Report};
use super::sink::{Screen, WriteError};
use super::table::{key_cells, key_columns, subject, write_remarks, write_title};

/// Writes the comparisons of a report by one count. The totals of the other counts follow, so that a change there is not
/// overlooked.
///
/// # Errors
/// Those of the writer.
pub(crate) fn write_changes(
    report: &Report,
    picked: &Picked,
    by: CountName,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    write_title(&title(report, by), screen, out)?;
    let mut grid = Grid {
        columns: key_columns(report),
        lines: Vec::new(),
    };
    let keys = grid.columns.len();
    let numbers = ["before", "after", "change", "share"];
    let numbers = numbers.map(|name| Column::new(name, Holds::Numbers));
    grid.columns.extend(numbers);
    let lines = picked.lines.iter();
    grid.lines = lines
        .filter_map(|line| line_of(report, *line, by))
        .collect();
    let others = CountName::ALL.iter().filter(|name| **name != by);
    for name in std::iter::once(&by).chain(others) {
        grid.lines.push(total(report, *name, keys));
    }
    grid.write(screen, out)?;
    write_remarks(report, picked, screen, out)
}

fn title(report: &Report, by: CountName) -> String {
    let asked = &report.asked;
    let before = match asked.before {
        Some(before) => span(before),
        None => comparisons(report)
            .next()
            .map_or_else(String::new, |first| spans(first.before_coverage())),
    };
    let after = span(asked.range);
    format!("{by} of {}, {before}, then {after}", subject(report))
}

fn comparisons(report: &Report) -> impl Iterator<Item = &Comparison> {
    report.parts.iter().filter_map(|part| match &part.counts {
        Counted::Comparison(comparison) => Some(&**comparison),
        _ => None,
    })
}

fn line_of(report: &Report, line: Line, by: CountName) -> Option<Cells> {
    let Counted::Comparison(comparison) = &report.parts[line.part].counts else {
        return None;
    };
    let row = comparison.row(line.row)?;
    let presence = row.presence();
    let shares = row.share();
    let mut cells = key_cells(report, line);
    cells.extend([
        side(
            presence != Presence::New,
            row.before().map(|counts| by.of(counts)),
        ),
        side(
            presence != Presence::Vanished,
            row.after().map(|counts| by.of(counts)),
        ),
        signed(change_of(row.delta(), by)),
        share(match by {
            CountName::Success => shares.success,
            CountName::Errors => shares.errors,
            CountName::Filtered => shares.filtered,
        }),
    ]);
    let is_provisional = !report.parts[line.part].provisional.is_empty();
    Some(Cells {
        cells,
        marks: is_provisional.then_some(PROVISIONAL).into_iter().collect(),
        is_total: false,
    })
}

/// A count, or `none` where the group was not there.
fn side(is_there: bool, count: Option<u64>) -> String {
    match count {
        Some(count) if is_there => grouped(count),
        _ => "none".to_owned(),
    }
}

fn change_of(deltas: Deltas, by: CountName) -> i128 {
    match by {
        CountName::Success => deltas.success,
        CountName::Errors => deltas.errors,
        CountName::Filtered => deltas.filtered,
    }
}

fn total(report: &Report, by: CountName, keys: usize) -> Cells {
    let mut sums = [0_i128; 2];
    for comparison in comparisons(report) {
        sums[0] += i128::from(by.of(comparison.before_totals()));
        sums[1] += i128::from(by.of(comparison.after_totals()));
    }
    let mut cells = vec![String::new(); keys];
    if let Some(first) = cells.first_mut() {
        *first = format!("total {by}");
    }
    let [before, after] = sums;
    let numbers = [grouped(before), grouped(after), signed(after - before)];
    cells.extend(numbers);
    cells.push(String::new());
    Cells {
        cells,
        is_total: true,
        ..Cells::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::pick::Ranking;
    use crate::output::testing::{assert_drawn, change, hour, report_of};

    fn drawn(width: usize, by: CountName) -> String {
        let report = report_of(vec![("default", Counted::Comparison(change()))]);
        drawn_of(&report, width, by)
    }

    fn drawn_of(report: &Report, width: usize, by: CountName) -> String {
        let ranking = Ranking {
            by: Some(by),
            top: None,
        };
        let screen = Screen {
            width: Some(width),
            color: false,
        };
        let mut out = Vec::new();
        let picked = Picked::of(report, ranking);
        write_changes(report, &picked, by, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_largest_change_comes_first() {
        for (width, by, file) in [
            (80, CountName::Errors, "changes-80.txt"),
            (40, CountName::Errors, "changes-40.txt"),
            (200, CountName::Success, "changes-200.txt"),
        ] {
            assert_drawn(drawn(width, by), file);
        }
    }

    #[test]
    fn changes_that_may_still_change_are_marked() {
        let mut report = report_of(vec![("default", Counted::Comparison(change()))]);
        report.parts[0].provisional = vec![hour(0)];
        assert_drawn(
            drawn_of(&report, 80, CountName::Errors),
            "changes-provisional-80.txt",
        );
    }
}
