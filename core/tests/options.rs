//! A call and a collect with a deadline, and headers that a caller adds: in virtual time.

use crate::support::{after, at, client, client_of_one_try, drive, exchange, options, sandbox};
use tallyfold::{
    AuditLogsOptions, Call, Code, CollectOptions, CollectStep, CountTable, Dimension, Error,
    Headers, HostFailure, Machine, MachineOptions, Metric, Now, Patience, QueryOptions, Result,
    Step, Window,
};
use tallyfold_sandbox::Sandbox;

/// A query of five minutes.
fn query() -> QueryOptions {
    let window = Window::parse("2026-01-14T09:00:00Z", "2026-01-14T09:05:00Z");
    QueryOptions::new(window.expect("a window"), &[Dimension::Integration])
}

fn delivery(client: &Machine, deadline_ms: u64) -> Call<CountTable> {
    client
        .event_delivery(&query().deadline_ms(Patience::Milliseconds(deadline_ms)))
        .expect("good arguments")
}

/// The error of a call to a service that is down, and how much time had passed.
fn fail<T>(mut call: Call<T>, sandbox: &mut Sandbox, start: Now) -> (Error, u64) {
    let mut now = start;
    loop {
        let step = match call.step(now) {
            Ok(step) => step,
            Err(error) => return (error, now.monotonic_ms - start.monotonic_ms),
        };
        match step {
            Step::Send(request) => {
                exchange(&mut call, &request, sandbox, now).expect("it goes on");
            }
            Step::Wait { ms } => now = after(now, ms.into()),
            other => panic!("want a failure, not {other:?}"),
        }
    }
}

fn inject(sandbox: &mut Sandbox, fault: &str) {
    sandbox.inject_json(fault).expect("a good fault");
}

#[test]
fn a_wait_before_a_retry_ends_at_the_deadline() {
    let mut sandbox = sandbox();
    inject(
        &mut sandbox,
        r#"{"kind": "status", "status": 503, "retry_after": "30", "every": 1, "endpoint": "event_delivery"}"#,
    );
    let (error, passed) = fail(delivery(&client(), 12_345), &mut sandbox, at(0));
    assert_eq!((error.code(), passed), (Code::DeadlineExceeded, 12_345));
    assert!(error.to_string().ends_with("its deadline"), "{error}");
    assert_eq!(sandbox.stats().event_delivery, 1);
    let logs = AuditLogsOptions::default().deadline_ms(Patience::Milliseconds(0));
    let logs = client().audit_logs(&logs).expect("good arguments");
    let (error, passed) = fail(logs, &mut sandbox, at(0));
    assert_eq!((error.code(), passed), (Code::DeadlineExceeded, 0));
}

#[test]
fn an_exchange_that_the_deadline_cuts_is_not_tried_again_and_says_nothing_about_the_service() {
    for (deadline_ms, code) in [
        (5_000, Code::DeadlineExceeded),
        (30_000, Code::DeadlineExceeded),
        (30_001, Code::TimedOut),
    ] {
        let (client, mut sandbox) = (client_of_one_try(), sandbox());
        let mut call = delivery(&client, deadline_ms);
        assert_eq!(call.time_left(at(0)), Some(deadline_ms));
        let Ok(Step::Send(_)) = call.step(at(0)) else {
            panic!("want the token request");
        };
        let late = at(1);
        assert_eq!(call.time_left(late), Some(deadline_ms - 1_000));
        let cut = call.failed(HostFailure::Timeout, "TimeoutError");
        assert_eq!(cut.map_err(|error| error.code()), Err(code));
        let attempt = call.attempt().expect("a request that has ended");
        assert_eq!(attempt.code, Some(code));
        // The token that it was fetching is fetched by the next call.
        let next = drive(delivery(&client, 60_000), &mut sandbox, late);
        assert!(next.is_ok(), "{next:?}");
    }
}

#[test]
fn a_source_of_tokens_that_takes_too_long_ends_the_call_too() {
    let client = Machine::new(options().host_tokens(true).client_id(None).client_secret(None));
    let client = client.expect("good options");
    let mut call = delivery(&client, 1_000);
    assert!(matches!(call.step(at(0)), Ok(Step::ProvideToken { .. })));
    let error = call.failed(HostFailure::Timeout, "TimeoutError");
    assert_eq!(error.map_err(|error| error.code()), Err(Code::DeadlineExceeded));
    assert!(matches!(delivery(&client, 1_000).step(at(0)), Ok(Step::ProvideToken { .. })));
}

#[test]
fn a_collect_ends_at_its_deadline_with_what_was_read() {
    let (client, mut sandbox) = (client(), sandbox());
    let range = Window::parse("2026-01-14T00:00:00Z", "2026-01-15T00:00:00Z").expect("a range");
    let options = CollectOptions::new(Metric::EventDelivery, range, &[Dimension::Integration])
        .deadline_ms(Patience::Milliseconds(60_000))
        .patience_ms(Patience::Endless);
    let mut collect = client.collect(options).expect("good options");
    let start = at(1_000_000);
    let (mut now, mut calls) = (start, 0);
    while let CollectStep::Drive(mut next) = collect.next(now) {
        calls += 1;
        if calls == 4 {
            inject(
                &mut sandbox,
                r#"{"kind": "status", "status": 503, "every": 1, "endpoint": "event_delivery"}"#,
            );
        }
        loop {
            match next.call.step(now) {
                Ok(Step::Send(request)) => {
                    // What ends the call is told by its settling.
                    let _ = exchange(&mut next.call, &request, &mut sandbox, now);
                }
                Ok(Step::Wait { ms }) => now = after(now, ms.into()),
                Ok(_) | Err(_) => break,
            }
        }
        collect.settle(next.task, &mut next.call, now).expect("under way");
    }
    assert_eq!(now.monotonic_ms - start.monotonic_ms, 60_000);
    let ended = collect.finish().expect_err("an end");
    assert_eq!(ended.error.code(), Code::DeadlineExceeded);
    let read = ended.partial.expect("what was read");
    assert_eq!(read.windows().len(), 3);
    assert_eq!(ended.gaps.len(), 1);
}

fn headers(pairs: &[(&str, &str)]) -> Result<Headers> {
    let flat = pairs.iter().flat_map(|(name, value)| [*name, *value]);
    Headers::new(flat.map(str::to_owned).collect())
}

#[test]
fn a_header_without_a_value_is_refused() {
    let error = Headers::new(vec!["x-api-key".to_owned()]).expect_err("no value");
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn headers_of_the_caller_go_with_every_request() {
    let client = Machine::new(
        options()
            .headers(headers(&[("X-Api-Key", "s3cret")]).expect("good headers"))
            .user_agent("tallyfold/1 test"),
    );
    let (client, mut sandbox) = (client.expect("good options"), sandbox());
    let mut call = delivery(&client, 1_000);
    let mut names = Vec::new();
    while let Ok(Step::Send(request)) = call.step(at(0)) {
        assert!(!format!("{request:?}").contains("s3cret"));
        let sent: Vec<(&str, &str)> = request.headers().collect();
        names.push(sent.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>());
        let version = "tallyfold/1 test";
        assert!(sent.contains(&("x-api-key", "s3cret")) && sent.contains(&("user-agent", version)));
        exchange(&mut call, &request, &mut sandbox, at(0)).expect("an answer");
    }
    let common = ["content-type", "accept-encoding", "x-api-key", "user-agent"];
    assert_eq!(names[0], common);
    assert_eq!(names[1], [&["authorization"], &common[..]].concat());
}

#[test]
fn a_header_that_cannot_be_given_is_refused_and_its_value_is_not_quoted() {
    for (name, value) in [
        ("Authorization", "hidden"),
        ("content-type", "hidden"),
        ("Content-Length", "hidden"),
        ("accept-encoding", "hidden"),
        ("HOST", "hidden"),
        ("transfer-encoding", "hidden"),
        ("proxy-authorization", "hidden"),
        ("", "hidden"),
        ("hidden x", "hidden"),
        ("hidden\r\nx", "hidden"),
        ("x", "hidden\r\nauthorization: Bearer"),
        ("x", " hidden"),
        ("x", "hidden\u{e4}"),
    ] {
        let error = headers(&[(name, value)]).expect_err(name);
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(!error.to_string().contains("hidden"), "{error}");
    }
    assert!(headers(&[("x", ""), ("X-Y_z.1", "a b")]).is_ok());
}

/// The options that the errors request, one after the other, until a machine can be created.
fn asked_for(given: &[&str], host_tokens: bool) -> Vec<String> {
    let mut found: Vec<String> = given.iter().map(|name| (*name).to_owned()).collect();
    let mut missing = Vec::new();
    loop {
        let address = |name: &str| {
            let is_found = found.iter().any(|found| found == name);
            is_found.then(|| "https://service.example".to_owned())
        };
        let machine = Machine::new(
            MachineOptions::default()
                .cluster_endpoint(address("cluster_endpoint"))
                .base_url(address("base_url"))
                .auth_url(address("auth_url"))
                .client_id(address("client_id"))
                .client_secret(address("client_secret").map(Into::into))
                .control_audience(address("control_audience"))
                .orchestration_audience(address("orchestration_audience"))
                .host_tokens(host_tokens),
        );
        let Err(error) = machine else {
            return missing;
        };
        assert_eq!(error.code(), Code::MissingArgument);
        let name = error.argument_name().expect("a name").to_owned();
        found.push(name.clone());
        missing.push(name);
    }
}

#[test]
fn all_missing_options_are_named_at_once() {
    let names = [
        "cluster_endpoint",
        "base_url",
        "auth_url",
        "client_id",
        "control_audience",
        "orchestration_audience",
        "client_secret",
    ];
    for (has_tokens, last) in [(false, 7), (true, 6)] {
        for set in 0..1 << last {
            let given = names.iter().enumerate();
            let given = given.filter(|(place, _)| set & (1 << place) != 0);
            let given: Vec<&str> = given.map(|(_, name)| *name).collect();
            let missing = MachineOptions::missing(&given, has_tokens);
            assert_eq!(missing, asked_for(&given, has_tokens), "{given:?}");
        }
    }
}

#[test]
fn credentials_with_white_space_around_them_or_control_characters_are_refused() {
    let refuse = |options: MachineOptions, name, message| {
        let error = Machine::new(options).expect_err("a slip");
        let text = format!("invalid_argument: {name}: this {message}");
        assert_eq!(error.to_string(), text);
    };
    let spaces = "begins or ends with white space";
    let control = "contains a control character, such as a tab or a line break";
    for (text, message) in [
        (" canary", spaces),
        ("canary ", spaces),
        ("\tcanary", spaces),
        ("canary\u{a0}", spaces),
        (" ", spaces),
        ("can\tary", control),
        ("can\nary", control),
        ("can\u{7f}ary", control),
    ] {
        refuse(options().client_id(text), "client_id", message);
        refuse(options().client_secret(text.to_owned()), "client_secret", message);
    }
    assert!(Machine::new(options().client_secret("a pass phrase".to_owned())).is_ok());
}
