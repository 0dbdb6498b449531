//! Any address that accepts JSON. Messages are made from a template with placeholders.

use std::sync::Arc;

use serde::de::IgnoredAny;
use tallyfold::text::{harmless, nearest};
use tallyfold::{Code, Error};

use super::{Form, Notice, POST, Writer, command_for_chat, for_chat};
use crate::alerts::alert::json_of;

pub(crate) const FORM: Form = Form {
    about: "a webhook",
    usual_url: None,
    path: "",
    path_of: |_| String::new(),
    options: &["template"],
    delivery: POST,
    writer: |options| {
        let text = options.template.as_deref().unwrap_or(USUAL);
        let template = Template::parse(text)
            .map_err(|wrong| Error::argument("template", Code::InvalidArgument, wrong))?;
        Ok(Writer::Each(Arc::new(move |notice| template.message(notice))))
    },
};

/// The default template. Most chat tools accept its messages.
const USUAL: &str = r#"{"text": "{{message}}"}"#;

/// The placeholders for texts. In a template, they must be between quotes.
const TEXTS: [&str; 12] = [
    "message", "id", "sentence", "status", "rule", "severity", "since", "until", "cluster",
    "query", "note", "runbook",
];

/// The placeholders for JSON values. In a template, they must not be between quotes.
const VALUES: [&str; 3] = ["labels", "finding", "incident"];

/// A template whose messages are valid JSON for all values of its placeholders.
#[derive(Clone, Debug)]
struct Template(Vec<Piece>);

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Placeholder(&'static str),
}

impl Template {
    fn parse(text: &str) -> Result<Self, String> {
        let mut pieces = Vec::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("{{") {
            let at = text.len() - after.len();
            let line = text[..at].matches('\n').count() + 1;
            let (name, after) =
                after.split_once("}}").ok_or_else(|| format!("line {line}: {{{{ without }}}}"))?;
            pieces.push(Piece::Text(before.to_owned()));
            pieces.push(Piece::Placeholder(known(name.trim(), line)?));
            rest = after;
        }
        pieces.push(Piece::Text(rest.to_owned()));
        let template = Self(pieces);
        template.check()?;
        Ok(template)
    }

    /// Refuses a template that doesn't make valid JSON. Placeholders for texts must be between quotes, and placeholders for JSON
    /// values must not.
    fn check(&self) -> Result<(), String> {
        let filled = self.fill(|name| match VALUES.contains(&name) {
            true => r#"{"":0}"#.to_owned(),
            false => r#"\""#.to_owned(),
        });
        match serde_json::from_str::<IgnoredAny>(&filled) {
            Ok(_) => Ok(()),
            Err(error) => Err(format!(
                "with its placeholders filled in, this isn't valid JSON ({}); want \"{{{{sentence}}}}\" in quotes, and {{{{incident}}}}, {{{{finding}}}} and {{{{labels}}}} without",
                error
            )),
        }
    }

    /// Returns the message for a notice.
    fn message(&self, notice: &Notice<'_>) -> String {
        let alert = notice.alert;
        self.fill(|name| match name {
            "message" => {
                let mut text = format!("{}: {}", notice.head(), notice.message());
                if let Some(command) = command_for_chat(notice) {
                    text.push('\n');
                    text.push_str(command);
                }
                quoted(&text)
            }
            "id" => escaped(notice.id),
            "sentence" => quoted(&for_chat(&alert.sentence)),
            "note" => escaped(alert.note.as_deref().unwrap_or_default()),
            "runbook" => escaped(alert.runbook.as_deref().unwrap_or_default()),
            "status" => match notice.until {
                None => "firing".to_owned(),
                Some(_) => "resolved".to_owned(),
            },
            "rule" => escaped(&alert.rule),
            "severity" => alert.severity.to_string(),
            "since" => alert.since.to_string(),
            "until" => notice.until.map_or_else(String::new, |until| until.to_string()),
            "cluster" => escaped(notice.cluster),
            "query" => escaped(&alert.query),
            "labels" => json_of(&alert.labels),
            "finding" => alert.finding.clone(),
            _ => alert.incident.clone(),
        })
    }

    /// Replaces each placeholder by its value.
    fn fill(&self, value: impl Fn(&'static str) -> String) -> String {
        let pieces = self.0.iter().map(|piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Placeholder(name) => value(name),
        });
        pieces.collect()
    }
}

/// Returns the placeholder with a name.
fn known(name: &str, line: usize) -> Result<&'static str, String> {
    let all: Vec<&'static str> = TEXTS.into_iter().chain(VALUES).collect();
    if let Some(known) = all.iter().find(|known| **known == name) {
        return Ok(known);
    }
    Err(match nearest(name, &all) {
        Some(near) => {
            format!("line {line}: there is no placeholder {name:?}; did you mean {near}?")
        }
        None => {
            format!("line {line}: there is no placeholder {name:?}; want one of {}", all.join(", "))
        }
    })
}

/// Returns a text made harmless for display and escaped for use between the quotes of a JSON string.
fn escaped(text: &str) -> String {
    quoted(&harmless(text))
}

/// Returns a text escaped for use between the quotes of a JSON string.
fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};
    use tallyfold::Timestamp;

    use super::*;
    use crate::alerts::alert::Alert;
    use crate::rules::names::Severity;

    fn alert() -> Alert {
        Alert {
            rule: "integrations fail".to_owned(),
            severity: Severity::Critical,
            labels: BTreeMap::from([("integration".to_owned(), "a\"b\\".to_owned())]),
            sentence: "\"a\\b\"\n\u{202e}{{rule}} é".to_owned(),
            note: Some("ask the data team".to_owned()),
            runbook: None,
            query: "tallyfold explain".to_owned(),
            since: Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
            finding: r#"{"ln_p":-5.5}"#.to_owned(),
            incident: r#"{"parts":[]}"#.to_owned(),
            earlier: Vec::new(),
            is_in_doubt: false,
            ended: None,
            is_told: false,
        }
    }

    fn message(template: &str, until: &str) -> Value {
        let alert = alert();
        let notice = Notice {
            id: "a1",
            alert: &alert,
            before: None,
            until: Timestamp::parse(until).ok(),
            cluster: "eu",
        };
        let text = Template::parse(template).unwrap().message(&notice);
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn values_are_escaped_and_not_treated_as_placeholders() {
        assert_eq!(
            message(USUAL, ""),
            json!({"text": "critical: integrations fail: \"a\\b\"\u{fffd}\u{fffd}{{rule}} é [incident a1] — ask the data team\ntallyfold explain"})
        );
        let all = r#"{"a": "{{ rule }}: {{status}}/{{severity}}", "b": {{labels}}, "c": [{{finding}}, {{incident}}], "d": "{{since}} {{until}} {{cluster}} {{query}} {{id}}"}"#;
        let expected = json!({
            "a": "integrations fail: resolved/critical",
            "b": {"integration": "a\"b\\"},
            "c": [{"ln_p": -5.5}, {"parts": []}],
            "d": "2026-01-01T00:00:00Z 2026-01-01T01:00:00Z eu tallyfold explain a1",
        });
        assert_eq!(message(all, "2026-01-01T01:00:00Z"), expected);
        assert_eq!(message(r#"["{{status}}"]"#, ""), json!(["firing"]));
    }

    #[test]
    fn a_template_that_would_make_invalid_json_is_refused() {
        for (template, expected) in [
            (r#"{"text": {{sentence}}}"#, "this isn't valid JSON"),
            (r#"{"text": "{{finding}}"}"#, "this isn't valid JSON"),
            ("", "this isn't valid JSON"),
            (
                "{\n\"text\": \"{{sentense}}\"}",
                "line 2: there is no placeholder \"sentense\"; did you mean sentence?",
            ),
            (r#"{"text": "{{zzzzzz}}"}"#, "want one of message, id"),
            (r#"{"text": "{{sentence"}"#, "line 1: {{ without }}"),
        ] {
            let wrong = Template::parse(template).unwrap_err();
            assert!(wrong.contains(expected), "{template}: {wrong}");
        }
    }
}
