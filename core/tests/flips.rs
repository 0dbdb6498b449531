//! A flipped bit in a saved document never changes a count, a name or a window.

use tallyfold::keeper::segment_name;
use tallyfold::{CollectOptions, CollectStep, Frame, Metric, Segment};

include!("doc/host.rs");

/// Every document that differs from `json` in one bit.
fn flipped(json: &str) -> impl Iterator<Item = Vec<u8>> {
    (0..json.len() * 8).map(|bit| {
        let mut bytes = json.as_bytes().to_vec();
        bytes[bit / 8] ^= 1 << (bit % 8);
        bytes
    })
}

#[test]
fn a_table_with_a_flipped_bit_is_refused_or_the_same() {
    let mut host = Host::new().expect("a host");
    let table = host.quarter(36).and_then(|table| table.group_by(&["reason"]));
    let table = table.expect("counts");
    for bytes in flipped(&table.to_json()) {
        if let Ok(found) = CountTable::from_json(&bytes) {
            // Such as a digit of hexadecimal that became a capital.
            assert_eq!(found, table, "{}", String::from_utf8_lossy(&bytes));
        }
    }
}

fn collect_options() -> Result<CollectOptions> {
    let range = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:30:00Z")?;
    let dimensions = [Dimension::Integration];
    Ok(CollectOptions::new(Metric::EventDelivery, range, &dimensions))
}

fn stored(host: &mut Host) -> Result<Option<Segment>> {
    let mut collect = host.machine.collect(collect_options()?)?;
    let mut last = None;
    while let CollectStep::Drive(mut next) = collect.next(host.now) {
        host.drive(&mut next.call)?;
        collect.settle(next.task, &mut next.call, host.now)?;
        last = collect.unsaved();
    }
    Ok(last)
}

#[test]
fn a_checkpoint_with_a_flipped_bit_is_refused() {
    let mut host = Host::new().expect("a host");
    let segment = stored(&mut host).expect("a collect");
    let segment = segment.expect("a segment");
    let load = |json: &[u8]| {
        let mut collect = host.machine.collect(collect_options()?)?;
        collect.load(&segment_name(0), json)?;
        Ok::<_, tallyfold::Error>(collect.progress().done)
    };
    assert_eq!(load(segment.json.as_bytes()), Ok(2));
    for bytes in flipped(&segment.json) {
        assert!(load(&bytes).is_err(), "{}", String::from_utf8_lossy(&bytes));
    }
}
