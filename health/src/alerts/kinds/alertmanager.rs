//! An Alertmanager (API v2, `POST /api/v2/alerts`).
//!
//! Alertmanager ends each alert by itself at `endsAt`. So each run sends all firing alerts again, with an end that should be
//! after the next few runs. When an alert is over, a run sends it once more, with an end in the past.

use std::collections::BTreeMap;

use serde::Serialize;
use tallyfold::Timestamp;
use tallyfold::sending::Delivery;

use super::{Form, Notice, POST, Writer, for_chat};
use crate::alerts::alert::json_of;

pub(crate) const FORM: Form = Form {
    about: "an Alertmanager",
    usual_url: None,
    path: "/api/v2/alerts",
    path_of: |_| String::new(),
    options: &[],
    delivery: Delivery {
        // The address of an Alertmanager isn't secret: everyone who may see alerts knows it.
        hides_address: false,
        ..POST
    },
    writer: |_| Ok(Writer::All(message)),
};

/// An alert in the form that the API accepts.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Posted<'a> {
    labels: &'a BTreeMap<String, String>,
    annotations: Annotations<'a>,
    starts_at: Timestamp,
    ends_at: String,
}

#[derive(Serialize)]
struct Annotations<'a> {
    summary: String,
    query: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none", rename = "runbook_url")]
    runbook: Option<&'a str>,
}

fn message(notices: &[Notice<'_>], ends_at: &str) -> String {
    let posted = notices.iter().map(|notice| Posted {
        labels: &notice.alert.labels,
        annotations: Annotations {
            // Alertmanager sends the summary to chats, too.
            summary: for_chat(&notice.alert.sentence),
            query: &notice.alert.query,
            description: notice.alert.note.as_deref(),
            runbook: notice.alert.runbook.as_deref(),
        },
        starts_at: notice.alert.since,
        ends_at: match notice.until {
            Some(until) => until.to_string(),
            None => ends_at.to_owned(),
        },
    });
    json_of(&posted.collect::<Vec<_>>())
}
