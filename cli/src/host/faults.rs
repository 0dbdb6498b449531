//! Tests the client against a server on this machine that causes the network faults of `tests/faults`. The tests of all languages
//! use the same faults.

#[path = "../../../core/tests/faults/case.rs"]
mod case;
#[path = "../../../core/tests/faults/server.rs"]
mod server;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tallyfold::{
    AuditLogsOptions, Call, Dimension, Machine, Now, Output, Patience, QueryOptions, Result, Step,
    Timestamp, Window,
};

use self::case::{check_outcome, number, options, text};
use self::server::Server;
use super::exchange::Outgoing;
use super::network::Http;
use super::session::exchange;
use crate::config::settings::NetworkSettings;

/// How many runs are made at the same time. Most runs only wait for bytes that never arrive.
const AT_ONCE: usize = 16;

/// The prefix of every secret in these tests.
const CANARY: &str = "canary";

#[test]
fn every_fault_has_the_expected_outcome() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/faults/faults.json");
    let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let runs = file["runs"].as_array().unwrap();
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut wrong = String::new();
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            // The panic has already printed its message.
            if catch_unwind(AssertUnwindSafe(|| check(&file, run))).is_err() {
                writeln!(wrong, "{} at {}", run["fault"], run["endpoint"]).unwrap();
            }
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "unexpected outcomes:\n{wrong}");
    assert_eq!(Value::from(runs.len()), file["count"]);
}

/// Makes one run: starts a server and a client for the run, and makes its calls one after the other.
fn check(file: &Value, run: &Value) {
    let place = format!("{} at {}", run["fault"], run["endpoint"]);
    let server = Server::new(file, run);
    let waited_ms = std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve());
        let waited_ms = catch_unwind(AssertUnwindSafe(|| {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(Host::new(file, run, &server.address()).ask(file, run, &place))
        }));
        server.hang_up();
        served.join().unwrap().unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
        waited_ms.unwrap_or_else(|_| panic!("{place}: see above"))
    });
    server.assert_nobody_went_elsewhere(&place);
    let least_ms = run["waits_ms"].as_u64().unwrap();
    let is_expected = waited_ms >= least_ms && waited_ms < least_ms + 1_000;
    assert!(is_expected, "{place}: waited {waited_ms} ms");
}

/// A client with simulated clocks. Only the waits of calls advance the clocks.
struct Host {
    machine: Machine,
    http: Http,
    unix_ms: i64,
    waited_ms: u64,
    seen: String,
}

impl Host {
    fn new(file: &Value, run: &Value, address: &str) -> Self {
        let timeout_ms = Patience::Milliseconds(number(&run["options"]["timeout_ms"]));
        let options = options(file, run, address).timeout_ms(timeout_ms);
        Self {
            machine: Machine::new(options).unwrap(),
            http: Http::new(&NetworkSettings::default()).unwrap(),
            unix_ms: Timestamp::parse(text(&file["now"])).unwrap().unix_ms(),
            waited_ms: 0,
            seen: String::new(),
        }
    }

    /// Makes the calls of a run, and returns the sum of their waits in milliseconds.
    async fn ask(mut self, file: &Value, run: &Value, place: &str) -> u64 {
        for outcome in run["outcomes"].as_array().unwrap() {
            let expected = outcome.as_str().map_or(outcome, |name| &file["outcomes"][name]);
            let mut call = self.call(file, text(&run["call"]));
            let outcome = self.drive(&mut call).await;
            if let Err(error) = &outcome {
                self.see(&format!("{error} {error:?}"));
            }
            check_outcome(expected, outcome, place);
        }
        assert!(!self.seen.contains(CANARY), "{place}: {}", self.seen);
        self.waited_ms
    }

    fn call(&self, file: &Value, name: &str) -> Call {
        let query = &file["query"];
        let window = Window::parse(text(&query["start"]), text(&query["end"])).unwrap();
        let names = query["dimensions"].as_array().unwrap().iter();
        let dimensions: Vec<Dimension> =
            names.map(|name| Dimension::parse(text(name)).unwrap()).collect();
        let query = QueryOptions::new(window, &dimensions);
        match name {
            "event_delivery" => self.machine.event_delivery(&query).unwrap().untyped(),
            "event_ingestion" => self.machine.event_ingestion(&query).unwrap().untyped(),
            "audit_logs" => {
                let logs = self.machine.audit_logs(&AuditLogsOptions::default());
                logs.unwrap().untyped()
            }
            other => panic!("unknown {other}"),
        }
    }

    async fn drive(&mut self, call: &mut Call) -> Result<Output> {
        loop {
            let now = Now { monotonic_ms: self.waited_ms, unix_ms: self.unix_ms };
            match call.step(now)? {
                Step::Send(request) => {
                    let limit = self.machine.timeout().ms().map(std::time::Duration::from_millis);
                    let exchanged =
                        exchange(Outgoing::of(&self.http, &request), limit, call, None).await;
                    let attempt = call.attempt();
                    self.see(&format!("{attempt:?} {call:?}"));
                    exchanged?;
                }
                Step::Wait { ms } => self.waited_ms += u64::from(ms),
                Step::Done => return call.output(),
                other => panic!("a single call never gets {other:?}"),
            }
        }
    }

    fn see(&mut self, text: &str) {
        writeln!(self.seen, "{text}").unwrap();
    }
}
