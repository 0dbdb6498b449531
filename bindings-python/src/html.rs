//! How a notebook shows tables, series and comparisons.

use std::fmt::{Display, Write};

use tallyfold::{Comparison, CountTable, Counts, Deltas, Metric, Series, Window};

/// More rows than this are counted, not shown.
const SHOWN: usize = 50;

/// The names of the counts, as columns.
const COUNTS: [&str; 3] = ["success", "errors", "filtered"];

/// The table's first rows and its totals.
pub(crate) fn table(table: &CountTable) -> String {
    let names = table.dimensions().names();
    let mut page = Page::new(table.metric(), &spans(&table.coverage()));
    page.head(names.iter().chain(&COUNTS));
    for row in table.rows().take(SHOWN) {
        page.row(row.values(), counts(row.counts()));
    }
    page.finish(table.len(), names.len(), counts(table.totals()))
}

/// The series' first rows and its totals; what the table covers in part is marked.
pub(crate) fn series(series: &Series) -> String {
    let names = series.dimensions().names();
    let step = series.step().map(|step| format!("by {step}"));
    let mut page = Page::new(series.metric(), step.as_deref().unwrap_or("by window"));
    page.head(["window"].iter().chain(&names).chain(&COUNTS));
    for row in series.rows().take(SHOWN) {
        let in_part = if row.complete() { "" } else { ", in part" };
        let window = format!("{}{in_part}", span(&row.window()));
        let values = row.values();
        page.row(
            [window.as_str()].into_iter().chain(values),
            counts(row.counts()),
        );
    }
    page.finish(series.len(), names.len() + 1, counts(series.totals()))
}

/// The comparison's first rows and how its totals changed.
pub(crate) fn comparison(comparison: &Comparison) -> String {
    let names = comparison.dimensions().names();
    let before = spans(comparison.before_coverage());
    let after = spans(comparison.after_coverage());
    let mut page = Page::new(comparison.metric(), &format!("{before} → {after}"));
    page.head(names.iter().chain(&["presence"]).chain(&COUNTS));
    for row in comparison.rows().take(SHOWN) {
        let values = row.values().chain([row.presence().as_str()]);
        page.row(values, changes(row.before(), row.after(), row.delta()));
    }
    let (before, after) = (comparison.before_totals(), comparison.after_totals());
    let totals = changes(Some(before), Some(after), comparison.total_delta());
    page.finish(comparison.len(), names.len() + 1, totals)
}

/// A table in the making. Values come from the service's data; every cell is escaped.
struct Page {
    html: String,
    columns: usize,
}

impl Page {
    fn new(metric: Option<Metric>, what: &str) -> Self {
        let metric = metric.map_or("counts", Metric::as_str);
        let caption = escape(&format!("{metric} {what}"));
        Self {
            html: format!("<table><caption>{caption}</caption>"),
            columns: 0,
        }
    }

    fn head<'a>(&mut self, names: impl Iterator<Item = &'a &'a str>) {
        let cells: Vec<String> = names.map(|name| format!("<th>{name}</th>")).collect();
        self.columns = cells.len();
        let cells = cells.concat();
        self.add(format_args!("<thead><tr>{cells}</tr></thead><tbody>"));
    }

    fn row<'a>(&mut self, values: impl Iterator<Item = &'a str>, counts: [String; 3]) {
        let values: String = values.map(cell).collect();
        let counts: String = counts.iter().map(|count| cell(count)).collect();
        self.add(format_args!("<tr>{values}{counts}</tr>"));
    }

    /// Says how many rows there are beside those shown, and the totals if they are of any use.
    fn finish(mut self, rows: usize, labels: usize, totals: [String; 3]) -> String {
        let more = rows.saturating_sub(SHOWN);
        if more > 0 {
            let columns = self.columns;
            self.add(format_args!(
                "<tr><td colspan=\"{columns}\">and {more} more rows</td></tr>"
            ));
        }
        self.add(format_args!("</tbody>"));
        if labels > 0 {
            let totals: String = totals.iter().map(|total| cell(total)).collect();
            self.add(format_args!(
                "<tfoot><tr><th colspan=\"{labels}\">total</th>{totals}</tr></tfoot>"
            ));
        }
        self.add(format_args!("</table>"));
        self.html
    }

    fn add(&mut self, html: impl Display) {
        // Writing to a String can't fail.
        let _ = write!(self.html, "{html}");
    }
}

fn counts(counts: Counts) -> [String; 3] {
    [counts.success, counts.errors, counts.filtered].map(|count| count.to_string())
}

/// Each count before and after, and the change in brackets.
fn changes(before: Option<Counts>, after: Option<Counts>, delta: Deltas) -> [String; 3] {
    let shown = |count: Option<u64>| count.map_or("none".to_owned(), |count| count.to_string());
    let change = |of: fn(Counts) -> u64, delta: i128| {
        let (before, after) = (before.map(of), after.map(of));
        format!("{} → {} ({delta:+})", shown(before), shown(after))
    };
    [
        change(|counts| counts.success, delta.success),
        change(|counts| counts.errors, delta.errors),
        change(|counts| counts.filtered, delta.filtered),
    ]
}

fn spans(windows: &[Window]) -> String {
    windows.iter().map(span).collect::<Vec<_>>().join(", ")
}

fn span(window: &Window) -> String {
    format!("[{}, {})", window.start(), window.end())
}

fn cell(text: &str) -> String {
    format!("<td>{}</td>", escape(text))
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' | '<' | '>' | '"' | '\'' => {
                // Writing to a String can't fail.
                let _ = write!(escaped, "&#{};", u32::from(character));
            }
            _ => escaped.push(character),
        }
    }
    escaped
}
