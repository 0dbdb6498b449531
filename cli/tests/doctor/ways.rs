//! `tallyfold doctor` on the network path: names, ports, certificates, proxies, clocks, and servers that aren't the service.

use std::fs;
use std::time::{Duration, Instant};

use rcgen::date_time_ymd;

use super::servers::{Authority, Manner, Sandbox, answer, dead_port, serve};
use super::{Diagnosis, diagnosed, tallyfold};

#[test]
fn a_closed_port_and_an_unknown_name_fail_different_checks() {
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{}", dead_port())));
    assert_eq!(found.failure(), ("connection", "network_failed", 4));
    assert!(found.text("connection").contains("Check the port"), "{}", found.text("connection"));
    assert_eq!(found.with("failed").len(), 1);
    assert!(found.text("control_token").contains("can't be reached"));

    let found = diagnosed(&mut tallyfold("https://no-such-host.invalid"));
    assert_eq!(found.failure(), ("name", "network_failed", 4));
    assert!(found.text("name").contains("spelling"), "{}", found.text("name"));
}

/// Diagnoses a server with a certificate of `authority`. `trusts` is whether the doctor trusts the authority.
fn with_certificate(
    authority: &Authority,
    name: &str,
    change: impl FnOnce(&mut rcgen::CertificateParams),
    trusts: bool,
    manner: Manner,
) -> Diagnosis {
    let port = serve(Some(authority.server(name, change)), manner);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), authority.pem()).unwrap();
    let mut command = tallyfold(&format!("https://localhost:{port}"));
    if trusts {
        command.arg("--ca-file").arg(file.path());
    }
    diagnosed(&mut command)
}

#[test]
fn each_invalid_certificate_gets_its_own_advice() {
    let authority = Authority::new();
    let found = |name: &str, change: fn(&mut rcgen::CertificateParams), trusts| {
        with_certificate(&authority, name, change, trusts, Manner::Silence)
    };
    for (found, advice) in [
        (found("localhost", |_| {}, false), "--ca-file"),
        (
            found("localhost", |params| params.not_after = date_time_ymd(2020, 1, 1), true),
            "renew its certificate",
        ),
        (
            found("localhost", |params| params.not_before = date_time_ymd(4000, 1, 1), true),
            "Check the clock",
        ),
        (found("other.example", |_| {}, true), "hostname that the certificate contains"),
    ] {
        assert_eq!(found.failure(), ("tls", "network_failed", 4), "{advice}");
        assert_eq!(found.with("failed").len(), 1);
        assert!(found.text("tls").contains(advice), "{}", found.text("tls"));
        assert_eq!(found.check("control_token")["result"], "skipped");
    }
}

/// curl does the same with `--cacert`.
#[test]
fn a_self_signed_certificate_in_the_file_is_trusted_for_its_name() {
    let sandbox = Sandbox::start(&[]);
    let found = |name: &str, trusted: Option<&Authority>| {
        let (own, config) = Authority::own_server(name);
        let port = serve(Some(config), Manner::Forward(sandbox.port()));
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), trusted.unwrap_or(&own).pem()).unwrap();
        let mut command = tallyfold(&format!("https://localhost:{port}"));
        diagnosed(command.arg("--ca-file").arg(file.path()))
    };
    let well = found("localhost", None);
    assert_eq!((well.exit, well.with("failed")), (0, vec![]));
    let other = found("other.example", None);
    assert!(
        other.text("tls").contains("hostname that the certificate contains"),
        "{}",
        other.text("tls")
    );
    // The file contains another certificate for the same name.
    let (stranger, _) = Authority::own_server("localhost");
    let foreign = found("localhost", Some(&stranger));
    assert_eq!(foreign.failure(), ("tls", "network_failed", 4));
}

#[test]
fn an_authority_that_has_expired_is_refused() {
    let expired = |params: &mut rcgen::CertificateParams| {
        params.not_before = date_time_ymd(2010, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    };
    let old = Authority::with(expired);
    let found = with_certificate(&old, "localhost", |_| {}, true, Manner::Silence);
    assert_eq!(found.exit, 2);
    let today = Authority::new();
    let port = serve(Some(old.server("localhost", |_| {})), Manner::Silence);
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), today.pem() + &old.pem()).unwrap();
    let mut command = tallyfold(&format!("https://localhost:{port}"));
    let found = diagnosed(command.arg("--ca-file").arg(file.path()));
    assert_eq!(found.failure(), ("tls", "network_failed", 4));
}

#[test]
fn a_service_with_a_certificate_of_a_trusted_authority_passes() {
    let sandbox = Sandbox::start(&[]);
    let authority = Authority::new();
    let forward = || Manner::Forward(sandbox.port());
    let found = with_certificate(&authority, "localhost", |_| {}, true, forward());
    assert_eq!((found.exit, found.with("warning"), found.with("skipped")), (0, vec![], vec![]));
    let text = found.text("tls");
    assert!(
        text.contains("Test Authority") && text.contains("the system's authorities and /"),
        "{text}"
    );
    assert!(
        found.text("name").contains("localhost resolves to 127.0.0.1")
            || found.text("name").contains("::1")
    );

    let soon = |params: &mut rcgen::CertificateParams| {
        params.not_after =
            (std::time::SystemTime::now() + Duration::from_secs(3 * 86_400 + 3_600)).into();
    };
    let found = with_certificate(&authority, "localhost", soon, true, forward());
    assert_eq!((found.exit, found.with("warning")), (0, vec!["tls"]));
    assert!(found.text("tls").contains("expires in 3 days"), "{}", found.text("tls"));
}

#[test]
fn the_check_names_the_authorities_in_the_environment() {
    let sandbox = Sandbox::start(&[]);
    let authority = Authority::new();
    let port = serve(Some(authority.server("localhost", |_| {})), Manner::Forward(sandbox.port()));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), authority.pem()).unwrap();
    let mut command = tallyfold(&format!("https://localhost:{port}"));
    let found = diagnosed(command.env("SSL_CERT_FILE", file.path()));
    assert_eq!(found.exit, 0, "{}", found.json);
    let named = format!("the authorities of {}", file.path().display());
    assert!(found.text("tls").contains(&named), "{}", found.text("tls"));
}

#[test]
fn a_server_without_tls_gets_advice_about_the_port() {
    let port = serve(None, answer("200 OK", "", ""));
    let found = diagnosed(&mut tallyfold(&format!("https://localhost:{port}")));
    assert_eq!(found.failure(), ("tls", "network_failed", 4));
    assert!(found.text("tls").contains("speaks https at this port"), "{}", found.text("tls"));
}

#[test]
fn a_server_that_closes_the_connection_fails_the_http_check() {
    let port = serve(None, Manner::Hang);
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    assert_eq!(found.failure(), ("http", "network_failed", 4));
}

#[test]
fn every_check_ends_at_its_timeout() {
    let port = serve(None, Manner::Silence);
    let started = Instant::now();
    let mut command = tallyfold(&format!("http://127.0.0.1:{port}"));
    let found = diagnosed(command.args(["--timeout", "300ms"]));
    assert_eq!(found.failure(), ("http", "timed_out", 4));
    assert!(found.text("http").contains("--timeout 60s"));

    let fault = r#"{"kind":"delay","milliseconds":600000,"endpoint":"event_delivery","every":1}"#;
    let sandbox = Sandbox::start(&[fault]);
    let mut command = tallyfold(&sandbox.url);
    // Even on a slow machine, the other requests must end in this time.
    let found = diagnosed(command.args(["--timeout", "2s"]));
    assert_eq!(found.failure(), ("event_delivery", "timed_out", 4));
    assert_eq!(found.check("audit_logs")["result"], "ok");
    assert!(started.elapsed() < Duration::from_secs(120));
}

#[test]
fn a_wrong_clock_is_detected_by_the_date_of_a_response() {
    let ago = |seconds| {
        let then = std::time::SystemTime::now() - Duration::from_secs(seconds);
        format!("date: {}\r\n", httpdate::fmt_http_date(then))
    };
    for (headers, result) in [
        (ago(0), "ok"),
        (ago(120), "warning"),
        (ago(900), "failed"),
        (String::new(), "skipped"),
        ("date: yesterday\r\n".to_owned(), "skipped"),
    ] {
        let port = serve(None, answer("404 Not Found", &headers, ""));
        let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
        assert_eq!(found.check("clock")["result"], result, "{headers}");
        if result == "failed" {
            assert_eq!(found.failure(), ("clock", "", 2));
            assert!(
                (found.text("clock")).contains("Windows settle by the server's clock"),
                "{}",
                found.text("clock")
            );
        }
        // A wrong clock does not prevent requests.
        assert_eq!(found.check("control_token")["code"], "unexpected_status");
    }
}

#[test]
fn a_wrong_clock_is_detected_by_the_date_of_a_call() {
    for endpoint in ["control_token", "event_delivery", "audit_logs"] {
        // Two hours and half a minute: a Date has whole seconds, and the difference is rounded down.
        let fault = format!(r#"{{"kind":"date","milliseconds":7230000,"endpoint":"{endpoint}"}}"#);
        let sandbox = Sandbox::start(&[&fault]);
        let found = diagnosed(&mut tallyfold(&sandbox.url));
        assert_eq!(found.failure(), ("clock", "", 2), "{endpoint}");
        assert_eq!(found.with("failed"), ["clock"], "{endpoint}");
        assert!(found.text("clock").contains("2 h ahead of the server's"));
    }
}

#[test]
fn a_login_page_in_place_of_the_service_is_recognized() {
    let page =
        answer("200 OK", "content-type: text/html\r\n", "<!doctype html><title>Log in</title>");
    let port = serve(None, page);
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    let (name, code, exit) = found.failure();
    assert_eq!((name, exit), ("control_token", 5), "{code}");
    assert!(found.text(name).contains("login page"), "{}", found.text(name));

    let port = serve(None, answer("302 Found", "location: https://login.example/\r\n", ""));
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    assert_eq!(found.failure(), ("control_token", "redirected", 4));
    let text = found.text("control_token");
    assert!(text.contains("login page") && text.contains("https://login.example"), "{text}");
}

#[test]
fn a_failing_proxy_is_named_without_its_password() {
    let sandbox = Sandbox::start(&[]);
    let through = |proxy: u16, address: &str| {
        let mut command = tallyfold(address);
        command.arg("--dangerously-allow-http");
        command.env("HTTPS_PROXY", format!("http://me:hunter2@127.0.0.1:{proxy}"));
        command.env("HTTP_PROXY", format!("http://me:hunter2@127.0.0.1:{proxy}"));
        let found = diagnosed(&mut command);
        assert!(!found.json.to_string().contains("hunter2"));
        found
    };
    let address = "https://service.example";
    for (status, advice) in [
        ("407 Proxy Authentication Required", "name and password"),
        ("403 Forbidden", "what it allows"),
        ("502 Bad Gateway", "what it allows"),
    ] {
        let found = through(serve(None, answer(status, "", "")), address);
        let failed = found.with("failed");
        assert_eq!(failed, ["proxy"], "{status}: {}", found.json);
        assert!(
            found.checks().iter().any(|check| {
                check["result"] == "failed" && check["next"].as_str().unwrap().contains(advice)
            }),
            "{status}: {}",
            found.json
        );
        assert_eq!(found.exit, 4);
    }
    let port = dead_port();
    let found = through(port, address);
    assert_eq!(found.failure(), ("connection", "network_failed", 4));
    let text = found.text("connection");
    assert!(text.contains("can't be reached") && text.contains("NO_PROXY"), "{text}");
    assert!(found.text("proxy").contains(&format!("http://127.0.0.1:{port}")));
    // For plain http, the response of the proxy is the response to the request.
    let found = through(
        serve(None, answer("407 Proxy Authentication Required", "", "")),
        "http://service.example",
    );
    assert_eq!(found.with("failed"), ["http"]);
    // Requests to this machine don't go through a proxy.
    let mut command = tallyfold(&sandbox.url);
    command.env("HTTP_PROXY", format!("http://127.0.0.1:{port}"));
    let found = diagnosed(&mut command);
    assert_eq!(found.exit, 0, "{}", found.json);
}
