//! Measures the fold from response bytes to groups against parsers with hash maps.

use std::collections::BTreeMap;
use std::hint::black_box;

use tallyfold::{Aggregator, AggregatorOptions, CountTable, Dimension, Frame};

use crate::body::{DIMENSIONS, Kind, body, body_of_6_000_groups};
use crate::peers::{self, ByAll, ByEventName, ByWriteKey, Groups, Key};
use crate::report::{Measurement, Target, Unit};
use crate::rounds::take_turns;

/// The size of the chunks that are pushed, in bytes.
pub(crate) const CHUNK: usize = 64 * 1024;

/// Small bodies are folded repeatedly until this many bytes are read, because a clock can't time a microsecond.
const LEAST_BYTES: usize = 4_000_000;

/// A peer: its name, how it does the work, and the target of the ratio.
type Peer<'a> = (&'static str, Box<dyn Fn() + 'a>, Target);

pub(crate) fn measure() {
    let plain = body(Kind::Plain, 100_000);
    against_all::<ByWriteKey>("100,000 entries to 1,200 groups", 11, &plain, EVERYDAY);
    let thousand = body(Kind::Plain, 1_000);
    against_all::<ByWriteKey>("1,000 entries", 11, &thousand, EVERYDAY);
    let groups = body_of_6_000_groups();
    against_all::<ByEventName>("2 MB to 6,000 groups", 11, &groups, EVERYDAY);
    let million = body(Kind::Plain, 1_000_000);
    against_all::<ByWriteKey>("1,000,000 entries", 5, &million, SPECIAL);
    let pretty = body(Kind::Pretty, 100_000);
    against_all::<ByWriteKey>("100,000, pretty", 11, &pretty, SPECIAL);
    against_all::<ByAll>("100,000, all four kept", 11, &plain, SPECIAL);
    let shuffled = body(Kind::Shuffled, 100_000);
    against_serde::<ByWriteKey>("100,000, keys shuffled", 11, &shuffled);
    against_serde::<ByWriteKey>("1 kB", 11, &body(Kind::Plain, 5));
}

/// The targets of the ratios against serde_json, sonic-rs and memchr.
struct Targets {
    serde_json: f64,
    sonic_rs: f64,
    memchr: f64,
}

/// For bodies as a dashboard or a script reads them every day.
const EVERYDAY: Targets = Targets { serde_json: 4.5, sonic_rs: 2.7, memchr: 0.6 };

/// For bodies that are larger, written with white space, or not grouped.
const SPECIAL: Targets = Targets { serde_json: 4.0, sonic_rs: 2.5, memchr: 1.0 };

/// Stands for the random seed of an application, which the senders of values don't know.
const UNKNOWN_SEED: u64 = 0x7461_6C6C_7966_6F6C;

/// The dimensions with these names.
pub(crate) fn kept(names: &[&str]) -> Vec<Dimension> {
    let parsed = names.iter().map(|name| Dimension::parse(name));
    parsed.map(|found| found.expect("a dimension")).collect()
}

/// Folds a whole body, chunk by chunk.
pub(crate) fn fold(body: &[u8], keep: &[&str]) -> CountTable {
    fold_seeded(body, keep, UNKNOWN_SEED)
}

/// The same as [`fold`], with hashes under this seed.
pub(crate) fn fold_seeded(body: &[u8], keep: &[&str], hash_seed: u64) -> CountTable {
    let options = AggregatorOptions::default().hash_seed(hash_seed).group_by(kept(keep));
    let mut aggregator = Aggregator::new(&DIMENSIONS, options).expect("good dimensions");
    for chunk in body.chunks(CHUNK) {
        aggregator.push(chunk).expect("a good body");
    }
    aggregator.finish().expect("a good body")
}

fn against_all<'a, K: Key<'a> + 'a>(work: &str, rounds: usize, body: &'a [u8], targets: Targets) {
    check(body, &peers::sonic_rs::<K>(body));
    let peers: [Peer<'a>; 3] = [
        serde_json::<K>(body, targets.serde_json),
        (
            "sonic-rs and HashMap",
            Box::new(|| drop(black_box(peers::sonic_rs::<K>(black_box(body))))),
            Target::AtLeast(targets.sonic_rs),
        ),
        (
            "memchr for quotes",
            Box::new(|| {
                black_box(peers::memchr(black_box(body)));
            }),
            Target::AtMost(targets.memchr),
        ),
    ];
    compare::<K>(work, rounds, body, &peers);
}

fn against_serde<'a, K: Key<'a> + 'a>(work: &str, rounds: usize, body: &'a [u8]) {
    compare::<K>(work, rounds, body, &[serde_json::<K>(body, 1.0)]);
}

fn serde_json<'a, K: Key<'a> + 'a>(body: &'a [u8], least: f64) -> Peer<'a> {
    check(body, &peers::serde_json::<K>(body));
    (
        "serde_json and HashMap",
        Box::new(|| drop(black_box(peers::serde_json::<K>(black_box(body))))),
        Target::AtLeast(least),
    )
}

fn compare<'a, K: Key<'a>>(work: &str, rounds: usize, body: &[u8], peers: &[Peer<'_>]) {
    let ours = || drop(black_box(fold(black_box(body), K::NAMES)));
    let mut contenders: Vec<&dyn Fn()> = vec![&ours];
    contenders.extend(peers.iter().map(|(_, run, _)| &**run));
    let times = take_turns(rounds, LEAST_BYTES.div_ceil(body.len()).max(1), &contenders);
    for (index, (name, _, target)) in (1..).zip(peers) {
        Measurement {
            language: "Rust".to_owned(),
            work: work.to_owned(),
            peer: (*name).to_owned(),
            medians: [times.median(0), times.median(index)],
            unit: Unit::Seconds,
            body_bytes: Some(body.len() as u64),
            ratio: match target {
                Target::AtLeast(_) => times.ratio(index, 0),
                Target::AtMost(_) => times.ratio(0, index),
            },
            target: Some(*target),
        }
        .tell();
    }
}

/// Panics unless a peer found the same groups with the same sums.
fn check<'a, K: Key<'a>>(body: &[u8], theirs: &Groups<K>) {
    let table = fold(body, K::NAMES);
    let ours: BTreeMap<Vec<&str>, [u64; 3]> = table
        .rows()
        .map(|row| {
            let counts = row.counts();
            let sums = [counts.success, counts.errors, counts.filtered];
            (row.values().collect(), sums)
        })
        .collect();
    let theirs: BTreeMap<Vec<&str>, [u64; 3]> =
        theirs.iter().map(|(key, sums)| (key.to_values(), *sums)).collect();
    assert_eq!(ours, theirs, "the same groups and sums");
}
