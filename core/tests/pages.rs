//! A server for pages against the sandbox, and the page's client against that server, in virtual time.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test says so when it fails"
)]

mod support;

use support::{at, client, client_of_one_try, drive, options, sandbox};
use tallyfold::{
    Answer, Api, Call, Code, Frame, HostFailure, Kind, Machine, MachineOptions, Now, Output,
    PageRequest, PageStep, PagesOptions, QueryOptions, Result, Step,
};
use tallyfold_sandbox::Sandbox;

const DELIVERY: &str = "/mounted/anywhere/v1.1/analytics/event_delivery";
const HOUR: &str =
    r#"{"start":"2025-12-31T22:00:00Z","end":"2025-12-31T23:00:00Z","dimensions":["integration"]}"#;
const JSON: (&str, &str) = ("Content-Type", "application/json; charset=utf-8");

fn asked(body: &str) -> PageRequest<'_> {
    PageRequest {
        method: "POST",
        target: DELIVERY,
        headers: &[JSON],
        body: body.as_bytes(),
        is_allowed: true,
    }
}

fn begun(machine: &Machine, asked: PageRequest<'_>, now: Now) -> (Call, String, bool) {
    match machine.page(&PagesOptions::default(), asked, now) {
        PageStep::Call {
            call,
            key,
            is_settled,
        } => (call, key, is_settled),
        PageStep::Answer(answer) => panic!("{}", String::from_utf8_lossy(&answer.body)),
    }
}

/// The code and status of the answer that a request gets at once.
fn refused(machine: &Machine, options: &PagesOptions, asked: PageRequest<'_>) -> (String, u16) {
    match machine.page(options, asked, at(0)) {
        PageStep::Answer(answer) => (header(&answer), answer.status),
        PageStep::Call { .. } => panic!("it is not refused"),
    }
}

fn header(answer: &Answer) -> String {
    let mut named = answer
        .headers
        .iter()
        .filter(|(name, _)| *name == "tallyfold-error");
    named
        .next()
        .map(|(_, value)| value.clone())
        .unwrap_or_default()
}

/// A client of a server for pages.
fn of_page() -> Machine {
    let demo = options();
    let options = MachineOptions {
        cluster_endpoint: demo.cluster_endpoint,
        tokenless: true,
        max_retries: 0,
        ..MachineOptions::default()
    };
    Machine::new(options).expect("an address is all that it needs")
}

/// What the page's client makes of an answer.
fn read_by_page(page: &Machine, answer: &Answer) -> Result<Output> {
    let mut call = page.event_delivery(&QueryOptions::new(
        "2025-12-31T22:00:00Z",
        "2025-12-31T23:00:00Z",
        &["integration"],
    ))?;
    let Step::Send(request) = call.step(at(0))? else {
        panic!("it needs no token");
    };
    assert!(request.headers().all(|(name, _)| name != "authorization"));
    let headers: Vec<(&str, &str)> = answer
        .headers
        .iter()
        .map(|(name, value)| (*name, &**value))
        .collect();
    if call.head(answer.status, &headers)? {
        call.chunk(&answer.body)?;
        call.end()?;
    }
    let _ = call.step(at(0))?;
    call.output()
}

#[test]
fn a_page_gets_the_bytes_of_the_service() {
    let (machine, mut sandbox) = (client(), sandbox());
    let (mut call, ..) = begun(&machine, asked(HOUR), at(0));
    let mut body = Vec::new();
    while let Ok(Step::Send(request)) = call.step(at(0)) {
        let headers: Vec<(&str, &str)> = request.headers().collect();
        let target = &request.url()[support::ADDRESS.len()..];
        let sent = request.body().unwrap_or_default();
        let response = sandbox.handle(request.method(), target, &headers, sent, at(0));
        let headers: Vec<(&str, &str)> = response
            .headers
            .iter()
            .map(|(name, value)| (&**name, &**value))
            .collect();
        if call.head(response.status, &headers).expect("good") {
            call.chunk(&response.body).expect("good");
            call.end().expect("good");
        }
        body = response.body;
    }
    let answer = call.answer();
    assert_eq!((answer.status, &answer.body), (200, &body));
    let direct = delivery(&machine, &mut sandbox).to_json();
    let Ok(Output::Table(table)) = read_by_page(&of_page(), &answer) else {
        panic!("a table");
    };
    assert_eq!(table.to_json(), direct);
}

fn delivery(machine: &Machine, sandbox: &mut Sandbox) -> tallyfold::CountTable {
    let query = QueryOptions::new(
        "2025-12-31T22:00:00Z",
        "2025-12-31T23:00:00Z",
        &["integration"],
    );
    let call = machine.event_delivery(&query).expect("good arguments");
    match drive(call, sandbox, at(0)) {
        Ok(Output::Table(table)) => table,
        other => panic!("{other:?}"),
    }
}

#[test]
fn equal_questions_have_equal_keys_and_old_windows_are_settled() {
    let machine = client();
    let (_, key, is_settled) = begun(&machine, asked(HOUR), at(0));
    assert!(is_settled && key.contains(support::ADDRESS));
    let spaced = HOUR
        .replace(':', ": ")
        .replace(": 00", ":00")
        .replace("00Z", "00.000Z");
    assert_eq!(begun(&machine, asked(&spaced), at(0)).1, key);
    let other = HOUR.replace("integration", "reason");
    assert_ne!(begun(&machine, asked(&other), at(0)).1, key);
    let ingested = PageRequest {
        target: "/v1.1/analytics/event_ingestion",
        ..asked(HOUR)
    };
    assert_ne!(begun(&machine, ingested, at(0)).1, key);
    let recent = HOUR.replace("23:00:00Z", "23:00:01Z");
    assert!(!begun(&machine, asked(&recent), at(0)).2);
    assert!(begun(&machine, asked(&recent), at(1)).2);
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_sent() {
    let machine = client();
    let refused = |asked: PageRequest<'_>| refused(&machine, &PagesOptions::default(), asked);
    let forbidden = ("forbidden 403".to_owned(), 403);
    let invalid = ("invalid_argument".to_owned(), 400);
    let is_allowed = false;
    assert_eq!(
        refused(PageRequest {
            is_allowed,
            ..asked(HOUR)
        }),
        forbidden
    );
    for (headers, is_right) in [
        (&[JSON, ("Sec-Fetch-Site", "same-origin")][..], true),
        (&[JSON, ("Sec-Fetch-Site", "same-site")][..], false),
        (
            &[
                JSON,
                ("sec-fetch-site", "cross-site"),
                ("origin", "https://a.example"),
                ("host", "a.example"),
            ][..],
            false,
        ),
        (
            &[JSON, ("Origin", "https://a.example"), ("Host", "a.example")][..],
            true,
        ),
        (
            &[
                JSON,
                ("Origin", "https://evil.example"),
                ("Host", "a.example"),
            ][..],
            false,
        ),
        (&[JSON, ("Origin", "null")][..], false),
    ] {
        let asked = PageRequest {
            headers,
            ..asked(HOUR)
        };
        let step = machine.page(&PagesOptions::default(), asked, at(0));
        assert_eq!(
            matches!(step, PageStep::Call { .. }),
            is_right,
            "{headers:?}"
        );
        if !is_right {
            assert_eq!(refused(asked), forbidden, "{headers:?}");
        }
    }
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
    ] {
        assert_eq!(
            refused(PageRequest {
                headers,
                ..asked(HOUR)
            }),
            invalid
        );
    }
    for (method, target) in [
        ("GET", DELIVERY),
        ("POST", "/v1.1/oauth/token"),
        ("POST", "/token/control"),
        ("GET", "/api/v1/audit-logs"),
        ("POST", "/v1.1/analytics/event_delivery/"),
        ("POST", "https://evil.example/"),
    ] {
        assert_eq!(
            refused(PageRequest {
                method,
                target,
                ..asked(HOUR)
            }),
            invalid,
            "{target}"
        );
    }
    let long = format!("{HOUR}{}", " ".repeat(17_000));
    for body in [
        "",
        "[]",
        "{}",
        "null",
        &long,
        &HOUR.replace("start", "from"),
        &HOUR.replace('[', "{"),
    ] {
        assert_eq!(refused(asked(body)), invalid, "{body}");
    }
    for (from, to, code) in [
        ("integration", "colour", "unknown_dimension"),
        ("23:00:00Z", "21:00:00Z", "invalid_window"),
        ("23:00:00Z", "23:00", "invalid_timestamp"),
    ] {
        assert_eq!(
            refused(asked(&HOUR.replace(from, to))),
            (code.to_owned(), 400)
        );
    }
}

#[test]
fn errors_keep_their_code_kind_and_status() {
    for (status, code) in [
        (401, Code::TokenRejected),
        (403, Code::Forbidden),
        (418, Code::UnexpectedStatus),
        (429, Code::RateLimited),
        (503, Code::ServerError),
        (302, Code::Redirected),
    ] {
        let machine = Machine::new(MachineOptions {
            max_retries: 0,
            host_tokens: true,
            client_secret: None,
            ..options()
        });
        let (mut call, ..) = begun(&machine.expect("good options"), asked(HOUR), at(0));
        while let Ok(step) = call.step(at(0)) {
            match step {
                Step::ProvideToken { .. } => {
                    call.token("token".to_owned().into(), None).expect("good");
                }
                _ => drop(call.head(status, &[])),
            }
        }
        let answer = call.answer();
        assert!(![401, 302].contains(&answer.status));
        let error = read_by_page(&of_page(), &answer).expect_err("an error");
        assert_eq!((error.code(), error.status()), (code, Some(status)));
        let body = String::from_utf8(answer.body).expect("JSON");
        assert!(body.contains(code.as_str()) && body.contains(code.kind().as_str()));
    }
}

#[test]
fn an_error_without_a_status_has_none_in_the_page_either() {
    let (mut call, ..) = begun(&client_of_one_try(), asked(HOUR), at(0));
    assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
    drop(call.failed(HostFailure::Network, "ECONNREFUSED"));
    let answer = call.answer();
    assert_eq!(answer.status, 502);
    let error = read_by_page(&of_page(), &answer).expect_err("an error");
    assert_eq!((error.code(), error.status()), (Code::NetworkFailed, None));
    assert_eq!(error.kind(), Kind::Service);
}

#[test]
fn only_a_failure_of_an_api_is_read_from_the_header() {
    let page = of_page();
    let query = QueryOptions::new("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", &["reason"]);
    let mut call = page.event_delivery(&query).expect("good arguments");
    let _ = call.step(at(0)).expect("a request");
    let headers = [("tallyfold-error", "rate_limited 429")];
    assert_eq!(call.head(200, &headers).ok(), Some(true));
}

#[test]
fn a_401_to_a_client_without_tokens_is_final() {
    let page = of_page();
    let query = QueryOptions::new("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z", &["reason"]);
    let mut call = page.event_delivery(&query).expect("good arguments");
    let _ = call.step(at(0)).expect("a request");
    let error = call.head(401, &[]).expect_err("no token can help");
    assert_eq!(
        (error.code(), error.status()),
        (Code::TokenRejected, Some(401))
    );
}

#[test]
fn a_client_has_tokens_or_none() {
    for change in [
        MachineOptions {
            tokenless: true,
            ..options()
        },
        MachineOptions {
            tokenless: true,
            client_secret: None,
            host_tokens: true,
            ..options()
        },
    ] {
        let error = Machine::new(change).err().expect("refused");
        assert_eq!(error.argument_name(), Some("tokenless"));
    }
    let error = of_page().token(Api::Control).err().expect("refused");
    assert_eq!(error.code(), Code::InvalidArgument);
}

#[test]
fn a_kept_answer_is_read_as_strictly_as_one_of_the_service() {
    let machine = client();
    let kept =
        br#"{"start":"2025-12-31T22:00:00Z","end":"2025-12-31T23:00:00Z","totalDelivered":"7",
        "totalErrors":"0","totalFiltered":"0","counts":[{"success":"7","errors":"0","filtered":"0",
        "dimensions":{"integration":"warehouse"}}]}"#;
    let (mut call, ..) = begun(&machine, asked(HOUR), at(0));
    assert!(!call.recall(b"{}") && !call.recall(&kept[..kept.len() - 1]));
    let other = String::from_utf8_lossy(kept).replace("22:00:00Z", "21:00:00Z");
    assert!(!call.recall(other.as_bytes()) && call.recall(kept));
    assert!(matches!(call.step(at(0)), Ok(Step::Done)));
    let answer = call.answer();
    assert_eq!((answer.status, &*answer.body), (200, &kept[..]));
}

/// The token that a call gives, and how long it is valid.
fn token(output: Result<Output>) -> (String, u32) {
    match output {
        Ok(Output::Token {
            value,
            expires_in_s,
        }) => (value.expose().to_owned(), expires_in_s),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_token_is_the_clients_own_with_the_rest_of_its_lifetime() {
    let (machine, mut sandbox) = (client(), sandbox());
    let mut ask = |api, seconds| {
        let call = machine.token(api).expect("good arguments");
        token(drive(call, &mut sandbox, at(seconds)))
    };
    let (first, lifetime) = ask(Api::Control, 0);
    assert_eq!(lifetime, 86_400);
    assert_eq!(ask(Api::Control, 100), (first.clone(), 86_300));
    assert_ne!(ask(Api::Orchestration, 100).0, first);
    // It is renewed five minutes before its end, as for any other call.
    let (renewed, lifetime) = ask(Api::Control, 86_101);
    assert!(renewed != first && lifetime == 86_400);
    let stats = sandbox.stats();
    assert_eq!((stats.control_token, stats.orchestration_token), (2, 1));
    assert_eq!(stats.event_delivery, 0);
}

#[test]
fn calls_for_a_token_at_the_same_time_make_one_request() {
    let (machine, mut sandbox) = (client(), sandbox());
    let mut first = machine.token(Api::Control).expect("good arguments");
    let Ok(Step::Send(request)) = first.step(at(0)) else {
        panic!("a token request");
    };
    let mut second = machine.token(Api::Control).expect("good arguments");
    assert!(matches!(second.step(at(0)), Ok(Step::Blocked { .. })));
    support::exchange(&mut first, &request, &mut sandbox, at(0)).expect("a token");
    assert!(matches!(first.step(at(0)), Ok(Step::Done)));
    assert!(matches!(second.step(at(0)), Ok(Step::Done)));
    assert_eq!(token(first.output()), token(second.output()));
    assert!(!format!("{second:?}").contains("sandbox"));
}

#[test]
fn pages_get_tokens_and_audit_logs_only_if_they_are_allowed_to() {
    let (machine, mut sandbox) = (client(), sandbox());
    let options = PagesOptions {
        hand_out_tokens: true,
        audit_logs: true,
        ..PagesOptions::default()
    };
    let mut answer = |method, target| {
        let asked = PageRequest {
            method,
            target,
            body: b"",
            ..asked("")
        };
        let PageStep::Call { call, key, .. } = machine.page(&options, asked, at(0)) else {
            panic!("{target} is answered");
        };
        assert_eq!(key, "", "nobody keeps it");
        let mut call = call;
        while let Ok(Step::Send(request)) = call.step(at(0)) {
            support::exchange(&mut call, &request, &mut sandbox, at(0)).expect("good");
        }
        let answer = call.answer();
        assert!(!format!("{answer:?}").contains("accessToken"));
        serde_json::from_slice::<serde_json::Value>(&answer.body).expect("JSON")
    };
    let token = answer("POST", "/x/token/control");
    assert_eq!(token["expiresIn"], 86_400);
    let logs = answer("GET", "/x/api/v1/audit-logs?page=2&perPage=3");
    assert_eq!((&logs["page"], &logs["perPage"]), (&2.into(), &3.into()));
    for target in ["/x/token/both", "/x/token/"] {
        let asked = PageRequest {
            target,
            ..asked(HOUR)
        };
        assert_eq!(refused(&machine, &options, asked).1, 400);
    }
    for target in [
        "/api/v1/audit-logs?page=x",
        "/api/v1/audit-logs?page=0",
        "/api/v1/audit-logs?a=1",
    ] {
        let asked = PageRequest {
            method: "GET",
            target,
            ..asked("")
        };
        assert_eq!(refused(&machine, &options, asked).1, 400, "{target}");
    }
}

#[test]
fn some_call_must_be_allowed_at_a_time() {
    let options = PagesOptions {
        concurrency: 0,
        ..PagesOptions::default()
    };
    assert_eq!(
        options.check().expect_err("none").argument_name(),
        Some("concurrency")
    );
    PagesOptions::default().check().expect("good defaults");
}
