//! Runs R's `surveillance::farringtonFlexible` on the simulated series, and caches its results by seed.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

/// The alarms of one run: by the threshold methods "nbPlugin" and "muan".
pub(crate) type Alarms = [Vec<bool>; 2];

/// A series as R reads it: its scenario, its run, its counts.
pub(crate) type Series = (usize, usize, Vec<u64>);

/// The runs in one file. One process of R takes some minutes for a file. An interrupted grade resumes with the files that
/// have no results.
const RUNS_OF_A_FILE: usize = 10;
const PROCESSES: usize = 2;

/// Whether R and its package are installed.
pub(crate) fn is_here() -> bool {
    let mut command = Command::new("Rscript");
    let test = "quit(status = if (requireNamespace('surveillance', quietly = TRUE)) 0 else 1)";
    let output = command.args(["-e", test]).output();
    output.is_ok_and(|output| output.status.success())
}

/// R's alarms by scenario and run. R does not run again if the folder already has results for the same series.
pub(crate) fn judge(
    folder: &Path,
    seed: u64,
    series: &[Series],
) -> Result<Vec<(usize, usize, Alarms)>, String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let files =
        series.iter().map(|(_, run, _)| run / RUNS_OF_A_FILE).max().map_or(0, |last| last + 1);
    let parts = (0..files).map(|part| Part::write(folder, seed, part, series));
    let parts = parts.collect::<Result<Vec<_>, _>>()?;
    let mut running: Vec<Child> = Vec::new();
    for part in parts.iter().filter(|part| !part.results.exists()) {
        if running.len() == PROCESSES {
            ended(running.remove(0))?;
        }
        running.push(part.start()?);
    }
    running.into_iter().try_for_each(ended)?;
    let results = parts.iter().map(|part| read(&part.results));
    Ok(results.collect::<Result<Vec<_>, _>>()?.concat())
}

/// The series of some runs, and where their results are.
struct Part {
    series: PathBuf,
    results: PathBuf,
}

impl Part {
    /// Writes the series of some runs. If the file contained other series, their results are removed.
    fn write(folder: &Path, seed: u64, part: usize, series: &[Series]) -> Result<Self, String> {
        let own = Self {
            series: folder.join(format!("series-{seed}-{part}.csv")),
            results: folder.join(format!("results-{seed}-{part}.csv")),
        };
        let mut text = String::new();
        for (scenario, run, counts) in
            series.iter().filter(|(_, run, _)| run / RUNS_OF_A_FILE == part)
        {
            let _ = write!(text, "{scenario},{run}");
            counts.iter().for_each(|count| {
                let _ = write!(text, ",{count}");
            });
            text.push('\n');
        }
        if fs::read_to_string(&own.series).is_ok_and(|old| old == text) {
            return Ok(own);
        }
        let _ = fs::remove_file(&own.results);
        fs::write(&own.series, text)
            .map_err(|error| format!("{}: {error}", own.series.display()))?;
        Ok(own)
    }

    fn start(&self) -> Result<Child, String> {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/r/farrington.R");
        let mut command = Command::new("nice");
        command.args(["Rscript", script]).args([&self.series, &self.results]);
        command.spawn().map_err(|error| format!("Rscript: {error}"))
    }
}

fn ended(mut child: Child) -> Result<(), String> {
    let status = child.wait().map_err(|error| format!("Rscript: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("Rscript: {status}")) }
}

/// Parses a number. A week that R can't judge (NA) has no alarm.
fn number(field: &str) -> Result<usize, std::num::ParseIntError> {
    if field == "NA" { Ok(0) } else { field.parse() }
}

/// Reads results: a line for each week, in the order of runs and weeks.
fn read(path: &Path) -> Result<Vec<(usize, usize, Alarms)>, String> {
    let text = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut runs: Vec<(usize, usize, Alarms)> = Vec::new();
    for line in text.lines().skip(1) {
        let fields = line.split(',').take(5).map(number).collect::<Result<Vec<usize>, _>>();
        let Ok([scenario, run, week, plugin, muan]) = fields.as_deref() else {
            return Err(format!("{}: {line:?} is no result", path.display()));
        };
        if *week == 0 {
            runs.push((*scenario, *run, Alarms::default()));
        }
        let Some((_, _, alarms)) = runs.last_mut() else {
            return Err(format!("{}: no first week", path.display()));
        };
        alarms[0].push(*plugin == 1);
        alarms[1].push(*muan == 1);
    }
    Ok(runs)
}
