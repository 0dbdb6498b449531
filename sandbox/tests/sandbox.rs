//! Tests the sandbox against the service reference, only through requests and responses.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails that way")]

use serde_json::{Value, json};
use tallyfold::{Code, Now};
use tallyfold_sandbox::{
    Fault, FaultEffect, Outcome, Sandbox, SandboxEndpoint, SandboxEvent, SandboxOptions,
    SandboxResponse, Scene,
};

const CONTROL: &str = "/v1.1/oauth/token";
const ORCHESTRATION: &str = "/oauth/token";
const DELIVERY: &str = "/v1.1/analytics/event_delivery";
const INGESTION: &str = "/v1.1/analytics/event_ingestion";
const AUDIT_LOGS: &str = "/api/v1/audit-logs";
const JSON: (&str, &str) = ("Content-Type", "application/json");
const ALL: [&str; 4] = ["event_name", "write_key", "integration", "reason"];
const DAY_S: u64 = 86_400;

fn at(seconds: u64) -> Now {
    let ms = seconds * 1000;
    Now { monotonic_ms: ms, unix_ms: 1_767_225_600_000 + i64::try_from(ms).unwrap() }
}

fn sandbox(seed: Option<u64>) -> Sandbox {
    Sandbox::new(SandboxOptions::default().seed(seed)).unwrap()
}

/// Events at one timestamp, with an event name, a write key, an integration and a reason.
fn event(timestamp: &str, outcome: Outcome, values: [&str; 4], count: u64) -> SandboxEvent {
    let timestamp = timestamp.to_owned();
    let [event_name, write_key, integration, reason] = values.map(str::to_owned);
    SandboxEvent::with_defaults(timestamp, outcome, event_name, write_key, integration)
        .reason(reason)
        .count(count)
}

fn token_body(path: &str) -> Value {
    let demo = SandboxOptions::default();
    let mut body = json!({
        "client_id": demo.client_id,
        "client_secret": demo.client_secret.expose(),
        "audience": demo.control_audience,
    });
    if path == ORCHESTRATION {
        body["audience"] = json!(demo.orchestration_audience);
        body["grant_type"] = json!("client_credentials");
    }
    body
}

fn post(sandbox: &mut Sandbox, path: &str, token: &str, body: &Value, now: Now) -> SandboxResponse {
    let authorization = format!("Bearer {token}");
    let headers = [("authorization", authorization.as_str()), JSON];
    sandbox.handle("POST", path, &headers, body.to_string().as_bytes(), now)
}

fn get(sandbox: &mut Sandbox, target: &str, token: &str, now: Now) -> SandboxResponse {
    let authorization = format!("Bearer {token}");
    sandbox.handle("GET", target, &[("Authorization", &authorization)], b"", now)
}

fn parsed(response: &SandboxResponse) -> Value {
    serde_json::from_slice(&response.body).unwrap()
}

fn mint(sandbox: &mut Sandbox, path: &str, now: Now) -> String {
    let response =
        sandbox.handle("POST", path, &[JSON], token_body(path).to_string().as_bytes(), now);
    assert_eq!(response.status, 200);
    parsed(&response)["access_token"].as_str().unwrap().to_owned()
}

fn question(start: &str, end: &str, dimensions: &[&str]) -> Value {
    json!({ "start": start, "end": end, "dimensions": dimensions })
}

fn ask(sandbox: &mut Sandbox, path: &str, start: &str, end: &str, dimensions: &[&str]) -> Value {
    let token = mint(sandbox, CONTROL, at(0));
    let body = question(start, end, dimensions);
    let response = post(sandbox, path, &token, &body, at(0));
    assert_eq!(response.status, 200, "{}", String::from_utf8_lossy(&response.body));
    parsed(&response)
}

fn count(digits: &Value) -> u64 {
    let text = digits.as_str().unwrap();
    assert!(!text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()), "{text:?}");
    text.parse().unwrap()
}

type Rows = std::collections::BTreeMap<String, [u64; 3]>;

/// The entries by their dimensions. Fails if they don't add up to the totals, or if one is repeated.
fn rows(result: &Value) -> Rows {
    let mut rows = Rows::new();
    let mut sums = [0; 3];
    for entry in result["counts"].as_array().unwrap() {
        let counts = ["success", "errors", "filtered"].map(|name| count(&entry[name]));
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
        assert!(rows.insert(entry["dimensions"].to_string(), counts).is_none(), "{entry} twice");
    }
    let totals = ["totalDelivered", "totalErrors", "totalFiltered"];
    assert_eq!(sums, totals.map(|name| count(&result[name])));
    rows
}

fn add(rows: &mut Rows, others: Rows) {
    for (dimensions, counts) in others {
        let sums = rows.entry(dimensions).or_default();
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
    }
}

#[test]
fn tokens_have_the_documented_fields_and_are_checked() {
    let mut sandbox = sandbox(None);
    for path in [CONTROL, ORCHESTRATION] {
        let body = token_body(path);
        let response = sandbox.handle("POST", path, &[JSON], body.to_string().as_bytes(), at(0));
        let answer = parsed(&response);
        assert_eq!(answer["expires_in"], json!(86_400));
        assert_eq!(answer["token_type"], json!("Bearer"));
        assert_eq!(answer.as_object().unwrap().len(), 3);

        for name in body.as_object().unwrap().keys() {
            let mut without = body.clone();
            without.as_object_mut().unwrap().remove(name);
            assert_eq!(post(&mut sandbox, path, "", &without, at(0)).status, 400, "no {name}");
            let mut wrong = body.clone();
            wrong[name] = json!("wrong");
            let status = if name == "grant_type" { 400 } else { 401 };
            assert_eq!(post(&mut sandbox, path, "", &wrong, at(0)).status, status, "{name}");
        }
        let no_json = sandbox.handle("POST", path, &[JSON], b"{", at(0));
        assert_eq!(no_json.status, 400);
        assert!(parsed(&no_json)["error"].is_string());
        assert_eq!(sandbox.handle("POST", path, &[], b"{}", at(0)).status, 415);
    }
    let mut with_grant_type = token_body(CONTROL);
    with_grant_type["grant_type"] = json!("client_credentials");
    assert_eq!(post(&mut sandbox, CONTROL, "", &with_grant_type, at(0)).status, 400);
    let mut other_api = token_body(CONTROL);
    other_api["audience"] = json!(SandboxOptions::default().orchestration_audience);
    assert_eq!(post(&mut sandbox, CONTROL, "", &other_api, at(0)).status, 401);
}

#[test]
fn a_token_opens_one_api_for_24_hours() {
    let mut sandbox = sandbox(None);
    let control = mint(&mut sandbox, CONTROL, at(10));
    let orchestration = mint(&mut sandbox, ORCHESTRATION, at(10));
    let body = question("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", &["reason"]);
    let mut statuses = |token: &str, now| {
        let metrics = post(&mut sandbox, DELIVERY, token, &body, now).status;
        (metrics, get(&mut sandbox, AUDIT_LOGS, token, now).status)
    };
    assert_eq!(statuses(&control, at(11)), (200, 401));
    assert_eq!(statuses(&orchestration, at(11)), (401, 200));
    assert_eq!(statuses(&control, at(10 + DAY_S - 1)), (200, 401));
    assert_eq!(statuses(&control, at(10 + DAY_S)), (401, 401));
    assert_eq!(statuses(&orchestration, at(10 + DAY_S)), (401, 401));
    assert_eq!(statuses("", at(11)), (401, 401));
    assert_eq!(statuses("made-up", at(11)), (401, 401));
    let bare = sandbox.handle("GET", AUDIT_LOGS, &[], b"", at(11));
    assert_eq!(bare.status, 401);

    let mut other = SandboxOptions::default().client_id("other");
    other.token_lifetime_s = 1;
    let mut other = Sandbox::new(other).unwrap();
    assert_eq!(post(&mut other, DELIVERY, &control, &body, at(11)).status, 401);
}

#[test]
fn revoked_tokens_are_refused_and_new_ones_are_not() {
    let mut sandbox = sandbox(None);
    let old = mint(&mut sandbox, ORCHESTRATION, at(0));
    sandbox.revoke_tokens();
    assert_eq!(get(&mut sandbox, AUDIT_LOGS, &old, at(0)).status, 401);
    let new = mint(&mut sandbox, ORCHESTRATION, at(0));
    assert_ne!(old, new);
    assert_eq!(get(&mut sandbox, AUDIT_LOGS, &new, at(0)).status, 200);
}

#[test]
fn records_count_from_the_start_and_not_at_the_end() {
    let mut sandbox = sandbox(None);
    // Out of order, and finer than a millisecond.
    for (second, weight) in [("02", 100), ("01.9999", 10), ("01", 1)] {
        let timestamp = format!("2026-01-01T00:00:{second}Z");
        sandbox.record(&event(&timestamp, Outcome::Success, ["e", "w", "i", ""], weight)).unwrap();
    }
    let cases = [
        ("01", "02", 11),
        ("02", "03", 100),
        ("00", "01", 0),
        ("01.0001", "02.5", 110),
        ("00", "09", 111),
    ];
    for (start, end, expected) in cases {
        let (start, end) =
            (format!("2026-01-01T00:00:{start}Z"), format!("2026-01-01T00:00:{end}Z"));
        let result = ask(&mut sandbox, DELIVERY, &start, &end, &["event_name"]);
        assert_eq!(count(&result["totalDelivered"]), expected, "[{start}, {end})");
        assert_eq!(
            (&result["start"], &result["end"]),
            (&json!(start.replace("01.0001", "01.000100")), &json!(end.replace("02.5", "02.500")))
        );
        rows(&result);
    }
}

#[test]
fn entries_hold_the_requested_dimensions_in_order_of_appearance() {
    let mut sandbox = sandbox(None);
    let mut record = |outcome, name, key, reason, count| {
        let values = [name, key, "CRM", reason];
        let event = event("2026-01-01T00:00:00Z", outcome, values, count);
        sandbox.record(&event).unwrap();
    };
    record(Outcome::Success, "Z \"é\"", "w1", "", 2);
    record(Outcome::Filtered, "Z \"é\"", "w1", "playbook filter", 3);
    record(Outcome::Errors, "A", "w2", "", u64::MAX);
    let window = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z");
    let result = ask(&mut sandbox, DELIVERY, window.0, window.1, &["reason", "event_name"]);
    let expected = json!({
        "start": window.0, "end": window.1,
        "totalDelivered": "2", "totalErrors": "18446744073709551615", "totalFiltered": "3",
        "counts": [
            { "success": "2", "errors": "0", "filtered": "0",
              "dimensions": { "reason": "", "event_name": "Z \"é\"" } },
            { "success": "0", "errors": "0", "filtered": "3",
              "dimensions": { "reason": "playbook filter", "event_name": "Z \"é\"" } },
            { "success": "0", "errors": "18446744073709551615", "filtered": "0",
              "dimensions": { "reason": "", "event_name": "A" } },
        ],
    });
    assert_eq!(result, expected);
    let ingested = ask(&mut sandbox, INGESTION, window.0, window.1, &["event_name"]);
    assert_eq!(rows(&ingested)[r#"{"event_name":"Z \"é\""}"#], [2, 0, 3]);

    sandbox.record(&event(window.0, Outcome::Errors, ["B", "w2", "CRM", ""], 1)).unwrap();
    let token = mint(&mut sandbox, CONTROL, at(0));
    let body = question(window.0, window.1, &["event_name"]);
    assert_eq!(post(&mut sandbox, DELIVERY, &token, &body, at(0)).status, 500);
}

#[test]
fn wrong_questions_are_refused() {
    let mut sandbox = sandbox(Some(1));
    let token = mint(&mut sandbox, CONTROL, at(0));
    let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z");
    let mut extra = question(start, end, &["reason"]);
    extra["limit"] = json!(1);
    let mut status = |path: &str, body: &Value| {
        let response = post(&mut sandbox, path, &token, body, at(0));
        assert!(response.status == 200 || parsed(&response)["error"].is_string());
        response.status
    };
    assert_eq!(status(DELIVERY, &question(start, end, &["reason"])), 200);
    assert_eq!(status(INGESTION, &question(start, end, &["reason"])), 400);
    assert_eq!(status(INGESTION, &question(start, end, &["write_key", "reason"])), 400);
    assert_eq!(status(INGESTION, &question(start, end, &["write_key"])), 200);
    for body in [
        question(start, end, &[]),
        question(start, end, &["cluster"]),
        question(start, end, &["write_key", "write_key"]),
        question(start, start, &["write_key"]),
        question(end, start, &["write_key"]),
        question(start, "2026-01-01T00:05:00", &["write_key"]),
        question(start, "2026-01-01T00:05:00+00:00", &["write_key"]),
        json!({ "start": start, "end": end }),
        json!([]),
        extra,
    ] {
        assert_eq!(status(DELIVERY, &body), 400, "{body}");
    }
    assert_eq!(sandbox.handle("POST", "/v1/analytics", &[], b"", at(0)).status, 404);
    let wrong_method = sandbox.handle("GET", DELIVERY, &[], b"", at(0));
    assert_eq!(wrong_method.status, 405);
    assert!(wrong_method.headers.contains(&("allow".to_owned(), "POST".to_owned())));
    assert_eq!(sandbox.handle("POST", AUDIT_LOGS, &[], b"", at(0)).status, 405);
}

#[test]
fn audit_logs_come_in_pages() {
    let mut sandbox = sandbox(None);
    let token = mint(&mut sandbox, ORCHESTRATION, at(0));
    let mut ids = Vec::new();
    for page in 1..=4 {
        let target = format!("{AUDIT_LOGS}?page={page}&perPage=25");
        let answer = parsed(&get(&mut sandbox, &target, &token, at(0)));
        let logs = answer["auditLogs"].as_array().unwrap();
        assert_eq!(logs.len(), [25, 25, 7, 0][page - 1]);
        ids.extend(logs.iter().map(|log| log["id"].clone()));
    }
    ids.dedup();
    assert_eq!(ids.len(), 57);
    assert_eq!(parsed(&get(&mut sandbox, AUDIT_LOGS, &token, at(0)))["perPage"], json!(20));
    let huge = format!("{AUDIT_LOGS}?page={0}&perPage={0}", u64::MAX);
    assert_eq!(get(&mut sandbox, &huge, &token, at(0)).status, 200);
    for query in ["page=0", "perPage=0", "page=-1", "page=", "page=+1", "page=1&page=2", "size=3"] {
        let target = format!("{AUDIT_LOGS}?{query}");
        assert_eq!(get(&mut sandbox, &target, &token, at(0)).status, 400, "{query}");
    }
}

/// The traffic of a window by all dimensions, as bytes.
fn traffic(seed: u64, start: &str, end: &str) -> Vec<u8> {
    let mut sandbox = sandbox(Some(seed));
    let token = mint(&mut sandbox, CONTROL, at(0));
    post(&mut sandbox, DELIVERY, &token, &question(start, end, &ALL), at(0)).body
}

fn day_of_traffic(seed: u64) -> Vec<u8> {
    traffic(seed, "2026-01-14T00:00:00Z", "2026-01-15T00:00:00Z")
}

fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[test]
fn a_seed_gives_the_same_bytes_on_every_platform() {
    let day = day_of_traffic(7);
    assert_eq!(day, day_of_traffic(7));
    assert_ne!(day, day_of_traffic(8));
    let cut = traffic(7, "2026-01-14T09:59:59.123Z", "2026-01-14T10:07:41Z");
    assert_eq!((cut.len(), fnv1a(&cut)), (335_629, 773_682_653_768_252_321));
    assert_eq!((day.len(), fnv1a(&day)), (682_685, 4_931_530_843_113_590_421));
}

#[test]
fn traffic_is_believable() {
    let mut sandbox = sandbox(Some(7));
    let day: Value = serde_json::from_slice(&day_of_traffic(7)).unwrap();
    let [delivered, errors, filtered] =
        ["totalDelivered", "totalErrors", "totalFiltered"].map(|name| count(&day[name]));
    assert!((1_000_000..20_000_000).contains(&delivered));
    assert!((1..10).contains(&(errors * 100 / delivered)));
    assert!((1..10).contains(&(filtered * 100 / delivered)));
    for entry in day["counts"].as_array().unwrap() {
        let has_reason = entry["dimensions"]["reason"] != json!("");
        assert_eq!(has_reason, count(&entry["filtered"]) > 0, "{entry}");
        assert!(!has_reason || entry["success"] == json!("0") && entry["errors"] == json!("0"));
    }
    let mut values = |dimension: &str| {
        let (start, end) = ("2026-01-14T00:00:00Z", "2026-01-15T00:00:00Z");
        rows(&ask(&mut sandbox, DELIVERY, start, end, &[dimension])).into_keys().collect::<Vec<_>>()
    };
    let sizes = ALL.map(|dimension| values(dimension).len());
    assert!(sizes[0] > 150 && sizes[1] == 40 && sizes[2] == 30 && sizes[3] == 7, "{sizes:?}");

    let mut delivered = |start: &str, end: &str| {
        count(&ask(&mut sandbox, DELIVERY, start, end, &["reason"])["totalDelivered"])
    };
    let night = delivered("2026-01-14T02:00:00Z", "2026-01-14T04:00:00Z");
    let noon = delivered("2026-01-14T14:00:00Z", "2026-01-14T16:00:00Z");
    assert!(noon > 3 * night, "{noon} at noon, {night} at night");
    let saturday = delivered("2026-01-17T00:00:00Z", "2026-01-18T00:00:00Z");
    let friday = delivered("2026-01-16T00:00:00Z", "2026-01-17T00:00:00Z");
    assert!(saturday * 5 < friday * 4, "{saturday} on Saturday, {friday} on Friday");
    assert!(delivered("1969-12-31T23:59:00Z", "1970-01-01T00:01:00Z") > 0);
}

#[test]
fn some_integration_has_an_outage_of_40_minutes() {
    let mut sandbox = sandbox(Some(7));
    let mut failing = std::collections::BTreeMap::<String, u32>::new();
    for minute in (0..3 * 1440).step_by(5) {
        let text =
            |minute: i64| tallyfold::Timestamp::from_unix_ms(minute * 60_000).unwrap().to_string();
        let first = 1_768_348_800 / 60 + minute;
        let result = ask(&mut sandbox, DELIVERY, &text(first), &text(first + 5), &["integration"]);
        for (integration, [success, errors, _]) in rows(&result) {
            if errors > 3 * success && errors > 20 {
                *failing.entry(integration).or_default() += 1;
            }
        }
    }
    assert!(failing.values().any(|slots| *slots == 8), "{failing:?}");
    assert!(failing.len() <= 3, "{failing:?}");
}

#[test]
fn counts_of_adjacent_windows_add_up() {
    let mut sandbox = sandbox(Some(3));
    let instant = |ms: i64| tallyfold::Timestamp::from_unix_ms(ms).unwrap().to_string();
    let mut state = 1_u64;
    let mut random = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for around in [1_767_960_000_000, 0, 4_102_444_800_000] {
        let start = around - 3_600_000 + i64::try_from(random(900_000)).unwrap();
        let end = start + 1_800_000 + i64::try_from(random(900_000)).unwrap();
        let whole = rows(&ask(&mut sandbox, DELIVERY, &instant(start), &instant(end), &ALL));
        assert!(whole.len() > 500);
        let length = u64::try_from(end - start).unwrap();
        let mut cuts: Vec<i64> =
            (0..12).map(|_| start + i64::try_from(random(length)).unwrap()).collect();
        // The cuts include both ends, the edge of a slot, and a window of one millisecond.
        let edge = (start / 300_000 + 2) * 300_000;
        cuts.extend([start, end, edge, edge + 1]);
        cuts.sort_unstable();
        cuts.dedup();
        let mut sums = Rows::new();
        for pair in cuts.windows(2) {
            let part = ask(&mut sandbox, DELIVERY, &instant(pair[0]), &instant(pair[1]), &ALL);
            add(&mut sums, rows(&part));
        }
        assert_eq!(sums, whole);
    }
}

#[test]
fn the_last_millisecond_of_five_minutes_belongs_to_them() {
    let mut sandbox = sandbox(Some(3));
    let mut delivered = |start: i64, end: i64| {
        let instant = |ms| tallyfold::Timestamp::from_unix_ms(ms).unwrap().to_string();
        let result = ask(&mut sandbox, DELIVERY, &instant(start), &instant(end), &["reason"]);
        count(&result["totalDelivered"])
    };
    let mut filled = 0;
    for start in (0..100).map(|slot| 1_768_392_000_000 + slot * 300_000) {
        let end = start + 300_000;
        let last = delivered(end - 1, end);
        assert_eq!(delivered(start, end - 1) + last, delivered(start, end));
        filled += u32::from(last > 0);
    }
    assert!(filled > 0);
}

#[test]
fn seeded_traffic_is_given_for_at_most_400_days() {
    let mut sandbox = sandbox(Some(7));
    let token = mint(&mut sandbox, CONTROL, at(0));
    let body = question("0001-01-01T00:00:00Z", "9999-12-31T00:00:00Z", &["reason"]);
    let response = post(&mut sandbox, DELIVERY, &token, &body, at(0));
    assert_eq!(response.status, 400);
}

#[test]
fn a_window_finer_than_a_millisecond_holds_what_starts_in_it() {
    let mut sandbox = sandbox(Some(3));
    let mut counts = |start: &str, end: &str| {
        let text = |fraction| format!("2026-01-14T14:00:0{fraction}Z");
        rows(&ask(&mut sandbox, DELIVERY, &text(start), &text(end), &ALL))
    };
    let mut filled = 0;
    for second in 0..8 {
        for ms in (0..1000).step_by(40) {
            let [whole, half, next] = [
                format!("{second}.{ms:03}"),
                format!("{second}.{ms:03}5"),
                format!("{second}.{:03}", ms + 1),
            ];
            let millisecond = counts(&whole, &next);
            filled += u32::from(!millisecond.is_empty());
            assert_eq!(counts(&whole, &half), millisecond);
            assert!(counts(&half, &next).is_empty());
        }
    }
    assert!(filled > 3, "{filled}");
}

#[test]
fn every_grouping_sums_up_to_the_same_totals() {
    let mut sandbox = sandbox(Some(5));
    let (start, end) = ("2026-03-01T10:02:00.5Z", "2026-03-01T10:21:00Z");
    let totals = |result: &Value| {
        rows(result);
        ["totalDelivered", "totalErrors", "totalFiltered"].map(|name| count(&result[name]))
    };
    let expected = totals(&ask(&mut sandbox, DELIVERY, start, end, &ALL));
    for dimensions in [&["reason"][..], &["write_key"], &["integration", "event_name"]] {
        assert_eq!(totals(&ask(&mut sandbox, DELIVERY, start, end, dimensions)), expected);
    }
    assert_eq!(totals(&ask(&mut sandbox, INGESTION, start, end, &["write_key"])), expected);
}

/// The responses to `requests` equal delivery requests after a fault was injected.
fn after(fault: &Value, requests: usize) -> Vec<SandboxResponse> {
    let mut sandbox = sandbox(None);
    sandbox
        .record(&event("2026-01-01T00:00:00Z", Outcome::Success, ["e", "w", "i", ""], 5))
        .unwrap();
    let token = mint(&mut sandbox, CONTROL, at(0));
    sandbox.inject_json(&fault.to_string()).unwrap();
    let body = question("2026-01-01T00:00:00Z", "2026-01-01T00:05:00Z", &["event_name"]);
    (0..requests).map(|_| post(&mut sandbox, DELIVERY, &token, &body, at(0))).collect()
}

#[test]
fn faults_happen_once_and_then_no_more() {
    let good = after(&json!({ "kind": "delay", "milliseconds": 0 }), 1).remove(0);
    let hit = |fault: Value| {
        let mut responses = after(&fault, 2);
        let (second, first) = (responses.remove(1), responses.remove(0));
        if fault["kind"] != json!("revoke_token") {
            assert_eq!(second, good, "{fault}");
        }
        first
    };
    assert_eq!(hit(json!({ "kind": "status", "status": 503 })).status, 503);
    let busy = hit(json!({ "kind": "status", "status": 429, "retry_after": "120, 60" }));
    let header = ("retry-after".to_owned(), "120, 60".to_owned());
    assert!(busy.status == 429 && busy.headers.contains(&header));
    let moved = hit(json!({ "kind": "status", "status": 302, "every": null }));
    assert!(moved.headers.iter().any(|(name, _)| name == "location"));
    assert!(hit(json!({ "kind": "status", "status": 204 })).body.is_empty());
    let delayed = hit(json!({ "kind": "delay", "milliseconds": 200 }));
    assert_eq!(delayed, SandboxResponse { delay_ms: 200, ..good.clone() });
    let cut = hit(json!({ "kind": "truncate", "bytes": 100, "endpoint": "event_delivery" }));
    assert_eq!(cut, SandboxResponse { cut_at: Some(100), ..good.clone() });
    assert_eq!(hit(json!({ "kind": "truncate", "bytes": 9999 })).cut_at, None);
    let html = hit(json!({ "kind": "content_type", "content_type": "text/html" }));
    assert_eq!(html.headers, [("content-type".to_owned(), "text/html".to_owned())]);
    assert_eq!(html.body, good.body);
    assert_eq!(hit(json!({ "kind": "body", "body": "<html>" })).body, b"<html>");
    assert_eq!(hit(json!({ "kind": "revoke_token" })).status, 401);
    let wrong = parsed(&hit(json!({ "kind": "wrong_total", "amount": 7 })));
    assert_eq!(wrong["totalDelivered"], json!("12"));
    let wrong = parsed(&hit(json!({ "kind": "wrong_total", "amount": u64::MAX })));
    assert_eq!(wrong["totalDelivered"], json!("0"));
}

#[test]
fn faults_repeat_combine_and_wait_for_their_endpoint() {
    let every_third = after(&json!({ "kind": "status", "status": 500, "every": 3 }), 7);
    let statuses: Vec<u16> = every_third.iter().map(|response| response.status).collect();
    assert_eq!(statuses, [200, 200, 500, 200, 200, 500, 200]);

    let mut sandbox = sandbox(None);
    let status = |status| Fault {
        effect: FaultEffect::Status { status, retry_after: None },
        endpoint: Some(SandboxEndpoint::AuditLogs),
        every: None,
    };
    sandbox.inject(status(503)).unwrap();
    sandbox.inject(status(429)).unwrap();
    sandbox.inject_json(r#"{"kind": "body", "body": "sorry", "endpoint": "audit_logs"}"#).unwrap();
    // None of them is for a token endpoint, and `revoke_token` makes no sense there.
    sandbox.inject_json(r#"{"kind": "revoke_token"}"#).unwrap();
    let token = mint(&mut sandbox, ORCHESTRATION, at(0));
    let first = get(&mut sandbox, AUDIT_LOGS, &token, at(0));
    assert_eq!((first.status, first.body.as_slice()), (503, &b"sorry"[..]));
    assert_eq!(get(&mut sandbox, AUDIT_LOGS, &token, at(0)).status, 429);
    assert_eq!(get(&mut sandbox, AUDIT_LOGS, &token, at(0)).status, 401, "revoked at the first");
}

#[test]
fn faults_that_cannot_happen_are_config_errors() {
    let mut sandbox = sandbox(None);
    for text in [
        "",
        "7",
        "{}",
        r#"{"kind": "explode"}"#,
        r#"{"kind": "status"}"#,
        r#"{"kind": "status", "status": 100}"#,
        r#"{"kind": "status", "status": 70000}"#,
        r#"{"kind": "status", "status": 500, "bytes": 1}"#,
        r#"{"kind": "status", "status": 503, "retry_after": "a\nb"}"#,
        r#"{"kind": "status", "status": 503, "retry_after": 5}"#,
        r#"{"kind": "delay", "milliseconds": 1, "retry_after": "5"}"#,
        r#"{"kind": "status", "status": 500, "every": 0}"#,
        r#"{"kind": "status", "status": 500, "every": "2"}"#,
        r#"{"kind": "status", "status": 500, "endpoint": "metrics"}"#,
        r#"{"kind": "status", "status": 500, "speed": 1}"#,
        r#"{"kind": "delay", "milliseconds": -1}"#,
        r#"{"kind": "delay", "milliseconds": 3000000000}"#,
        r#"{"kind": "content_type", "content_type": "a\nb"}"#,
        r#"{"kind": "wrong_total", "amount": 0}"#,
        r#"{"kind": "wrong_total", "amount": 1, "endpoint": "audit_logs"}"#,
        r#"{"kind": "revoke_token", "endpoint": "control_token"}"#,
        r#"{"kind": "revoke_token", "amount": 1}"#,
    ] {
        let error = sandbox.inject_json(text).unwrap_err();
        assert_eq!(error.code(), Code::InvalidArgument, "{text}");
        assert_eq!(error.argument_name(), Some("fault"));
    }
}

#[test]
fn options_and_records_are_checked() {
    type Change = fn(&mut SandboxOptions);
    let broken: [(&str, Change); 6] = [
        ("client_id", |options| options.client_id.clear()),
        ("client_secret", |options| options.client_secret = String::new().into()),
        ("control_audience", |options| options.control_audience.clear()),
        ("orchestration_audience", |options| options.orchestration_audience.clear()),
        ("orchestration_audience", |options| {
            options.orchestration_audience = options.control_audience.clone();
        }),
        ("token_lifetime_s", |options| options.token_lifetime_s = 0),
    ];
    for (argument, change) in broken {
        let mut options = SandboxOptions::default();
        change(&mut options);
        let error = Sandbox::new(options).unwrap_err();
        assert_eq!((error.code(), error.argument_name()), (Code::InvalidArgument, Some(argument)));
    }
    let mut sandbox = sandbox(None);
    let event = event("2026-01-01", Outcome::Success, ["e", "w", "i", ""], 1);
    let error = sandbox.record(&event).unwrap_err();
    assert_eq!((error.code(), error.argument_name()), (Code::InvalidTimestamp, Some("timestamp")));
    for at in ["2026-01-01T01:00:00+01:00", "2025-12-31T19:00:00.5-05:00"] {
        let with_offset = self::event(at, Outcome::Success, ["e", "w", "i", ""], 1);
        assert_eq!(sandbox.record(&with_offset), Ok(()), "{at}");
    }
    assert_eq!(Outcome::from_name("delivered"), None);
}

#[test]
fn requests_are_counted_by_endpoint() {
    let mut sandbox = sandbox(None);
    mint(&mut sandbox, CONTROL, at(0));
    get(&mut sandbox, AUDIT_LOGS, "", at(0));
    get(&mut sandbox, AUDIT_LOGS, "", at(0));
    get(&mut sandbox, "/nowhere", "", at(0));
    let stats = serde_json::to_value(sandbox.stats()).expect("JSON");
    let expected = json!({
        "control_token": 1,
        "orchestration_token": 0,
        "event_delivery": 0,
        "event_ingestion": 0,
        "audit_logs": 2,
    });
    assert_eq!(stats, expected);
}

#[test]
fn debug_prints_neither_secret_nor_token() {
    let options = SandboxOptions::default().client_secret("canary-in-the-mine".to_owned());
    let mut sandbox = Sandbox::new(options.clone()).unwrap();
    let mut body = token_body(CONTROL);
    body["client_secret"] = json!("canary-in-the-mine");
    let response = post(&mut sandbox, CONTROL, "", &body, at(0));
    let token = parsed(&response)["access_token"].as_str().unwrap().to_owned();
    let printed = format!("{options:?} {sandbox:?} {response:?}");
    assert!(!printed.contains("canary") && !token.contains("canary"), "{printed}");
    assert!(!printed.contains(&token), "{printed}");
}

/// The counts of a range before midnight, by a dimension. The sandbox receives its first request at midnight, and the
/// request for these counts `seconds` later.
fn evening(scene: Option<Scene>, range: [&str; 2], dimension: &str, seconds: u64) -> Rows {
    let options = SandboxOptions::default().seed(1).scene(scene);
    let mut sandbox = Sandbox::new(options).unwrap();
    let token = mint(&mut sandbox, CONTROL, at(0));
    let [start, end] = range.map(|time| format!("2025-12-31T{time}:00Z"));
    let body = question(&start, &end, &[dimension]);
    rows(&parsed(&post(&mut sandbox, DELIVERY, &token, &body, at(seconds))))
}

/// The values whose counts a scene changes, with their counts without the scene and with it.
fn changed(
    scene: Scene,
    range: [&str; 2],
    dimension: &str,
    seconds: u64,
) -> Vec<(String, [u64; 3], [u64; 3])> {
    let usual = evening(None, range, dimension, seconds);
    let staged = evening(Some(scene), range, dimension, seconds);
    let names = usual.keys().chain(staged.keys());
    let names: std::collections::BTreeSet<&String> = names.collect();
    let of = |rows: &Rows, name: &str| rows.get(name).copied().unwrap_or_default();
    let pairs = names.into_iter().map(|name| (name.clone(), of(&usual, name), of(&staged, name)));
    pairs.filter(|(_, before, after)| before != after).collect()
}

#[test]
fn each_scene_is_an_incident_of_the_last_hours() {
    // Nothing is changed before the scenes begin.
    for scene in Scene::ALL {
        for dimension in ALL {
            assert_eq!(changed(*scene, ["18:00", "20:00"], dimension, 0), []);
        }
    }
    let sum = |counts: [u64; 3]| counts.iter().sum::<u64>();
    let [(_, before, after)] = &changed(Scene::Outage, ["21:00", "21:45"], "integration", 0)[..]
    else {
        panic!("one integration");
    };
    assert_eq!(sum(*before), sum(*after));
    assert!(after[1] * 10 >= sum(*after) * 8 && before[1] * 10 < sum(*before));
    assert_eq!(changed(Scene::Outage, ["21:45", "23:55"], "integration", 0), []);

    let consent = changed(Scene::ConsentFilter, ["20:00", "23:55"], "write_key", 0);
    let [(_, before, after)] = &consent[..] else {
        panic!("one source");
    };
    assert!(sum(*before) == sum(*after) && after[2] * 10 > sum(*after) * 6);
    let reasons = changed(Scene::ConsentFilter, ["20:00", "23:55"], "reason", 0);
    let more = reasons.iter().filter(|(_, before, after)| after[2] > before[2]);
    let more: Vec<&str> = more.map(|(name, ..)| name.as_str()).collect();
    assert_eq!(more, [r#"{"reason":"compliance filter: consent withheld"}"#]);

    let schema = changed(Scene::SchemaMismatch, ["20:30", "22:00"], "event_name", 0);
    let [(_, before, after)] = &schema[..] else {
        panic!("one event");
    };
    assert!(sum(*before) == sum(*after) && after[2] * 10 > sum(*after) * 9);
    let over = changed(Scene::SchemaMismatch, ["22:00", "23:55"], "event_name", 0);
    assert_eq!(over, []);

    let silent = changed(Scene::SilentSource, ["22:00", "23:55"], "write_key", 0);
    let [(_, before, after)] = &silent[..] else {
        panic!("one source");
    };
    assert!(sum(*before) > 1_000 && sum(*after) == 0);

    // Half an hour later, the late events are counted.
    let late = changed(Scene::LateData, ["23:35", "23:55"], "write_key", 0);
    let [(_, before, after)] = &late[..] else {
        panic!("one source");
    };
    assert!(sum(*after) * 2 < sum(*before), "{before:?} {after:?}");
    assert_eq!(changed(Scene::LateData, ["21:00", "23:30"], "write_key", 0), []);
    let there = changed(Scene::LateData, ["23:35", "23:55"], "write_key", 1_800);
    assert_eq!(there, []);
}

#[test]
fn a_scene_needs_no_seed_and_stays_where_it_is() {
    let ask_at = |sandbox: &mut Sandbox, seconds| {
        let token = mint(sandbox, CONTROL, at(seconds));
        let body = question("2025-12-31T21:00:00Z", "2025-12-31T22:00:00Z", &ALL);
        rows(&parsed(&post(sandbox, DELIVERY, &token, &body, at(seconds))))
    };
    let options = SandboxOptions::default().scene(Scene::Outage);
    let mut sandbox = Sandbox::new(options).unwrap();
    let first = ask_at(&mut sandbox, 0);
    assert_eq!(ask_at(&mut sandbox, 7_200), first);
    let seeded = SandboxOptions::default().seed(1).scene(Scene::Outage);
    assert_eq!(ask_at(&mut Sandbox::new(seeded).unwrap(), 0), first);
}
