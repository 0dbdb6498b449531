//! `tallyfold-grade incidents [SEED …]`: prints how well the standard rules find the incidents of simulated quarters.

use std::fs;
use std::process::ExitCode;
use std::thread::ScopedJoinHandle;

use tallyfold_health::Rules;

use super::report::{details, lines, table};
use super::score::Score;
use super::traffic::Traffic;
use super::watch::{checks, differences, replay};
use super::world::{Scale, World};

/// A quarter: four incidents a week in ten weeks, and three quiet ones.
const QUARTER: Scale = Scale {
    streams: 50,
    history: 8,
    judged: 13,
    quiet: 3,
    incidents_a_week: 4,
};

/// Seeds that were not used to choose the standard rules, which were chosen with seeds 1 to 8.
const SEEDS: [u64; 4] = [101, 102, 103, 104];

/// How the rules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// A check after each window, as a cron job does it.
    Checks,
    /// One replay of the quarter, which finds what checks would have found in a small part of the time.
    Replay,
}

/// Grades seeds, by default those that were not used to choose the rules. `JSON=file` writes a line for each incident.
/// `VERBOSE=1` shows each incident and each false alarm. `RULES=file` uses other rules. `CHECKS=1` runs a check after
/// each window, which takes much longer than a replay, and compares both. `WEEKS=n` judges n weeks.
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
    let seeds = arguments.iter().map(|seed| seed.parse());
    let mut seeds: Vec<u64> = seeds
        .collect::<Result<_, _>>()
        .map_err(|_| "want whole numbers as seeds".to_owned())?;
    if seeds.is_empty() {
        seeds = SEEDS.to_vec();
    }
    let rules = rules()?;
    let how = match given("CHECKS") {
        Some(_) => How::Checks,
        None => How::Replay,
    };
    let scale = scale()?;
    let scores = all(&seeds, scale, &rules, how).map_err(|error| error.to_string())?;
    if given("VERBOSE").is_some() {
        scores.iter().for_each(|score| print!("{}", details(score)));
    }
    println!("seeds {seeds:?}, {how:?}");
    print!("{}", table(&scores));
    let json: String = scores.iter().map(lines).collect();
    given("JSON").map_or(Ok(()), |file| {
        fs::write(file, json).map_err(|error| error.to_string())
    })
}

/// The scores of seeds, two at a time.
fn all(seeds: &[u64], scale: Scale, rules: &Rules, how: How) -> tallyfold::Result<Vec<Score>> {
    let mut scores = Vec::new();
    for pair in seeds.chunks(2) {
        let done: Vec<_> = std::thread::scope(|scope| {
            let start = |seed: &u64| {
                let seed = *seed;
                scope.spawn(move || score(seed, scale, rules, how))
            };
            let started: Vec<_> = pair.iter().map(start).collect();
            started.into_iter().map(ScopedJoinHandle::join).collect()
        });
        for score in done {
            scores.push(score.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
        }
    }
    Ok(scores)
}

/// The quarter, or fewer weeks of it. One week of four is quiet.
fn scale() -> Result<Scale, String> {
    let Some(weeks) = given("WEEKS") else {
        return Ok(QUARTER);
    };
    let judged = weeks.parse().ok().filter(|weeks| (1..=52).contains(weeks));
    let judged = judged.ok_or("WEEKS: want a number from 1 to 52")?;
    Ok(Scale {
        judged,
        quiet: judged / 4,
        ..QUARTER
    })
}

fn rules() -> Result<Rules, String> {
    let rules = match given("RULES") {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
            Rules::parse(&text)
        }
        None => Rules::standard(),
    };
    rules.map_err(|error| error.to_string())
}

fn given(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|text| !text.is_empty())
}

/// Simulates a seed, and applies rules to it.
pub(super) fn score(seed: u64, scale: Scale, rules: &Rules, how: How) -> tallyfold::Result<Score> {
    let traffic = Traffic::new(World::new(seed, scale));
    let alarms = match how {
        How::Checks => {
            let (alarms, each) = checks(&traffic, rules)?;
            println!("seed {seed}: a check took {each:.0} ms");
            print!("{}", differences(&alarms, &replay(&traffic, rules)?));
            alarms
        }
        How::Replay => replay(&traffic, rules)?,
    };
    Ok(Score::new(&traffic, alarms))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::report::{explained, precision, recall};

    /// Six incidents in two weeks, and a quiet one.
    const SMALL: Scale = Scale {
        streams: 8,
        history: 4,
        judged: 3,
        quiet: 1,
        incidents_a_week: 3,
    };

    #[test]
    fn the_standard_rules_find_the_incidents_of_a_small_simulation() {
        let rules = Rules::standard().unwrap();
        let scores = [score(1, SMALL, &rules, How::Replay).unwrap()];
        let shown = format!("{}{}", details(&scores[0]), table(&scores));
        assert_eq!(scores[0].outcomes.len(), 6);
        assert!(recall(&scores) >= 0.8, "{shown}");
        assert!(precision(&scores) >= 0.7, "{shown}");
        assert!(explained(&scores) >= 0.8, "{shown}");
        let json = lines(&scores[0]);
        let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(first["case"], "seed-1-01");
    }
}
