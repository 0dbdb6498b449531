//! Writes `tests/vectors/health.json`: what explains changes between a few tables, and what rules find in them, with all
//! numbers exact. Every language has to find the same. With `--check` it writes nothing, and fails if the file is not what
//! it would write.
#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a tool of the project, which stops where something is wrong"
)]

mod cases;
mod exact;
mod tables;

use std::path::Path;

use serde_json::{Value, json};

fn main() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/vectors/health.json");
    let text = text();
    if std::env::args().any(|argument| argument == "--check") {
        let is_fresh = std::fs::read_to_string(&path).is_ok_and(|now| now == text);
        assert!(
            is_fresh,
            "health.json is stale: run cargo run -p tallyfold-health --example vectors"
        );
    } else {
        std::fs::write(path, text).expect("a file that can be written");
    }
}

/// The file: tables and rules by name, and a case on each line.
fn text() -> String {
    let tables = tables::all().into_iter().map(|(name, table)| {
        use tallyfold::Frame;
        format!("    {}: {}", json!(name), table.to_json())
    });
    let rules = cases::RULES.iter();
    let rules = rules.map(|(name, text)| format!("    {}: {}", json!(name), json!(text)));
    let cases = cases::all();
    let count = cases.len();
    let [tables, rules, cases] = [tables.collect(), rules.collect(), indented(&cases)]
        .map(|lines: Vec<String>| lines.join(",\n"));
    format!(
        "{{\n  \"count\": {count},\n  \"tables\": {{\n{tables}\n  }},\n  \"rules\": {{\n{rules}\n  }},\n  \"cases\": [\n{cases}\n  ]\n}}\n"
    )
}

fn indented(cases: &[(Value, String)]) -> Vec<String> {
    let cases = cases.iter();
    cases.map(|(given, expected)| format!("    {{\"given\": {given}, {expected}}}")).collect()
}
