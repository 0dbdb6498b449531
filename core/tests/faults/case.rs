//! The parts of a run that do not depend on the host: the options of its client, and the expected
//! outcomes of its calls.

use serde_json::Value;
use tallyfold::{Frame, MachineOptions, Output, Reconciliation, Result, Secret, Tolerate};

/// The options of a run's client, except the timeout, which each host enforces in its own way.
pub(crate) fn options(file: &Value, run: &Value, address: &str) -> MachineOptions {
    let given = |name: &str| text(&file["client"][name]);
    let options = &run["options"];
    let tolerated = options["tolerate"].as_array().into_iter().flatten();
    let tolerated: Vec<&str> = tolerated.map(text).collect();
    MachineOptions::default()
        .cluster_endpoint(address)
        .base_url(address)
        .auth_url(address)
        .client_id(given("client_id"))
        .identity(given("identity"))
        .client_secret(Secret::from(given("client_secret").to_owned()))
        .control_audience(given("control_audience"))
        .orchestration_audience(given("orchestration_audience"))
        .tolerate(Tolerate::parse(&tolerated).expect("good names"))
        .max_retries(u32::try_from(number(&options["max_retries"])).expect("few"))
        .longest_retry_wait_ms(number(&options["longest_retry_wait_ms"]))
        .jitter_seed(7)
}

pub(crate) fn check_outcome(expected: &Value, outcome: Result<Output>, place: &str) {
    match outcome {
        Ok(Output::Table(table)) => {
            let json: Value = serde_json::from_str(&table.to_json()).expect("JSON");
            assert_eq!(json, expected["table"], "{place}");
            let balanced = table.reconciliation() == Reconciliation::Balanced;
            assert_eq!(balanced, expected["verdict"] == "balanced", "{place}");
        }
        Ok(Output::Token(_)) => panic!("no fault is of a call for a token"),
        Ok(Output::Json(document)) => {
            let json: Value = serde_json::from_slice(document.bytes()).expect("JSON");
            assert_eq!(Some(&json), expected.get("json"), "{place}");
        }
        Err(error) => {
            let found = serde_json::json!({
                "code": error.code().as_str(),
                "kind": error.kind().as_str(),
                "status": error.status(),
                "retry_after": error.retry_after_s(),
            });
            assert_eq!(found, expected["error"], "{place}: {error}");
        }
    }
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("text")
}

pub(crate) fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}
