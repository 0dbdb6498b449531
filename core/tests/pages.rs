//! Tests a server for web apps against the sandbox, and a web app's client against that server, in
//! virtual time.

use std::sync::Arc;

use crate::support::{ADDRESS, after, at, client, client_of_one_try, drive, options, sandbox};
use tallyfold::{
    Answer, Api, Call, Code, CollectOptions, CollectStep, CountTable, Dimension, Drive, Frame,
    HostFailure, Kind, LAST_LINE, Machine, MachineOptions, Metric, Now, PageQuestion, PageRequest,
    PagesOptions, Patience, Permission, QueryOptions, RangeTag, Reconciliation, Result, Settled,
    Step, Token, VisibleRows, Window, WindowsQuestion, failed_line, regrouped_body, window_lines,
};

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
        permission: &Permission::Everything,
    }
}

/// The key of a metrics request, and whether its counts are settled.
fn read(asked: PageRequest<'_>, now: Now) -> (String, bool) {
    match PageQuestion::read(&PagesOptions::default(), ADDRESS, asked, now) {
        Ok(PageQuestion::Metrics(question)) => (question.key, question.is_settled),
        other => panic!("{other:?}"),
    }
}

/// The code and the status of the response to a request that is refused at once.
fn refused(options: &PagesOptions, asked: PageRequest<'_>) -> (String, u16) {
    let error = PageQuestion::read(options, ADDRESS, asked, at(0)).expect_err("it is refused");
    let answer = Answer::of_error(&error);
    (header(&answer), answer.status)
}

fn header(answer: &Answer) -> String {
    let mut named = answer.headers.iter().filter(|(name, _)| *name == "tallyfold-error");
    named.next().map(|(_, value)| value.clone()).unwrap_or_default()
}

/// A client of a server for web apps.
fn of_page() -> Machine {
    let demo = options();
    let options = MachineOptions::default()
        .cluster_endpoint(demo.cluster_endpoint)
        .tokenless(true)
        .max_retries(0);
    Machine::new(options).expect("an address is all that it needs")
}

fn query(start: &str, end: &str, dimension: Dimension) -> QueryOptions {
    QueryOptions::new(Window::parse(start, end).expect("a window"), &[dimension])
}

/// An hour whose counts no longer change.
fn settled() -> QueryOptions {
    let (start, end) = ("2025-12-31T22:00:00Z", "2025-12-31T23:00:00Z");
    query(start, end, Dimension::Integration)
}

fn hour() -> Window {
    Window::new(settled().start, settled().end).expect("a window")
}

/// A quarter of an hour.
fn recent() -> QueryOptions {
    let (start, end) = ("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z");
    query(start, end, Dimension::Reason)
}

/// The result that a web app's client reads from a response.
fn read_by_page(page: &Machine, answer: &Answer) -> Result<CountTable> {
    let mut call = page.event_delivery(&settled())?;
    let Step::Send(request) = call.step(at(0))? else {
        panic!("it needs no token");
    };
    assert!(request.headers().all(|(name, _)| name != "authorization"));
    let _ = answered(&mut call, answer, at(0))?;
    call.output()
}

/// The body that the service sends for a query, and the table of that body.
fn sent_by_service(query: &QueryOptions) -> (Vec<u8>, CountTable) {
    let (machine, mut sandbox) = (client(), sandbox());
    let mut call = machine.event_delivery(query).expect("good arguments");
    let mut body = Vec::new();
    while let Ok(Step::Send(request)) = call.step(at(0)) {
        let headers: Vec<(&str, &str)> = request.headers().collect();
        let target = &request.url()[ADDRESS.len()..];
        let sent = request.body().unwrap_or_default();
        let response = sandbox.handle(request.method(), target, &headers, sent, at(0));
        body.clone_from(&response.body);
        crate::support::exchange(&mut call, &request, &mut sandbox, at(0)).expect("good");
    }
    (body, call.output().expect("a table"))
}

#[test]
fn a_page_reads_what_the_service_has_sent() {
    let (body, direct) = sent_by_service(&settled());
    let seen = read_by_page(&of_page(), &Answer::good(body)).expect("a table");
    assert_eq!(seen, direct);
}

fn only(values: &[(&str, &[&str])]) -> VisibleRows {
    let values: Vec<(&str, Vec<String>)> = values
        .iter()
        .map(|(name, values)| (*name, values.iter().map(ToString::to_string).collect()))
        .collect();
    VisibleRows::new(&values).expect("dimensions")
}

#[test]
fn a_user_sees_the_rows_that_are_permitted_and_no_others() {
    let whole = QueryOptions::new(hour(), &[Dimension::Integration, Dimension::WriteKey]);
    let (_, all) = sent_by_service(&whole);
    let keys: Vec<String> = {
        let of_keys = all.group_by(&["write_key"]).expect("a dimension");
        of_keys.rows().flat_map(|row| row.values().map(str::to_owned).collect::<Vec<_>>()).collect()
    };
    assert!(keys.len() > 2, "{keys:?}");
    let own = only(&[("write_key", &[&keys[1], &keys[0], "of nobody"])]);
    let permission = Permission::Only(Arc::new(own.clone()));
    let asking = PageRequest { permission: &permission, ..asked(HOUR) };
    let Ok(PageQuestion::Metrics(question)) =
        PageQuestion::read(&PagesOptions::default(), ADDRESS, asking, at(0))
    else {
        panic!("a question");
    };
    // The service is asked once for what tells rows apart, whoever asks.
    assert_eq!(question.query.dimensions, whole.dimensions);
    assert_eq!(question.narrowed_to, Some(vec![Dimension::Integration]));
    let body = HOUR.replace("\"integration\"", "\"integration\",\"write_key\"");
    assert_eq!(question.key, read(asked(&body), at(0)).0);

    let (sent, _) = sent_by_service(&question.query);
    let narrowed =
        own.narrow(&question.query, &[Dimension::Integration], &sent, 7).expect("a body");
    let seen = read_by_page(&of_page(), &Answer::good(narrowed.clone())).expect("a table");
    let expected = all
        .filter(&[("write_key", keys[..2].to_vec())])
        .and_then(|table| table.group_by(&["integration"]))
        .expect("a table");
    for (left, right) in seen.rows().zip(expected.rows()) {
        assert!(left.values().eq(right.values()));
        assert_eq!(left.counts(), right.counts());
    }
    assert_eq!(seen.len(), expected.len());
    assert_eq!(seen.totals(), expected.totals());
    assert_eq!(seen.reconciliation(), Reconciliation::Balanced);
    let text = String::from_utf8(narrowed).expect("JSON");
    assert!(keys.iter().all(|key| !text.contains(&**key)), "{text}");
}

#[test]
fn a_body_by_more_dimensions_is_made_into_what_the_service_sends() {
    let asked = settled();
    let (_, direct) = sent_by_service(&asked);
    let more = [Dimension::Reason, Dimension::Integration];
    let wide = QueryOptions::new(hour(), &more);
    let (body, _) = sent_by_service(&wide);
    let narrow = regrouped_body(&wide, &asked.dimensions, &body, 7).expect("a body");
    let seen = read_by_page(&of_page(), &Answer::good(narrow)).expect("a table");
    assert_eq!(seen, direct);
    let wrong = regrouped_body(&wide, &[Dimension::WriteKey], &body, 7);
    assert_eq!(wrong.expect_err("not among them").kind(), Kind::Config);
}

#[test]
fn without_any_permitted_value_no_row_is_seen() {
    let (body, _) = sent_by_service(&settled());
    let none = only(&[("integration", &[])]);
    let narrowed = none.narrow(&settled(), &[Dimension::Integration], &body, 7).expect("a body");
    let text = String::from_utf8(narrowed).expect("JSON");
    assert!(
        text.contains(r#""totalDelivered":"0","totalErrors":"0","totalFiltered":"0","counts":[]"#),
        "{text}"
    );
}

#[test]
fn a_contradiction_of_the_service_is_seen_with_some_rows_too() {
    let body = br#"{"start":"2025-12-31T22:00:00Z","end":"2025-12-31T23:00:00Z","totalDelivered":"1017",
        "totalErrors":"0","totalFiltered":"1","counts":[
        {"success":"10","errors":"0","filtered":"2","dimensions":{"integration":"a \"quoted\" name"}},
        {"success":"18446744073709550000","errors":"0","filtered":"0","dimensions":{"integration":"other"}}]}"#;
    let own = only(&[("integration", &["a \"quoted\" name"])]);
    let narrowed = own.narrow(&settled(), &[Dimension::Integration], body, 7);
    let narrowed = narrowed.expect("a body");
    let seen = read_by_page(&of_page(), &Answer::good(narrowed)).expect("a table");
    assert_eq!(seen.totals().success, 10);
    assert!(matches!(
        seen.reconciliation(),
        Reconciliation::Unbalanced { success: -10, errors: 0, filtered: -1 }
    ));
}

#[test]
fn who_sees_some_rows_gets_no_tokens_no_logs_and_no_endpoint_that_cannot_tell_them() {
    let options = PagesOptions::default().hand_out_tokens(true).audit_logs(true);
    let of = |dimension| Permission::Only(Arc::new(only(&[(dimension, &["a"])])));
    let ingestion = DELIVERY.replace("delivery", "ingestion");
    for (permission, method, target) in [
        (of("write_key"), "POST", "/x/token/control"),
        (of("write_key"), "GET", "/x/api/v1/audit-logs"),
        (of("reason"), "POST", &*ingestion),
    ] {
        let asked = PageRequest { method, target, permission: &permission, ..asked(HOUR) };
        assert_eq!(refused(&options, asked), ("forbidden 403".to_owned(), 403));
    }
    let nothing = HOUR.replace("\"integration\"", "");
    let asked = PageRequest { permission: &of("write_key"), ..asked(&nothing) };
    assert_eq!(refused(&options, asked).0, "no_dimensions");
}

#[test]
fn a_range_of_other_rows_has_another_tag() {
    let target = format!("{DELIVERY}/windows?{RANGE}");
    let key = |permission: &Permission| {
        let asked = PageRequest { method: "GET", target: &target, permission, ..asked("") };
        match PageQuestion::read(&PagesOptions::default(), ADDRESS, asked, at(0)) {
            Ok(PageQuestion::Windows(question)) => question.key,
            other => panic!("{other:?}"),
        }
    };
    let of = |values: &[&str]| key(&Permission::Only(Arc::new(only(&[("write_key", values)]))));
    assert_eq!(of(&["a", "b", "a"]), of(&["b", "a"]));
    let keys = [of(&["a", "b"]), of(&["a"]), of(&["a,b"]), of(&[]), key(&Permission::Everything)];
    for (place, one) in keys.iter().enumerate() {
        assert!(!keys[..place].contains(one), "{keys:?}");
    }
}

#[test]
fn equal_questions_have_equal_keys_and_old_windows_are_settled() {
    let (key, is_settled) = read(asked(HOUR), at(0));
    assert!(is_settled && key.starts_with(ADDRESS));
    let spaced = HOUR.replace(':', ": ").replace(": 00", ":00").replace("00Z", "00.000Z");
    assert_eq!(read(asked(&spaced), at(0)).0, key);
    let other = HOUR.replace("integration", "reason");
    assert_ne!(read(asked(&other), at(0)).0, key);
    let ingested = PageRequest { target: "/v1.1/analytics/event_ingestion", ..asked(HOUR) };
    assert_ne!(read(ingested, at(0)).0, key);
    let recent = HOUR.replace("23:00:00Z", "23:00:01Z");
    assert!(!read(asked(&recent), at(0)).1);
    assert!(read(asked(&recent), at(1)).1);
}

#[test]
fn what_is_wrong_is_refused_before_anything_is_sent() {
    let refused = |asked: PageRequest<'_>| refused(&PagesOptions::default(), asked);
    let forbidden = ("forbidden 403".to_owned(), 403);
    let invalid = ("invalid_argument".to_owned(), 400);
    assert_eq!(refused(PageRequest { permission: &Permission::Refused, ..asked(HOUR) }), forbidden);
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
        (&[JSON, ("Origin", "https://a.example"), ("Host", "a.example")][..], true),
        (&[JSON, ("Origin", "https://evil.example"), ("Host", "a.example")][..], false),
        (&[JSON, ("Origin", "null")][..], false),
    ] {
        let asked = PageRequest { headers, ..asked(HOUR) };
        let question = PageQuestion::read(&PagesOptions::default(), ADDRESS, asked, at(0));
        assert_eq!(question.is_ok(), is_right, "{headers:?}");
        if !is_right {
            assert_eq!(refused(asked), forbidden, "{headers:?}");
        }
    }
    for headers in [
        &[][..],
        &[("content-type", "text/plain")],
        &[("content-type", "application/x-www-form-urlencoded")],
    ] {
        assert_eq!(refused(PageRequest { headers, ..asked(HOUR) }), invalid);
    }
    for (method, target) in [
        ("GET", DELIVERY),
        ("POST", "/v1.1/oauth/token"),
        ("POST", "/token/control"),
        ("GET", "/api/v1/audit-logs"),
        ("POST", "/v1.1/analytics/event_delivery/"),
        ("POST", "https://evil.example/"),
    ] {
        assert_eq!(refused(PageRequest { method, target, ..asked(HOUR) }), invalid, "{target}");
    }
    let long = format!("{HOUR}{}", " ".repeat(17_000));
    for body in
        ["", "[]", "{}", "null", &long, &HOUR.replace("start", "from"), &HOUR.replace('[', "{")]
    {
        assert_eq!(refused(asked(body)), invalid, "{body}");
    }
    for (from, to, code) in [
        ("integration", "colour", "unknown_dimension"),
        ("23:00:00Z", "21:00:00Z", "invalid_window"),
        ("23:00:00Z", "23:00", "invalid_timestamp"),
    ] {
        assert_eq!(refused(asked(&HOUR.replace(from, to))), (code.to_owned(), 400));
    }
}

fn asking(machine: &Machine) -> Call<CountTable> {
    let query = recent();
    machine.event_delivery(&query).expect("good arguments")
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
        let machine = Machine::new(options().max_retries(0).host_tokens(true).client_secret(None));
        let mut call = asking(&machine.expect("good options"));
        while let Ok(step) = call.step(at(0)) {
            match step {
                Step::ProvideToken { .. } => {
                    call.token("token".to_owned().into(), None).expect("good");
                }
                // A final refusal asks for its body.
                _ if call.head(status, &[]) == Ok(true) => drop(call.end()),
                _ => {}
            }
        }
        let answer = Answer::of_error(&call.output().expect_err("it has failed"));
        assert!(![401, 302].contains(&answer.status));
        let error = read_by_page(&of_page(), &answer).expect_err("an error");
        assert_eq!((error.code(), error.status()), (code, Some(status)));
        let body = String::from_utf8(answer.body).expect("JSON");
        assert!(body.contains(code.as_str()) && body.contains(code.kind().as_str()));
    }
}

/// A client of a server for web apps, with the default retries.
fn of_page_that_retries() -> Machine {
    let options = MachineOptions::default().cluster_endpoint(ADDRESS).tokenless(true);
    Machine::new(options).expect("an address is all that it needs")
}

/// Passes a response of the server to a call of the web app, and makes the next step.
fn answered<T>(call: &mut Call<T>, answer: &Answer, now: Now) -> Result<Step> {
    let headers: Vec<(&str, &str)> =
        answer.headers.iter().map(|(name, value)| (*name, &**value)).collect();
    if call.head(answer.status, &headers)? {
        call.chunk(&answer.body)?;
        call.end()?;
    }
    call.step(now)
}

#[test]
fn what_the_server_has_retried_is_not_retried_by_the_page() {
    for (code, status) in [
        (Code::NetworkFailed, None),
        (Code::TimedOut, None),
        (Code::ServerError, Some(503)),
        (Code::RateLimited, Some(429)),
    ] {
        let mut call = asking(&of_page_that_retries());
        assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
        let answer = Answer::failed(code, status, String::new(), None);
        let error = answered(&mut call, &answer, at(0)).expect_err("it is final");
        assert_eq!((error.code(), error.status()), (code, status));
    }
    // The server itself is busy, and has not asked the service.
    let mut call = asking(&of_page_that_retries());
    assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
    let waits = answered(&mut call, &Answer::busy(1), at(0));
    assert!(matches!(waits, Ok(Step::Wait { .. })), "{waits:?}");
}

#[test]
fn a_long_range_of_a_page_outlasts_an_outage_that_the_server_reports() {
    const BY: [Dimension; 1] = [Dimension::Integration];
    let options = CollectOptions::new(Metric::EventDelivery, hour(), &BY);
    let mut collect = of_page_that_retries().collect(options).expect("good options");
    let mut now = at(0);
    let mut failures = 0;
    while let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(now) {
        while let Ok(Step::Wait { ms }) = call.step(now) {
            now = after(now, ms.into());
        }
        failures += 1;
        let window = call.window().expect("a call for counts");
        let answer = match failures {
            ..4 => Answer::failed(Code::NetworkFailed, None, String::new(), None),
            _ => Answer::good(sent_by_service(&QueryOptions::new(window, &BY)).0),
        };
        let ended = answered(&mut call, &answer, now);
        let settled = collect.settle(task, &mut call, now).expect("under way");
        match ended {
            Ok(_) => assert!(matches!(settled, Settled::Kept { .. }), "{settled:?}"),
            Err(_) => assert!(matches!(settled, Settled::Postponed), "{settled:?}"),
        }
    }
    collect.finish().expect("a table");
}

#[test]
fn a_window_for_which_the_server_has_waited_in_vain_is_not_halved() {
    let options = CollectOptions::new(Metric::EventDelivery, hour(), &[Dimension::Integration])
        .patience_ms(Patience::Milliseconds(0));
    let mut collect = of_page_that_retries().collect(options).expect("good options");
    while let CollectStep::Drive(Drive { task, mut call, .. }) = collect.next(at(0)) {
        assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
        let answer = Answer::failed(Code::TimedOut, None, String::new(), None);
        answered(&mut call, &answer, at(0)).expect_err("the call has ended");
        let settled = collect.settle(task, &mut call, at(0)).expect("under way");
        assert!(matches!(settled, Settled::Failed(_)), "{settled:?}");
    }
}

#[test]
fn an_error_without_a_status_has_none_in_the_page_either() {
    let mut call = asking(&client_of_one_try());
    assert!(matches!(call.step(at(0)), Ok(Step::Send(_))));
    drop(call.failed(HostFailure::Network, "ECONNREFUSED"));
    let answer = Answer::of_error(&call.output().expect_err("it has failed"));
    assert_eq!(answer.status, 502);
    let error = read_by_page(&of_page(), &answer).expect_err("an error");
    assert_eq!((error.code(), error.status()), (Code::NetworkFailed, None));
    assert_eq!(error.kind(), Kind::Service);
}

#[test]
fn only_a_failure_of_an_api_is_read_from_the_header() {
    let page = of_page();
    let query = recent();
    let mut call = page.event_delivery(&query).expect("good arguments");
    let _ = call.step(at(0)).expect("a request");
    let headers = [("tallyfold-error", "rate_limited 429")];
    assert_eq!(call.head(200, &headers).ok(), Some(true));
}

#[test]
fn a_client_whose_requests_lead_back_to_its_own_server_says_so() {
    let refused = |headers: &[(&str, &str)]| {
        let mut call = asking(&client_of_one_try());
        let _ = call.step(at(0)).expect("a token request");
        call.head(400, headers).expect_err("no token")
    };
    // A server for web apps answers requests for tokens like this.
    let looped = refused(&[("tallyfold-error", "invalid_argument")]);
    assert_eq!(looped.code(), Code::TokenRefused);
    assert!(looped.to_string().contains("your own server"), "{looped}");
    let usual = refused(&[]);
    assert_eq!(usual.code(), Code::TokenRefused);
    assert!(usual.to_string().contains("client id"), "{usual}");
}

#[test]
fn a_401_to_a_client_without_tokens_is_final() {
    let page = of_page();
    let query = recent();
    let mut call = page.event_delivery(&query).expect("good arguments");
    let _ = call.step(at(0)).expect("a request");
    assert_eq!(call.head(401, &[]), Ok(true), "the body says why");
    let error = call.end().expect_err("no token can help");
    assert_eq!((error.code(), error.status()), (Code::TokenRejected, Some(401)));
}

#[test]
fn a_client_has_tokens_or_none() {
    for change in
        [options().tokenless(true), options().tokenless(true).client_secret(None).host_tokens(true)]
    {
        let error = Machine::new(change).expect_err("refused");
        assert_eq!(error.argument_name(), Some("tokenless"));
    }
    let error = of_page().token(Api::Control).expect_err("refused");
    assert_eq!(error.code(), Code::InvalidArgument);
}

/// The token that a call returns, and for how many seconds it is valid.
fn token(token: Result<Token>) -> (String, u32) {
    let token = token.expect("a token");
    (token.value.expose().to_owned(), token.expires_in_s)
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
    crate::support::exchange(&mut first, &request, &mut sandbox, at(0)).expect("a token");
    assert!(matches!(first.step(at(0)), Ok(Step::Done)));
    assert!(matches!(second.step(at(0)), Ok(Step::Done)));
    assert_eq!(token(first.output()), token(second.output()));
    assert!(!format!("{second:?}").contains("sandbox"));
}

#[test]
fn pages_get_tokens_and_audit_logs_only_if_they_are_allowed_to() {
    let options = PagesOptions::default().hand_out_tokens(true).audit_logs(true);
    let ask = |method: &str, target: &str| {
        let asked = PageRequest { method, target, ..asked("") };
        PageQuestion::read(&options, ADDRESS, asked, at(0))
    };
    for api in [Api::Control, Api::Orchestration] {
        let token = ask("POST", &format!("/x/token/{}", api.as_str()));
        assert!(matches!(token, Ok(PageQuestion::Token(asked)) if asked == api));
    }
    let logs = ask("GET", "/x/api/v1/audit-logs?page=2&perPage=3");
    let Ok(PageQuestion::AuditLogs(logs)) = logs else {
        panic!("{logs:?}");
    };
    assert_eq!((logs.page, logs.per_page), (Some(2), Some(3)));
    for (method, target) in [
        ("POST", "/x/token/both"),
        ("POST", "/x/token/"),
        ("GET", "/x/token/control"),
        ("GET", "/api/v1/audit-logs?page=x"),
        ("GET", "/api/v1/audit-logs?page=+5"),
        ("GET", "/api/v1/audit-logs?page=1&page=2"),
        ("GET", "/api/v1/audit-logs?a=1"),
        ("POST", "/api/v1/audit-logs"),
    ] {
        assert!(ask(method, target).is_err(), "{target}");
    }
    assert!(!format!("{:?}", Answer::good(b"a token".into())).contains("token"));
}

#[test]
fn some_call_must_be_allowed_at_a_time() {
    let options = PagesOptions::default().concurrency(0);
    assert_eq!(options.check().expect_err("none").argument_name(), Some("concurrency"));
    PagesOptions::default().check().expect("good defaults");
}

#[test]
fn what_went_wrong_inside_stays_inside_and_the_page_has_the_same_error() {
    let inner = "server_error: status 500 of https://10.0.0.7/v1.1: secret internals".to_owned();
    let code = Code::ServerError;
    let answer = Answer::failed_inside(code, Some(500), inner.clone(), None, "3f2a");
    let text = String::from_utf8_lossy(&answer.body);
    assert!(text.contains("3f2a") && !text.contains("10.0.0.7") && !text.contains("internals"));
    let error = read_by_page(&of_page(), &answer).expect_err("an error");
    assert_eq!((error.code(), error.status()), (code, Some(500)));
    for (code, status, said) in [
        (Code::UnexpectedStatus, Some(400), "the service answered the server with status 400;"),
        (Code::NetworkFailed, None, "the server got no answer from the service;"),
        (Code::InvalidJson, Some(200), "the server could not use the response of the service;"),
    ] {
        let answer = Answer::failed_inside(code, status, inner.clone(), None, "3f2a");
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert!(text.contains(said), "{text}");
    }
    // What a page has asked for wrongly is its own business.
    let answer = Answer::failed_inside(Code::InvalidArgument, None, inner, None, "3f2a");
    assert!(String::from_utf8_lossy(&answer.body).contains("internals"));
}

#[test]
fn a_server_that_is_busy_says_when_to_come_back() {
    let answer = Answer::busy(2);
    assert_eq!(answer.status, 503);
    assert!(answer.headers.contains(&("retry-after", "2".to_owned())));
}

const RANGE: &str =
    "start=2025-12-31T22:00:00Z&end=2026-01-01T00:00:00Z&window=15m&dimensions=integration,reason";

/// Reads the range request with this query.
fn range(query: &str, now: Now) -> Result<WindowsQuestion> {
    let target = format!("{DELIVERY}/windows?{query}");
    let asked = PageRequest { method: "GET", target: &target, headers: &[], ..asked("") };
    match PageQuestion::read(&PagesOptions::default(), ADDRESS, asked, now)? {
        PageQuestion::Windows(question) => Ok(question),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_range_asks_for_each_of_its_windows_as_a_page_would() {
    let question = range(RANGE, at(0)).expect("a range");
    assert_eq!(question.windows.len(), 8);
    let settled: Vec<bool> = question.windows.iter().map(|one| one.is_settled).collect();
    assert_eq!(settled, [true, true, true, true, false, false, false, false]);
    let second = &question.windows[1];
    let body = format!(
        r#"{{"start":"{}","end":"{}","dimensions":["integration","reason"]}}"#,
        second.query.start, second.query.end
    );
    assert_eq!(read(asked(&body), at(0)), (second.key.clone(), true));
    // Equal ranges have one key, however they are written.
    let escaped = RANGE.replace(':', "%3A").replace("integration,reason", "integration%2creason");
    let same = range(&escaped, at(0)).expect("a range");
    assert_eq!(same.key, question.key);
    for other in
        [RANGE.replace("15m", "30m"), RANGE.replace("22:00", "22:15"), RANGE.replace(",reason", "")]
    {
        let other = range(&other, at(0)).expect("a range");
        assert_ne!(other.key, question.key);
    }
}

#[test]
fn a_range_that_is_wrong_names_its_argument() {
    for (from, to, argument) in [
        ("22:00:00Z", "22:00", "start"),
        ("start=2025-12-31T22:00:00Z&", "", "start"),
        ("00:00:00Z&window", "00:00&window", "end"),
        ("2026-01-01T00", "2025-12-31T20", "start"),
        ("15m", "7m", "window"),
        ("15m", "", "window"),
        ("15m", "1s", "window"),
        ("integration", "colour", "dimensions"),
        ("integration,reason", "", "dimensions"),
        ("integration", "reason", "dimensions"),
    ] {
        let error = range(&RANGE.replace(from, to), at(0)).expect_err("it is refused");
        assert_eq!(error.argument_name(), Some(argument), "{from} to {to}: {error}");
        assert_eq!(Answer::of_error(&error).status, 400);
    }
    for query in [
        &format!("{RANGE}&start=2025-12-31T22:00:00Z"),
        &format!("{RANGE}&more=1"),
        &RANGE.replace("15m", "%FF"),
    ] {
        let error = range(query, at(0)).expect_err("it is refused");
        assert_eq!(error.code(), Code::InvalidArgument, "{query}");
    }
    // 3,000 windows are answered, one more is not.
    let at_most =
        RANGE.replace("2026-01-01T00:00:00Z&window=15m", "2026-01-02T00:00:00Z&window=30s");
    let day = at_most.replace("2025-12-31T22:00:00Z", "2026-01-01T00:00:00Z");
    assert_eq!(range(&day, at(0)).expect("a day").windows.len(), 2_880);
    let error = range(&at_most, at(0)).expect_err("too many");
    assert!(error.to_string().contains("3120"), "{error}");
}

#[test]
fn a_page_of_another_origin_gets_no_range() {
    let target = format!("{DELIVERY}/windows?{RANGE}");
    let (all, none) = (&Permission::Everything, &Permission::Refused);
    for (headers, permission, is_right) in [
        (&[("sec-fetch-site", "same-origin")][..], all, true),
        (&[("sec-fetch-site", "same-origin")][..], none, false),
        (&[("sec-fetch-site", "cross-site")][..], all, false),
        (&[("sec-fetch-site", "none")][..], all, false),
    ] {
        let asked =
            PageRequest { method: "GET", target: &target, headers, permission, ..asked("") };
        let question = PageQuestion::read(&PagesOptions::default(), ADDRESS, asked, at(0));
        assert_eq!(question.is_ok(), is_right, "{headers:?}");
    }
    for target in ["/v1.1/oauth/token/windows", "/windows", &target] {
        let asked = PageRequest {
            method: if target.len() > 50 { "PUT" } else { "GET" },
            target,
            ..asked("")
        };
        assert_eq!(refused(&PagesOptions::default(), asked), ("invalid_argument".to_owned(), 400));
    }
}

#[test]
fn the_lines_of_a_window_hold_what_the_service_has_sent() {
    let lines = window_lines(hour(), true, b"{\r\n \"a\": \"b\"\n}");
    let text = String::from_utf8(lines).expect("JSON");
    let head = r#"{"start":"2025-12-31T22:00:00Z","end":"2025-12-31T23:00:00Z","settled":true}"#;
    assert_eq!(text, format!("{head}\n{{   \"a\": \"b\" }}\n"));
    let inner = "rate_limited: https://10.0.0.7".to_owned();
    let line = failed_line(hour(), Code::RateLimited, Some(429), inner, Some(7), "3f2a");
    let text = String::from_utf8(line).expect("JSON");
    assert!(text.ends_with("\"status\":429,\"retry_after\":7}}\n"), "{text}");
    assert!(text.contains("3f2a") && !text.contains("10.0.0.7"), "{text}");
    let own = "unknown_dimension: colour".to_owned();
    let line = failed_line(hour(), Code::UnknownDimension, None, own, None, "3f2a");
    let text = String::from_utf8(line).expect("JSON");
    assert!(text.ends_with("\"kind\":\"config\",\"message\":\"unknown_dimension: colour\"}}\n"));
    assert_eq!(LAST_LINE, b"{\"done\":true}\n");
}

#[test]
fn a_range_that_the_page_has_already_is_304() {
    let tag = RangeTag::new("own", "key").with("window", b"{}");
    let answer = Answer::of_range(Some(&tag), None);
    let of = |name| {
        let mut named = answer.headers.iter().filter(|(own, _)| *own == name);
        named.next().map(|(_, value)| value.as_str())
    };
    assert_eq!((answer.status, of("cache-control")), (200, Some("private, no-cache")));
    assert_eq!(of("content-type"), Some("application/x-ndjson"));
    let known = of("etag").expect("a tag").to_owned();
    for (if_none_match, status) in [
        (known.clone(), 304),
        (format!("W/\"12345678\", {known}"), 304),
        ("W/\"12345678\"".to_owned(), 200),
        ("*".to_owned(), 200),
    ] {
        let answer = Answer::of_range(Some(&tag), Some(&if_none_match));
        assert_eq!(answer.status, status, "{if_none_match}");
    }
    for other in [
        RangeTag::new("own", "key"),
        RangeTag::new("other", "key").with("window", b"{}"),
        RangeTag::new("own", "other").with("window", b"{}"),
        RangeTag::new("own", "key").with("other", b"{}"),
        RangeTag::new("own", "key").with("window", b"{ }"),
    ] {
        assert_eq!(Answer::of_range(Some(&other), Some(&known)).status, 200);
    }
    let unknown = Answer::of_range(None, Some(&known));
    let caching = unknown.headers.iter().any(|(_, value)| value == "no-store");
    assert!(caching && unknown.status == 200);
}
