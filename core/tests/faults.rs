//! The faults that every language is tested with, over loopback. `tests/faults/README.md` describes
//! them.

mod case;
mod host;
mod server;

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use case::check_outcome;
use host::Host;
use server::Server;

/// The number of runs at the same time. Most of their time is spent waiting for something that
/// never arrives.
const AT_ONCE: usize = 16;

/// The beginning of all secrets that a server or a client knows.
const CANARY: &str = "canary";

#[test]
fn every_fault_ends_as_it_is_to() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/faults/faults.json");
    let json = std::fs::read_to_string(path).expect("the faults are in the repository");
    let file: Value = serde_json::from_str(&json).expect("the faults are JSON");
    let runs = file["runs"].as_array().expect("a list");
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut wrong = String::new();
        while let Some(run) = runs.get(next.fetch_add(1, Ordering::Relaxed)) {
            // The panic has told the rest.
            if catch_unwind(AssertUnwindSafe(|| check(&file, run))).is_err() {
                writeln!(wrong, "{} at {}", run["fault"], run["endpoint"]).expect("memory");
            }
        }
        wrong
    };
    let wrong: String = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..AT_ONCE).map(|_| scope.spawn(worker)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined.map(|wrong| wrong.expect("no panic")).collect()
    });
    assert!(wrong.is_empty(), "not as they are to be:\n{wrong}");
    assert_eq!(Value::from(runs.len()), file["count"]);
}

/// Checks one run. It has its own server and one client, which makes one call after the other.
fn check(file: &Value, run: &Value) {
    let place = format!("{} at {}", run["fault"], run["endpoint"]);
    let server = Server::new(file, run);
    let waited_ms = std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve());
        let waited_ms =
            catch_unwind(AssertUnwindSafe(|| ask(file, run, &server.address(), &place)));
        server.hang_up();
        served.join().expect("no panic").unwrap_or_else(|wrong| panic!("{place}: {wrong}"));
        waited_ms.unwrap_or_else(|_| panic!("{place}: see above"))
    });
    server.assert_nobody_went_elsewhere(&place);
    let least_ms = run["waits_ms"].as_u64().expect("milliseconds");
    // A retry without a requested wait begins almost immediately here.
    let waited_as_asked = waited_ms >= least_ms && waited_ms < least_ms + 1_000;
    assert!(waited_as_asked, "{place}: waited {waited_ms} ms");
}

/// Makes the calls of a run. Returns how many milliseconds they had to wait.
fn ask(file: &Value, run: &Value, address: &str, place: &str) -> u64 {
    let mut host = Host::new(file, run, address);
    for outcome in run["outcomes"].as_array().expect("a list") {
        let outcome = outcome.as_str().map_or(outcome, |name| &file["outcomes"][name]);
        check_outcome(outcome, host.call(), place);
    }
    assert!(!host.seen().contains(CANARY), "{place}: {}", host.seen());
    host.waited_ms()
}
