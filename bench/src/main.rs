//! Response bytes to groups: the fold, and what people would write instead, in one run.
//!
//! `tallyfold-bench` prints the ratios. `tallyfold-bench body KIND ENTRIES` writes a body to
//! standard output, for the benchmarks of the other languages.
#![allow(clippy::expect_used, reason = "a benchmark that can't run is to stop")]
#![allow(
    clippy::disallowed_methods,
    reason = "it is the host here, and reads the clock"
)]

mod body;
mod peers;

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use body::{Kind, body};
use tallyfold::{Aggregator, AggregatorOptions};

/// Times each contender so often, in turns: the machine's speed drifts.
const ROUNDS: usize = 11;

/// What the host hands in at once.
const CHUNK: usize = 64 * 1024;

const DIMENSIONS: [&str; 4] = ["event_name", "write_key", "integration", "reason"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [] => compare_all(),
        [command, kind, entries] if command == "body" => {
            let entries = entries.parse().expect("a number of entries");
            let body = body(Kind::named(kind), entries);
            std::io::stdout()
                .write_all(body.as_bytes())
                .expect("an open standard output");
        }
        _ => println!("usage: tallyfold-bench [body plain|pretty|shuffled ENTRIES]"),
    }
}

fn compare_all() {
    println!("body                    fold    x serde_json   x sonic-rs   x time of memchr");
    println!("                        GB/s    (target 6)     (target 3)   (target 4 at most)");
    compare("100,000 entries", &body(Kind::Plain, 100_000));
    compare("1,000 entries", &body(Kind::Plain, 1_000));
    compare("1,000,000 entries", &body(Kind::Plain, 1_000_000));
    compare("pretty-printed", &body(Kind::Pretty, 100_000));
    compare("shuffled keys", &body(Kind::Shuffled, 100_000));
}

fn compare(name: &str, body: &str) {
    let body = body.as_bytes();
    let groups = fold(body);
    assert_eq!(groups, peers::serde_json(body), "the same groups");
    assert_eq!(groups, peers::sonic_rs(body), "the same groups");
    let contenders: [fn(&[u8]) -> usize; 4] =
        [fold, peers::serde_json, peers::sonic_rs, peers::memchr];
    let [ours, serde_json, sonic_rs, memchr] = medians(contenders, body);
    println!(
        "{name:<20} {:>7.2} {:>12.1} {:>14.1} {:>14.1}",
        body.len() as f64 / ours / 1e9,
        serde_json / ours,
        sonic_rs / ours,
        ours / memchr,
    );
}

/// The median time of each contender in seconds.
fn medians<const N: usize>(contenders: [fn(&[u8]) -> usize; N], body: &[u8]) -> [f64; N] {
    let mut times = [const { Vec::new() }; N];
    for _ in 0..ROUNDS {
        for (contender, times) in contenders.iter().zip(&mut times) {
            let start = Instant::now();
            black_box(contender(black_box(body)));
            times.push(start.elapsed().as_secs_f64());
        }
    }
    times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[ROUNDS / 2]
    })
}

/// Groups by write key and integration, and gives how many groups there are.
fn fold(body: &[u8]) -> usize {
    let group_by = Some(vec!["write_key".to_owned(), "integration".to_owned()]);
    let options = AggregatorOptions {
        group_by,
        ..AggregatorOptions::default()
    };
    let mut aggregator = Aggregator::new(&DIMENSIONS, options).expect("good dimensions");
    for chunk in body.chunks(CHUNK) {
        aggregator.push(chunk).expect("a good body");
    }
    aggregator.finish().expect("a good body").len()
}
