//! `tallyfold-grade incidents [SEED …]`: prints how well the standard rules, and a simple peer, find the incidents of simulated quarters.

use std::fs;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use tallyfold_health::Rules;

use super::report::{details, lines, tables};
use super::score::Score;
use super::traffic::Traffic;
use super::watch::{checks, differences, replay};
use super::world::{Scale, Setting, World};

/// Six weeks from which the rules learn what is usual, and a quarter with four incidents of each kind.
const QUARTER: Scale = Scale { history: 6, judged: 13, incidents: 40 };

/// Seeds that are used to choose rules and constants.
const TUNING: [u64; 4] = [1, 2, 3, 4];
/// Seeds that are only for grading.
const GRADING: [u64; 4] = [7001, 7002, 7003, 7004];

/// How the rules are run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// A check after each window, as a cron job does it.
    Checks,
    /// One replay of the quarter. It finds what checks would have found, in a fraction of the time.
    Replay,
}

/// Grades seeds. By default, these are the seeds for grading, and with `TUNE=1`, the seeds for tuning. `SETTING=full` or
/// `SETTING=calm` grades only one setting. `JSON=file` writes a line for each incident to a file. `VERBOSE=1` prints each
/// incident and each false message. `RULES=file` uses other rules. `CHECKS=1` runs a check after each window and compares
/// the checks with a replay, which takes much longer than a replay alone. `WEEKS=n` judges n weeks.
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
    let mut seeds: Vec<u64> =
        seeds.collect::<Result<_, _>>().map_err(|_| "want whole numbers as seeds".to_owned())?;
    if seeds.is_empty() {
        seeds = match given("TUNE") {
            Some(_) => TUNING.to_vec(),
            None => GRADING.to_vec(),
        };
    }
    let rules = rules()?;
    let how = match given("CHECKS") {
        Some(_) => How::Checks,
        None => How::Replay,
    };
    let scale = scale()?;
    let mut json = String::new();
    for setting in settings()? {
        let began = Instant::now();
        let results =
            all(&seeds, setting, scale, &rules, how).map_err(|error| error.to_string())?;
        let mut scores = [Vec::new(), Vec::new()];
        for result in results {
            if given("VERBOSE").is_some() {
                print!("{}", result.details);
            }
            for (scores, score) in scores.iter_mut().zip(result.scores) {
                scores.push(score);
            }
        }
        let spent = began.elapsed().as_secs_f64();
        println!("{}: seeds {seeds:?}, {how:?}, {spent:.0} s\n", setting.name());
        println!("{}", tables([&scores[0], &scores[1]]));
        json.extend(scores[0].iter().map(lines));
    }
    given("JSON").map_or(Ok(()), |file| fs::write(file, json).map_err(|error| error.to_string()))
}

/// The results of all seeds, in their order. Each thread grades one seed after the other.
fn all(
    seeds: &[u64],
    setting: Setting,
    scale: Scale,
    rules: &Rules,
    how: How,
) -> tallyfold::Result<Vec<Graded>> {
    let next = Mutex::new(seeds.iter().enumerate());
    let work = || {
        let mut done = Vec::new();
        loop {
            let seed = next.lock().ok().and_then(|mut next| next.next());
            match seed {
                Some((place, seed)) => {
                    done.push((place, score(*seed, setting, scale, rules, how)?));
                }
                None => return tallyfold::Result::Ok(done),
            }
        }
    };
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let done: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = (0..processors.min(seeds.len())).map(|_| scope.spawn(work)).collect();
        started.into_iter().map(|thread| thread.join()).collect()
    });
    let mut results = Vec::new();
    for of_thread in done {
        results.extend(of_thread.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?);
    }
    results.sort_by_key(|(place, _)| *place);
    Ok(results.into_iter().map(|(_, graded)| graded).collect())
}

fn settings() -> Result<Vec<Setting>, String> {
    let Some(name) = given("SETTING") else {
        return Ok(Setting::ALL.to_vec());
    };
    let setting = Setting::ALL.into_iter().find(|one| one.name() == name);
    setting.map(|one| vec![one]).ok_or("SETTING: want full or calm".to_owned())
}

/// The quarter or, with `WEEKS`, another number of weeks with three incidents a week.
fn scale() -> Result<Scale, String> {
    let Some(weeks) = given("WEEKS") else {
        return Ok(QUARTER);
    };
    let judged = weeks.parse().ok().filter(|weeks| (1..=52).contains(weeks));
    let judged: usize = judged.ok_or("WEEKS: want a number from 1 to 52")?;
    Ok(Scale { judged, incidents: 3 * judged, ..QUARTER })
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

/// The scores of the rules and of the peer.
pub(super) struct Graded {
    pub(super) scores: [Score; 2],
    pub(super) details: String,
}

/// Simulates a seed, and applies the rules and the peer to it.
pub(super) fn score(
    seed: u64,
    setting: Setting,
    scale: Scale,
    rules: &Rules,
    how: How,
) -> tallyfold::Result<Graded> {
    let traffic = Traffic::new(World::new(seed, setting, scale));
    let [mut ours, peers] = replay(&traffic, rules)?;
    if how == How::Checks {
        let (checked, each) = checks(&traffic, rules)?;
        println!("seed {seed}: a check took {each:.0} ms");
        print!("{}", differences(&checked, &ours));
        ours = checked;
    }
    let scores = [ours, peers].map(|detected| Score::new(&traffic, detected));
    Ok(Graded { details: details(&traffic.world, &scores[0]), scores })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::incidents::report::figures;
    use crate::incidents::score::About;

    const SMALL: Scale = Scale { history: 4, judged: 2, incidents: 10 };

    #[test]
    fn the_standard_rules_find_incidents_of_a_small_simulation() {
        let rules = Rules::standard().unwrap();
        let graded = score(1, Setting::Calm, SMALL, &rules, How::Replay).unwrap();
        let [ours, peers] = graded.scores;
        let shown = tables([std::slice::from_ref(&ours), &[peers]]);
        assert_eq!(ours.outcomes.len(), 10);
        let json = lines(&ours);
        let first: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
        assert_eq!(first["case"], "calm-1-01");
        let right = ours.messages.iter().filter(|one| one.about == About::Incident);
        assert!(20 * right.count() >= ours.messages.len(), "{}{shown}", graded.details);
        assert!(figures(&[ours]).found >= 5, "{}{shown}", graded.details);
    }
}
