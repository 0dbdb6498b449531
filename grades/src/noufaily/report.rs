//! Simulates series, scans them, runs R on them, and formats a table.

use crate::arguments::Arguments;
use crate::noufaily::farrington::{self, Alarms, Series};
use crate::noufaily::random::Random;
use crate::noufaily::restated;
use crate::noufaily::score::Score;
use crate::noufaily::simulate::{FIRST, GRADED, Run, Scenario, scenarios};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use tallyfold_health::{Direction, ScanOptions, Stream, scan};

/// The year of the paper. The options of the scan were not chosen on the series of this seed.
const SEED: u64 = 2013;
const RUNS: usize = 100;

/// The table of all scenarios. `--seed` and `--runs` select other series. With `--restated 1`, the Rust version of R's
/// function replaces R.
pub(crate) fn table(arguments: &Arguments) -> Result<String, String> {
    let number = |name: &str, usual: u64| match arguments.value(name) {
        None => Ok(usual),
        Some(text) => text.parse().map_err(|_| format!("--{name} {text}: want a number")),
    };
    let seed = number("seed", SEED)?;
    let runs = number("runs", RUNS as u64)? as usize;
    let all = scenarios();
    let drawn = draw(&all, seed, runs);
    let is_restated = arguments.value("restated").is_some();
    let theirs = if is_restated {
        Some(restated_alarms(&drawn))
    } else if farrington::is_here() {
        Some(asked(seed, &drawn)?)
    } else {
        None
    };
    let mut text = settings(seed, runs, theirs.is_some());
    if is_restated {
        text.push_str("R's nbPlugin is restated in Rust here (a test holds it to R's alarms); muan is not, and has no alarms.\n");
    }
    text.push_str(EXPLANATION);
    text.push_str(&rows(&all, &drawn, theirs.as_ref()));
    Ok(text)
}

const EXPLANATION: &str = "FPR: share of weeks without outbreak that alarm. POD: share of outbreaks with an alarm in a week with cases of it.\n\n\
    row trend season |   scan          | nbPlugin        | muan            | higher POD at no higher FPR than nbPlugin\n\
    \u{20}                |   FPR     POD   |   FPR     POD   |   FPR     POD   |\n";

/// The runs of all scenarios, by scenario and run.
type Drawn = BTreeMap<(usize, usize), Run>;

fn draw(all: &[Scenario], seed: u64, runs: usize) -> Drawn {
    let keys = (0..all.len()).flat_map(|scenario| (0..runs).map(move |run| (scenario, run)));
    let draw = |key: (usize, usize)| {
        let mut random = Random::new(&[seed, key.0 as u64, key.1 as u64]);
        (key, all[key.0].draw(&mut random))
    };
    keys.map(draw).collect()
}

fn asked(seed: u64, drawn: &Drawn) -> Result<BTreeMap<(usize, usize), Alarms>, String> {
    let series: Vec<Series> =
        drawn.iter().map(|(key, run)| (key.0, key.1, run.counts.clone())).collect();
    let results = farrington::judge(Path::new(".cache/farrington"), seed, &series)?;
    Ok(results.into_iter().map(|(scenario, run, alarms)| ((scenario, run), alarms)).collect())
}

fn restated_alarms(drawn: &Drawn) -> BTreeMap<(usize, usize), Alarms> {
    let alarms = |run: &Run| {
        let plugin = restated::alarms(&run.counts);
        let none = vec![false; plugin.len()];
        [plugin, none]
    };
    drawn.iter().map(|(key, run)| (*key, alarms(run))).collect()
}

/// The alarms of the graded weeks: more cases than expected.
fn alarms(run: &Run) -> Vec<bool> {
    let known = vec![true; run.counts.len()];
    let stream = Stream { counts: &run.counts, wholes: None, known: &known };
    let judged = scan(&stream, GRADED - FIRST, &ScanOptions::weeks());
    let is_alarm =
        |excess: &tallyfold_health::Excess| excess.alarm && excess.direction == Direction::High;
    judged.iter().map(|excess| excess.as_ref().is_some_and(is_alarm)).collect()
}

fn settings(seed: u64, runs: usize, has_r: bool) -> String {
    let mut text = format!(
        "Scenarios of Noufaily et al. 2013: seed {seed}, {runs} runs each, weeks 576 to 624 graded, variance phi times mean\n\
         scan: {:?}\n",
        ScanOptions::weeks()
    );
    text.push_str(if has_r {
        "R: surveillance::farringtonFlexible, b=5, w=3, reweight with 2.58, noPeriods=10, pastWeeksNotIncluded=26, trend always\n\
         (pThresholdTrend=1), alpha=0.01, limit54=c(5,4), thresholdMethod nbPlugin, beside it muan\n"
    } else {
        "R or its package surveillance is not installed: the scan alone. Debian has them as r-base-core and r-cran-surveillance.\n"
    });
    text
}

/// Scores of the scan and of R's two methods.
type Scores = [Score; 3];

fn score(
    scenario: usize,
    drawn: &Drawn,
    theirs: Option<&BTreeMap<(usize, usize), Alarms>>,
) -> Scores {
    let mut scores = Scores::default();
    for (key, run) in drawn.range((scenario, 0)..(scenario + 1, 0)) {
        scores[0].add(run, &alarms(run));
        if let Some([plugin, muan]) = theirs.and_then(|theirs| theirs.get(key)) {
            scores[1].add(run, plugin);
            scores[2].add(run, muan);
        }
    }
    scores
}

fn rows(
    all: &[Scenario],
    drawn: &Drawn,
    theirs: Option<&BTreeMap<(usize, usize), Alarms>>,
) -> String {
    let mut text = String::new();
    let mut total = Scores::default();
    let mut better = 0;
    for (index, scenario) in all.iter().enumerate() {
        let scores = score(index, drawn, theirs);
        let is_better = theirs.is_some() && scores[0].beats(&scores[1]);
        better += u32::from(is_better);
        let name =
            format!("{:3} {:5} {:6}", scenario.row, yes(scenario.trend), yes(scenario.season));
        line(&mut text, &name, &scores, yes(is_better));
        for (sum, score) in total.iter_mut().zip(&scores) {
            sum.merge(score);
        }
    }
    line(&mut text, "all             ", &total, "");
    if theirs.is_some() {
        let _ = writeln!(text, "\nhigher POD at no higher FPR: {better} of {}", all.len());
    }
    text
}

fn yes(is_so: bool) -> &'static str {
    if is_so { "yes" } else { "no" }
}

fn line(text: &mut String, name: &str, scores: &Scores, last: &str) {
    let cells =
        scores.map(|score| format!("{:.4}  {:.3}", score.false_positives(), score.detection()));
    let _ = writeln!(text, "{name} | {:15} | {:15} | {:15} | {last}", cells[0], cells[1], cells[2]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A part of the evaluation: four scenarios, with ten runs of another seed. `r/bounds.csv` contains R's alarms for
    /// these runs.
    #[test]
    fn a_part_of_the_scenarios_beats_the_alarms_of_r() {
        let bounds = include_str!("../../r/bounds.csv");
        let all = scenarios();
        let mut total = [Score::default(); 2];
        let mut lines = 0;
        for fields in bounds.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>()) {
            let [scenario, run] = [0, 1].map(|at: usize| fields[at].parse::<usize>().unwrap());
            let weeks = fields[2].split(' ').filter(|week| !week.is_empty());
            let weeks = weeks.map(|week| week.parse().unwrap()).collect::<Vec<usize>>();
            let theirs = (0..49).map(|week| weeks.contains(&week)).collect::<Vec<_>>();
            let mut random = Random::new(&[1001, scenario as u64, run as u64]);
            let run = all[scenario].draw(&mut random);
            assert_eq!(
                run.counts.iter().sum::<u64>().to_string(),
                fields[3],
                "another series than R had"
            );
            assert_eq!(restated::alarms(&run.counts), theirs, "the restatement is not R");
            total[0].add(&run, &alarms(&run));
            total[1].add(&run, &theirs);
            lines += 1;
        }
        assert_eq!(lines, 40);
        let [ours, theirs] = total;
        assert!(ours.beats(&theirs), "{ours:?} {theirs:?}");
        assert!(ours.detection() >= 0.5 && ours.false_positives() <= 0.012, "{ours:?}");
    }
}
