//! Measures how the time grows. Ten times the entries may take at most eleven times as long. Ten times the groups or
//! distinct values may take at most fourteen times as long, whatever the values are.

use std::hint::black_box;

use crate::body::{DIMENSIONS, Kind, body, body_of_event_names, sparse_body};
use crate::hostile;
use crate::report::{Measurement, Target, Unit};
use crate::rounds::take_turns;
use crate::speed::{fold, fold_seeded};

const ROUNDS: usize = 41;

/// A number of hostile values, and ten times as many.
const HOSTILE: [usize; 2] = [2_000, 20_000];

/// How many times as long ten times the entries may take.
const GROWTH: f64 = 11.0;

/// The same for ten times the groups or distinct values, which no longer fit into the processor's cache.
const GROWTH_OF_GROUPS: f64 = 14.0;

pub(crate) fn measure() {
    let [ten_thousand, hundred_thousand, million] =
        [10_000, 100_000, 1_000_000].map(|entries| body(Kind::Plain, entries));
    let two = ["write_key", "integration"];
    let work = "1,000,000 entries, 1,200 groups";
    compare(work, &two, [&hundred_thousand, &million], GROWTH);
    let work = "100,000 entries, each a group";
    compare(work, &DIMENSIONS, [&ten_thousand, &hundred_thousand], GROWTH_OF_GROUPS);
    let work = "1,000,000 entries, each a group";
    compare(work, &DIMENSIONS, [&hundred_thousand, &million], GROWTH_OF_GROUPS);

    let [some, more] = HOSTILE.map(|count| body_of_event_names(&hostile::long_prefixes(count)));
    let work = "20,000 values with a common KiB";
    compare(work, &DIMENSIONS, [&some, &more], GROWTH_OF_GROUPS);

    let [some, more] = HOSTILE.map(|count| body_of_event_names(&hostile::colliding(count)));
    let work = "20,000 values made to collide";
    compare(work, &DIMENSIONS, [&some, &more], GROWTH_OF_GROUPS);
    let work = "20,000 values made to collide, seed known";
    let folding =
        |body| move || drop(black_box(fold_seeded(body, &DIMENSIONS, hostile::KNOWN_SEED)));
    tell(work, None, [&some, &more], folding);

    let [some, more] = [100_000, 1_000_000].map(sparse_body);
    let work = "1,000,000 of 11,760,000 combinations";
    let folding = |body| move || drop(black_box(fold(black_box(body), &DIMENSIONS)));
    tell(work, None, [&some, &more], folding);
}

fn compare(work: &str, keep: &[&str], bodies: [&[u8]; 2], most: f64) {
    tell(work, Some(Target::AtMost(most)), bodies, |body| {
        move || drop(black_box(fold(black_box(body), keep)))
    });
}

fn tell<'a, F: Fn()>(
    work: &str,
    target: Option<Target>,
    [some, more]: [&'a [u8]; 2],
    folding: impl Fn(&'a [u8]) -> F,
) {
    let times = take_turns(ROUNDS, 1, &[&folding(some), &folding(more)]);
    Measurement {
        language: "Rust".to_owned(),
        work: work.to_owned(),
        peer: "a tenth of it".to_owned(),
        medians: [times.median(1), times.median(0)],
        unit: Unit::Seconds,
        body_bytes: Some(more.len() as u64),
        ratio: times.ratio(1, 0),
        target,
    }
    .tell();
}
