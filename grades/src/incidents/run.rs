//! `tallyfold-grade incidents [SEED …]`.

use std::fs;
use std::process::ExitCode;

use super::report::{details, lines, table};
use super::score::Score;
use super::traffic::Traffic;
use super::watch::watch;
use super::world::{Scale, World};

/// A quarter: four incidents a week in ten weeks, and three quiet ones.
const QUARTER: Scale = Scale {
    streams: 50,
    history: 8,
    judged: 13,
    quiet: 3,
    incidents_a_week: 4,
};

/// Seeds that nobody looked at while the standard rules were chosen. Seeds 1 to 8 are for that.
const SEEDS: [u64; 4] = [101, 102, 103, 104];

/// Grades the seeds that are named; `JSON=file` writes a line for each incident, `VERBOSE=1` says more.
pub(crate) fn run(arguments: &[String]) -> ExitCode {
    match grade(arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("incidents: {message}");
            ExitCode::FAILURE
        }
    }
}

fn grade(arguments: &[String]) -> Result<(), String> {
    let seeds = arguments.iter().map(|seed| {
        let seed = seed.parse();
        seed.map_err(|_| "want whole numbers as seeds".to_owned())
    });
    let mut seeds: Vec<u64> = seeds.collect::<Result<_, _>>()?;
    if seeds.is_empty() {
        seeds = SEEDS.to_vec();
    }
    let mut scores = Vec::new();
    let mut json = String::new();
    for seed in &seeds {
        let score = score(*seed, QUARTER).map_err(|error| error.to_string())?;
        json.push_str(&lines(&score));
        if std::env::var_os("VERBOSE").is_some() {
            print!("{}", details(&score));
        }
        scores.push(score);
    }
    println!("seeds {seeds:?}");
    print!("{}", table(&scores));
    match std::env::var_os("JSON").filter(|file| !file.is_empty()) {
        Some(file) => fs::write(file, json).map_err(|error| error.to_string()),
        None => Ok(()),
    }
}

/// Simulates a seed and lets the standard rules watch it.
pub(super) fn score(seed: u64, scale: Scale) -> tallyfold::Result<Score> {
    let traffic = Traffic::new(World::new(seed, scale));
    let alarms = watch(&traffic)?;
    Ok(Score::new(&traffic, alarms))
}
