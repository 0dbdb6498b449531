//! `tallyfold doctor` against the sandbox, and against servers, networks and settings with something wrong.

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

mod servers;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use rcgen::date_time_ymd;
use serde_json::Value;

use servers::{Authority, Manner, Sandbox, answer, dead_port, serve};

const SECRET: &str = "sandbox-secret";

/// The command with the sandbox's settings for an address, and nothing else of this environment.
fn tallyfold(address: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
    command
        .env_clear()
        .envs([
            ("TALLYFOLD_CLUSTER_ENDPOINT", address),
            ("TALLYFOLD_BASE_URL", address),
            ("TALLYFOLD_AUTH_URL", address),
            ("TALLYFOLD_CLIENT_ID", "sandbox-client"),
            ("TALLYFOLD_CLIENT_SECRET", SECRET),
            ("TALLYFOLD_CONTROL_AUDIENCE", "sandbox-control"),
            ("TALLYFOLD_ORCHESTRATION_AUDIENCE", "sandbox-orchestration"),
        ])
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .arg("doctor");
    command
}

/// What the doctor has said.
struct Diagnosis {
    exit: i32,
    json: Value,
}

fn diagnosed(command: &mut Command) -> Diagnosis {
    let output = command.arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !text.contains(SECRET) && !said.contains(SECRET),
        "{text}{said}"
    );
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"));
    let schema = include_str!("../../../docs/cli/doctor.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    jsonschema::validate(&schema, &json).unwrap();
    let exit = output.status.code().unwrap();
    assert_eq!(json["exitCode"], exit);
    Diagnosis { exit, json }
}

impl Diagnosis {
    fn checks(&self) -> &[Value] {
        self.json["clusters"][0]["checks"].as_array().unwrap()
    }

    fn check(&self, name: &str) -> &Value {
        let found = self.checks().iter().find(|check| check["name"] == name);
        found.unwrap_or_else(|| panic!("no check {name}: {}", self.json))
    }

    /// The names of the checks with that result.
    fn with(&self, result: &str) -> Vec<&str> {
        let checks = self.checks().iter();
        let found = checks.filter(|check| check["result"] == result);
        found.map(|check| check["name"].as_str().unwrap()).collect()
    }

    /// The text of a check: what was seen, what is wrong, what to do.
    fn text(&self, name: &str) -> String {
        let check = self.check(name);
        let text = |field: &str| check[field].as_str().unwrap_or_default().to_owned();
        format!("{} | {} | {}", text("seen"), text("problem"), text("next"))
    }

    /// The first failed check, its code and the exit code.
    fn failure(&self) -> (&str, &str, i32) {
        let failed = self.with("failed");
        let name = failed.first().copied().unwrap_or_default();
        let code = if name.is_empty() {
            ""
        } else {
            self.check(name)["code"].as_str().unwrap_or_default()
        };
        (name, code, self.exit)
    }
}

#[test]
fn a_service_that_is_well_passes_every_check() {
    let sandbox = Sandbox::start(&[]);
    let found = diagnosed(&mut tallyfold(&sandbox.url));
    assert_eq!(
        (found.exit, found.with("failed"), found.with("warning")),
        (0, vec![], vec![])
    );
    let ok = [
        "configuration",
        "proxy",
        "connection",
        "http",
        "clock",
        "control_token",
        "event_delivery",
        "compression",
        "totals",
        "event_ingestion",
        "additivity",
        "orchestration_token",
        "audit_logs",
    ];
    assert_eq!(found.with("ok"), ok);
    assert_eq!(found.with("skipped"), ["name", "tls"]);
    assert!(found.text("event_delivery").contains("delivered"));
    assert!(found.text("control_token").contains("24 h"));
}

#[test]
fn what_is_not_configured_is_skipped() {
    let sandbox = Sandbox::start(&[]);
    let mut command = tallyfold(&sandbox.url);
    command
        .env_remove("TALLYFOLD_BASE_URL")
        .env_remove("TALLYFOLD_AUTH_URL");
    let found = diagnosed(&mut command);
    assert_eq!(found.exit, 0);
    assert!(
        found
            .text("orchestration_token")
            .contains("base_url is not set")
    );
    assert_eq!(found.check("audit_logs")["result"], "skipped");

    let mut command = tallyfold(&sandbox.url);
    command.env_remove("TALLYFOLD_CLUSTER_ENDPOINT");
    let found = diagnosed(&mut command);
    assert_eq!(
        (found.exit, &found.check("audit_logs")["result"]),
        (0, &Value::from("ok"))
    );
    assert_eq!(found.check("additivity")["result"], "skipped");
}

#[test]
fn each_fault_of_the_service_is_found_where_it_is() {
    for (fault, name, code, exit, advice) in [
        (
            r#"{"kind":"status","status":401,"endpoint":"control_token"}"#,
            "control_token",
            "token_refused",
            3,
            "--control-audience first",
        ),
        (
            r#"{"kind":"status","status":403,"endpoint":"orchestration_token"}"#,
            "orchestration_token",
            "token_refused",
            3,
            "--orchestration-audience first",
        ),
        (
            r#"{"kind":"status","status":503,"endpoint":"event_delivery"}"#,
            "event_delivery",
            "server_error",
            4,
            "try again",
        ),
        (
            r#"{"kind":"status","status":404,"endpoint":"event_ingestion"}"#,
            "event_ingestion",
            "unexpected_status",
            4,
            "base address",
        ),
        (
            r#"{"kind":"status","status":403,"endpoint":"event_delivery"}"#,
            "event_delivery",
            "forbidden",
            4,
            "access",
        ),
        (
            r#"{"kind":"status","status":429,"endpoint":"audit_logs"}"#,
            "audit_logs",
            "rate_limited",
            4,
            "less often",
        ),
        (
            r#"{"kind":"status","status":302,"endpoint":"event_delivery"}"#,
            "event_delivery",
            "redirected",
            4,
            "redirect leads",
        ),
        (
            r#"{"kind":"revoke_token","endpoint":"event_delivery","every":1}"#,
            "event_delivery",
            "token_rejected",
            3,
            "audience",
        ),
        (
            r#"{"kind":"truncate","bytes":20,"endpoint":"event_delivery"}"#,
            "event_delivery",
            "network_failed",
            4,
            "load balancer",
        ),
        (
            r#"{"kind":"content_type","content_type":"text/plain","endpoint":"event_delivery"}"#,
            "event_delivery",
            "wrong_content_type",
            5,
            "operator",
        ),
        (
            r#"{"kind":"body","body":"<!doctype html>","endpoint":"audit_logs"}"#,
            "audit_logs",
            "html_response",
            5,
            "browser",
        ),
        (
            r#"{"kind":"body","body":"{}","endpoint":"event_delivery"}"#,
            "event_delivery",
            "missing_field",
            5,
            "newer version",
        ),
        (
            r#"{"kind":"body","body":"","endpoint":"event_ingestion"}"#,
            "event_ingestion",
            "empty_body",
            5,
            "proxy",
        ),
        (
            r#"{"kind":"body","body":"{}","endpoint":"control_token"}"#,
            "control_token",
            "invalid_token_response",
            3,
            "token endpoint",
        ),
    ] {
        let sandbox = Sandbox::start(&[fault]);
        let found = diagnosed(&mut tallyfold(&sandbox.url));
        assert_eq!(found.failure(), (name, code, exit), "{fault}");
        assert_eq!(found.with("failed"), [name], "{fault}");
        assert!(found.text(name).contains(advice), "{}", found.text(name));
    }
}

#[test]
fn totals_that_differ_are_a_warning() {
    let fault = r#"{"kind":"wrong_total","amount":7,"endpoint":"event_delivery","every":1}"#;
    let sandbox = Sandbox::start(&[fault]);
    let found = diagnosed(&mut tallyfold(&sandbox.url));
    assert_eq!((found.exit, found.with("warning")), (0, vec!["totals"]));
    assert!(
        found.text("totals").contains("+7 delivered"),
        "{}",
        found.text("totals")
    );
}

#[test]
fn a_wrong_secret_and_a_wrong_audience_are_told_apart() {
    let sandbox = Sandbox::start(&[]);
    let found = diagnosed(tallyfold(&sandbox.url).env("TALLYFOLD_CLIENT_SECRET", "hunter2"));
    assert_eq!(
        found.with("failed"),
        ["control_token", "orchestration_token"]
    );
    assert!(found.text("control_token").contains("client secret first"));
    assert!(!found.json.to_string().contains("hunter2"));

    let mut command = tallyfold(&sandbox.url);
    let found = diagnosed(command.env("TALLYFOLD_CONTROL_AUDIENCE", "sandbox-orchestration"));
    assert_eq!(found.failure().2, 3);
    assert!(
        found
            .text("control_token")
            .contains("--control-audience first")
    );
    assert_eq!(found.check("audit_logs")["result"], "ok");
    assert!(found.text("event_delivery").contains("there is no token"));
}

#[test]
fn settings_that_can_not_be_used_end_the_checks() {
    let mut command = tallyfold("http://127.0.0.1:1");
    let found = diagnosed(command.env_remove("TALLYFOLD_CLIENT_SECRET"));
    assert_eq!(found.failure(), ("configuration", "missing_argument", 2));
    assert_eq!(found.checks().len(), 1);
    let found = diagnosed(&mut tallyfold("http://service.example"));
    assert_eq!(
        found.failure(),
        ("configuration", "insecure_base_address", 2)
    );
    assert!(found.text("configuration").contains("Use https"));
}

#[test]
fn a_dead_port_and_an_unknown_name_are_told_apart() {
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{}", dead_port())));
    assert_eq!(found.failure(), ("connection", "network_failed", 4));
    assert!(
        found.text("connection").contains("Check the port"),
        "{}",
        found.text("connection")
    );
    assert_eq!(found.with("failed").len(), 1);
    assert!(found.text("control_token").contains("can't be reached"));

    let found = diagnosed(&mut tallyfold("https://no-such-host.invalid"));
    assert_eq!(found.failure(), ("name", "network_failed", 4));
    assert!(
        found.text("name").contains("spelling"),
        "{}",
        found.text("name")
    );
}

/// The result of a server with a certificate, and whether the doctor trusts our authority.
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
fn each_wrong_certificate_is_named() {
    let authority = Authority::new();
    let found = |name: &str, change: fn(&mut rcgen::CertificateParams), trusts| {
        with_certificate(&authority, name, change, trusts, Manner::Silence)
    };
    for (found, advice) in [
        (found("localhost", |_| {}, false), "--ca-file"),
        (
            found(
                "localhost",
                |params| params.not_after = date_time_ymd(2020, 1, 1),
                true,
            ),
            "renew its certificate",
        ),
        (
            found(
                "localhost",
                |params| params.not_before = date_time_ymd(4000, 1, 1),
                true,
            ),
            "Check the clock",
        ),
        (
            found("other.example", |_| {}, true),
            "name that the certificate is for",
        ),
    ] {
        assert_eq!(found.failure(), ("tls", "network_failed", 4), "{advice}");
        assert_eq!(found.with("failed").len(), 1);
        assert!(found.text("tls").contains(advice), "{}", found.text("tls"));
        assert_eq!(found.check("control_token")["result"], "skipped");
    }
}

#[test]
fn a_service_behind_our_own_authority_is_well() {
    let sandbox = Sandbox::start(&[]);
    let authority = Authority::new();
    let forward = || Manner::Forward(sandbox.port());
    let found = with_certificate(&authority, "localhost", |_| {}, true, forward());
    assert_eq!(
        (found.exit, found.with("warning"), found.with("skipped")),
        (0, vec![], vec![])
    );
    let text = found.text("tls");
    assert!(
        text.contains("Test Authority") && text.contains("the system's authorities and /"),
        "{text}"
    );
    assert!(
        found.text("name").contains("localhost is 127.0.0.1") || found.text("name").contains("::1")
    );

    let soon = |params: &mut rcgen::CertificateParams| {
        params.not_after =
            (std::time::SystemTime::now() + Duration::from_secs(3 * 86_400 + 60)).into();
    };
    let found = with_certificate(&authority, "localhost", soon, true, forward());
    assert_eq!((found.exit, found.with("warning")), (0, vec!["tls"]));
    assert!(
        found.text("tls").contains("expires in 3 days"),
        "{}",
        found.text("tls")
    );
}

#[test]
fn a_server_without_tls_is_no_certificate_problem() {
    let port = serve(None, answer("200 OK", "", ""));
    let found = diagnosed(&mut tallyfold(&format!("https://localhost:{port}")));
    assert_eq!(found.failure(), ("tls", "network_failed", 4));
    assert!(
        found.text("tls").contains("speaks https at this port"),
        "{}",
        found.text("tls")
    );
}

#[test]
fn a_server_that_hangs_up_is_no_http_server() {
    let port = serve(None, Manner::Hang);
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    assert_eq!(found.failure(), ("http", "network_failed", 4));
}

#[test]
fn no_check_hangs() {
    let port = serve(None, Manner::Silence);
    let started = Instant::now();
    let mut command = tallyfold(&format!("http://127.0.0.1:{port}"));
    let found = diagnosed(command.args(["--timeout", "300ms"]));
    assert_eq!(found.failure(), ("http", "timed_out", 4));
    assert!(found.text("http").contains("--timeout 60s"));

    let fault = r#"{"kind":"delay","milliseconds":600000,"endpoint":"event_delivery","every":1}"#;
    let sandbox = Sandbox::start(&[fault]);
    let mut command = tallyfold(&sandbox.url);
    let found = diagnosed(command.args(["--timeout", "300ms"]));
    assert_eq!(found.failure(), ("event_delivery", "timed_out", 4));
    assert_eq!(found.check("audit_logs")["result"], "ok");
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_clock_that_is_off_is_found_by_the_date_of_a_response() {
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
                found.text("clock").contains("settled"),
                "{}",
                found.text("clock")
            );
        }
        // A wrong clock keeps no request back.
        assert_eq!(found.check("control_token")["code"], "unexpected_status");
    }
}

#[test]
fn a_login_page_in_place_of_the_service_is_recognized() {
    let page = answer(
        "200 OK",
        "content-type: text/html\r\n",
        "<!doctype html><title>Log in</title>",
    );
    let port = serve(None, page);
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    let (name, code, exit) = found.failure();
    assert_eq!((name, exit), ("control_token", 5), "{code}");
    assert!(
        found.text(name).contains("login page"),
        "{}",
        found.text(name)
    );

    let port = serve(
        None,
        answer("302 Found", "location: https://login.example/\r\n", ""),
    );
    let found = diagnosed(&mut tallyfold(&format!("http://127.0.0.1:{port}")));
    assert_eq!(found.failure(), ("control_token", "redirected", 4));
    assert!(found.text("control_token").contains("login page"));
}

#[test]
fn a_proxy_that_refuses_is_named_without_its_password() {
    let sandbox = Sandbox::start(&[]);
    let through = |proxy: u16, address: &str| {
        let mut command = tallyfold(address);
        command.env(
            "HTTPS_PROXY",
            format!("http://me:hunter2@127.0.0.1:{proxy}"),
        );
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
    assert!(
        found
            .text("proxy")
            .contains(&format!("http://127.0.0.1:{port}"))
    );
    // A proxy for plain http answers itself.
    let found = through(
        serve(None, answer("407 Proxy Authentication Required", "", "")),
        &sandbox.url,
    );
    assert_eq!(found.with("failed"), ["http"]);
    // The sandbox is excepted from a dead proxy.
    let mut command = tallyfold(&sandbox.url);
    command.env("HTTP_PROXY", format!("http://127.0.0.1:{port}"));
    let found = diagnosed(command.env("NO_PROXY", "127.0.0.1"));
    assert_eq!(found.exit, 0, "{}", found.json);
}

#[test]
fn a_person_reads_what_to_do_next() {
    let sandbox =
        Sandbox::start(&[r#"{"kind":"status","status":503,"endpoint":"event_delivery"}"#]);
    let output = tallyfold(&sandbox.url).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stderr.is_empty());
    assert!(!text.contains(SECRET) && !text.contains('\x1b'));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines
        .iter()
        .position(|line| line.starts_with("  FAILED  event delivery"))
        .unwrap();
    assert!(lines[at + 1].starts_with("          wrong: "), "{text}");
    assert!(
        lines[at + 2].starts_with("          next:  Wait and try again"),
        "{text}"
    );
    assert!(lines.last().unwrap().contains("1 failed"), "{text}");
}
