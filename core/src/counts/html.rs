//! Shows a frame in a notebook.

use std::fmt::{Display, Write};

use super::frame::{Column, Frame, Values};
use super::metric::Metric;
use super::series_window::SeriesWindow;

/// At most this many rows are shown; the others are only counted.
const SHOWN: usize = 50;

/// The names of the three counts, which are the last columns.
const COUNTS: [&str; 3] = ["success", "errors", "filtered"];

/// A frame that can be shown to people.
pub trait HtmlFrame: Frame {
    /// The time that the frame covers.
    fn caption(&self) -> String;

    /// The three counts of a row.
    fn shown(&self, row: usize) -> [String; 3];

    /// The three totals.
    fn shown_totals(&self) -> [String; 3];
}

/// The first rows of a frame and its totals, as an HTML table. Values come from the service's data: every
/// cell is escaped.
pub fn to_html(frame: &dyn HtmlFrame) -> String {
    let metric = frame.metric().map_or("counts", Metric::as_str);
    let columns = frame.columns();
    let labels: Vec<&Column<'_>> =
        columns.iter().filter(|column| !matches!(column.values, Values::Counts(_))).collect();
    let mut html = String::from("<table><caption>");
    push_escaped(&mut html, &format!("{metric} {}", frame.caption()));
    html.push_str("</caption><thead><tr>");
    for name in labels.iter().map(|column| column.name).chain(COUNTS) {
        push(&mut html, format_args!("<th>{name}</th>"));
    }
    html.push_str("</tr></thead><tbody>");
    for row in 0..frame.len().min(SHOWN) {
        html.push_str("<tr>");
        for column in &labels {
            push_label(&mut html, column.values, row);
        }
        push_cells(&mut html, &frame.shown(row));
        html.push_str("</tr>");
    }
    if let Some(more) = frame.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        let width = labels.len() + COUNTS.len();
        push(&mut html, format_args!("<tr><td colspan=\"{width}\">and {more} more rows</td></tr>"));
    }
    html.push_str("</tbody>");
    // Without dimensions, the only row has the totals.
    if !labels.is_empty() {
        let width = labels.len();
        push(&mut html, format_args!("<tfoot><tr><th colspan=\"{width}\">total</th>"));
        push_cells(&mut html, &frame.shown_totals());
        html.push_str("</tr></tfoot>");
    }
    html.push_str("</table>");
    html
}

fn push_label(html: &mut String, values: Values<'_>, row: usize) {
    match values {
        Values::Texts { dictionary, ids } => push_cell(html, dictionary.value(ids[row])),
        Values::Windows { windows, ids } => push_cell(html, &span(windows[ids[row] as usize])),
        Values::Presences(presences) => push_cell(html, presences[row].as_str()),
        Values::Counts(_) => {}
    }
}

/// A window, whether only a part of it is covered, and whether its counts may still change.
fn span(of: SeriesWindow) -> String {
    let in_part = if of.complete { "" } else { ", in part" };
    let provisional = if of.provisional { ", provisional" } else { "" };
    format!("{:?}{in_part}{provisional}", of.window)
}

fn push_cells(html: &mut String, texts: &[String; 3]) {
    for text in texts {
        push_cell(html, text);
    }
}

fn push_cell(html: &mut String, text: &str) {
    html.push_str("<td>");
    push_escaped(html, text);
    html.push_str("</td>");
}

fn push_escaped(html: &mut String, text: &str) {
    for character in text.chars() {
        match character {
            '&' | '<' | '>' | '"' | '\'' => {
                push(html, format_args!("&#{};", u32::from(character)));
            }
            _ => html.push(character),
        }
    }
}

fn push(html: &mut String, text: impl Display) {
    // Writing to a String can't fail.
    let _ = write!(html, "{text}");
}
