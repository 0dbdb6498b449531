//! How a notebook shows a table.

use std::fmt::Write;

use tallyfold::{CountTable, Counts, Metric};

/// More rows than this are counted, not shown.
const SHOWN: usize = 50;

/// The table's first rows and its totals, as HTML. Values come from the service's data and are
/// escaped.
pub(crate) fn table(table: &CountTable) -> String {
    let names = table.dimensions().names();
    let head: String = names
        .iter()
        .map(|name| format!("<th>{name}</th>"))
        .collect();
    let rows: String = table
        .rows()
        .take(SHOWN)
        .map(|row| {
            let values = row
                .values()
                .map(|value| format!("<td>{}</td>", escape(value)));
            format!(
                "<tr>{}{}</tr>",
                values.collect::<String>(),
                cells(row.counts())
            )
        })
        .collect();
    let rest = match table.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(
            "<tr><td colspan=\"{}\">and {more} more rows</td></tr>",
            names.len() + 3
        ),
    };
    let metric = table.metric().map_or("counts", Metric::as_str);
    let covered: Vec<String> = table
        .coverage()
        .iter()
        .map(|window| format!("[{}, {})", window.start(), window.end()))
        .collect();
    let total = if names.is_empty() {
        String::new()
    } else {
        let totals = cells(table.totals());
        format!(
            "<tfoot><tr><th colspan=\"{}\">total</th>{totals}</tr></tfoot>",
            names.len()
        )
    };
    format!(
        "<table><caption>{metric} {}</caption>\
         <thead><tr>{head}<th>success</th><th>errors</th><th>filtered</th></tr></thead>\
         <tbody>{rows}{rest}</tbody>{total}</table>",
        covered.join(", ")
    )
}

fn cells(
    Counts {
        success,
        errors,
        filtered,
    }: Counts,
) -> String {
    format!("<td>{success}</td><td>{errors}</td><td>{filtered}</td>")
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
