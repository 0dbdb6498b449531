//! Makes an explanation of what was found, with exact counts.

use super::element::{Element, Finds, Found};
use super::explanation::{Amount, Cause, Explanation};
use super::leaves::{Leaves, Tally};
use super::sentence::sentence;
use crate::measure::Measure;

/// An explanation of what was found, with exact counts.
pub(crate) fn told(leaves: &Leaves, measure: Measure, finds: &Finds) -> Explanation {
    let [before, now] = leaves.totals();
    let change = excess([before, now], before, measure.is_rate());
    let mut told = Explanation {
        measure,
        before: amount(before, measure),
        now: amount(now, measure),
        change,
        causes: Vec::new(),
        others: Vec::new(),
        unexplained: change,
        is_global: finds.is_global,
        sentence: String::new(),
    };
    let mut free = vec![true; leaves.len()];
    for found in &finds.causes {
        let sums = sums_of(leaves, found.element, &mut free, true);
        let cause = cause(leaves, measure, found, sums, before, change);
        told.unexplained = told.unexplained.saturating_sub(cause.events);
        told.causes.push(cause);
    }
    free.fill(true);
    for found in &finds.others {
        let sums = sums_of(leaves, found.element, &mut free, false);
        told.others
            .push(cause(leaves, measure, found, sums, before, change));
    }
    told.sentence = sentence(&told);
    told
}

/// The counts of those leaves of a combination that are free; if they are taken, they are so no longer.
fn sums_of(leaves: &Leaves, element: Element, free: &mut [bool], take: bool) -> [Tally; 2] {
    let mut sums = [Tally::default(); 2];
    for (leaf, free) in free.iter_mut().enumerate() {
        if *free && leaves.is_in(leaf, element) {
            *free = !take;
            sums[0].add(leaves.before[leaf]);
            sums[1].add(leaves.now[leaf]);
        }
    }
    // For an attribute that only events of the part have, the whole is the events with any value.
    let attributes = leaves.attributes.iter().enumerate();
    let of_part = attributes.filter(|(_, attribute)| attribute.of_part);
    let others = of_part.fold(element, |element, (place, _)| element.without(place));
    if others != element {
        let all = sums_of(leaves, others, &mut vec![true; leaves.len()], false);
        sums[0].whole = all[0].whole;
        sums[1].whole = all[1].whole;
    }
    sums
}

fn cause(
    leaves: &Leaves,
    measure: Measure,
    found: &Found,
    sums: [Tally; 2],
    all: Tally,
    change: i128,
) -> Cause {
    let events = excess(sums, all, measure.is_rate());
    let [before, now] = sums;
    let share = if change == 0 {
        0.0
    } else {
        events as f64 / change as f64
    };
    let attributes = leaves.attributes.iter().enumerate();
    let named = attributes.filter(|(place, _)| found.element.attributes & 1 << place != 0);
    let named = named.map(|(place, attribute)| {
        let value = attribute.values.value(found.element.values[place]);
        (attribute.name.clone(), value.to_owned())
    });
    Cause {
        r#where: named.collect(),
        before: amount(before, measure),
        now: amount(now, measure),
        expected: now.part as f64 - events as f64,
        events,
        share,
        score: found.score,
    }
}

fn amount(tally: Tally, measure: Measure) -> Amount {
    Amount {
        part: tally.part,
        whole: measure.is_rate().then_some(tally.whole),
    }
}

/// By how many events the count of now differs from the expected one, rounded. For a rate, the expected count follows
/// from the rate before, or from the overall rate if there were no events before.
fn excess([before, now]: [Tally; 2], all: Tally, is_rate: bool) -> i128 {
    if !is_rate {
        return i128::from(now.part) - i128::from(before.part);
    }
    let reference = if before.whole == 0 { all } else { before };
    let half = u128::from(reference.whole / 2);
    // At most (2^64 - 1)^2 + 2^63, which fits.
    let expected = (u128::from(now.whole) * u128::from(reference.part) + half)
        .checked_div(u128::from(reference.whole))
        .unwrap_or_default();
    i128::from(now.part).saturating_sub_unsigned(expected)
}
