//! The vectors that every language runs.

mod collects;
mod derived;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;
use tallyfold::arguments::{self, Arguments, Kind};
use tallyfold::{
    Aggregator, AggregatorOptions, AuditLogsOptions, Call, Code, CollectOptions, CountTable,
    Dimension, Error, ErrorLog, FollowOptions, Frame, HostFailure, Limits, Machine, MachineOptions,
    Now, Output, QueryOptions, Reconciliation, Result, Secret, Spelling, Step, Tolerate,
    TopOptions, Window,
};

#[test]
fn responses() {
    run("responses", |case| {
        let body = body_of(case);
        let whole = read(case, &[&body]);
        let bytes: Vec<&[u8]> = body.chunks(1).collect();
        assert_eq!(read(case, &bytes), whole, "byte by byte");
        check(case, whole.map(Output::Table));
    });
}

#[test]
fn exchanges() {
    run("exchanges", |case| {
        let client = Machine::new(client_options(&case["options"]));
        let mut clock = Clock::default();
        for call in list(&case["calls"]) {
            let steps = list(&call["steps"]);
            let mut used = 0;
            let outcome = client.clone().and_then(|client| {
                let mut machine = start(&client, &call["call"])?;
                drive(&mut machine, steps, &mut used, &mut clock)
            });
            check(call, outcome);
            assert_eq!(used, steps.len(), "steps used");
        }
    });
}

#[test]
fn error_log() {
    run("error_log", |case| {
        let mut log = ErrorLog::default();
        for note in list(&case["notes"]) {
            let at_ms = note["at_ms"].as_u64().expect("milliseconds");
            let random = text(&note["random"]).to_owned();
            let (reference, line) = log.note(text(&note["text"]), at_ms, random);
            assert_eq!(Value::from(reference), note["reference"]);
            assert_eq!(Value::from(line), note["line"]);
        }
    });
}

#[test]
fn tables() {
    run("tables", |case| {
        let given = load_table(&case["given"]);
        if let Some(top) = case.get("top") {
            check_top(case, top, &given.expect("a good table"));
        } else if case.get("reconciliation").is_some() {
            check_reconciliation(case, given.expect("a good table").reconciliation());
        } else if case.get("coverage").is_some() {
            let coverage = given.expect("a good table").coverage();
            let coverage: Vec<_> =
                coverage.iter().map(|w| vec![w.start().to_string(), w.end().to_string()]).collect();
            assert_eq!(Value::from(coverage), case["windows"]);
        } else {
            check(case, given.and_then(|given| operate(case, &given)).map(Output::Table));
        }
    });
}

fn check_top(case: &Value, top: &Value, frame: &dyn Frame) {
    match arguments::read::<TopOptions, _>(&Given(top), &[]) {
        Ok(top) => assert_eq!(Value::from(frame.top(top.n, top.by)), case["rows"]),
        Err(error) => check_error(case, &error),
    }
}

/// The arguments in a vector.
struct Given<'a>(&'a Value);

impl Arguments for Given<'_> {
    type Error = Error;

    const SPELLING: Spelling = Spelling::Rust;

    fn value(&self, name: &str, kind: Kind) -> Result<Option<arguments::Value>> {
        let whole = |value: &Value| {
            let signed = value.as_i64().map(i128::from);
            let whole = signed.or_else(|| value.as_u64().map(i128::from));
            whole.expect("a whole number")
        };
        Ok(self.0.get(name).map(|value| match kind {
            Kind::Whole | Kind::Milliseconds | Kind::Patience => {
                arguments::Value::Whole(whole(value))
            }
            Kind::Flag => arguments::Value::Flag(value.as_bool().expect("true or false")),
            Kind::Pair => arguments::Value::Pair([whole(&value[0]), whole(&value[1])]),
            Kind::Texts | Kind::Window => arguments::Value::Texts(strings(value).expect("texts")),
            _ => arguments::Value::Text(text(value).to_owned()),
        }))
    }

    fn nested(&self, _: &str) -> Result<Option<Self>> {
        Ok(None)
    }

    fn names(&self) -> Result<Vec<String>> {
        let fields = self.0.as_object().expect("an object");
        Ok(fields.keys().cloned().collect())
    }
}

/// Where a host passes text, an error names the argument that it was for.
#[test]
fn texts_of_hosts_are_parsed_for_the_argument_that_they_are_for() {
    let good = serde_json::json!({
        "metric": "event_delivery", "start": "2026-01-01T00:00:00Z", "end": "2026-01-02T00:00:00Z",
        "dimensions": ["integration"], "window": "15m",
    });
    for (argument, value, code) in [
        ("start", "yesterday".into(), Code::InvalidTimestamp),
        ("end", "2026-01-02".into(), Code::InvalidTimestamp),
        ("dimensions", vec!["colour"].into(), Code::UnknownDimension),
        ("group_by", vec!["colour"].into(), Code::UnknownDimension),
    ] {
        let mut query = good.clone();
        query[argument] = value;
        let collect = arguments::read::<CollectOptions, _>(&Given(&query), &[]).map(drop);
        let follow = arguments::read::<FollowOptions, _>(&Given(&query), &[]).map(drop);
        for refused in [collect, follow] {
            let error = refused.expect_err("a refusal");
            assert_eq!((error.argument_name(), error.code()), (Some(argument), code));
        }
    }
}

/// A code without a vector would be a code that no language is held to. No vector takes all the memory there is.
#[test]
fn every_code_has_a_vector() {
    let mut seen = BTreeSet::new();
    for name in ["responses", "exchanges", "tables", "series", "collects", "health"] {
        collect_codes(&load(name), &mut seen);
    }
    // Those of exports are raised by the tests of the crate `tallyfold-export`.
    let others =
        ["out_of_memory", "crashed", "wasm_forbidden", "inexact_count", "unsupported_by_format"];
    seen.extend(others.map(str::to_owned));
    let all: BTreeSet<String> = Code::ALL.iter().map(|code| code.to_string()).collect();
    assert_eq!(seen, all);
}

fn collect_codes(value: &Value, seen: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            if let Some(code) = fields.get("error").and_then(|error| error["code"].as_str()) {
                seen.insert(code.to_owned());
            }
            fields.values().for_each(|field| collect_codes(field, seen));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_codes(item, seen)),
        _ => {}
    }
}

fn load(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../tests/vectors/{name}.json"));
    let json = std::fs::read_to_string(&path).expect("the vectors are in the repository");
    serde_json::from_str(&json).expect("the vectors are JSON")
}

fn run(name: &str, case: impl Fn(&Value)) {
    let file = load(name);
    let mut ran = 0;
    for value in list(&file["cases"]) {
        println!("{}", value["name"]);
        case(value);
        ran += 1;
    }
    assert_eq!(ran, number(&file["count"]));
}

fn list(value: &Value) -> &Vec<Value> {
    value.as_array().expect("a list")
}

fn text(value: &Value) -> &str {
    value.as_str().expect("a string")
}

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a whole number")
}

fn strings(value: &Value) -> Option<Vec<String>> {
    Some(value.as_array()?.iter().map(|item| text(item).to_owned()).collect())
}

/// The dimensions to keep.
fn kept(names: &Value) -> Result<Option<Vec<Dimension>>> {
    let names = strings(names);
    let parsed = names.map(|names| names.iter().map(|name| Dimension::parse(name)).collect());
    let parsed: Result<Option<Vec<Dimension>>> = parsed.transpose();
    parsed.map_err(|error| error.with_argument("group_by"))
}

fn string(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn body_of(case: &Value) -> Vec<u8> {
    match case.get("body") {
        Some(body) => text(body).as_bytes().to_vec(),
        None => {
            let hex = text(&case["body_hex"]);
            let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex");
            (0..hex.len()).step_by(2).map(byte).collect()
        }
    }
}

fn limits(value: Option<&Value>) -> Limits {
    let mut limits = Limits::default();
    for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
        let small = usize::try_from(number(value)).expect("a small number");
        match name.as_str() {
            "depth" => limits.depth = small,
            "string_bytes" => limits.string_bytes = small,
            "keys" => limits.keys = small,
            "body_bytes" => limits.body_bytes = number(value),
            "groups" => limits.groups = small,
            "table_bytes" => limits.table_bytes = number(value),
            _ => panic!("unknown limit {name}"),
        }
    }
    limits
}

fn read(case: &Value, chunks: &[&[u8]]) -> Result<CountTable> {
    let dimensions = strings(&case["dimensions"]).expect("dimensions");
    let window = case.get("window").map(|edges| Window::parse(text(&edges[0]), text(&edges[1])));
    let options = AggregatorOptions::default()
        .group_by(kept(&case["group_by"])?)
        .window(window.transpose()?)
        .limits(limits(case.get("limits")))
        .tolerate(Tolerate::parse(&strings(&case["tolerate"]).unwrap_or_default())?);
    let mut aggregator = Aggregator::new(&dimensions, options)?;
    let outcome = chunks
        .iter()
        .try_for_each(|chunk| aggregator.push(chunk))
        .and_then(|()| aggregator.finish());
    if let Err(error) = &outcome {
        assert_eq!(aggregator.push(b" ").as_ref(), Err(error), "push repeats the error");
        assert_eq!(aggregator.finish().as_ref(), Err(error), "finish repeats the error");
    }
    if case.get("finish_twice").is_some() {
        return aggregator.finish();
    }
    outcome
}

fn client_options(given: &Value) -> MachineOptions {
    let flag = |name: &str| given[name].as_bool().unwrap_or(false);
    let usual = MachineOptions::default();
    usual
        .clone()
        .cluster_endpoint(string(&given["cluster_endpoint"]))
        .client_id(string(&given["client_id"]))
        .client_secret(string(&given["client_secret"]).map(Secret::from))
        .control_audience(string(&given["control_audience"]))
        .base_url(string(&given["base_url"]))
        .auth_url(string(&given["auth_url"]))
        .orchestration_audience(string(&given["orchestration_audience"]))
        .host_tokens(flag("host_tokens"))
        .in_browser(flag("in_browser"))
        .dangerously_allow_browser(flag("dangerously_allow_browser"))
        .dangerously_allow_http(flag("dangerously_allow_http"))
        .default_token_lifetime_s(
            given["default_token_lifetime"].as_u64().unwrap_or(usual.default_token_lifetime_s),
        )
        .max_retries(
            given["max_retries"]
                .as_u64()
                .map_or(usual.max_retries, |most| u32::try_from(most).expect("a small number")),
        )
        .longest_retry_wait_ms(
            given["longest_retry_wait_ms"].as_u64().unwrap_or(usual.longest_retry_wait_ms),
        )
        .jitter_seed(7)
}

fn start(client: &Machine, call: &Value) -> Result<Call> {
    let metrics = || arguments::read::<QueryOptions, _>(&Given(call), &["method"]);
    match text(&call["method"]) {
        "audit_logs" => client
            .audit_logs(
                &AuditLogsOptions::default()
                    .page(call["page"].as_i64())
                    .per_page(call["per_page"].as_i64()),
            )
            .map(Call::untyped),
        "event_delivery" => client.event_delivery(&metrics()?).map(Call::untyped),
        "event_ingestion" => client.event_ingestion(&metrics()?).map(Call::untyped),
        other => panic!("unknown method {other}"),
    }
}

#[derive(Default)]
struct Clock {
    minutes: i64,
    /// The milliseconds of waits, in addition to the minutes.
    waited_ms: u64,
}

impl Clock {
    fn at(&mut self, step: Option<&Value>) -> Now {
        let minutes = |name: &str| step.and_then(|step| step[name].as_i64());
        self.minutes = minutes("at").unwrap_or(self.minutes);
        let wall = minutes("wall").unwrap_or(self.minutes);
        Now {
            monotonic_ms: u64::try_from(self.minutes).expect("a positive time") * 60_000
                + self.waited_ms,
            unix_ms: 1_767_225_600_000 + wall * 60_000 + self.waited_ms as i64,
        }
    }
}

fn drive(call: &mut Call, steps: &[Value], used: &mut usize, clock: &mut Clock) -> Result<Output> {
    loop {
        let script = steps.get(*used);
        match call.step(clock.at(script))? {
            Step::Done => return call.output(),
            Step::Send(request) => {
                let script = script.unwrap_or_else(|| panic!("unexpected {request:?}"));
                *used += 1;
                check_request(&script["send"], &request);
                if let Some(failure) = script.get("fail") {
                    let failure = match text(failure) {
                        "network" => HostFailure::Network,
                        "stale" => HostFailure::Stale,
                        _ => HostFailure::Timeout,
                    };
                    call.failed(failure, text(&script["detail"]))?;
                    continue;
                }
                let response = &script["respond"];
                let headers: Vec<(&str, &str)> = list(&response["headers"])
                    .iter()
                    .map(|header| (text(&header[0]), text(&header[1])))
                    .collect();
                let status = u16::try_from(number(&response["status"])).expect("a status");
                if call.head(status, &headers)? {
                    for chunk in text(&response["body"]).as_bytes().chunks(7) {
                        call.chunk(chunk)?;
                    }
                    call.end()?;
                }
            }
            Step::ProvideToken { api } => {
                let script = script.unwrap_or_else(|| panic!("unexpected token for {api:?}"));
                *used += 1;
                assert_eq!(script["provide_token"], api.as_str());
                match string(&script["token"]) {
                    None => call.token_failed()?,
                    Some(token) => {
                        call.token(Secret::from(token), script["lifetime"].as_str())?;
                    }
                }
            }
            Step::Wait { ms } => {
                let script = script.unwrap_or_else(|| panic!("unexpected wait of {ms} ms"));
                *used += 1;
                check_wait(&script["wait"], ms.into());
                clock.waited_ms += u64::from(ms) - 1;
                let early = call.step(clock.at(Some(script)));
                assert!(matches!(early, Ok(Step::Wait { ms: 1 })), "{early:?}");
                clock.waited_ms += 1;
            }
            Step::Blocked { .. } => panic!("one call at a time is never blocked"),
        }
    }
}

fn check_wait(expected: &Value, ms: u64) {
    let range = number(&expected["at_least"])..=number(&expected["at_most"]);
    assert!(range.contains(&ms), "{ms} is not in {range:?}");
}

fn check_request(expected: &Value, request: &tallyfold::Request) {
    let headers: Vec<Value> =
        request.headers().map(|(name, value)| Value::from(vec![name, value])).collect();
    assert_eq!(expected["method"], request.method());
    assert_eq!(expected["url"], request.url());
    assert_eq!(expected["headers"], Value::from(headers));
    let body = request.body().map(|body| str::from_utf8(body).expect("UTF-8"));
    assert_eq!(expected["body"].as_str(), body);
}

fn operate(case: &Value, given: &CountTable) -> Result<CountTable> {
    if let Some(names) = case.get("group_by") {
        given.group_by(&strings(names).expect("names"))
    } else if let Some(wanted) = case.get("filter") {
        given.filter(&wanted_of(wanted))
    } else if let Some(range) = case.get("between") {
        given.between(range_of(range)?)
    } else if let Some(other) = case.get("merge") {
        let other = load_table(other)?;
        given.merge(&other, case["replace"].as_bool().unwrap_or(false))
    } else {
        Ok(given.clone())
    }
}

fn range_of(edges: &Value) -> Result<Window> {
    Window::parse(text(&edges[0]), text(&edges[1]))
}

fn load_table(saved: &Value) -> Result<CountTable> {
    CountTable::from_json(saved.to_string().as_bytes())
}

fn wanted_of(filter: &Value) -> Vec<(String, Vec<String>)> {
    let fields = filter.as_object().expect("an object").iter();
    fields.map(|(name, values)| (name.clone(), strings(values).expect("values"))).collect()
}

fn check_reconciliation(case: &Value, reconciliation: Reconciliation) {
    let verdict = match reconciliation {
        Reconciliation::Balanced => "balanced",
        Reconciliation::Unavailable => "unavailable",
        Reconciliation::Unbalanced { success, errors, filtered } => {
            let differences = &case["differences"];
            assert_eq!(differences["success"], success.to_string());
            assert_eq!(differences["errors"], errors.to_string());
            assert_eq!(differences["filtered"], filtered.to_string());
            "unbalanced"
        }
    };
    assert_eq!(case["verdict"], verdict);
}

fn check(case: &Value, outcome: Result<Output>) {
    match outcome {
        Ok(Output::Table(table)) => {
            let saved = table.to_json();
            let json: Value = serde_json::from_str(&saved).expect("JSON");
            assert_eq!(Some(&json), case.get("table"));
            let again = CountTable::from_json(saved.as_bytes()).expect("what was just written");
            assert_eq!(again, table);
        }
        Ok(Output::Json(document)) => assert_eq!(text(&case["json"]).as_bytes(), document.bytes()),
        Ok(Output::Token(_)) => panic!("no case asks for a token"),
        Err(error) => check_error(case, &error),
    }
}

fn check_error(case: &Value, error: &Error) {
    let expected = case.get("error").unwrap_or_else(|| panic!("unexpected {error}"));
    let found = serde_json::json!({
        "code": error.code().as_str(),
        "kind": error.kind().as_str(),
        "argument": error.argument_in(Spelling::Python),
        "status": error.status(),
        "path": error.path(),
        "offset": error.offset(),
        "retry_after": error.retry_after_s(),
        "excerpt": error.excerpt(),
    });
    assert_eq!(expected, &found, "{error}");
    for canary in ["canary-secret", "canary-token"] {
        assert!(!error.to_string().contains(canary), "{error}");
        assert!(!format!("{error:?}").contains(canary), "{error}");
    }
}
