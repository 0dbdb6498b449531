//! How long rules take for 2,880 windows of 1,200 groups, and how much memory beside the table:
//! `cargo run --release -p tallyfold-health --example judge_many`.
#![allow(clippy::print_stdout, reason = "a program")]

use tallyfold::{Aggregator, AggregatorOptions, CountTable, Frame, Result, Timestamp, Window};
use tallyfold_health::{Observed, Rules};

const WINDOWS: i64 = 2_880;
const GROUPS: u64 = 1_200;
const STEP_MS: i64 = 900_000;
const START_MS: i64 = 1_767_225_600_000;

const RULES: [(&str, &str); 6] = [
    ("rate", "kind = 'rate'\nby = ['integration', 'write_key']"),
    (
        "volume",
        "kind = 'volume'\nby = ['integration', 'write_key']",
    ),
    (
        "slow volume",
        "kind = 'volume'\nslow = '1d'\nby = ['integration', 'write_key']",
    ),
    (
        "silent",
        "kind = 'silent'\nby = ['integration', 'write_key']",
    ),
    ("coarser rate", "kind = 'rate'\nby = ['integration']"),
    (
        "threshold",
        "kind = 'threshold'\nabove = '5%'\nby = ['integration', 'write_key']",
    ),
];

fn main() -> Result<()> {
    let table = table()?;
    println!(
        "{} groups, {} windows, {}",
        table.len(),
        table.windows().len(),
        memory()
    );
    let instant = |slot: i64| Timestamp::from_unix_ms(START_MS + slot * STEP_MS);
    let (Some(start), Some(end)) = (instant(0), instant(WINDOWS)) else {
        return Ok(());
    };
    let range = Window::new(start, end)?;
    let observed = Observed {
        delivery: Some(&table),
        ingestion: None,
    };
    for (name, rule) in RULES {
        let rules = Rules::parse(&format!("[[rule]]\nname = '{name}'\n{rule}"))?;
        let started = cpu();
        let replay = rules.replay(&observed, range)?;
        println!(
            "{name}: {:.2} s, {} judged, {} findings, {}",
            cpu() - started,
            replay.judged,
            replay.findings.len(),
            memory()
        );
    }
    Ok(())
}

fn table() -> Result<CountTable> {
    let mut random = 42_u64;
    let mut next = move |below: u64| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random % below
    };
    let mut tables = Vec::new();
    for slot in 0..WINDOWS {
        let instant = |slot: i64| Timestamp::from_unix_ms(START_MS + slot * STEP_MS);
        let (Some(start), Some(end)) = (instant(slot), instant(slot + 1)) else {
            continue;
        };
        // A day's rise and fall.
        let of_day = 100 + 3 * (48 - (slot % 96 - 48).unsigned_abs());
        let rows = (0..GROUPS).map(|group| {
            let mean = of_day * (1 + group % 7);
            let success = mean + next(mean / 4);
            let errors = next(mean / 20);
            format!(
                r#"{{"success":"{success}","errors":"{errors}","filtered":"0","dimensions":{{"integration":"integration-{:02}","write_key":"key-{:03}"}}}}"#,
                group % 30,
                group / 30
            )
        });
        let rows: Vec<String> = rows.collect();
        let body = format!(
            r#"{{"start":"{start}","end":"{end}","totalDelivered":"0","totalErrors":"0","totalFiltered":"0","counts":[{}]}}"#,
            rows.join(",")
        );
        let mut aggregator =
            Aggregator::new(&["integration", "write_key"], AggregatorOptions::default())?;
        aggregator.push(body.as_bytes())?;
        tables.push(aggregator.finish()?);
    }
    CountTable::merge_all(&tables)
}

/// Seconds of the processor that this program has used, as Linux tells it in hundredths.
#[allow(clippy::disallowed_methods, reason = "it measures")]
fn cpu() -> f64 {
    let status = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = status
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace();
    let ticks: f64 = fields
        .skip(11)
        .take(2)
        .filter_map(|field| field.parse::<f64>().ok())
        .sum();
    ticks / 100.0
}

/// The memory now and the most so far, as Linux tells it.
fn memory() -> String {
    #[allow(clippy::disallowed_methods, reason = "it measures")]
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status
        .lines()
        .filter(|line| line.starts_with("VmHWM") || line.starts_with("VmRSS"));
    lines
        .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join(", ")
}
