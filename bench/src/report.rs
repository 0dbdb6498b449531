//! Measurements as lines of JSON, which the benchmarks of every language print, and the report that checks all of them.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

/// A ratio and its target.
#[derive(Serialize, Deserialize)]
pub(crate) struct Measurement {
    pub(crate) language: String,
    /// What was done.
    pub(crate) work: String,
    /// What it is compared with.
    pub(crate) peer: String,
    /// The medians: ours, then the peer's.
    pub(crate) medians: [f64; 2],
    pub(crate) unit: Unit,
    /// The size of the body, if the work was to fold or export one. The report shows bytes per second for it.
    pub(crate) body_bytes: Option<u64>,
    pub(crate) ratio: f64,
    /// The target of the ratio, if there is one.
    pub(crate) target: Option<Target>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

/// The target of a ratio: how many times as fast as the peer, or how many times the peer's cost.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Measurement {
    /// Prints the measurement to standard output.
    pub(crate) fn tell(&self) {
        let line = serde_json::to_string(self).expect("numbers and names");
        println!("{line}");
    }

    fn met(&self) -> Option<bool> {
        Some(match self.target? {
            Target::AtLeast(least) => self.ratio >= least,
            Target::AtMost(most) => self.ratio <= most,
        })
    }

    fn row(&self) -> String {
        let [ours, theirs] = self.medians.map(|median| self.unit.shown(median));
        let speed = self.body_bytes.map_or_else(String::new, |bytes| {
            format!(" ({:.2} GB/s)", bytes as f64 / self.medians[0] / 1e9)
        });
        let target = match self.target {
            Some(Target::AtLeast(least)) => format!("≥ {least}"),
            Some(Target::AtMost(most)) => format!("≤ {most}"),
            None => String::new(),
        };
        let verdict = match self.met() {
            Some(true) => "ok",
            Some(false) => "SHORT",
            None => "",
        };
        format!(
            "| {} | {} | {} | {ours}{speed} | {theirs} | {:.2} | {target} | {verdict} |",
            self.language, self.work, self.peer, self.ratio,
        )
    }
}

impl Unit {
    fn shown(self, value: f64) -> String {
        match self {
            Self::Seconds if value < 1e-4 => format!("{:.2} µs", value * 1e6),
            Self::Seconds if value < 1e-2 => format!("{:.2} ms", value * 1e3),
            Self::Seconds => format!("{:.0} ms", value * 1e3),
            Self::Bytes => format!("{:.1} MiB", value / f64::from(1 << 20)),
        }
    }
}

/// Prints measurements as rows of a table as they come in, then how many targets were met. Returns
/// whether there were targets and all were met.
pub(crate) fn judge(lines: impl BufRead) -> bool {
    println!("| language | work | against | ours | theirs | ratio | target | met |");
    println!("|---|---|---|---|---|---|---|---|");
    let [mut met, mut short] = [0, 0];
    for line in lines.lines() {
        let line = line.expect("text");
        let measurement: Measurement = serde_json::from_str(&line).expect("a measurement");
        println!("{}", measurement.row());
        match measurement.met() {
            Some(true) => met += 1,
            Some(false) => short += 1,
            None => {}
        }
    }
    println!("\n{met} met, {short} short");
    short == 0 && met > 0
}
