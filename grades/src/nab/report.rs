//! Scans the series of a folder, and formats a table.

use crate::arguments::Arguments;
use crate::nab::score::{Alarm, Detector, Score, alarms, score};
use crate::nab::series::Hours;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Labelled windows by series: their first and last time.
type Labels = BTreeMap<String, Vec<(String, String)>>;

/// The table of all series in the folder's `labels.json`. With `--json FILE`, it also writes a line of JSON for each series.
pub(crate) fn table(arguments: &Arguments) -> Result<String, String> {
    let folder = arguments.path("data", "../shared/data/nab");
    let path = folder.join("labels.json");
    if arguments.value("data").is_none() && !path.exists() {
        return Ok(format!(
            "no {}: no labelled series. DATA=folder takes others.\n",
            path.display()
        ));
    }
    let text =
        std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let labels: Labels =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut table = head();
    let mut lines = String::new();
    for detector in Detector::ALL {
        let mut total = Score::default();
        for (name, windows) in &labels {
            let hours = Hours::read(&folder.join(name))?;
            let found = alarms(&hours, detector)?;
            let score = score(&hours, &found, windows);
            total.merge(&score);
            if detector == Detector::Rule {
                row(&mut table, name, &score);
                let alarm =
                    |alarm: &Alarm| json!({"time": hours.times[alarm.at], "score": alarm.score});
                let alarms: Vec<Value> = found.iter().map(alarm).collect();
                let _ = writeln!(lines, "{}", json!({"series": name, "alarms": alarms}));
            }
        }
        row(&mut table, &format!("all: {}", detector.name()), &total);
    }
    if let Some(file) = arguments.value("json") {
        std::fs::write(file, lines).map_err(|error| format!("{file}: {error}"))?;
    }
    Ok(table)
}

fn head() -> String {
    format!(
        "Labelled series, in hours. None of their first 15% counts. An alarm is right within a labelled window. Delay: hours from the\n\
         start of a window to its first alarm. False: alarms outside of windows, a week. Score: the benchmark's standard score.\n\n\
         {:26} alarms right windows hit  precision recall delay false score\n",
        "series"
    )
}

fn row(table: &mut String, name: &str, score: &Score) {
    let [precision, recall, delay, wrong, points] = score.figures();
    let Score { alarms, right, windows, hit, .. } = score;
    let _ = writeln!(
        table,
        "{name:26} {alarms:6} {right:5} {windows:7} {hit:3}  {precision:9.2} {recall:6.2} {delay:5.1} {wrong:5.2} {points:5.1}"
    );
}
