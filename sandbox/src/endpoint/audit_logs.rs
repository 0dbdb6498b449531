//! The audit-log listing (service reference 4.2).
//!
//! Assumption `audit_log_shape`: the reference does not describe the response or the record. Here, a page is an object
//! with `page`, `perPage`, `total` and `auditLogs`, oldest record first.
//!
//! Assumption `audit_log_paging`: pages count from 1. By default, `page` is 1 and `perPage` is 20. A page after the last
//! one is empty. 0 and anything that isn't a number are refused.

use serde::Serialize;

use crate::instant::{self, Instant};
use crate::response::SandboxResponse;

const RECORDS: u64 = 57;
const PER_PAGE: u64 = 20;
/// The first record is at 2026-01-01T00:00:00Z, and another one follows every 433 minutes.
const FIRST_MS: i64 = 1_767_225_600_000;
const BETWEEN_MS: u64 = 433 * 60_000;
const ACTORS: [&str; 4] =
    ["ada@example.com", "grace@example.com", "edsger@example.com", "deploy-bot"];
const ACTIONS: [(&str, &str); 5] = [
    ("integration.updated", "integration"),
    ("playbook.published", "playbook"),
    ("write_key.created", "write_key"),
    ("member.invited", "member"),
    ("pipeline.paused", "pipeline"),
];

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    page: u64,
    per_page: u64,
    total: u64,
    audit_logs: Vec<Record>,
}

#[derive(Serialize)]
struct Record {
    id: String,
    timestamp: String,
    actor: &'static str,
    action: &'static str,
    resource: String,
}

pub(super) fn answer(query: &str) -> SandboxResponse {
    let Some((page, per_page)) = parse(query) else {
        let message = "want page and perPage, each at most once, as whole numbers from 1";
        return SandboxResponse::refusal(400, "invalid_page", message);
    };
    let first = (page - 1).saturating_mul(per_page).min(RECORDS);
    let last = first.saturating_add(per_page).min(RECORDS);
    let audit_logs = (first..last).map(record).collect();
    SandboxResponse::json(200, &Page { page, per_page, total: RECORDS, audit_logs })
}

fn parse(query: &str) -> Option<(u64, u64)> {
    let (mut page, mut per_page) = (None, None);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=')?;
        let slot = match name {
            "page" => &mut page,
            "perPage" => &mut per_page,
            _ => return None,
        };
        if slot.is_some() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        *slot = Some(value.parse().ok().filter(|number| *number > 0)?);
    }
    Some((page.unwrap_or(1), per_page.unwrap_or(PER_PAGE)))
}

fn record(index: u64) -> Record {
    let (action, resource) = ACTIONS[(index * 7 % 5) as usize];
    let elapsed_ms = (index * BETWEEN_MS) as i64;
    let timestamp = Instant::from_timestamp_millis(FIRST_MS + elapsed_ms);
    Record {
        id: format!("log-{:04}", index + 1),
        timestamp: timestamp.map(instant::text).unwrap_or_default(),
        actor: ACTORS[(index * 3 % 4) as usize],
        action,
        resource: format!("{resource}-{}", index * 13 % 17 + 1),
    }
}
