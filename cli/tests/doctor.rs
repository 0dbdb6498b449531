//! `tallyfold doctor` with the sandbox, and with servers, networks and settings that have faults.

mod servers;
mod ways;

use std::process::Command;

use serde_json::Value;

use servers::Sandbox;

const SECRET: &str = "sandbox-secret";

/// The command with the sandbox's settings for an address. It inherits no other environment variables.
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

/// The output of the doctor.
struct Diagnosis {
    exit: i32,
    json: Value,
}

fn diagnosed(command: &mut Command) -> Diagnosis {
    let output = command.arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains(SECRET) && !said.contains(SECRET), "{text}{said}");
    let json: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{said}"));
    let schema = include_str!("../../docs/cli/doctor.schema.json");
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
fn a_healthy_service_passes_every_check() {
    let sandbox = Sandbox::start(&[]);
    let found = diagnosed(&mut tallyfold(&sandbox.url));
    assert_eq!((found.exit, found.with("failed"), found.with("warning")), (0, vec![], vec![]));
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
fn checks_of_apis_that_are_not_configured_are_skipped() {
    let sandbox = Sandbox::start(&[]);
    let mut command = tallyfold(&sandbox.url);
    command.env_remove("TALLYFOLD_BASE_URL").env_remove("TALLYFOLD_AUTH_URL");
    let found = diagnosed(&mut command);
    assert_eq!(found.exit, 0);
    assert!(found.text("orchestration_token").contains("base_url is not set"));
    assert_eq!(found.check("audit_logs")["result"], "skipped");

    let mut command = tallyfold(&sandbox.url);
    command.env_remove("TALLYFOLD_CLUSTER_ENDPOINT");
    let found = diagnosed(&mut command);
    assert_eq!((found.exit, &found.check("audit_logs")["result"]), (0, &Value::from("ok")));
    assert_eq!(found.check("additivity")["result"], "skipped");
}

#[test]
fn each_fault_of_the_service_fails_only_its_check() {
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
            "fewer requests",
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
    assert!(found.text("totals").contains("+7 delivered"), "{}", found.text("totals"));
}

#[test]
fn a_wrong_secret_and_a_wrong_audience_get_different_advice() {
    let sandbox = Sandbox::start(&[]);
    let found = diagnosed(tallyfold(&sandbox.url).env("TALLYFOLD_CLIENT_SECRET", "hunter2"));
    assert_eq!(found.with("failed"), ["control_token", "orchestration_token"]);
    assert!(found.text("control_token").contains("client secret first"));
    assert!(!found.json.to_string().contains("hunter2"));

    let mut command = tallyfold(&sandbox.url);
    let found = diagnosed(command.env("TALLYFOLD_CONTROL_AUDIENCE", "sandbox-orchestration"));
    assert_eq!(found.failure().2, 3);
    assert!(found.text("control_token").contains("--control-audience first"));
    assert_eq!(found.check("audit_logs")["result"], "ok");
    assert!(found.text("event_delivery").contains("there is no token"));
}

#[test]
fn invalid_settings_end_the_checks() {
    let mut command = tallyfold("http://127.0.0.1:1");
    let found = diagnosed(command.env_remove("TALLYFOLD_CLIENT_SECRET"));
    assert_eq!(found.failure(), ("configuration", "missing_argument", 2));
    assert_eq!(found.checks().len(), 1);
    let found = diagnosed(&mut tallyfold("http://service.example"));
    assert_eq!(found.failure(), ("configuration", "insecure_base_address", 2));
    assert!(found.text("configuration").contains("Use https"));
}

#[test]
fn the_problem_and_the_advice_follow_a_failed_check() {
    let sandbox =
        Sandbox::start(&[r#"{"kind":"status","status":503,"endpoint":"event_delivery"}"#]);
    let output = tallyfold(&sandbox.url).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert!(output.stderr.is_empty());
    assert!(!text.contains(SECRET) && !text.contains('\x1b'));
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.starts_with("  FAILED  event delivery")).unwrap();
    assert!(lines[at + 1].starts_with("          wrong: "), "{text}");
    assert!(lines[at + 2].starts_with("          next:  Wait and try again"), "{text}");
    assert!(lines.last().unwrap().contains("1 failed"), "{text}");
}
