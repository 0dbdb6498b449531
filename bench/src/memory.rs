//! Measures the memory that it takes to stream a body of 1 GB, which depends on the groups, not on the bytes.
//!
//! The peak is the kernel's (`VmHWM`) for a process of its own, which holds only the entries that it
//! repeats.

use std::io::Write;
use std::process::Command;

use tallyfold::{Aggregator, AggregatorOptions, Frame};

use crate::body::{DIMENSIONS, Kind, body};
use crate::report::{Measurement, Target, Unit};
use crate::speed::{CHUNK, fold, kept};

const BODY_BYTES: usize = 1_000_000_000;

/// How many bytes more than the idle process the fold may use: a fixed part, and a part for each group.
const ALLOWED: f64 = (8 << 20) as f64;
const ALLOWED_PER_GROUP: f64 = 512.0;

/// The dimensions to keep: for 6,000 groups, and for as many groups as there are different entries.
const KEPT: [&[&str]; 2] =
    [&["event_name", "integration"], &["event_name", "write_key", "integration"]];

/// Streams in processes of their own. Each repeats the entries of the body in the file.
pub(crate) fn measure(file: &str) {
    let program = std::env::current_exe().expect("a program");
    for keep in KEPT {
        let status = Command::new(&program).args(["stream", file]).args(keep).status();
        assert!(status.expect("a process").success(), "the body was folded");
    }
}

/// Streams one body of 1 GB, and prints how much memory that took.
pub(crate) fn stream(file: &str, keep: &[&str]) {
    let sample = std::fs::read(file).expect("a file");
    let opening = b"\"counts\":[";
    let start = memchr::memmem::find(&sample, opening).expect("an opening") + opening.len();
    let (head, rest) = sample.split_at(start);
    let (entries, tail) = rest.split_at(rest.len() - b"]}".len());
    let repeats = BODY_BYTES / (entries.len() + 1);

    drop(fold(&body(Kind::Plain, 1_000), keep));
    let idle = rest_peak();
    let options = AggregatorOptions::default().group_by(kept(keep));
    let mut aggregator = Aggregator::new(&DIMENSIONS, options).expect("good dimensions");
    let mut push = |bytes| aggregator.push(bytes).expect("a good body");
    push(head);
    for repeat in 0..repeats {
        if repeat > 0 {
            push(b",");
        }
        entries.chunks(CHUNK).for_each(&mut push);
    }
    push(tail);
    let table = aggregator.finish().expect("a good body");
    let used = status("VmHWM:") - idle;

    let reported = table.reported().expect("one whole body").success;
    assert_eq!(table.totals().success, reported * repeats as u64);
    let groups = table.len();
    let allowed = ALLOWED + ALLOWED_PER_GROUP * groups as f64;
    Measurement {
        language: "Rust".to_owned(),
        work: format!("1 GB to {},{:03} groups, peak memory", groups / 1_000, groups % 1_000),
        peer: "8 MiB + 512 B per group".to_owned(),
        medians: [used, allowed],
        unit: Unit::Bytes,
        body_bytes: None,
        ratio: used / allowed,
        target: Some(Target::AtMost(1.0)),
    }
    .tell();
}

/// Resets the kernel's peak of this process, and returns the memory that is resident now, in bytes.
pub(crate) fn rest_peak() -> f64 {
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .open("/proc/self/clear_refs")
        .expect("a peak that can be reset");
    file.write_all(b"5").expect("a peak that can be reset");
    status("VmRSS:")
}

/// A field of the kernel's status of this process, in bytes.
pub(crate) fn status(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("a Linux kernel");
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: f64 = kilobytes.and_then(|digits| digits.parse().ok()).expect("kB");
    kilobytes * 1024.0
}
