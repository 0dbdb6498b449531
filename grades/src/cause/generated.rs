//! Generated incidents: traffic with attributes whose rates drift, and no cause, one cause or two causes.

use tallyfold_health::{Attribute, Tally};

use super::cases::{Case, Values};
use crate::risk::random::Random;

/// The attributes, with how many values each has.
const ATTRIBUTES: [(&str, usize); 4] =
    [("integration", 7), ("event_name", 9), ("write_key", 4), ("region", 3)];
/// Windows before the incident.
const BEFORE: usize = 6;
/// How much the rate of a leaf drifts from window to window.
const DRIFT: f64 = 0.15;
/// How much the rate of a value drifts from window to window, if it does.
const VALUE_DRIFT: f64 = 0.05;
/// The smallest and the largest share of all events that a cause may have.
const SIZE: [f64; 2] = [0.004, 0.5];

/// A leaf: its values, its usual volume and rate, and the share of its attempts that fail because of the incident.
struct Drawn {
    values: [usize; 4],
    volume: f64,
    rate: f64,
    fails: f64,
}

/// Generates the first cases of a seed. Of ten cases, six have one cause, two have two causes, and two affect everything.
pub(crate) fn cases(seed: u64, count: u64) -> Result<Vec<Case>, String> {
    (0..count).map(|number| case(seed, number)).collect()
}

/// How counts vary where nothing has changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Quiet {
    /// Like independent events.
    Counts,
    /// The rate of each leaf also drifts.
    Leaves,
    /// The rate of each value of an attribute also drifts, for all leaves that have it.
    Values,
    /// Like independent events, and each event of the part has a reason.
    Reasons,
}

/// Cases without an incident, whose truth is that nothing changed.
pub(crate) fn quiet(seed: u64, count: u64, quiet: Quiet) -> Result<Vec<Case>, String> {
    let case = |number| {
        let mut random = Random::new(seed, number);
        let leaves = traffic(&mut random);
        let mut minutes: Vec<Vec<Tally>> = Vec::new();
        for _ in 0..=BEFORE {
            minutes.push(quiet_window(&leaves, quiet, &mut random));
        }
        let mut case = Case {
            name: format!("quiet-{number:03}"),
            attributes: columns(&leaves)?,
            minutes,
            truth: Vec::new(),
        };
        if matches!(quiet, Quiet::Reasons) {
            give_reasons(&mut case, &leaves, &mut random)?;
        }
        Ok(case)
    };
    (0..count).map(case).collect()
}

fn quiet_window(leaves: &[Drawn], quiet: Quiet, random: &mut Random) -> Vec<Tally> {
    let drifts = ATTRIBUTES.map(|(_, count)| -> Vec<f64> {
        (0..count).map(|_| random.normal(0.0, VALUE_DRIFT)).collect()
    });
    let tally = |leaf: &Drawn| {
        let drift = match quiet {
            Quiet::Counts | Quiet::Reasons => 0.0,
            Quiet::Leaves => random.normal(0.0, DRIFT),
            Quiet::Values => (0..4).map(|at| drifts[at][leaf.values[at]]).sum(),
        };
        let whole = poisson(leaf.volume, random);
        Tally {
            part: poisson(whole as f64 * leaf.rate * libm::exp(drift), random).min(whole),
            whole,
        }
    };
    leaves.iter().map(tally).collect()
}

/// Splits the part of each leaf among three reasons; the other events have none.
fn give_reasons(case: &mut Case, leaves: &[Drawn], random: &mut Random) -> Result<(), String> {
    for minute in &mut case.minutes {
        let mut split = Vec::with_capacity(leaves.len() * 4);
        for tally in minute.iter() {
            let mut reasons = [0; 3];
            for _ in 0..tally.part {
                reasons[random.between(0, 2)] += 1;
            }
            let none = tally.whole - tally.part;
            split.push(Tally { part: 0, whole: none });
            split.extend(reasons.map(|part| Tally { part, whole: part }));
        }
        *minute = split;
    }
    let four = || leaves.iter().flat_map(|leaf| [leaf; 4]);
    let column = |(place, (name, _)): (usize, (&str, usize))| {
        let texts: Vec<String> = four().map(|leaf| value(leaf.values[place])).collect();
        Attribute::of_texts(name, &texts).map_err(|error| error.to_string())
    };
    let mut attributes =
        ATTRIBUTES.into_iter().enumerate().map(column).collect::<Result<Vec<_>, _>>()?;
    let reasons = ["", "blocked", "consent", "quota"];
    let texts: Vec<&str> = leaves.iter().flat_map(|_| reasons).collect();
    let reason = Attribute::of_texts("reason", &texts).map_err(|error| error.to_string())?;
    attributes.push(reason.of_part());
    case.attributes = attributes;
    Ok(())
}

fn case(seed: u64, number: u64) -> Result<Case, String> {
    let mut random = Random::new(seed, number);
    let mut leaves = traffic(&mut random);
    let causes: Vec<[Option<usize>; 4]> = match number % 10 {
        0..6 => vec![cause(&leaves, &mut random)],
        6..8 => vec![cause(&leaves, &mut random), cause(&leaves, &mut random)],
        _ => Vec::new(),
    };
    let mut failed = None;
    for cause in &causes {
        // Two causes of one incident have similar sizes, because a cause that is small compared with the other is not
        // named.
        let own = volume(&leaves, cause);
        let events = *failed.get_or_insert(own * random.uniform(0.05, 0.5));
        let effect = (events * random.uniform(0.4, 1.6) / own).min(0.6);
        for leaf in leaves.iter_mut().filter(|leaf| is_in(leaf, cause)) {
            // The effect differs from leaf to leaf.
            leaf.fails = (effect * random.uniform(0.3, 1.7)).min(1.0);
        }
    }
    let everything = if causes.is_empty() { random.uniform(0.02, 0.3) } else { 0.0 };
    let level = random.uniform(0.9, 1.2);
    let mut minutes: Vec<Vec<Tally>> = Vec::new();
    for _ in 0..BEFORE {
        minutes.push(leaves.iter().map(|leaf| leaf.tally(1.0, 0.0, &mut random)).collect());
    }
    let now = leaves.iter().map(|leaf| leaf.tally(level, leaf.fails.max(everything), &mut random));
    minutes.push(now.collect());
    Ok(Case {
        name: format!("generated-{number:03}"),
        attributes: columns(&leaves)?,
        minutes,
        truth: causes.iter().map(values).collect(),
    })
}

/// Leaves with volumes between a few and some thousand events. A third of all combinations does not occur.
fn traffic(random: &mut Random) -> Vec<Drawn> {
    let effects = ATTRIBUTES.map(|(_, count)| -> Vec<[f64; 2]> {
        (0..count).map(|_| [random.normal(0.0, 0.9), random.normal(0.0, 0.4)]).collect()
    });
    let total: usize = ATTRIBUTES.iter().map(|(_, count)| count).product();
    let mut leaves = Vec::new();
    for place in 0..total {
        let mut rest = place;
        let values = ATTRIBUTES.map(|(_, count)| {
            let value = rest % count;
            rest /= count;
            value
        });
        let of = |which: usize| -> f64 { (0..4).map(|at| effects[at][values[at]][which]).sum() };
        let (volume, rate) = (of(0), of(1));
        if random.unit() < 0.67 {
            leaves.push(Drawn {
                values,
                volume: libm::exp(3.5 + volume + random.normal(0.0, 0.7)),
                rate: (0.015 * libm::exp(rate)).min(0.3),
                fails: 0.0,
            });
        }
    }
    leaves
}

/// Draws one to three values that a leaf has together, and that have neither very few events nor most of them.
fn cause(leaves: &[Drawn], random: &mut Random) -> [Option<usize>; 4] {
    let all: f64 = leaves.iter().map(|leaf| leaf.volume).sum();
    for _ in 0..1000 {
        let of = &leaves[random.between(0, leaves.len() - 1)];
        let named = match random.unit() {
            unit if unit < 0.5 => 1,
            unit if unit < 0.85 => 2,
            _ => 3,
        };
        let mut cause = [None; 4];
        for place in random.sample(4, named) {
            cause[place] = Some(of.values[place]);
        }
        if (SIZE[0] * all..SIZE[1] * all).contains(&volume(leaves, &cause)) {
            return cause;
        }
    }
    [Some(0), None, None, None]
}

/// The usual number of events of a combination.
fn volume(leaves: &[Drawn], cause: &[Option<usize>; 4]) -> f64 {
    let own = leaves.iter().filter(|leaf| is_in(leaf, cause));
    own.map(|leaf| leaf.volume).sum()
}

fn is_in(leaf: &Drawn, cause: &[Option<usize>; 4]) -> bool {
    cause.iter().zip(leaf.values).all(|(wanted, value)| wanted.is_none_or(|wanted| wanted == value))
}

impl Drawn {
    /// The counts of one window.
    fn tally(&self, level: f64, fails: f64, random: &mut Random) -> Tally {
        let whole = poisson(self.volume, random);
        let rate = self.rate * level * libm::exp(DRIFT * random.normal(0.0, 1.0));
        let rate = rate + (1.0 - rate) * fails;
        Tally { part: poisson(whole as f64 * rate, random).min(whole), whole }
    }
}

/// A Poisson number. If the mean is above 30, the normal distribution approximates it.
fn poisson(mean: f64, random: &mut Random) -> u64 {
    if mean > 30.0 {
        return random.normal(mean, mean.sqrt()).round().max(0.0) as u64;
    }
    let limit = libm::exp(-mean);
    let (mut product, mut count) = (random.unit(), 0);
    while product > limit {
        product *= random.unit();
        count += 1;
    }
    count
}

fn columns(leaves: &[Drawn]) -> Result<Vec<Attribute>, String> {
    let column = |(place, (name, _)): (usize, (&str, usize))| {
        let texts: Vec<String> = leaves.iter().map(|leaf| value(leaf.values[place])).collect();
        Attribute::of_texts(name, &texts).map_err(|error| error.to_string())
    };
    ATTRIBUTES.into_iter().enumerate().map(column).collect()
}

fn values(cause: &[Option<usize>; 4]) -> Values {
    let pairs = ATTRIBUTES.iter().zip(cause);
    let named = pairs.filter_map(|((name, _), id)| Some(((*name).to_owned(), value((*id)?))));
    named.collect()
}

fn value(id: usize) -> String {
    format!("value-{id}")
}

#[cfg(test)]
mod tests {
    use super::super::marks::Marks;
    use super::super::methods::METHODS;
    use super::*;

    /// A small graded set, whose results must not get worse.
    #[test]
    fn causes_are_found_at_least_as_well_as_stated() {
        let cases = cases(15, 60).unwrap();
        let marks = |method: fn(&Case) -> Result<super::super::marks::Ranking, String>| {
            let mut marks = Marks::default();
            cases.iter().for_each(|case| marks.add(case, &method(case).unwrap()));
            marks
        };
        let [plain, _, _, own] = METHODS.map(|(_, method)| marks(method));
        assert!(own.f1() >= 0.85, "{own:?}");
        assert!(own.f1() > plain.f1() + 0.1, "{own:?} {plain:?}");
    }

    #[test]
    fn where_nothing_changed_hardly_any_cause_is_named() {
        let (_, own) = METHODS[METHODS.len() - 1];
        for kind in [Quiet::Counts, Quiet::Leaves, Quiet::Values, Quiet::Reasons] {
            let all = quiet(17, 60, kind).unwrap();
            let named = all.iter().filter(|case| own(case).unwrap().named > 0);
            let named = named.count();
            assert!(named <= 2, "{kind:?}: {named} of {}", all.len());
        }
    }

    #[test]
    fn everything_is_not_blamed_on_a_part() {
        let all = cases(16, 40).unwrap();
        let (_, own) = METHODS[METHODS.len() - 1];
        let global = all.iter().filter(|case| case.truth.is_empty());
        let named: Vec<usize> = global.map(|case| own(case).unwrap().named).collect();
        assert_eq!(named.len(), 8);
        assert!(named.iter().filter(|named| **named == 0).count() >= 7, "{named:?}");
    }
}
