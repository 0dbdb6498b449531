//! `tallyfold audit-logs`: prints a page of the audit logs. The service's reference does not describe the fields of a page, so
//! the command assumes nothing about them, and prints every digit of a number.

use std::fmt;
use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use tallyfold::AuditLogsOptions;
use tallyfold::text::is_unseen;

use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::failure::{Exit, Failure, Result};
use crate::output::report::{Part, Report};
use crate::output::sink::{Screen, WriteError, check_output, write_result};

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold audit-logs
      The first page, as the service sends it.
  tallyfold audit-logs --page 2 --per-page 100 > page-2.json
      In a file or a pipe, the bytes of the response are unchanged.
  tallyfold audit-logs --format table
      One line for each value of the page: its JSON path, and the value.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
The service's reference does not describe the fields of an audit log, so tallyfold prints pages as
they are. For several clusters, the JSON output is one object that maps each cluster's name to its
page.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditLogsFlags {
    #[command(flatten)]
    page: Declared<PageFlags>,
    /// The format [default: json]
    #[arg(long, value_enum, default_value_t = PageFormat::Json, hide_default_value = true, help_heading = "Output")]
    format: PageFormat,
    /// Writes to this file instead of stdout; an existing file is replaced atomically
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// The flags that select the page.
#[derive(Clone, Debug)]
struct PageFlags;

impl Flags for PageFlags {
    type Options = AuditLogsOptions;

    const NAMES: &'static [&'static str] = &["page", "per_page", "deadline_ms"];
    const HEADING: &'static str = "Page";
    const IS_COMMON: bool = true;
}

/// The formats of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PageFormat {
    /// As the service sends it; indented on a terminal.
    Json,
    /// One line for each value: its JSON path and the value.
    Table,
}

/// Returns a page as a value. Converts a number to a string if `Value` would change its digits, as in `1.50`.
///
/// # Errors
/// For bytes that are not JSON.
pub(super) fn value_of(page: &[u8]) -> Result<Value> {
    let value = parsed(page).and_then(value);
    value.map_err(|error| match error {
        WriteError::Failure(failure) => failure,
        WriteError::Io(error) => Failure::new(Exit::Response, error.to_string()),
    })
}

fn value(raw: &RawValue) -> Result<Value, WriteError> {
    Ok(match node(raw)? {
        Node::Object(members) => {
            let members = members.into_iter();
            let members = members.map(|(key, member)| Ok((key, value(member)?)));
            Value::Object(members.collect::<Result<_, WriteError>>()?)
        }
        Node::Array(items) => {
            let items = items.into_iter().map(value);
            Value::Array(items.collect::<Result<_, _>>()?)
        }
        Node::Scalar(text) => {
            let parsed = serde_json::from_str(text).map_err(|error| not_json(&error))?;
            match parsed {
                Value::Number(number) if number.to_string() != text => Value::from(text),
                parsed => parsed,
            }
        }
    })
}

/// Prints the page of each cluster.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written. As a table or on a terminal, also for a
/// page that is not JSON.
pub(crate) async fn run(app: &App, flags: &AuditLogsFlags) -> Result<Exit> {
    check_output(flags.output.as_deref())?;
    let report = find(app, flags, &[]).await?;
    app.fail_missing(&report);
    let pages = report.parts.iter();
    let pages: Vec<Page<'_>> = pages.map(|part| (&*part.cluster, &*part.found)).collect();
    if !pages.is_empty() {
        let is_several = pages.len() + report.missing.len() > 1;
        let is_complete = report.missing.is_empty();
        let output = flags.output.as_deref();
        write_result(output, is_complete, &app.stderr, |screen, out| {
            write(&pages, is_several, flags.format, screen, out)
        })?;
    }
    Ok(report.exit())
}

/// The name of a cluster, and its page.
type Page<'a> = (&'a str, &'a [u8]);

/// Reads the pages of the clusters with these names, or of all clusters if `clusters` is empty.
///
/// # Errors
/// For flags and settings that can't be used, and for a name that no cluster has.
pub(super) async fn find(
    app: &App,
    flags: &AuditLogsFlags,
    clusters: &[String],
) -> Result<Report<(), Vec<u8>>> {
    let options: AuditLogsOptions = flags.page.given.read()?;
    let options = &options;
    app.report((), clusters, |cluster, session| async move {
        let call = session.machine.audit_logs(options);
        let call = call.map_err(|error| cluster.as_failure(error))?;
        let logs = session.run(call).await?;
        Ok(Part::of(&cluster, logs.into_bytes()))
    })
    .await
}

fn write(
    pages: &[Page<'_>],
    is_several: bool,
    format: PageFormat,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    match format {
        PageFormat::Table => {
            for (cluster, page) in pages {
                write_paths(page, is_several.then_some(cluster), out)?;
            }
        }
        PageFormat::Json => {
            let json = match (is_several, pages) {
                (false, [(_, page)]) => page,
                _ => &*by_cluster(pages),
            };
            match screen.width {
                Some(_) => write_indented(json, out)?,
                None => out.write_all(json)?,
            }
        }
    }
    Ok(())
}

/// Returns one JSON object that maps the name of each cluster to its unchanged page.
fn by_cluster(pages: &[Page<'_>]) -> Vec<u8> {
    let mut json = b"{".to_vec();
    for (index, (cluster, page)) in pages.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend(Value::from(*cluster).to_string().bytes());
        json.push(b':');
        json.extend(*page);
    }
    json.extend(b"}\n");
    json
}

/// Writes a JSON document with each value on a line of its own, indented by its depth.
///
/// # Errors
/// If the output can't be written, and for bytes that are not JSON.
fn write_indented(json: &[u8], out: &mut dyn Write) -> Result<(), WriteError> {
    indent(parsed(json)?, 0, out)?;
    writeln!(out)?;
    Ok(())
}

/// Writes a line for each value of a document: its JSON path and the value. If there is a `name`, each line begins with it.
///
/// # Errors
/// Same as [`write_indented`].
fn write_paths(json: &[u8], name: Option<&str>, out: &mut dyn Write) -> Result<(), WriteError> {
    let mut rows = Vec::new();
    rows_of(parsed(json)?, "$".to_owned(), &mut rows)?;
    let widest = rows.iter().map(|(path, _)| path.chars().count()).max();
    let width = widest.unwrap_or_default().min(WIDEST_PATH);
    for (path, value) in rows {
        if let Some(name) = name {
            write!(out, "{name} ")?;
        }
        writeln!(out, "{path:width$}  {}", Printable(value))?;
    }
    Ok(())
}

/// The maximum width of the path column, in characters. A longer path shifts only the value on its own line.
const WIDEST_PATH: usize = 60;

/// A JSON value and its direct children.
enum Node<'a> {
    Object(Vec<(String, &'a RawValue)>),
    Array(Vec<&'a RawValue>),
    Scalar(&'a str),
}

fn parsed(json: &[u8]) -> Result<&RawValue, WriteError> {
    serde_json::from_slice(json).map_err(|error| not_json(&error))
}

fn not_json(error: &serde_json::Error) -> WriteError {
    let text = format!("the document can't be shown; pipe it to get it unchanged: {error}");
    WriteError::Failure(Failure::new(Exit::Response, text))
}

/// Parses a value, but not its children.
fn node(value: &RawValue) -> Result<Node<'_>, WriteError> {
    let text = value.get();
    let as_failure = |error| not_json(&error);
    Ok(match text.as_bytes().first() {
        Some(b'{') => {
            Node::Object(serde_json::from_str::<Members<'_>>(text).map_err(as_failure)?.0)
        }
        Some(b'[') => Node::Array(serde_json::from_str(text).map_err(as_failure)?),
        _ => Node::Scalar(text),
    })
}

fn indent(value: &RawValue, depth: usize, out: &mut dyn Write) -> Result<(), WriteError> {
    let step = |depth: usize| "  ".repeat(depth);
    match node(value)? {
        Node::Scalar(text) => write!(out, "{}", Printable(text))?,
        Node::Object(members) if members.is_empty() => write!(out, "{{}}")?,
        Node::Array(items) if items.is_empty() => write!(out, "[]")?,
        Node::Object(members) => {
            for (index, (key, member)) in members.into_iter().enumerate() {
                let begin = if index == 0 { "{" } else { "," };
                let key = Value::from(key).to_string();
                write!(out, "{begin}\n{}{}: ", step(depth + 1), Printable(&key))?;
                indent(member, depth + 1, out)?;
            }
            write!(out, "\n{}}}", step(depth))?;
        }
        Node::Array(items) => {
            for (index, item) in items.into_iter().enumerate() {
                let begin = if index == 0 { "[" } else { "," };
                write!(out, "{begin}\n{}", step(depth + 1))?;
                indent(item, depth + 1, out)?;
            }
            write!(out, "\n{}]", step(depth))?;
        }
    }
    Ok(())
}

/// Adds the path and the text of each value to `rows`.
fn rows_of<'a>(
    value: &'a RawValue,
    path: String,
    rows: &mut Vec<(String, &'a str)>,
) -> Result<(), WriteError> {
    match node(value)? {
        Node::Object(members) if !members.is_empty() => {
            for (key, member) in members {
                rows_of(member, format!("{path}{}", step_to(&key)), rows)?;
            }
        }
        Node::Array(items) if !items.is_empty() => {
            for (index, item) in items.into_iter().enumerate() {
                rows_of(item, format!("{path}[{index}]"), rows)?;
            }
        }
        Node::Scalar(text) => rows.push((path, text)),
        Node::Object(_) => rows.push((path, "{}")),
        Node::Array(_) => rows.push((path, "[]")),
    }
    Ok(())
}

/// Returns the step of a JSON path to the member `key`, such as `.key` or `["odd key"]`.
fn step_to(key: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    match !key.is_empty() && key.chars().all(is_plain) {
        true => format!(".{key}"),
        false => {
            let key = Value::from(key).to_string();
            format!("[{}]", Printable(&key))
        }
    }
}

/// The members of an object in their original order, including duplicate keys.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MembersVisitor)
    }
}

struct MembersVisitor;

impl<'de> Visitor<'de> for MembersVisitor {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

/// Displays JSON with all [unseen](is_unseen) characters escaped. A terminal would interpret some of them.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if !is_unseen(character) {
                write!(f, "{character}")?;
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                write!(f, "\\u{unit:04x}")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pages: &[(&str, &str)], format: PageFormat, width: Option<usize>) -> String {
        let pages = pages.iter();
        let pages: Vec<Page<'_>> = pages.map(|(name, json)| (*name, json.as_bytes())).collect();
        let screen = Screen { width, color: false };
        let mut out = Vec::new();
        write(&pages, pages.len() > 1, format, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    const ODD: &str = " {\"n\": 12345678901234567890123.10,\n\t\"a\":[ ] }\n\n";

    #[test]
    fn a_piped_page_keeps_its_bytes() {
        assert_eq!(written(&[("eu", ODD)], PageFormat::Json, None), ODD);
        let two = written(&[("e\"u", ODD), ("us", "[1]")], PageFormat::Json, None);
        assert_eq!(two, format!("{{\"e\\\"u\":{ODD},\"us\":[1]}}\n"));
        assert!(serde_json::from_str::<serde_json::Value>(&two).is_ok());
    }

    #[test]
    fn a_page_on_a_terminal_is_indented() {
        let text = written(&[("eu", ODD)], PageFormat::Json, Some(80));
        assert_eq!(text, "{\n  \"n\": 12345678901234567890123.10,\n  \"a\": []\n}\n");
    }

    #[test]
    fn a_table_has_a_line_for_each_value() {
        let text = written(&[("eu", ODD), ("us", "[1]")], PageFormat::Table, None);
        assert_eq!(text, "eu $.n  12345678901234567890123.10\neu $.a  []\nus $[0]  1\n");
    }

    fn indented(json: &str) -> String {
        let mut out = Vec::new();
        write_indented(json.as_bytes(), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn paths(json: &str) -> String {
        let mut out = Vec::new();
        write_paths(json.as_bytes(), None, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn an_indented_document_is_the_same_document() {
        let json = r#" {"b":[1,{"x":null},[]],"a":{},"t":"a\"}{[é\n","b":1e400,"":true} "#;
        assert_eq!(
            indented(json),
            "{\n  \"b\": [\n    1,\n    {\n      \"x\": null\n    },\n    []\n  ],\n  \"a\": {},\n  \
             \"t\": \"a\\\"}{[é\\n\",\n  \"b\": 1e400,\n  \"\": true\n}\n"
        );
        assert_eq!(indented(" 12 "), "12\n");
    }

    #[test]
    fn each_value_has_its_path() {
        let json = r#"{"records":[{"id":"a b","n":1.50},{}],"odd key":[null]}"#;
        assert_eq!(
            paths(json),
            "$.records[0].id  \"a b\"\n$.records[0].n   1.50\n$.records[1]     {}\n$[\"odd key\"][0]  null\n"
        );
        assert_eq!(paths("true"), "$  true\n");
    }

    #[test]
    fn control_characters_are_escaped() {
        let json = "{\"a\u{9b}31m\":\"x\u{7f}\u{202e}\u{e0001}\"}";
        for text in [indented(json), paths(json)] {
            let controls = text.chars().filter(|c| c.is_control() && *c != '\n');
            assert_eq!(controls.count(), 0, "{text:?}");
            assert!(text.contains("\\u009b") && text.contains("\\u007f\\u202e\\udb40\\udc01"));
        }
    }

    #[test]
    fn text_that_is_not_json_is_refused() {
        for json in ["", "{", "[1,]"] {
            assert!(write_indented(json.as_bytes(), &mut Vec::new()).is_err());
        }
    }
}
