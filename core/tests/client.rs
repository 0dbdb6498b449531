//! The client against the sandbox, through bytes and in virtual time.

use crate::support::{at, client, client_of_one_try, drive, exchange, options, sandbox};
use tallyfold::{
    AuditLogsOptions, Call, Code, CountTable, Dimension, Frame, HostFailure, Machine,
    MachineOptions, Now, QueryOptions, Reconciliation, Result, Secret, Step, Window,
};
use tallyfold_sandbox::{Fault, FaultEffect, Sandbox, SandboxOptions};

/// A query of an hour.
fn query(dimensions: &[Dimension]) -> QueryOptions {
    let hour = Window::parse("2026-01-14T09:00:00Z", "2026-01-14T10:00:00Z");
    QueryOptions::new(hour.expect("an hour"), dimensions)
}

fn delivery(client: &Machine) -> Call<CountTable> {
    client
        .event_delivery(&query(&[Dimension::Integration, Dimension::Reason]))
        .expect("good arguments")
}

fn table(output: Result<CountTable>) -> CountTable {
    output.expect("a table")
}

#[test]
fn both_metrics_and_the_audit_logs_with_a_token_for_each_api() {
    let (client, mut sandbox) = (client(), sandbox());
    let delivered = table(drive(delivery(&client), &mut sandbox, at(0)));
    assert_eq!(delivered.reconciliation(), Reconciliation::Balanced);
    assert!(delivered.len() > 30 && delivered.totals().errors > 0);
    let call = client.event_ingestion(&query(&[Dimension::WriteKey]));
    let ingested = table(drive(call.expect("good arguments"), &mut sandbox, at(0)));
    assert_eq!(ingested.totals(), delivered.totals());
    let second = AuditLogsOptions::default().page(2).per_page(10);
    let logs = client.audit_logs(&second).expect("good arguments");
    let logs = drive(logs, &mut sandbox, at(0)).expect("a page");
    let page: serde_json::Value = serde_json::from_slice(logs.bytes()).expect("JSON");
    assert_eq!(page["page"], 2);
    let stats = sandbox.stats();
    assert_eq!((stats.control_token, stats.orchestration_token), (1, 1));
    assert_eq!((stats.event_delivery, stats.event_ingestion, stats.audit_logs), (1, 1, 1));
}

#[test]
fn grouping_by_the_service_while_folding_and_afterwards_agree() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut ask = |dimensions: &[Dimension], group_by: Option<&[Dimension]>| {
        let call = client.event_delivery(&query(dimensions).group_by(group_by.map(<[_]>::to_vec)));
        table(drive(call.expect("good arguments"), &mut sandbox, at(0)))
    };
    let everything =
        [Dimension::EventName, Dimension::WriteKey, Dimension::Integration, Dimension::Reason];
    let by_service = ask(&[Dimension::Reason, Dimension::Integration], None);
    assert_eq!(ask(&everything, Some(&[Dimension::Reason, Dimension::Integration])), by_service);
    let whole = ask(&everything, None);
    assert_eq!(whole.group_by(&["reason", "integration"]), Ok(by_service));
    assert!(whole.len() > 1_000);
}

/// Starts `count` calls at the same time, and makes the first step of each.
fn start(client: &Machine, count: usize, now: Now) -> Vec<(Call<CountTable>, Step)> {
    let first_step = |_| {
        let mut call = delivery(client);
        let step = call.step(now).expect("a first step");
        (call, step)
    };
    (0..count).map(first_step).collect()
}

/// Responds to all steps, round by round, until every call has ended.
fn drive_all(
    mut calls: Vec<(Call<CountTable>, Step)>,
    client: &Machine,
    sandbox: &mut Sandbox,
    now: Now,
) -> Vec<Result<CountTable>> {
    let mut ended = Vec::new();
    while !calls.is_empty() {
        let mut still = Vec::new();
        for (mut call, step) in calls {
            let next = match &step {
                Step::Send(request) => {
                    exchange(&mut call, request, sandbox, now).and_then(|()| call.step(now))
                }
                Step::Blocked { epoch } if client.token_epoch() == *epoch => Ok(step.clone()),
                Step::Blocked { .. } => call.step(now),
                other => panic!("unexpected {other:?}"),
            };
            match next {
                Ok(Step::Done) => ended.push(call.output()),
                Ok(step) => still.push((call, step)),
                Err(error) => ended.push(Err(error)),
            }
        }
        calls = still;
    }
    ended
}

#[test]
fn a_hundred_calls_on_an_expired_token_make_one_token_request() {
    let (client, mut sandbox) = (client(), sandbox());
    table(drive(delivery(&client), &mut sandbox, at(0)));
    let tomorrow = at(90_000);
    let calls = start(&client, 100, tomorrow);
    let outputs = drive_all(calls, &client, &mut sandbox, tomorrow);
    assert_eq!(outputs.iter().filter(|output| output.is_ok()).count(), 100);
    assert_eq!((sandbox.stats().control_token, sandbox.stats().event_delivery), (2, 101));
}

#[test]
fn a_hundred_calls_with_a_revoked_token_make_one_token_request() {
    let (client, mut sandbox) = (client(), sandbox());
    table(drive(delivery(&client), &mut sandbox, at(0)));
    sandbox.revoke_tokens();
    let calls = start(&client, 100, at(1));
    let outputs = drive_all(calls, &client, &mut sandbox, at(1));
    assert_eq!(outputs.iter().filter(|output| output.is_ok()).count(), 100);
    assert_eq!((sandbox.stats().control_token, sandbox.stats().event_delivery), (2, 201));
}

#[test]
fn each_revocation_is_answered_with_a_new_token() {
    let (client, mut sandbox) = (client(), sandbox());
    for revocations in 0..5 {
        table(drive(delivery(&client), &mut sandbox, at(0)));
        assert_eq!(sandbox.stats().control_token, revocations + 1);
        sandbox.revoke_tokens();
    }
}

#[test]
fn a_hundred_calls_that_wait_share_the_failure_of_one_token_request() {
    let (client, mut sandbox) = (client_of_one_try(), sandbox());
    sandbox
        .inject_json(
            r#"{"kind": "status", "endpoint": "control_token", "status": 503, "every": 1}"#,
        )
        .expect("a good fault");
    let calls = start(&client, 100, at(0));
    let outputs = drive_all(calls, &client, &mut sandbox, at(0));
    assert!(
        outputs.iter().all(|output| {
            output.as_ref().is_err_and(|error| error.code() == Code::ServerError)
        })
    );
    assert_eq!(sandbox.stats().control_token, 1);
}

#[test]
fn a_service_that_always_says_401_is_asked_with_one_new_token_for_each_call() {
    let (client, mut sandbox) = (client(), sandbox());
    sandbox
        .inject_json(r#"{"kind": "revoke_token", "endpoint": "event_delivery", "every": 1}"#)
        .expect("a good fault");
    for calls in 1..=3 {
        let error = drive(delivery(&client), &mut sandbox, at(0)).expect_err("a refusal");
        assert_eq!((error.code(), error.status()), (Code::TokenRejected, Some(401)));
        // The first call tries one new token; later ones know that new tokens do not help.
        let stats = sandbox.stats();
        assert_eq!((stats.control_token, stats.event_delivery), (calls + 1, calls + 1));
    }
}

#[test]
fn when_the_leader_is_given_up_another_call_fetches_the_token() {
    for dropped in [false, true] {
        let (client, mut sandbox) = (client(), sandbox());
        let mut calls = start(&client, 3, at(0));
        let (mut leader, step) = calls.remove(0);
        assert!(matches!(step, Step::Send(_)));
        let epoch = client.token_epoch();
        if dropped {
            drop(leader)
        } else {
            leader.close()
        }
        assert_ne!(client.token_epoch(), epoch, "those who wait are to be woken");
        let outputs = drive_all(calls, &client, &mut sandbox, at(0));
        assert!(outputs.iter().all(Result::is_ok));
        assert_eq!(sandbox.stats().control_token, 1);
    }
}

#[test]
fn a_fetch_that_nobody_ends_is_overtaken_once_by_those_who_wait() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut calls = start(&client, 4, at(0));
    // The host of the first call has stopped in the middle of it.
    let (mut lost, Step::Send(request)) = calls.remove(0) else {
        panic!("the first call leads");
    };
    let epoch = client.token_epoch();
    for (call, _) in &mut calls {
        call.overtake(epoch);
    }
    assert_ne!(client.token_epoch(), epoch, "those who wait are to look");
    let (mut first, _) = calls.remove(0);
    let Ok(Step::Send(own)) = first.step(at(5)) else {
        panic!("it fetches a token itself");
    };
    for (call, step) in &mut calls {
        *step = call.step(at(5)).expect("it waits for the second fetch");
        // The epoch is that of the first fetch.
        call.overtake(epoch);
        assert!(matches!(step, Step::Blocked { .. }));
        assert!(matches!(call.step(at(5)), Ok(Step::Blocked { .. })));
    }
    exchange(&mut first, &own, &mut sandbox, at(5)).expect("a token");
    let outputs = drive_all(calls, &client, &mut sandbox, at(5));
    assert!(outputs.iter().all(Result::is_ok));
    assert_eq!(sandbox.stats().control_token, 1);
    // It was not lost, only slow: its token is as good.
    exchange(&mut lost, &request, &mut sandbox, at(6)).expect("a token");
    table(drive(lost, &mut sandbox, at(6)));
    table(drive(first, &mut sandbox, at(6)));
    assert_eq!(sandbox.stats().control_token, 2);
}

#[test]
fn a_late_401_for_an_old_token_leaves_the_new_one_alone() {
    let (client, mut sandbox) = (client(), sandbox());
    table(drive(delivery(&client), &mut sandbox, at(0)));
    // Two calls carry the old token; the second learns of its end after the first has renewed it.
    let mut calls = start(&client, 2, at(1));
    sandbox.revoke_tokens();
    let slow = calls.split_off(1);
    assert!(drive_all(calls, &client, &mut sandbox, at(1)).iter().all(Result::is_ok));
    assert!(drive_all(slow, &client, &mut sandbox, at(1)).iter().all(Result::is_ok));
    assert_eq!(sandbox.stats().control_token, 2);
}

#[test]
fn a_token_that_is_over_when_it_comes_is_tried_once_and_never_fetched_in_a_loop() {
    let options_of_sandbox = SandboxOptions::default().seed(7).token_lifetime_s(1);
    let mut sandbox = Sandbox::new(options_of_sandbox).expect("good options");
    let client = client();
    let mut calls = start(&client, 5, at(0));
    // The leader's answer takes an hour to come.
    let (mut leader, Step::Send(request)) = calls.remove(0) else {
        panic!("the first call leads");
    };
    exchange(&mut leader, &request, &mut sandbox, at(0)).expect("a token");
    let step = leader.step(at(3600)).expect("the request");
    calls.push((leader, step));
    let outputs = drive_all(calls, &client, &mut sandbox, at(3600));
    assert!(outputs.iter().all(Result::is_ok), "the 401 was answered with a fresh token");
    assert_eq!(sandbox.stats().control_token, 2);
}

/// Drives a call to the request that renews a token within its margin, and lets that request time
/// out.
fn fail_to_refresh(client: &Machine, asked_at: Now) -> Call<CountTable> {
    let mut call = delivery(client);
    let Ok(Step::Send(request)) = call.step(asked_at) else { panic!("a token request") };
    assert!(request.url().ends_with("/oauth/token"));
    call.failed(HostFailure::Timeout, "").expect("the old token serves");
    call
}

fn bearer(step: Result<Step>) -> String {
    match step {
        Ok(Step::Send(request)) => {
            let header = request.headers().find(|(name, _)| *name == "authorization");
            header.map_or_else(|| "none".to_owned(), |(_, value)| value.to_owned())
        }
        other => panic!("want a request, not {other:?}"),
    }
}

#[test]
fn after_a_failed_refresh_the_old_token_serves_while_it_lives_and_no_longer() {
    let (client, mut sandbox) = (client(), sandbox());
    table(drive(delivery(&client), &mut sandbox, at(0)));
    let margin = 86_400 - 200;
    // A refresh that took 30 s to fail is not tried again for 30 s after that.
    let mut call = fail_to_refresh(&client, at(margin));
    assert!(bearer(call.step(at(margin + 30))).starts_with("Bearer sandbox.control.1."));
    let mut next = delivery(&client);
    assert!(bearer(next.step(at(margin + 59))).starts_with("Bearer sandbox.control.1."));
    // A refresh during which the machine slept for a day has no old token to fall back on.
    let mut call = fail_to_refresh(&client, at(margin + 61));
    assert_eq!(bearer(call.step(at(margin + 90_000))), "none", "a token request");
}

#[test]
fn a_leader_that_slept_through_the_life_of_its_new_token_fetches_another() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut calls = start(&client, 2, at(0));
    let (mut waiter, _) = calls.remove(1);
    let (mut leader, Step::Send(request)) = calls.remove(0) else { panic!("the first call leads") };
    exchange(&mut leader, &request, &mut sandbox, at(0)).expect("a token");
    assert_eq!(bearer(leader.step(at(90_000))), "none", "a token request");
    assert!(matches!(waiter.step(at(90_000)), Ok(Step::Blocked { .. })));
}

#[test]
fn an_old_failure_is_not_shared() {
    let client = client_of_one_try();
    let mut calls = start(&client, 3, at(0));
    let (mut leader, _) = calls.remove(0);
    leader.failed(HostFailure::Network, "ECONNRESET").expect_err("no token");
    let codes: Vec<_> = calls
        .iter_mut()
        .zip([at(1), at(3600)])
        .map(|((call, _), now)| call.step(now).map_err(|error| error.code()))
        .collect();
    assert!(matches!(codes[0], Err(Code::NetworkFailed)));
    assert!(matches!(codes[1], Ok(Step::Send(_))), "an hour later, another try");
}

/// Thirty-one days of calls every five minutes, with clocks that jump. A token is never used when
/// either clock has seen it die, and is asked for no more often than it must be.
#[test]
fn a_month_of_calls_with_clock_jumps() {
    let client = client();
    let mut sandbox = Sandbox::new(SandboxOptions::default()).expect("good options");
    let mut now = at(0);
    let mut jumps = 0;
    for call_number in 0..31 * 288_u64 {
        let (monotonic_s, wall_s): (u64, i64) = match call_number % 997 {
            // The machine sleeps for 25 hours, and the monotonic clock with it.
            500 => (1, 25 * 3600),
            // Somebody sets the wall clock back by three days, and forth again.
            700 => (300, -3 * 86_400),
            701 => (300, 3 * 86_400 + 600),
            // The wall clock stands still.
            800..=900 => (300, 0),
            _ => (300, 300),
        };
        jumps += u64::from((monotonic_s as i64) != wall_s);
        now.monotonic_ms += monotonic_s * 1000;
        now.unix_ms += wall_s * 1000;
        table(drive(delivery(&client), &mut sandbox, now));
    }
    let stats = sandbox.stats();
    assert!(jumps > 900);
    // No call met a 401, so each was sent once.
    assert_eq!(stats.event_delivery, 31 * 288);
    assert!((31..=60).contains(&stats.control_token), "{} token requests", stats.control_token);
}

#[test]
fn every_way_of_breaking_off_leaves_no_table() {
    let (client, mut sandbox) = (client_of_one_try(), sandbox());
    for bytes in [0, 1, 100, 2_000] {
        let fault =
            format!(r#"{{"kind": "truncate", "endpoint": "event_delivery", "bytes": {bytes}}}"#);
        sandbox.inject_json(&fault).expect("a good fault");
        let error = drive(delivery(&client), &mut sandbox, at(0)).expect_err("a cut body");
        let code = if bytes == 0 { Code::EmptyBody } else { Code::TruncatedBody };
        assert_eq!((error.code(), error.offset()), (code, Some(bytes)));
    }
    let mut call = delivery(&client);
    assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
    let headers = [("content-type", "application/json")];
    assert_eq!(call.head(200, &headers), Ok(true));
    assert_eq!(call.chunk(b"{"), Ok(()));
    let error = call.failed(HostFailure::Network, "ECONNRESET").expect_err("a broken exchange");
    assert_eq!(
        error.to_string(),
        "network_failed: the connection was closed or reset before the response was complete \
         (ECONNRESET, https://sandbox.example/v1.1/analytics/event_delivery)"
    );
    assert_eq!(call.output(), Err(error));
}

#[test]
fn what_happened_on_the_way_is_told_and_a_certificate_is_not_tried_again() {
    let told = [
        ("ENOTFOUND", "name was not found", true),
        ("ECONNREFUSED", "refused the connection", true),
        ("EPIPE", "closed or reset", true),
        ("ProxyError", "the proxy", true),
        ("EPROTO", "TLS failed", true),
        ("OFFLINE", "offline", true),
        ("ECONNFOO", "the exchange broke (ECONNFOO, https://sandbox.example/", true),
        ("canary-secret", "the exchange broke (https://sandbox.example/", true),
        ("NO_FETCH", "no fetch", false),
        ("MIXED_CONTENT", "https", false),
        ("CERT_HAS_EXPIRED", "certificate is refused: it has expired", false),
        ("DEPTH_ZERO_SELF_SIGNED_CERT", "self-signed", false),
        ("ERR_TLS_CERT_ALTNAME_INVALID", "another name", false),
        ("CERT_REVOKED", "certificate is refused: it can't be verified", false),
    ];
    for (detail, words, is_retried) in told {
        for at_token in [true, false] {
            let (client, mut sandbox) = (client_of_one_retry(), sandbox());
            if !at_token {
                drive(delivery(&client), &mut sandbox, at(0)).expect("a good exchange");
            }
            let mut call = delivery(&client);
            assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
            let outcome = call.failed(HostFailure::Network, detail);
            assert_eq!(outcome.is_ok(), is_retried, "{detail}");
            let error = match outcome {
                Err(error) => error,
                Ok(()) => {
                    assert!(matches!(call.step(at(0)), Ok(Step::Wait { .. })));
                    assert!(matches!(call.step(at(60)), Ok(Step::Send(_))));
                    let failed = call.failed(HostFailure::Network, detail);
                    failed.expect_err("one retry")
                }
            };
            assert_eq!(error.code(), Code::NetworkFailed);
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}

fn client_of_one_retry() -> Machine {
    let options = options().max_retries(1);
    Machine::new(options).expect("good options")
}

#[test]
fn a_page_is_told_what_its_cluster_would_have_to_send() {
    let said = |origin: &str| {
        let client = client_of_one_try();
        let mut call = delivery(&client);
        assert!(call.step(at(0)).is_ok());
        let failed = call.failed(HostFailure::Hidden, origin);
        failed.expect_err("an end").message()
    };
    let told = said("https://page.example:8080");
    let wanted = "`Access-Control-Allow-Origin: https://page.example:8080`";
    assert!(told.contains(wanted), "{told}");
    assert!(told.contains("Access-Control-Allow-Headers: authorization"));
    let told = said("canary secret");
    assert!(!told.contains("canary"), "{told}");
}

#[test]
fn whatever_becomes_of_a_refusals_body_the_call_ends_with_the_refusal() {
    type End = fn(&mut Call<CountTable>) -> Result<()>;
    let ends: [(&str, End); 4] = [
        ("at its end", Call::end),
        ("broken off", |call| call.failed(HostFailure::Network, "")),
        ("late", |call| call.failed(HostFailure::Timeout, "")),
        ("without end", |call| (0..1_000_000).try_for_each(|_| call.chunk(b" "))),
    ];
    for (how, end) in ends {
        let (client, mut sandbox) = (client_of_one_try(), sandbox());
        drive(delivery(&client), &mut sandbox, at(0)).expect("a good exchange");
        let mut call = delivery(&client);
        assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
        assert_eq!(call.head(400, &[]), Ok(true), "{how}");
        assert_eq!(call.chunk(b"window longer"), Ok(()), "{how}");
        let error = end(&mut call).expect_err("the refusal");
        assert_eq!(error.code(), Code::UnexpectedStatus, "{how}");
        assert_eq!(error.excerpt(), Some("window longer"), "{how}");
        assert!(error.to_string().ends_with("(status 400: window longer)"));
        assert_eq!(call.step(at(0)).expect_err("its end"), error);
    }
}

#[test]
fn the_body_of_a_refusal_that_is_tried_again_is_not_wanted() {
    let (client, mut sandbox) = (client_of_one_retry(), sandbox());
    drive(delivery(&client), &mut sandbox, at(0)).expect("a good exchange");
    let mut call = delivery(&client);
    assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
    assert_eq!(call.head(503, &[]), Ok(false));
    assert!(matches!(call.step(at(0)), Ok(Step::Wait { .. })));
    assert!(matches!(call.step(at(60)), Ok(Step::Send(_))));
    assert_eq!(call.head(503, &[]), Ok(true));
    assert!(call.end().is_err());
}

#[test]
fn the_name_of_a_hosts_error_is_kept_and_no_other_word() {
    let kept = |detail: &str| {
        let client = client_of_one_try();
        let mut call = delivery(&client);
        assert!(call.step(at(0)).is_ok());
        let error = call.failed(HostFailure::Network, detail).expect_err("an end");
        error.message().contains(detail)
    };
    for name in ["ECONNREFUSED", "UND_ERR_SOCKET", "CERT_HAS_EXPIRED", "ConnectError"] {
        assert!(kept(name), "{name}");
    }
    for name in ["canary-secret", "s3cr3t", "Secret", "CANARY", "Bearer xError", "abc.defError"] {
        assert!(!kept(name), "{name}");
    }
}

#[test]
fn a_machine_driven_out_of_order_says_so_and_goes_on() {
    let (client, mut sandbox) = (client(), sandbox());
    let mut call = delivery(&client);
    let refused = |outcome: Result<()>| {
        assert_eq!(outcome.map_err(|error| error.code()), Err(Code::OutOfOrder));
    };
    refused(call.head(200, &[]).map(drop));
    refused(call.chunk(b"{}"));
    refused(call.end());
    refused(call.token_failed());
    refused(call.output().map(drop));
    let Ok(Step::Send(request)) = call.step(at(0)) else { panic!("a token request") };
    refused(call.step(at(0)).map(drop));
    refused(call.token(Secret::from("x".to_owned()), None));
    exchange(&mut call, &request, &mut sandbox, at(0)).expect("a token");
    table(drive(call, &mut sandbox, at(0)));
}

#[test]
fn no_secret_is_printed_by_anything() {
    let canaries = ["canary-secret", "canary-token", "canary-host"];
    let clean = |what: &str, text: String| {
        for canary in canaries {
            assert!(!text.contains(canary), "{what} shows {canary}: {text}");
        }
    };
    let options = options().client_secret(Secret::from(canaries[0].to_owned())).max_retries(0);
    clean("the options", format!("{options:?}"));
    let client = Machine::new(options).expect("good options");
    let mut call = delivery(&client);
    let step = call.step(at(0));
    clean("the first step", format!("{step:?} {call:#?}"));
    assert_eq!(call.head(200, &[]), Ok(true));
    let body = format!(r#"{{"access_token": "{}"}}"#, canaries[1]);
    call.chunk(body.as_bytes()).and_then(|()| call.end()).expect("a token");
    let step = call.step(at(0));
    clean("the second step", format!("{step:?} {call:#?} {client:#?}"));
    let error = call.failed(HostFailure::Network, "Bearer canary-token").expect_err("an end");
    clean("an error", format!("{error:?} {error}"));
    let mut call = delivery(&client);
    assert!(call.step(at(0)).is_ok());
    let error = call.failed(HostFailure::Network, "canary-secret").expect_err("an end");
    clean("a detail that is no error's name", format!("{error:?} {error}"));
    let address = Some("https://user:canary-secret@host.example".to_owned());
    let options = MachineOptions::default().cluster_endpoint(address);
    clean("an address", format!("{options:?} {:?}", Machine::new(options.clone())));

    let hosted = crate::support::options().host_tokens(true).client_secret(None);
    let client = Machine::new(hosted).expect("good options");
    let mut call = delivery(&client);
    assert!(matches!(call.step(at(0)), Ok(Step::ProvideToken { .. })));
    call.token(Secret::from(canaries[2].to_owned()), Some("60")).expect("a token");
    let step = call.step(at(0));
    clean("a host's token", format!("{step:?} {call:#?} {client:#?}"));

    for body in
        ["canary-token", r#"{"canary-token": 1, "canary-token": 2}"#, r#"{"a": canary-token"#]
    {
        let mut call = delivery(&crate::support::client());
        assert!(call.step(at(0)).is_ok() && call.head(200, &[]).is_ok());
        let error = call.chunk(body.as_bytes()).and_then(|()| call.end()).expect_err("no token");
        clean("a token endpoint's error", format!("{error:?} {error}"));
    }
    let text = "canary-secret".to_owned();
    let options = SandboxOptions::default().client_secret(Secret::from(text));
    clean("the sandbox", format!("{options:?} {:?}", Sandbox::new(options.clone())));
}

/// How the clocks differ comes with each request, and no table is settled by a clock that is ahead.
#[test]
fn a_wrong_clock_is_noted_and_settles_nothing() {
    let ask = |behind_ms: u32, now: Now| {
        let mut sandbox = sandbox();
        let effect = FaultEffect::Date { milliseconds: behind_ms };
        let fault = Fault { effect, endpoint: None, every: Some(1) };
        sandbox.inject(fault).expect("a good fault");
        let hour = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
        let query = QueryOptions::new(hour.expect("an hour"), &[Dimension::Integration]);
        let mut call = client().event_delivery(&query).expect("good arguments");
        let mut clocks = Vec::new();
        loop {
            match call.step(now).expect("a step") {
                Step::Send(request) => {
                    exchange(&mut call, &request, &mut sandbox, now).expect("a good answer");
                    clocks.extend(call.attempt().map(|attempt| attempt.clock));
                }
                Step::Done => break,
                other => panic!("not {other:?}"),
            }
        }
        let table = call.output().expect("a table");
        (table.provisional().is_empty(), clocks)
    };
    // A `Date` has whole seconds. Clocks that differ by up to a minute are not reported, but the service's decides.
    for (behind_ms, expected) in [(0, true), (1, false), (1_000, false), (60_000, false)] {
        let (settled, clocks) = ask(behind_ms, at(2 * 3_600));
        assert!(settled == expected && clocks == [None, None], "{behind_ms}");
    }
    let (settled, _) = ask(60_000, at(2 * 3_600 + 60));
    assert!(settled);
    for (behind_ms, is_alarming) in [(61_000, false), (300_000, false), (301_000, true)] {
        let (settled, clocks) = ask(behind_ms, at(2 * 3_600));
        assert!(!settled);
        assert_eq!(clocks.len(), 2);
        for clock in clocks {
            let clock = clock.expect("a difference");
            assert_eq!((clock.ahead_ms, clock.is_alarming), (behind_ms.into(), is_alarming));
            assert!(clock.message.contains("ahead of the service's"));
        }
    }
    let (settled, _) = ask(3_600_000, at(3 * 3_600));
    assert!(settled);
}

#[test]
fn a_clock_that_is_behind_is_noted() {
    for (ahead_s, expected) in [(60, false), (1_000_000, true)] {
        let mut call = client().token(tallyfold::Api::Control).expect("a call");
        let Step::Send(request) = call.step(at(0)).expect("a step") else {
            panic!("a token request");
        };
        let minutes = ahead_s / 60;
        let (day, hour, minute, second) =
            (1 + minutes / 1_440, minutes / 60 % 24, minutes % 60, ahead_s % 60);
        let date = format!("Thu, {day:02} Jan 2026 {hour:02}:{minute:02}:{second:02} GMT");
        drop(request);
        let headers = [("content-type", "application/json"), ("date", &*date)];
        assert!(call.head(200, &headers).expect("a good head"));
        call.chunk(br#"{"access_token": "t", "expires_in": 86400}"#).expect("a good body");
        call.end().expect("a whole body");
        let clock = call.attempt().expect("an attempt").clock;
        assert_eq!(clock.is_some(), expected);
        if let Some(clock) = clock {
            assert_eq!((clock.ahead_ms, clock.is_alarming), (-1_000_000_000, true));
            assert!(clock.message.contains("behind the service's"));
        }
    }
}
