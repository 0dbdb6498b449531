//! Measurements as lines of JSON, which every language writes, and the one judge of them.

use std::io::BufRead;

use serde::{Deserialize, Serialize};

/// One ratio and what it is to be.
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
    /// How large the body was, if that is what the work was on.
    pub(crate) body_bytes: Option<u64>,
    pub(crate) ratio: f64,
    /// What the ratio is to be; none where nobody asked for anything.
    pub(crate) target: Option<Target>,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Seconds,
    Bytes,
}

/// What the ratio is to be: times faster than the peer, or times the peer's cost.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Measurement {
    /// Hands it to whoever reads standard output.
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

/// Prints measurements as rows of a table as they come in, then how many targets were met. Gives
/// whether all were.
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
