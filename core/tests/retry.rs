//! What a call does after a transient failure, in virtual time.

use crate::support::{after, at, client, client_of_one_try, drive, exchange, options, sandbox};
use tallyfold::{
    Attempt, AuditLogsOptions, Call, Code, CountTable, Dimension, Error, HostFailure, Json, Kind,
    Machine, MachineOptions, Now, QueryOptions, Request, Result, Secret, Step, Target, Window,
};
use tallyfold_sandbox::Sandbox;

/// A query of five minutes.
fn query() -> QueryOptions {
    let window = Window::parse("2026-01-14T09:00:00Z", "2026-01-14T09:05:00Z");
    QueryOptions::new(window.expect("a window"), &[Dimension::Integration])
}

/// The random part of the first wait.
const RANDOM_MS: u64 = 250;

fn delivery(client: &Machine) -> Call<CountTable> {
    client.event_delivery(&query()).expect("good arguments")
}

fn audit_logs(client: &Machine) -> Call<Json> {
    client.audit_logs(&AuditLogsOptions::default()).expect("good arguments")
}

fn client_with(options: MachineOptions) -> Machine {
    Machine::new(options).expect("good options")
}

fn request(step: Result<Step>) -> Request {
    match step {
        Ok(Step::Send(request)) => request,
        other => panic!("want a request, not {other:?}"),
    }
}

fn wait(step: Result<Step>) -> u64 {
    match step {
        Ok(Step::Wait { ms }) => ms.into(),
        other => panic!("want a wait, not {other:?}"),
    }
}

fn inject(sandbox: &mut Sandbox, fault: &str) {
    sandbox.inject_json(fault).expect("a good fault");
}

/// A client with a token, and a call whose request was sent.
fn sent(options: MachineOptions) -> (Machine, Sandbox, Call<CountTable>) {
    let (client, mut sandbox) = (client_with(options), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    let mut call = delivery(&client);
    request(call.step(at(0)));
    (client, sandbox, call)
}

/// A call whose next request goes to this endpoint.
fn call_at(endpoint: &str, client: &Machine, sandbox: &mut Sandbox) -> Call<CountTable> {
    let mut call = delivery(client);
    if endpoint == "event_delivery" {
        let token = request(call.step(at(0)));
        exchange(&mut call, &token, sandbox, at(0)).expect("a token");
    }
    call
}

/// Passes a status without a body to the call. Only a call that ends wants the body, for its error.
fn answer<T>(call: &mut Call<T>, status: u16, headers: &[(&str, &str)]) -> Result<()> {
    if call.head(status, headers)? {
        call.end()?;
        panic!("the body of a {status} is not wanted");
    }
    Ok(())
}

#[test]
fn each_passing_failure_of_either_endpoint_is_tried_again() {
    for endpoint in ["control_token", "event_delivery"] {
        for status in [408, 429, 500, 502, 503, 504] {
            let (client, mut sandbox) = (client(), sandbox());
            let fault =
                format!(r#"{{"kind": "status", "status": {status}, "endpoint": "{endpoint}"}}"#);
            inject(&mut sandbox, &fault);
            let outcome = drive(delivery(&client), &mut sandbox, at(0));
            assert!(outcome.is_ok(), "{status}");
            let stats = sandbox.stats();
            assert_eq!(stats.control_token + stats.event_delivery, 3);
        }
        for failure in [HostFailure::Network, HostFailure::Timeout] {
            let (client, mut sandbox) = (client(), sandbox());
            let mut call = call_at(endpoint, &client, &mut sandbox);
            request(call.step(at(0)));
            assert_eq!(call.failed(failure, "ECONNRESET"), Ok(()));
            assert!((250..=500).contains(&wait(call.step(at(0)))));
            assert!(drive(call, &mut sandbox, at(1)).is_ok());
        }
    }
}

#[test]
fn a_connection_that_was_closed_in_between_is_replaced_at_once_and_for_nothing() {
    let (client, mut sandbox) = (client_of_one_try(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    for _ in 0..100 {
        let mut call = delivery(&client);
        request(call.step(at(0)));
        assert_eq!(call.failed(HostFailure::Stale, "ECONNRESET"), Ok(()));
        let attempt = call.attempt().expect("a request that has ended");
        assert_eq!((attempt.code, attempt.wait_ms), (Some(Code::NetworkFailed), Some(0)));
        let again = request(call.step(at(0)));
        exchange(&mut call, &again, &mut sandbox, at(0)).expect("an answer");
        assert!(drive(call, &mut sandbox, at(0)).is_ok());
    }
    // A host may have kept many connections. After those, it is a failure like any other.
    let mut call = delivery(&client);
    request(call.step(at(0)));
    for _ in 0..16 {
        assert_eq!(call.failed(HostFailure::Stale, "ECONNRESET"), Ok(()));
        request(call.step(at(0)));
    }
    let error = call.failed(HostFailure::Stale, "ECONNRESET").expect_err("no retries");
    assert_eq!(error.code(), Code::NetworkFailed);
}

#[test]
fn what_gets_no_response_at_all_is_asked_twice_and_says_so() {
    for endpoint in ["control_token", "event_delivery"] {
        let (client, mut sandbox) = (client(), sandbox());
        let mut call = call_at(endpoint, &client, &mut sandbox);
        request(call.step(at(0)));
        assert_eq!(call.failed(HostFailure::Timeout, ""), Ok(()));
        wait(call.step(at(30)));
        request(call.step(at(31)));
        let error = call.failed(HostFailure::Timeout, "").expect_err("twice is enough");
        assert_eq!(error.code(), Code::TimedOut);
        assert!(error.to_string().contains("no response began in that time"), "{error}");
    }
    // What has begun to answer is asked again as often as usual.
    let (_client, _sandbox, mut call) = sent(options());
    let mut now = at(0);
    for _ in 0..3 {
        assert_eq!(call.head(200, &[]), Ok(true));
        assert_eq!(call.failed(HostFailure::Timeout, ""), Ok(()));
        now = after(now, wait(call.step(now)));
        request(call.step(now));
    }
    assert_eq!(call.head(200, &[]), Ok(true));
    assert!(call.failed(HostFailure::Timeout, "").is_err());
}

#[test]
fn a_refusal_whose_body_hangs_until_the_deadline_is_that_refusal() {
    for status in [400, 403, 404, 500] {
        let (client, mut sandbox) = (client_of_one_try(), sandbox());
        drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
        let mut query = query();
        query.deadline_ms = tallyfold::Patience::Milliseconds(300);
        let mut call = client.event_delivery(&query).expect("good arguments");
        request(call.step(at(0)));
        assert_eq!(call.head(status, &[]), Ok(true));
        let error = call.failed(HostFailure::Timeout, "").expect_err("an end");
        assert_eq!(error.status(), Some(status), "{error}");
    }
}

#[test]
fn a_refusal_with_bytes_after_its_body_is_that_refusal() {
    for status in [400, 403, 404, 500] {
        let (client, mut sandbox) = (client_of_one_try(), sandbox());
        drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
        let mut call = delivery(&client);
        request(call.step(at(0)));
        assert_eq!(call.head(status, &[]), Ok(true));
        let error = call.failed(HostFailure::Stale, "").expect_err("an end");
        assert_eq!(error.status(), Some(status), "{error}");
    }
    // The request of a passing failure is sent again.
    let (_client, mut sandbox, mut call) = sent(options());
    assert_eq!(call.head(503, &[]), Ok(false));
    assert_eq!(call.failed(HostFailure::Stale, ""), Ok(()));
    let later = after(at(0), wait(call.step(at(0))));
    assert!(drive(call, &mut sandbox, later).is_ok());
}

#[test]
fn a_requested_wait_is_over_although_no_call_came_meanwhile() {
    let (client, mut sandbox) = (client_of_one_try(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    let mut call = delivery(&client);
    request(call.step(at(0)));
    let refused = answer(&mut call, 503, &[("retry-after", "30")]).expect_err("an end");
    assert_eq!(refused.retry_after_s(), Some(30));
    // The response came within the time limit of 30 s, and an hour has passed.
    request(delivery(&client).step(at(3_600)));
    let mut call = delivery(&client);
    request(call.step(at(7_200)));
    answer(&mut call, 503, &[("retry-after", "30")]).expect_err("an end");
    assert_eq!(wait(delivery(&client).step(at(7_205))), 30_000);
}

#[test]
fn a_status_is_an_error_although_a_header_says_that_the_call_has_not_ended() {
    let (_, _, mut call) = sent(options());
    let header = [("tallyfold-error", "out_of_order 400")];
    let error = answer(&mut call, 404, &header).expect_err("an end");
    assert_eq!((error.code(), error.status()), (Code::UnexpectedStatus, Some(404)));
}

#[test]
fn a_body_that_breaks_off_is_read_again_from_its_start() {
    let (_client, mut sandbox, mut call) = sent(options());
    let headers = [("content-type", "application/json")];
    assert_eq!(call.head(200, &headers), Ok(true));
    assert_eq!(call.chunk(br#"{"start": "2026"#), Ok(()));
    assert_eq!(call.failed(HostFailure::Network, ""), Ok(()));
    let attempt = call.attempt().expect("a request that has ended");
    assert_eq!((attempt.status, attempt.code), (Some(200), Some(Code::NetworkFailed)));
    assert!(drive(call, &mut sandbox, at(1)).is_ok());
}

#[test]
fn nothing_else_is_tried_again() {
    for status in [302, 400, 403, 404, 409, 410, 413, 501, 505, 507, 599] {
        let (_, _, mut call) = sent(options());
        let error = answer(&mut call, status, &[("retry-after", "1")]).expect_err("an end");
        assert_eq!((error.status(), error.retry_after_s()), (Some(status), None));
        let attempt = call.attempt().expect("a request that has ended");
        assert_eq!((attempt.number, attempt.wait_ms), (1, None));
    }
    for body in ["", "garbage", "{}", "{]"] {
        let (_, _, mut call) = sent(options());
        assert_eq!(call.head(200, &[]), Ok(true));
        let error = call.chunk(body.as_bytes()).and_then(|()| call.end()).expect_err("an end");
        assert_eq!(error.kind(), tallyfold::Kind::Response, "{error}");
    }
}

#[test]
fn a_body_that_is_cut_is_read_again_however_the_host_tells_of_it() {
    for endpoint in ["control_token", "event_delivery", "audit_logs"] {
        let (client, mut sandbox) = (client(), sandbox());
        let begin = |client: &Machine| match endpoint {
            "audit_logs" => audit_logs(client).untyped(),
            _ => delivery(client).untyped(),
        };
        let fault = format!(r#"{{"kind": "truncate", "bytes": 30, "endpoint": "{endpoint}"}}"#);
        inject(&mut sandbox, &fault);
        assert!(drive(begin(&client), &mut sandbox, at(0)).is_ok());
        // Where it does not pass, the last error is the call's.
        inject(&mut sandbox, &fault.replace('}', r#", "every": 1}"#));
        let mut call = begin(&crate::support::client());
        let mut attempts = Vec::new();
        let mut now = at(0);
        let error = loop {
            match call.step(now).expect("no error before the last answer") {
                Step::Send(request) => {
                    let outcome = exchange(&mut call, &request, &mut sandbox, now);
                    attempts.extend(call.attempt());
                    if let Err(error) = outcome {
                        break error;
                    }
                }
                Step::Wait { ms } => now = after(now, ms.into()),
                other => panic!("unexpected {other:?}"),
            }
        };
        assert_eq!(error.code(), Code::TruncatedBody, "{endpoint}");
        let cut = attempts.iter().filter(|attempt| attempt.code == Some(Code::TruncatedBody));
        assert_eq!(cut.count(), 4, "{endpoint}: one try, and three retries");
    }
}

#[test]
fn a_wait_grows_and_is_half_random() {
    let (_, _, mut call) = sent(options().max_retries(8));
    let mut now = at(0);
    for backoff in [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
        answer(&mut call, 503, &[]).expect("another try");
        let ms = wait(call.step(now));
        assert!((backoff / 2..=backoff).contains(&ms), "{ms} of {backoff}");
        // Asked too early it gives the rest, and never sends.
        assert_eq!(wait(call.step(after(now, ms - 1))), 1);
        now = after(now, ms);
        request(call.step(now));
    }
    let error = answer(&mut call, 503, &[]).expect_err("the last retry is over");
    assert_eq!(error.code(), Code::ServerError);
}

#[test]
fn seeds_make_clients_wait_differently_and_each_the_same_again() {
    let waits = |seed| {
        let (_, _, mut call) = sent(options().jitter_seed(seed));
        answer(&mut call, 503, &[]).expect("another try");
        wait(call.step(at(0)))
    };
    assert_eq!(waits(1), waits(1));
    let distinct: std::collections::BTreeSet<u64> = (0..100).map(waits).collect();
    assert!(distinct.len() > 60, "{} waits of 251", distinct.len());
}

#[test]
fn a_client_that_may_not_retry_does_not() {
    let client = client_of_one_try();
    let mut sandbox = sandbox();
    inject(&mut sandbox, r#"{"kind": "status", "status": 503, "endpoint": "event_delivery"}"#);
    let error = drive(delivery(&client), &mut sandbox, at(0)).expect_err("an end");
    assert_eq!(
        error.to_string(),
        "server_error: the service failed (status 503: \
         {\"error\":\"injected_fault\",\"message\":\"a fault of the test\"})"
    );
    assert_eq!(sandbox.stats().event_delivery, 1);
}

#[test]
fn a_wall_clock_that_jumps_shortens_no_wait() {
    let (client, _, mut call) = sent(options());
    answer(&mut call, 503, &[("retry-after", "30")]).expect("another try");
    let ms = wait(call.step(at(0)));
    for hours in [-72, -1, 1, 72] {
        let jumped = Now { unix_ms: at(0).unix_ms + hours * 3_600_000, ..at(10) };
        assert_eq!(wait(call.step(jumped)), ms - 10_000);
        assert_eq!(wait(delivery(&client).step(jumped)), 20_000);
    }
}

#[test]
fn a_wait_is_never_longer_than_a_timer_holds() {
    let longest = (1 << 31) - 1;
    let policy = options().longest_retry_wait_ms(longest);
    let (_, _, mut call) = sent(policy.clone());
    answer(&mut call, 503, &[("retry-after", "2147483")]).expect("another try");
    assert!(wait(call.step(at(0))) >= 2_147_483_000);
    // With its random part, the wait is longer than what is said at once.
    let ms = wait(call.step(at(0)));
    assert!(ms <= longest);
    let policy = policy.longest_retry_wait_ms(longest + 1);
    let refused = Machine::new(policy);
    let error = refused.expect_err("no timer holds it");
    assert_eq!(
        (error.code(), error.argument_name()),
        (Code::InvalidArgument, Some("longest_retry_wait_ms"))
    );
}

#[test]
fn beyond_the_longest_wait_the_call_fails_at_once() {
    let (client, _, mut call) = sent(options());
    let error = answer(&mut call, 429, &[("Retry-After", "3600")]).expect_err("an end");
    assert_eq!(
        (error.code(), error.kind(), error.status()),
        (Code::RetryLater, Kind::Service, Some(429))
    );
    assert_eq!(error.retry_after_s(), Some(3_600));
    assert_eq!(error.to_string(), "retry_later: retry later, 3600 seconds (status 429)");
    assert_eq!(call.step(at(0)).expect_err("the same"), error);
    // Nobody waits for so long a time, so nobody is held back either.
    request(delivery(&client).step(at(0)));
}

#[test]
fn what_the_service_asks_for_holds_for_all_calls_of_that_api_and_no_others() {
    let (client, _, mut call) = sent(options());
    let mut early = delivery(&client);
    answer(&mut call, 503, &[("retry-after", "5")]).expect("another try");
    assert_eq!(wait(early.step(at(0))), 5_000);
    assert_eq!(wait(early.step(at(3))), 2_000);
    let ms = wait(call.step(at(0)));
    assert!((5_000..=5_000 + RANDOM_MS).contains(&ms), "{ms}");
    assert!(request(audit_logs(&client).step(at(1))).url().ends_with("/oauth/token"));
    assert_eq!(wait(delivery(&client).step(after(at(4), 999))), 1);
    request(early.step(at(5)));
    request(delivery(&client).step(at(5)));
}

#[test]
fn a_call_that_ends_still_tells_the_others_to_wait() {
    let (client, _, mut call) = sent(options().max_retries(0));
    let error = answer(&mut call, 503, &[("retry-after", "5")]).expect_err("no retry");
    assert_eq!((error.code(), error.retry_after_s()), (Code::ServerError, Some(5)));
    assert_eq!(wait(delivery(&client).step(at(0))), 5_000);
}

#[test]
fn a_token_endpoint_that_asks_for_a_wait_holds_token_requests_back_and_nothing_else() {
    let (client, mut sandbox) = (client(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    // In its margin, a token is to be renewed. That fails, and the old one serves on.
    let margin = 86_400 - 200;
    let mut call = delivery(&client);
    assert!(request(call.step(at(margin))).url().ends_with("/oauth/token"));
    answer(&mut call, 429, &[("retry-after", "50")]).expect("the old token serves");
    call.chunk(b"slow down").and_then(|()| call.end()).expect("nobody wants it");
    assert!(request(call.step(at(margin))).url().contains("analytics"));
    assert_eq!(call.attempt().and_then(|attempt| attempt.wait_ms), None);
    // A try to renew would be due after 30 s, and the service wants 50.
    assert!(request(delivery(&client).step(at(margin + 40))).url().contains("analytics"));
    assert!(request(delivery(&client).step(at(margin + 51))).url().ends_with("/oauth/token"));

    let client = crate::support::client();
    let mut call = delivery(&client);
    request(call.step(at(0)));
    answer(&mut call, 503, &[("retry-after", "20")]).expect("another try");
    assert_eq!(wait(delivery(&client).step(at(0))), 20_000);
    assert!((20_000..=20_000 + RANDOM_MS).contains(&wait(call.step(at(0)))));
    request(audit_logs(&client).step(at(0)));
}

#[test]
fn a_token_endpoint_is_waited_for_once() {
    let client = client();
    let mut call = delivery(&client);
    request(call.step(at(0)));
    answer(&mut call, 503, &[("retry-after", "20")]).expect("another try");
    let waited_ms = wait(call.step(at(0)));
    let again = request(call.step(after(at(0), waited_ms)));
    assert!(again.url().ends_with("/oauth/token"), "{again:?}");
}

/// Drives calls side by side, on one clock, until all have ended.
fn drive_all(
    mut calls: Vec<Call<CountTable>>,
    sandbox: &mut Sandbox,
    mut now: Now,
) -> Vec<Result<CountTable>> {
    let mut ended = Vec::new();
    while !calls.is_empty() {
        let mut shortest = u64::MAX;
        let mut sending = Vec::new();
        let mut waiting = Vec::new();
        for mut call in std::mem::take(&mut calls) {
            match call.step(now) {
                Ok(Step::Send(request)) => sending.push((call, request)),
                Ok(Step::Wait { ms }) => {
                    shortest = shortest.min(ms.into());
                    waiting.push(call);
                }
                Ok(Step::Blocked { .. }) => waiting.push(call),
                Ok(Step::Done) => ended.push(call.output()),
                Ok(other) => panic!("unexpected {other:?}"),
                Err(error) => ended.push(Err(error)),
            }
        }
        let idle = sending.is_empty();
        let token_requests =
            sending.iter().filter(|(_, request)| request.url().ends_with("/oauth/token"));
        assert!(token_requests.count() <= 1, "one token request at a time");
        for (mut call, request) in sending {
            match exchange(&mut call, &request, sandbox, now) {
                Ok(()) => waiting.push(call),
                Err(error) => ended.push(Err(error)),
            }
        }
        if idle && shortest < u64::MAX {
            now = after(now, shortest);
        }
        calls = waiting;
    }
    ended
}

fn good(outputs: &[Result<CountTable>]) -> usize {
    outputs.iter().filter(|output| output.is_ok()).count()
}

#[test]
fn a_hundred_calls_that_wait_for_a_token_try_again_with_one_request() {
    let (client, mut sandbox) = (client(), sandbox());
    inject(&mut sandbox, r#"{"kind": "status", "status": 503, "endpoint": "control_token"}"#);
    let calls = (0..100).map(|_| delivery(&client)).collect();
    assert_eq!(good(&drive_all(calls, &mut sandbox, at(0))), 100);
    let stats = sandbox.stats();
    assert_eq!((stats.control_token, stats.event_delivery), (2, 100));
}

#[test]
fn a_hundred_calls_without_a_token_are_four_requests() {
    let (client, mut sandbox) = (client(), sandbox());
    inject(
        &mut sandbox,
        r#"{"kind": "status", "status": 503, "endpoint": "control_token", "every": 1}"#,
    );
    let calls = (0..100).map(|_| delivery(&client)).collect();
    let outputs = drive_all(calls, &mut sandbox, at(0));
    let failed = |output: &Result<CountTable>| {
        output.as_ref().is_err_and(|error| error.code() == Code::ServerError)
    };
    assert!(outputs.iter().all(failed));
    assert_eq!(sandbox.stats().control_token, 4);
    // Three retries were paid. The calls that fail now earn most of a credit, together.
    drive(audit_logs(&client), &mut sandbox, at(100)).expect("a page");
    assert!((7..=8).contains(&retries_of(&client, 100)));
}

/// How many of these calls may be retried, all of which fail. The client must have a token.
fn retries_of(client: &Machine, calls: usize) -> usize {
    let is_tried_again = |_: &usize| {
        let mut call = audit_logs(client);
        request(call.step(at(100)));
        call.failed(HostFailure::Network, "").is_ok()
    };
    (0..calls).take_while(is_tried_again).count()
}

#[test]
fn those_who_wait_lead_when_the_leader_has_no_retry_left() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut leader = delivery(&client);
    let mut now = at(0);
    for _ in 0..3 {
        request(leader.step(now));
        leader.failed(HostFailure::Network, "").expect("another try");
        now = after(now, wait(leader.step(now)));
    }
    request(leader.step(now));
    let mut waiter = delivery(&client);
    assert!(matches!(waiter.step(now), Ok(Step::Blocked { .. })));
    leader.failed(HostFailure::Network, "").expect_err("an end");
    let ms = wait(waiter.step(now));
    assert!((250..=500).contains(&ms), "{ms}");
    assert!(drive(waiter, &mut sandbox, now).is_ok());
}

#[test]
fn a_refusal_while_a_call_waits_for_its_turn_is_its_own_too() {
    let client = client();
    let mut patient = delivery(&client);
    request(patient.step(at(0)));
    patient.failed(HostFailure::Network, "").expect("another try");
    wait(patient.step(at(0)));
    let mut other = delivery(&client);
    request(other.step(at(0)));
    assert_eq!(answer(&mut other, 403, &[]).expect_err("an end").code(), Code::TokenRefused);
    let refused = patient.step(at(1)).expect_err("the same");
    assert_eq!(refused.code(), Code::TokenRefused);
}

#[test]
fn a_client_has_ten_retries_to_spend_at_once_and_earns_more() {
    let (client, mut sandbox) = (client(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    let mut spent = 0;
    let refusal = loop {
        let mut call = delivery(&client);
        request(call.step(at(0)));
        match call.failed(HostFailure::Network, "ECONNRESET") {
            Ok(()) => spent += 1,
            Err(error) => break error,
        }
        call.close();
    };
    // Ten at the start; ten calls have earned 0.9 since the first was spent.
    assert_eq!(spent, 10);
    assert_eq!(refusal.code(), Code::NetworkFailed);
    assert_eq!(
        refusal.message(),
        "the connection was closed or reset before the response was complete \
         (ECONNRESET, https://sandbox.example/v1.1/analytics/event_delivery); it is not tried again, as the retry budget is used up"
    );
    let calls_until_a_retry = (1..)
        .find(|_| {
            let mut call = delivery(&client);
            request(call.step(at(0)));
            call.failed(HostFailure::Network, "").is_ok()
        })
        .unwrap_or(0);
    assert!(calls_until_a_retry <= 12, "{calls_until_a_retry} calls");
}

#[test]
fn a_token_request_is_paid_by_the_call_that_sends_it() {
    let (client, mut sandbox) = (client(), sandbox());
    // Nine credits go, and one is left.
    drive(audit_logs(&client), &mut sandbox, at(0)).expect("a page");
    assert_eq!(retries_of(&client, 9), 9);
    let mut calls: Vec<Call<CountTable>> = (0..3).map(|_| delivery(&client)).collect();
    request(calls[0].step(at(0)));
    for call in &mut calls[1..] {
        assert!(matches!(call.step(at(0)), Ok(Step::Blocked { .. })));
    }
    calls[0].failed(HostFailure::Network, "").expect("another try");
    for call in &mut calls {
        wait(call.step(at(0)));
    }
    request(calls[1].step(at(1)));
    calls[1].failed(HostFailure::Network, "").expect_err("no credit is left");
    for call in [0, 2] {
        let error = calls[call].step(at(2)).expect_err("no credit is left");
        assert!(error.message().contains("retry budget"), "{error}");
    }
}

#[test]
fn a_renewal_is_no_retry_and_costs_none() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut patient = delivery(&client);
    request(patient.step(at(0)));
    patient.failed(HostFailure::Network, "").expect("another try");
    wait(patient.step(at(0)));
    // Another call gets the token, and nothing is left in the budget.
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    drive(audit_logs(&client), &mut sandbox, at(100)).expect("a page");
    retries_of(&client, 100);
    // What the first call sends in the margin of that token does not repeat its failure.
    let renewal = request(patient.step(at(86_400 - 200)));
    assert!(renewal.url().ends_with("/oauth/token"));
}

#[test]
fn a_retry_gets_itself_a_token_if_its_own_has_died_meanwhile() {
    let client =
        Machine::new(options().host_tokens(true).client_secret(None)).expect("good options");
    let mut call = delivery(&client);
    assert!(matches!(call.step(at(0)), Ok(Step::ProvideToken { .. })));
    call.token(Secret::from("short".to_owned()), Some("10")).expect("a token");
    request(call.step(at(0)));
    answer(&mut call, 503, &[("retry-after", "10")]).expect("another try");
    let ms = wait(call.step(at(1)));
    let later = after(at(1), ms);
    assert!(matches!(call.step(later), Ok(Step::ProvideToken { .. })));
    call.token(Secret::from("new".to_owned()), Some("10")).expect("a token");
    let again = request(call.step(later));
    assert!(again.headers().any(|(_, value)| value == "Bearer new"));
}

#[test]
fn a_call_that_is_closed_while_it_waits_leaves_nothing_behind() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut leader = delivery(&client);
    request(leader.step(at(0)));
    leader.failed(HostFailure::Network, "").expect("another try");
    wait(leader.step(at(0)));
    leader.close();
    assert!(leader.step(at(1)).is_err());
    assert!(drive(delivery(&client), &mut sandbox, at(1)).is_ok());
}

#[test]
fn the_rest_of_a_refused_body_may_still_come() {
    let (_, mut sandbox, mut call) = sent(options());
    answer(&mut call, 503, &[]).expect("another try");
    call.chunk(b"<html>").expect("nobody wants it");
    call.end().expect("nobody wants it");
    assert_eq!(call.end().map_err(|error| error.code()), Err(Code::OutOfOrder));
    assert!(drive(call, &mut sandbox, at(0)).is_ok());
}

#[test]
fn every_request_is_told_of_once() {
    let (client, mut sandbox) = (client(), sandbox());
    inject(&mut sandbox, r#"{"kind": "status", "status": 500, "endpoint": "control_token"}"#);
    inject(&mut sandbox, r#"{"kind": "revoke_token", "endpoint": "event_delivery"}"#);
    let mut call = delivery(&client);
    assert_eq!(call.attempt(), None);
    let mut attempts = Vec::new();
    let mut now = at(0);
    loop {
        match call.step(now).expect("no error") {
            Step::Send(request) => {
                exchange(&mut call, &request, &mut sandbox, now).expect("no error");
                attempts.extend(call.attempt());
                assert_eq!(call.attempt(), None, "once only");
            }
            Step::Wait { ms } => now = after(now, ms.into()),
            _ => break,
        }
    }
    let window = Window::new(query().start, query().end).ok();
    let attempt = |target, number, status, code, wait_ms| Attempt {
        target,
        window,
        number,
        status: Some(status),
        code,
        wait_ms,
        clock: None,
    };
    let first_wait = attempts[0].wait_ms;
    assert!(first_wait.is_some_and(|ms| (250..=500).contains(&ms)));
    let rejected = Some(Code::TokenRejected);
    assert_eq!(
        attempts,
        [
            attempt(Target::Token, 1, 500, Some(Code::ServerError), first_wait),
            attempt(Target::Token, 2, 200, None, None),
            attempt(Target::EventDelivery, 1, 401, rejected, Some(0)),
            attempt(Target::Token, 3, 200, None, None),
            attempt(Target::EventDelivery, 2, 200, None, None),
        ]
    );
    let mut logs = audit_logs(&client);
    request(logs.step(at(0)));
    logs.failed(HostFailure::Timeout, "").expect("another try");
    let attempt = logs.attempt().expect("a request that has ended");
    assert_eq!((attempt.target, attempt.window), (Target::Token, None));
    assert_eq!((attempt.status, attempt.code), (None, Some(Code::TimedOut)));
}

#[test]
fn the_end_of_a_call_is_told_of_too() {
    let (_, _, mut call) = sent(options().max_retries(0));
    let error: Error = answer(&mut call, 504, &[]).expect_err("an end");
    let attempt = call.attempt().expect("a request that has ended");
    assert_eq!(
        (attempt.code, attempt.status, attempt.wait_ms),
        (Some(error.code()), Some(504), None)
    );
    let (_, _, mut call) = sent(options());
    call.head(200, &[]).expect("a body");
    call.chunk(b"nonsense").expect_err("no JSON");
    let attempt = call.attempt().expect("a request that has ended");
    assert_eq!((attempt.code, attempt.wait_ms), (Some(Code::InvalidJson), None));
}

/// Eight calls of a web app that begin at the same time and fail fast.
fn fast_calls(client: &Machine) -> Vec<Call<CountTable>> {
    let since = client.failures();
    let begin = |_| {
        let mut call = delivery(client);
        call.fail_fast(since);
        call
    };
    (0..8).map(begin).collect()
}

#[test]
fn a_call_that_fails_fast_ends_when_the_service_is_down() {
    let refused = |call: &mut Call<CountTable>| call.failed(HostFailure::Network, "ECONNREFUSED");
    let (client, mut sandbox) = (client(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
    let mut calls = fast_calls(&client);
    let mut waiting = fast_calls(&client);
    for call in &mut calls {
        request(call.step(at(0)));
    }
    // One failure or two may be due to these requests, so they are sent again.
    assert_eq!(refused(&mut calls[0]), Ok(()));
    assert_eq!(refused(&mut calls[1]), Ok(()));
    for call in &mut calls[2..7] {
        assert_eq!(refused(call).map_err(|error| error.code()), Err(Code::NetworkFailed));
    }
    // A few failures may be due to a few windows, so the others are still requested.
    request(waiting[0].step(at(0)));
    refused(&mut calls[7]).expect_err("the service is down");
    // After so many, the others end without a request, those that wait for a retry, too.
    for call in calls[..2].iter_mut().chain(&mut waiting[1..]) {
        let error = call.step(at(0)).expect_err("the service is down");
        assert!(error.to_string().contains("ECONNREFUSED"), "{error}");
    }
    // Whoever comes later finds the service up again.
    for call in fast_calls(&client) {
        drive(call, &mut sandbox, at(9)).expect("a table");
    }
    let [mut first, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
    request(first.step(at(9)));
    assert_eq!(refused(&mut first), Ok(()), "the service was up");
}

#[test]
fn a_call_that_fails_fast_does_not_wait_for_a_token_that_is_not_to_be_had() {
    let client = client();
    let mut calls = fast_calls(&client);
    let mut now = at(0);
    let mut requests = 0;
    let mut open: Vec<&mut Call<CountTable>> = calls.iter_mut().collect();
    while !open.is_empty() {
        open.retain_mut(|call| match call.step(now) {
            Ok(Step::Send(request)) => {
                assert!(request.url().ends_with("/oauth/token"));
                requests += 1;
                call.failed(HostFailure::Network, "ECONNREFUSED").is_ok()
            }
            other => other.is_ok(),
        });
        now = after(now, 50);
    }
    assert!(requests <= 8, "{requests}");
    assert!(now.monotonic_ms < 2_000, "{}", now.monotonic_ms);
}

#[test]
fn a_call_that_fails_fast_waits_for_silence_once() {
    for has_token in [false, true] {
        let (client, mut sandbox) = (client(), sandbox());
        if has_token {
            drive(delivery(&client), &mut sandbox, at(0)).expect("a table");
        }
        let [mut sent, mut waiting, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
        request(sent.step(at(0)));
        let silence = sent.failed(HostFailure::Timeout, "TimeoutError");
        for outcome in [silence, waiting.step(at(30)).map(drop)] {
            let error = outcome.expect_err("the service is down");
            assert_eq!(error.code(), Code::TimedOut, "{has_token}");
        }
        let [mut later, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
        request(later.step(at(31)));
    }
}

#[test]
fn a_call_that_fails_fast_waits_for_a_rate_limit_and_not_for_maintenance() {
    for (status, waits) in [(429, true), (503, false)] {
        let (client, _, _) = sent(options());
        let [mut first, mut other, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
        request(first.step(at(0)));
        let outcome = answer(&mut first, status, &[("retry-after", "7")]);
        if waits {
            assert_eq!(outcome, Ok(()));
            assert!(wait(other.step(at(0))) >= 7_000);
            continue;
        }
        let [mut later, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
        let errors = [outcome, other.step(at(0)).map(drop), later.step(at(1)).map(drop)]
            .map(|outcome| outcome.expect_err("the service is down").retry_after_s());
        assert_eq!(errors, [Some(7), Some(7), Some(6)]);
        let [mut last, ..] = <[_; 8]>::try_from(fast_calls(&client)).expect("eight");
        request(last.step(at(8)));
    }
}

/// Drives calls of a web app for 96 windows, one after the other, within a second. Returns the codes of their errors.
fn day_of_fast_calls(client: &Machine, sandbox: &mut Sandbox, now: Now) -> Vec<Option<Code>> {
    let drive_fast = |number| {
        let mut call = delivery(client);
        call.fail_fast(client.failures());
        let outcome = drive(call, sandbox, after(now, number * 10));
        outcome.err().map(|error| error.code())
    };
    (0..96_u64).map(drive_fast).collect()
}

#[test]
fn refused_credentials_cost_calls_that_fail_fast_one_token_request_in_ten_seconds() {
    let wrong = options().client_secret(Secret::from("revoked".to_owned()));
    let (client, mut sandbox) = (client_with(wrong), sandbox());
    let refused = vec![Some(Code::TokenRefused); 96];
    assert_eq!(day_of_fast_calls(&client, &mut sandbox, at(0)), refused);
    assert_eq!(sandbox.stats().control_token, 1);
    // Other calls are the caller's own decision.
    drive(delivery(&client), &mut sandbox, at(9)).expect_err("the secret is wrong");
    assert_eq!(sandbox.stats().control_token, 2);
    assert_eq!(day_of_fast_calls(&client, &mut sandbox, at(10)), refused);
    assert_eq!(sandbox.stats().control_token, 2, "at 9 s");
    assert_eq!(day_of_fast_calls(&client, &mut sandbox, at(19)), refused);
    assert_eq!(sandbox.stats().control_token, 3);
}

#[test]
fn tokens_that_an_endpoint_refuses_cost_calls_that_fail_fast_a_few_requests_in_ten_seconds() {
    let (client, mut sandbox) = (client(), sandbox());
    let forever = r#"{"kind": "status", "status": 401, "endpoint": "event_delivery", "every": 1}"#;
    inject(&mut sandbox, forever);
    let refused = vec![Some(Code::TokenRejected); 96];
    for (seconds, requests) in [(0, 2), (10, 3)] {
        let found = day_of_fast_calls(&client, &mut sandbox, at(seconds));
        assert_eq!(found, refused);
        let stats = sandbox.stats();
        assert_eq!((stats.control_token, stats.event_delivery), (requests, requests));
    }
    // Another endpoint may accept the same tokens.
    let mut other = client.event_ingestion(&query()).expect("good arguments");
    other.fail_fast(client.failures());
    drive(other, &mut sandbox, at(11)).expect("a table");
}

#[test]
fn a_token_that_is_accepted_ends_the_memory_of_a_refusal() {
    let (client, mut sandbox) = (client(), sandbox());
    for _ in 0..2 {
        inject(&mut sandbox, r#"{"kind": "status", "status": 401, "endpoint": "event_delivery"}"#);
    }
    let fast = |now, sandbox: &mut Sandbox| {
        let mut call = delivery(&client);
        call.fail_fast(client.failures());
        drive(call, sandbox, now)
    };
    fast(at(0), &mut sandbox).expect_err("two tokens are refused");
    fast(at(1), &mut sandbox).expect_err("so recently");
    drive(delivery(&client), &mut sandbox, at(2)).expect("a table");
    fast(at(3), &mut sandbox).expect("a table");
}
