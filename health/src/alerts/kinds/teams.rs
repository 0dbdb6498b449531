//! A channel or chat of Microsoft Teams, by the webhook of a workflow ("Post to a channel when a webhook request is
//! received"). The webhook accepts a message with an Adaptive Card and answers 202.

use std::sync::Arc;

use serde_json::{Value, json};
use tallyfold::sending::Delivery;
use tallyfold::text::harmless;

use super::{Form, Notice, POST, Writer, command_for_chat, for_chat, shortened};
use crate::incidents::incident::Incident;
use crate::rules::names::Severity;

pub(crate) const FORM: Form = Form {
    about: "a Microsoft Teams channel",
    usual_url: None,
    path: "",
    path_of: |_| String::new(),
    options: &[],
    delivery: Delivery {
        // The webhooks of connectors, which are older than workflows, answer 200 and `1`.
        is_accepted: |answer| {
            answer.status == 202 || answer.status == 200 && answer.body.trim_ascii() == b"1"
        },
        ..POST
    },
    writer: |_| Ok(Writer::Each(Arc::new(message))),
};

/// The maximum length of a text, in characters. A whole message may have 28 KB.
const MOST_CHARACTERS: usize = 4_000;

fn message(notice: &Notice<'_>) -> String {
    let alert = notice.alert;
    let color = match (notice.until, alert.severity) {
        (Some(_), _) => "good",
        (None, Severity::Critical) => "attention",
        (None, Severity::Warning) => "warning",
        (None, Severity::Info) => "default",
    };
    let head = format!("{}: {}", notice.head(), for_chat(&alert.rule));
    let block = |text: &str| json!({ "type": "TextBlock", "text": shortened(text, MOST_CHARACTERS), "wrap": true });
    let mut head = block(&head);
    head["weight"] = json!("bolder");
    head["color"] = json!(color);
    let mut body = vec![head, block(&for_chat(&alert.sentence))];
    body.extend(alert.note.as_deref().map(|note| block(&harmless(note))));
    let facts = [
        ("Cluster", notice.cluster),
        ("Since", &alert.since.to_string()),
        ("Incident", Incident::short_id(notice.id)),
    ];
    let facts = facts.map(|(title, value)| json!({ "title": title, "value": for_chat(value) }));
    body.push(json!({ "type": "FactSet", "facts": facts }));
    // In a text block, Teams would format text between underscores as italics.
    body.extend(command_for_chat(notice).map(|command| {
        let run = json!({ "type": "TextRun", "text": shortened(command, MOST_CHARACTERS), "fontType": "monospace" });
        json!({ "type": "RichTextBlock", "inlines": [run] })
    }));
    let runbook = alert.runbook.as_deref();
    let runbook = runbook.filter(|url| url.starts_with("https://") || url.starts_with("http://"));
    let actions: Vec<Value> = runbook
        .map(|url| json!({ "type": "Action.OpenUrl", "title": "Runbook", "url": url }))
        .into_iter()
        .collect();
    json!({
        "type": "message",
        "attachments": [{
            "contentType": "application/vnd.microsoft.card.adaptive",
            "content": {
                "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                "type": "AdaptiveCard",
                "version": "1.4",
                "body": body,
                "actions": actions
            }
        }]
    })
    .to_string()
}
