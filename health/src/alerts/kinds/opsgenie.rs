//! An Opsgenie team, by the Alert API (`POST /v2/alerts`), which answers 202 before it has processed the request.
//!
//! The alias identifies the alert. If an alert with the alias exists, another request to create it only increases its
//! counter. A close request with the alias closes the alert.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use tallyfold::sending::Delivery;
use tallyfold::text::harmless;
use tallyfold::{Code, Error};

use super::{Form, Notice, POST, Writer, shortened};
use crate::alerts::alert::json_of;
use crate::rules::names::Severity;

pub(crate) const FORM: Form = Form {
    about: "an Opsgenie team",
    usual_url: Some("https://api.opsgenie.com/v2/alerts"),
    path: "/v2/alerts",
    path_of: |notice| match notice.until {
        Some(_) => format!("/{}/close?identifierType=alias", notice.key()),
        None => String::new(),
    },
    options: &[],
    delivery: Delivery { hides_address: false, is_accepted: |answer| answer.status == 202, ..POST },
    writer: |options| {
        if !options.headers.has("authorization") {
            let message = "Opsgenie needs the header authorization: GenieKey, a space and the key of an API integration";
            return Err(Error::argument("headers", Code::MissingArgument, message));
        }
        Ok(Writer::Each(Arc::new(message)))
    },
};

/// The maximum lengths that the API accepts, in characters.
const MOST_OF_MESSAGE: usize = 130;
const MOST_OF_DESCRIPTION: usize = 15_000;
/// The limit for each detail. The API's limit of 8,000 characters is for all details together.
const MOST_OF_DETAIL: usize = 400;

#[derive(Serialize)]
struct Created<'a> {
    message: String,
    alias: String,
    description: String,
    /// The labels, the command that shows the counts, and the runbook.
    details: BTreeMap<&'a str, String>,
    entity: &'a str,
    source: &'static str,
    priority: &'static str,
}

#[derive(Serialize)]
struct Closed {
    source: &'static str,
    note: String,
}

fn message(notice: &Notice<'_>) -> String {
    let alert = notice.alert;
    let source = "tallyfold";
    if notice.until.is_some() {
        let note = shortened(&notice.message(), MOST_OF_DESCRIPTION);
        return json_of(&Closed { source, note });
    }
    let mut own = vec![("query", alert.query.as_str())];
    own.extend(alert.runbook.as_deref().map(|runbook| ("runbook", runbook)));
    let labels = alert.labels.iter();
    let labels = labels.map(|(name, value)| (name.as_str(), value.as_str()));
    // A label keeps its value even if its name is `query` or `runbook`.
    let details = own.into_iter().chain(labels);
    let details = details.map(|(name, value)| (name, shortened(&harmless(value), MOST_OF_DETAIL)));
    let created = Created {
        message: notice.title(MOST_OF_MESSAGE),
        alias: notice.key(),
        description: shortened(&notice.message(), MOST_OF_DESCRIPTION),
        details: details.collect(),
        entity: notice.cluster,
        source,
        priority: match alert.severity {
            Severity::Critical => "P1",
            Severity::Warning => "P3",
            Severity::Info => "P5",
        },
    };
    json_of(&created)
}
