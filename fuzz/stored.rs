//! Stored documents: any bytes, and documents with a correct checksum whose fields contain any bytes.

use tallyfold::keeper::DocumentKind;
use tallyfold::{
    Dimension, Follow, FollowOptions, Machine, MachineOptions, Metric, TimeStep, Timestamp,
};
use tallyfold_export::{Ledger, Outbox};
use tallyfold_health::State;

/// A document that can be read must stay the same when it is written and read again.
pub fn documents(data: &[u8]) {
    let Some((choice, rest)) = data.split_first() else {
        return;
    };
    match choice % 4 {
        0 => come_back(
            rest,
            "tallyfold-ledger/1",
            |json| Ledger::from_json(json).ok(),
            Ledger::to_json,
        ),
        1 => come_back(
            rest,
            "tallyfold-outbox/1",
            |json| Outbox::from_json(json).ok(),
            Outbox::to_json,
        ),
        2 => come_back(
            rest,
            "tallyfold-health/1",
            |json| State::from_json(json).ok(),
            |state| String::from_utf8_lossy(&state.to_json()).into_owned(),
        ),
        _ => {
            let machine = machine();
            let step = TimeStep::parse("5m").expect("a step");
            let mut options = FollowOptions::new(
                Metric::EventDelivery,
                Timestamp::parse("2026-01-01T00:00:00Z").expect("a timestamp"),
                &[Dimension::Integration],
                step,
            );
            let follow = |json: &[u8]| {
                options.state = Some(String::from_utf8(json.to_vec()).ok()?);
                machine.follow(&options).ok()
            };
            come_back(rest, "tallyfold-follow/2", follow, Follow::state);
        }
    }
}

/// Reads bytes as a document, and as the fields of a document of this format.
fn come_back<T>(
    bytes: &[u8],
    format: &'static str,
    mut read: impl FnMut(&[u8]) -> Option<T>,
    write: impl Fn(&T) -> String,
) {
    let kind = DocumentKind { format, what: "document" };
    let sealed = kind.write(&String::from_utf8_lossy(bytes));
    for json in [bytes, sealed.as_bytes()] {
        let Some(document) = read(json) else { continue };
        let written = write(&document);
        let again = read(written.as_bytes()).expect("what was written can be read");
        assert_eq!(write(&again), written);
    }
}

pub(crate) fn machine() -> Machine {
    Machine::new(
        MachineOptions::default()
            .cluster_endpoint("https://cluster.example")
            .client_id("id")
            .client_secret("secret".to_owned())
            .control_audience("control"),
    )
    .expect("usual options")
}
