//! What levels say of streams, and what is found with them.
#![allow(clippy::unwrap_used, reason = "a test says so when it fails")]

use tallyfold_health::{
    Basis, Cusum, Drift, Level, Levels, Season, Stream, is_unremarkable, judge, level, ln_silence,
};

/// Ten windows a day.
const PER_DAY: usize = 10;
const WEEK: usize = 7 * PER_DAY;

/// SplitMix64, and Poisson counts by multiplication.
struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn poisson(&mut self, mean: f64) -> u64 {
        let (mut product, mut count) = (self.uniform(), 0);
        while product > libm::exp(-mean) {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}

/// Counts with a day in them, and a full hour with three times as much.
fn mean_of(window: usize) -> f64 {
    let slot = window % PER_DAY;
    let peak = if slot == 4 { 3.0 } else { 1.0 };
    peak * (60.0 + 10.0 * slot as f64)
}

fn counts(weeks: usize, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    (0..weeks * WEEK)
        .map(|window| random.poisson(mean_of(window)))
        .collect()
}

fn level_of(counts: &[u64], at: usize) -> Level {
    let known = vec![true; counts.len()];
    level(
        &Stream {
            counts,
            wholes: None,
            known: &known,
        },
        at,
        &Season::weekly(PER_DAY),
    )
    .unwrap()
}

#[test]
fn a_level_is_that_of_the_slot_and_not_of_its_neighbours() {
    let counts = counts(7, 1);
    for slot in [1, 3, 4, 5, 8] {
        let at = 6 * WEEK + 20 + slot;
        let level = level_of(&counts, at);
        assert_eq!((level.basis, level.used), (Basis::Season, 18));
        let error = (level.expected - mean_of(at)).abs() / mean_of(at);
        assert!(error < 0.12, "slot {slot}: {level:?}, not {}", mean_of(at));
        assert!(level.dispersion < 4.0, "slot {slot}: {level:?}");
    }
}

#[test]
fn past_incidents_do_not_teach() {
    let clean = counts(7, 2);
    let at = 6 * WEEK + 27;
    let before = level_of(&clean, at);
    for factor in [0, 10, 100] {
        let mut hurt = clean.clone();
        hurt[at - 2 * WEEK - 3..at - 2 * WEEK + 3]
            .iter_mut()
            .for_each(|count| *count *= factor);
        let after = level_of(&hurt, at);
        assert!(
            (after.expected / before.expected - 1.0).abs() < 0.06,
            "times {factor}: {before:?}, then {after:?}"
        );
        assert!(
            after.dispersion < 3.0 * before.dispersion,
            "times {factor}: {before:?}, then {after:?}"
        );
        assert!(
            judge(0, None, &after).low < -25.0,
            "an outage is seen in spite of times {factor}"
        );
    }
}

#[test]
fn unknown_windows_are_left_out() {
    let clean = counts(7, 3);
    let at = 6 * WEEK + 31;
    let (mut gaps, mut known) = (clean.clone(), vec![true; clean.len()]);
    for weeks in [1, 4] {
        gaps[at - weeks * WEEK] = 0;
        known[at - weeks * WEEK] = false;
    }
    let season = Season::weekly(PER_DAY);
    let with_gaps = level(
        &Stream {
            counts: &gaps,
            wholes: None,
            known: &known,
        },
        at,
        &season,
    )
    .unwrap();
    assert_eq!(with_gaps.used, 16);
    gaps[at - WEEK] = 999_999;
    assert_eq!(
        level(
            &Stream {
                counts: &gaps,
                wholes: None,
                known: &known
            },
            at,
            &season
        ),
        Some(with_gaps)
    );
}

#[test]
fn too_little_history_is_said_by_name() {
    let counts = counts(7, 4);
    let bases = [
        (3, None),
        (5, Some(Basis::Recent)),
        (5 * PER_DAY, Some(Basis::Days)),
        (2 * WEEK + 1, Some(Basis::FewSeasons)),
    ];
    let known = vec![true; counts.len()];
    for (at, basis) in bases
        .into_iter()
        .chain([(4 * WEEK + 1, Some(Basis::Season))])
    {
        let found = level(
            &Stream {
                counts: &counts,
                wholes: None,
                known: &known,
            },
            at,
            &Season::weekly(PER_DAY),
        );
        assert_eq!(found.map(|level| level.basis), basis, "at {at}");
    }
}

#[test]
fn growth_is_followed_and_noise_is_not() {
    let mut random = Random(5);
    let growing: Vec<u64> = (0..7 * WEEK)
        .map(|at| random.poisson(300.0 * libm::pow(1.1, (at / WEEK) as f64)))
        .collect();
    let at = 6 * WEEK + 12;
    let truth = 300.0 * libm::pow(1.1, 6.0);
    let level = level_of(&growing, at);
    assert!(
        (level.expected / truth - 1.0).abs() < 0.08,
        "{level:?}, not {truth}"
    );
    let flat: Vec<u64> = (0..7 * WEEK).map(|_| random.poisson(300.0)).collect();
    let errors = (6 * WEEK..7 * WEEK).map(|at| level_of(&flat, at).expected / 300.0 - 1.0);
    let mean_square = errors.map(|error| error * error).sum::<f64>() / WEEK as f64;
    assert!(
        mean_square < 0.0016,
        "without growth the level is off by {}",
        mean_square.sqrt()
    );
}

#[test]
fn a_share_is_learned_from_parts_and_wholes() {
    let mut random = Random(6);
    let wholes: Vec<u64> = (0..7 * WEEK)
        .map(|at| random.poisson(5.0 * mean_of(at)))
        .collect();
    let parts: Vec<u64> = wholes
        .iter()
        .map(|&whole| random.poisson(0.02 * whole as f64).min(whole))
        .collect();
    let known = vec![true; parts.len()];
    let at = 6 * WEEK + 4;
    let level = level(
        &Stream {
            counts: &parts,
            wholes: Some(&wholes),
            known: &known,
        },
        at,
        &Season::weekly(PER_DAY),
    )
    .unwrap();
    assert!((level.expected - 0.02).abs() < 0.006, "{level:?}");
    assert!(judge(wholes[at] / 10, Some(wholes[at]), &level).high < -12.0);
}

/// As many false alarms as stated, within a factor: 60 streams of a week and more.
#[test]
fn false_alarms_are_as_rare_as_their_probability() {
    let ln_p = libm::log(1e-3);
    let (mut alarms, mut judged) = (0, 0);
    for seed in 0..60 {
        let counts = counts(8, 100 + seed);
        let known = vec![true; counts.len()];
        let stream = Stream {
            counts: &counts,
            wholes: None,
            known: &known,
        };
        let from = 6 * WEEK;
        for (at, level) in
            (from..counts.len()).zip(Levels::new(&stream, &Season::weekly(PER_DAY), from))
        {
            let tails = judge(counts[at], None, &level.unwrap());
            judged += 1;
            alarms += usize::from(tails.low.min(tails.high) < ln_p);
        }
    }
    // Two sides, each 1 in 1000: 17 of 8400 are expected.
    assert_eq!(judged, 60 * 2 * WEEK);
    assert!((4..=40).contains(&alarms), "{alarms} of {judged}");
}

#[test]
fn a_fall_by_a_third_is_seen_in_one_window_of_a_thousand_events() {
    let level = Level {
        expected: 1_000.0,
        dispersion: 3.0,
        basis: Basis::Season,
        used: 18,
    };
    assert!(!is_unremarkable(660, None, &level) && judge(660, None, &level).low < libm::log(1e-8));
    assert!(is_unremarkable(950, None, &level));
}

#[test]
fn small_declines_add_up_and_false_ones_are_rare() {
    let drift = Drift {
        run_length: 1_000.0,
        ..Drift::default()
    };
    let level = Level {
        expected: 40.0,
        dispersion: 1.0,
        basis: Basis::Season,
        used: 18,
    };
    let run = |mean: f64, seed: u64| {
        let (mut random, mut cusum) = (Random(seed), Cusum::default());
        let alarms = (1..20_000).find(|_| {
            cusum = cusum.step(random.poisson(mean), None, &level, &drift);
            cusum.falling >= drift.limit()
        });
        alarms.unwrap_or(20_000)
    };
    let mean = |expected: f64| (0..40).map(|seed| run(expected, seed)).sum::<usize>() as f64 / 40.0;
    assert!(
        mean(32.0) < 12.0,
        "a decline by a fifth takes {} windows",
        mean(32.0)
    );
    assert!(
        mean(40.0) > 1_000.0,
        "without a decline an alarm comes after {} windows",
        mean(40.0)
    );
}

#[test]
fn silence_is_the_probability_of_no_event() {
    let level = |dispersion| Level {
        expected: 3.0,
        dispersion,
        basis: Basis::Season,
        used: 18,
    };
    assert_eq!(ln_silence(&level(1.0)), -3.0);
    assert_eq!(ln_silence(&level(4.0)), judge(0, None, &level(4.0)).low);
    assert!(
        ln_silence(&level(4.0)) > -3.0,
        "events that come together leave more windows empty"
    );
}
