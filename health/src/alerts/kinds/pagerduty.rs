//! A PagerDuty service, by the Events API v2 (`POST /v2/enqueue`), which answers 202.
//!
//! The `dedup_key` contains the identifier of the incident. The event `trigger` opens an incident or updates it, and the
//! event `resolve` with the same key closes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tallyfold::sending::Delivery;
use tallyfold::{Code, Error, Timestamp};

use super::{Form, Notice, POST, Writer};
use crate::alerts::alert::json_of;
use crate::rules::names::Severity;

pub(crate) const FORM: Form = Form {
    about: "a PagerDuty service",
    usual_url: Some("https://events.pagerduty.com/v2/enqueue"),
    path: "",
    path_of: |_| String::new(),
    options: &["routing_key"],
    delivery: Delivery { hides_address: false, is_accepted: |answer| answer.status == 202, ..POST },
    writer: |options| {
        let key = options.routing_key.clone().ok_or_else(|| {
            Error::argument(
                "routing_key",
                Code::MissingArgument,
                "PagerDuty needs the integration key of a service",
            )
        })?;
        Ok(Writer::Each(Arc::new(move |notice| message(notice, key.expose()))))
    },
};

/// The maximum length of a summary that the API accepts, in characters.
const MOST_CHARACTERS: usize = 1024;

#[derive(Serialize)]
struct Event<'a> {
    routing_key: &'a str,
    event_action: &'static str,
    dedup_key: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<Payload<'a>>,
}

#[derive(Serialize)]
struct Payload<'a> {
    summary: String,
    source: &'a str,
    severity: Severity,
    timestamp: Timestamp,
    custom_details: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    labels: &'a BTreeMap<String, String>,
    query: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runbook: Option<&'a str>,
}

fn message(notice: &Notice<'_>, routing_key: &str) -> String {
    let alert = notice.alert;
    let payload = notice.until.is_none().then(|| Payload {
        summary: notice.title(MOST_CHARACTERS),
        source: notice.cluster,
        // PagerDuty's severities include all severities of alerts.
        severity: alert.severity,
        timestamp: alert.since,
        custom_details: Details {
            labels: &alert.labels,
            query: &alert.query,
            note: alert.note.as_deref(),
            runbook: alert.runbook.as_deref(),
        },
    });
    let event = Event {
        routing_key,
        event_action: match payload {
            Some(_) => "trigger",
            None => "resolve",
        },
        // Two clusters may have incidents with the same identifier.
        dedup_key: format!("tallyfold/{}/{}", notice.cluster, notice.id),
        payload,
    };
    json_of(&event)
}
