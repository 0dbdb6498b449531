//! Aligns columns to fit the terminal, and formats rates and shares.

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};

use super::safe::{fit, left, right, width};
use super::sink::{Screen, USUAL_WIDTH};

/// The separator between two columns.
const SPACE: &str = "  ";

/// The minimum width of a text column, unless its content is narrower.
const NARROWEST: usize = 8;

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    /// The title above the column.
    pub(crate) title: String,
    /// The kind of its content.
    pub(crate) holds: Holds,
}

/// The kind of a column's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    /// Texts, aligned left, which may be shortened.
    Texts,
    /// Times, aligned left, which are never shortened.
    Times,
    /// Numbers, aligned right, which are never shortened.
    Numbers,
}

/// A line of the grid.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells {
    /// A cell for each column, already escaped for a terminal.
    pub(crate) cells: Vec<String>,
    /// Marks after the line. The remarks below the table explain them.
    pub(crate) marks: String,
    /// Whether the line is a sum of other lines.
    pub(crate) is_total: bool,
}

/// Lines of cells in columns.
#[derive(Clone, Debug, Default)]
pub(crate) struct Grid {
    pub(crate) columns: Vec<Column>,
    pub(crate) lines: Vec<Cells>,
}

impl Column {
    /// Creates a column with that title.
    pub(crate) fn new(title: impl Into<String>, holds: Holds) -> Self {
        Self { title: title.into(), holds }
    }
}

impl Cells {
    /// Creates a line of sums: `label` is in the first of `keys` cells, which precede the numbers.
    pub(crate) fn total(
        label: &str,
        keys: usize,
        numbers: impl IntoIterator<Item = String>,
    ) -> Self {
        let mut cells = vec![String::new(); keys];
        if let Some(first) = cells.first_mut() {
            label.clone_into(first);
        }
        cells.extend(numbers);
        Self { cells, is_total: true, ..Self::default() }
    }
}

impl Grid {
    /// Writes the titles and all lines. If the terminal is too narrow for the columns, writes each line as a block,
    /// with one cell below the other.
    ///
    /// # Errors
    /// The errors of the writer.
    pub(crate) fn write(&self, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let most = screen.width.unwrap_or(USUAL_WIDTH);
        match self.widths(most) {
            Some(widths) => self.write_aligned(&widths, screen, out),
            None => self.write_stacked(most, screen, out),
        }
    }

    /// Returns the width of each column; `None` if the columns don't fit. Text columns are shortened, the widest first.
    fn widths(&self, most: usize) -> Option<Vec<usize>> {
        let own = self.columns.iter().enumerate();
        let own = own.map(|(column, of)| match of.holds {
            Holds::Texts => self.width(column).min(most),
            Holds::Times | Holds::Numbers => self.width(column),
        });
        let mut widths: Vec<usize> = own.collect();
        let marks = self.lines.iter().map(|line| width(&line.marks));
        let marks = marks.max().unwrap_or_default();
        let spaces = SPACE.len() * self.columns.len().saturating_sub(1);
        let all = |widths: &[usize]| widths.iter().sum::<usize>() + spaces + marks;
        let texts: Vec<usize> = (0..self.columns.len())
            .filter(|column| self.columns[*column].holds == Holds::Texts)
            .collect();
        while all(&widths) > most {
            let wide = texts.iter().copied();
            let wide = wide.filter(|column| widths[*column] > self.narrowest(*column));
            let widest = wide.max_by_key(|column| widths[*column])?;
            widths[widest] -= 1;
        }
        Some(widths)
    }

    /// Returns the width of a column's widest cell or of its title, whichever is wider.
    fn width(&self, column: usize) -> usize {
        let cells = self.lines.iter().filter_map(|line| line.cells.get(column));
        let widest = cells.map(|cell| width(cell)).max().unwrap_or_default();
        widest.max(width(&self.columns[column].title))
    }

    /// Returns the minimum width of a text column. The names of totals are never shortened.
    fn narrowest(&self, column: usize) -> usize {
        let totals = self.lines.iter().rev().take_while(|line| line.is_total);
        let totals = totals.filter_map(|line| line.cells.get(column));
        let widest = totals.map(|cell| width(cell)).max().unwrap_or_default();
        widest.max(NARROWEST)
    }

    fn write_aligned(
        &self,
        widths: &[usize],
        screen: Screen,
        out: &mut dyn Write,
    ) -> io::Result<()> {
        let titles = self.columns.iter().map(|column| column.title.clone());
        let titles = self.aligned(&titles.collect::<Vec<_>>(), widths);
        write_styled(titles.trim_end(), Style::new().bold(), screen, out)?;
        writeln!(out)?;
        for line in &self.lines {
            let text = self.aligned(&line.cells, widths);
            let text = match line.marks.is_empty() {
                true => text.trim_end(),
                false => &text,
            };
            write_styled(text, style_of(line), screen, out)?;
            write_marks(line, screen, out)?;
            writeln!(out)?;
        }
        Ok(())
    }

    fn aligned(&self, cells: &[String], widths: &[usize]) -> String {
        let columns = self.columns.iter().zip(cells).zip(widths);
        let cells = columns.map(|((column, cell), width)| match column.holds {
            Holds::Texts => left(&fit(cell, *width), *width),
            Holds::Times => left(cell, *width),
            Holds::Numbers => right(cell, *width),
        });
        cells.collect::<Vec<_>>().join(SPACE)
    }

    /// Writes a block for each line, with the title of the column before each cell.
    fn write_stacked(&self, most: usize, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
        let titles = self.columns.iter().map(|column| width(&column.title));
        let titles = titles.max().unwrap_or_default();
        let room = most.saturating_sub(titles + SPACE.len()).max(1);
        let numbers =
            (0..self.columns.len()).filter(|column| self.columns[*column].holds == Holds::Numbers);
        let cells = numbers.flat_map(|column| self.lines.iter().map(move |line| (column, line)));
        let numbers = cells.filter_map(|(column, line)| line.cells.get(column));
        let numbers = numbers.map(|cell| width(cell)).max().unwrap_or_default();
        for (place, line) in self.lines.iter().enumerate() {
            if place > 0 {
                writeln!(out)?;
            }
            for (position, (column, cell)) in self.columns.iter().zip(&line.cells).enumerate() {
                if cell.is_empty() {
                    continue;
                }
                write_styled(&left(&column.title, titles), Style::new().bold(), screen, out)?;
                let cell = match column.holds {
                    Holds::Texts => fit(cell, room),
                    Holds::Times => cell.clone(),
                    Holds::Numbers => right(cell, numbers),
                };
                write!(out, "{SPACE}")?;
                write_styled(&cell, style_of(line), screen, out)?;
                if position + 1 == self.columns.len() {
                    write_marks(line, screen, out)?;
                }
                writeln!(out)?;
            }
        }
        Ok(())
    }
}

fn style_of(line: &Cells) -> Style {
    match line.is_total {
        true => Style::new().bold(),
        false => Style::new(),
    }
}

fn write_marks(line: &Cells, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let yellow = Style::new().fg_color(Some(AnsiColor::Yellow.into()));
    write_styled(&line.marks, yellow, screen, out)
}

/// Writes a text, in a style if colours are enabled.
///
/// # Errors
/// The errors of the writer.
pub(crate) fn write_styled(
    text: &str,
    style: Style,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    match screen.color && !text.is_empty() && style != Style::new() {
        true => write!(out, "{style}{text}{style:#}"),
        false => write!(out, "{text}"),
    }
}

/// Formats a rate in percent with two decimals; `None` becomes `-`. The text is `100.00%` only for the rate 1, and `0.00%`
/// only for the rate 0, so that rounding never hides one lost event among millions.
pub(crate) fn percent(rate: Option<f64>) -> String {
    let Some(rate) = rate else {
        return "-".to_owned();
    };
    let text = format!("{:.2}%", rate * 100.0);
    match text.as_str() {
        "100.00%" if rate < 1.0 => ">99.99%".to_owned(),
        "0.00%" if rate > 0.0 => "<0.01%".to_owned(),
        _ => text,
    }
}

/// Formats a share of a change in percent with one decimal; `None` becomes `-`. A share may be below 0% or above 100%.
pub(crate) fn share(share: Option<f64>) -> String {
    let Some(share) = share else {
        return "-".to_owned();
    };
    let text = format!("{:.1}%", share * 100.0);
    match text.as_str() {
        "-0.0%" => "0.0%".to_owned(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_event_is_not_rounded_away() {
        assert_eq!(percent(Some(1.0)), "100.00%");
        assert_eq!(percent(Some(0.999_999)), ">99.99%");
        assert_eq!(percent(Some(0.000_001)), "<0.01%");
        assert_eq!(percent(Some(0.0)), "0.00%");
        assert_eq!(percent(Some(0.5)), "50.00%");
        assert_eq!(percent(None), "-");
        assert_eq!(share(Some(-0.0001)), "0.0%");
        assert_eq!(share(Some(-12.5)), "-1250.0%");
    }
}
