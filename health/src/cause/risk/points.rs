//! The leaves of a volume as numbers: how far each leaf deviates, and how large it is.

use crate::cause::leaves::Leaves;

/// Leaves with events, one for each combination of values, sorted by their values. So the result doesn't depend on the
/// order of rows, or on how many rows a leaf has.
#[derive(Clone, Debug, Default)]
pub(crate) struct Points {
    /// For each attribute, the position of each leaf's value.
    pub(crate) ids: Vec<Vec<u32>>,
    /// How many values each attribute has.
    pub(crate) values: Vec<u64>,
    /// For each leaf, the expected count and the count now. At least one of the two is above 0.
    counts: Vec<[f64; 2]>,
    /// For each leaf, the count now minus the expected count, divided by the larger one of the two: from -1 (no events
    /// are left) to 1 (no events were expected).
    pub(crate) deviations: Vec<f64>,
    /// For each leaf, the larger one of the two counts.
    pub(crate) sizes: Vec<f64>,
    /// For each attribute and value, the leaves that have it.
    lists: Vec<Lists>,
}

#[derive(Clone, Debug, Default)]
struct Lists {
    /// Where the list of each value begins in `leaves`, and the end of the last list.
    starts: Vec<u32>,
    leaves: Vec<u32>,
}

impl Points {
    pub(crate) fn of(leaves: &Leaves) -> Self {
        let columns = leaves.attributes.iter();
        let columns: Vec<Column<'_>> = columns
            .map(|attribute| (attribute.ids.as_slice(), attribute.values.len() as u64))
            .collect();
        let mut rows: Vec<(u64, u32)> = keys(&columns, leaves.len()).into_iter().zip(0..).collect();
        rows.retain(|(_, row)| counts(leaves, *row) != [0, 0]);
        rows.sort_unstable();
        let mut points = Self {
            ids: vec![Vec::with_capacity(rows.len()); columns.len()],
            values: columns.iter().map(|(_, values)| *values).collect(),
            ..Self::default()
        };
        for equal in rows.chunk_by(|a, b| a.0 == b.0) {
            points.push(leaves, equal);
        }
        let lists = points.ids.iter().zip(&points.values);
        points.lists = lists.map(|(ids, values)| Lists::of(ids, *values)).collect();
        points.compare();
        points
    }

    /// Returns the same leaves with their expected counts multiplied by `ratio`.
    pub(crate) fn expecting(&self, ratio: f64) -> Self {
        let mut points = self.clone();
        for [expected, _] in &mut points.counts {
            *expected *= ratio;
        }
        points.compare();
        points
    }

    /// Computes the deviations and sizes from the counts.
    fn compare(&mut self) {
        let larger = |[expected, now]: &[f64; 2]| expected.max(*now);
        let deviation = |counts: &[f64; 2]| (counts[1] - counts[0]) / larger(counts);
        self.sizes = self.counts.iter().map(larger).collect();
        self.deviations = self.counts.iter().map(deviation).collect();
    }

    /// Returns the log of the factor that converts densities of deviations into densities of counts, summed over all leaves.
    /// Densities of counts are comparable even if they were computed with different expectations.
    pub(crate) fn log_scale(&self) -> f64 {
        let leaves = self.counts.iter().filter(|counts| counts[0] > 0.0 && counts[1] > 0.0);
        let scale = leaves.map(|[expected, now]| {
            if now < expected {
                -libm::log(*expected)
            } else {
                libm::log(*expected) - 2.0 * libm::log(*now)
            }
        });
        scale.sum()
    }

    fn push(&mut self, leaves: &Leaves, rows: &[(u64, u32)]) {
        let mut sums = [0_u64; 2];
        for (_, row) in rows {
            for (sum, count) in sums.iter_mut().zip(counts(leaves, *row)) {
                // The sum of all leaves fits.
                *sum = sum.saturating_add(count);
            }
        }
        self.counts.push(sums.map(|sum| sum as f64));
        let first = rows.first().map_or(0, |(_, row)| *row as usize);
        for (ids, attribute) in self.ids.iter_mut().zip(&leaves.attributes) {
            ids.push(attribute.ids[first]);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the leaves that have these values of `attributes`, in order. `attributes` has at least one attribute.
    pub(crate) fn with<'a>(
        &'a self,
        attributes: u8,
        values: &'a [u32; 8],
    ) -> impl Iterator<Item = u32> + 'a {
        let named = (0..self.ids.len()).filter(move |place| attributes & 1 << place != 0);
        let lists = named.clone().map(|place| self.lists[place].of_value(values[place]));
        let shortest = lists.min_by_key(|list| list.len()).unwrap_or_default();
        shortest.iter().copied().filter(move |leaf| {
            named.clone().all(|place| self.ids[place][*leaf as usize] == values[place])
        })
    }
}

impl Lists {
    fn of(ids: &[u32], values: u64) -> Self {
        let mut starts = vec![0_u32; values as usize + 1];
        for id in ids {
            starts[*id as usize + 1] += 1;
        }
        for value in 1..starts.len() {
            starts[value] += starts[value - 1];
        }
        let mut next = starts.clone();
        let mut leaves = vec![0; ids.len()];
        for (leaf, id) in (0..).zip(ids) {
            let place = &mut next[*id as usize];
            leaves[*place as usize] = leaf;
            *place += 1;
        }
        Self { starts, leaves }
    }

    fn of_value(&self, value: u32) -> &[u32] {
        let value = value as usize;
        &self.leaves[self.starts[value] as usize..self.starts[value + 1] as usize]
    }
}

fn counts(leaves: &Leaves, row: u32) -> [u64; 2] {
    [&leaves.before, &leaves.now].map(|tallies| tallies[row as usize].part)
}

/// The maximum number of leaves that are used. More leaves don't improve the estimate.
const MOST: usize = 16_384;
/// The assumed variance of the deviation of large leaves, and of counts of events.
const RELATIVE: f64 = 0.01;
const COUNTING: f64 = 2.0;

/// Finds the half of the free leaves whose deviations are closest together. Returns the mean deviation of this half, or
/// 0 without leaves. Larger leaves weigh more.
pub(crate) fn bulk(points: &Points, free: &[bool]) -> f64 {
    let leaves: Vec<usize> = (0..points.len()).filter(|leaf| free[*leaf]).collect();
    let step = leaves.len().div_ceil(MOST).max(1);
    let sampled = leaves.iter().step_by(step);
    let mut sorted: Vec<(f64, f64)> = sampled
        .map(|leaf| {
            let weight = 1.0 / (RELATIVE + COUNTING / points.sizes[*leaf]);
            (points.deviations[*leaf], weight)
        })
        .collect();
    sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let half = 0.5 * sorted.iter().map(|(_, weight)| weight).sum::<f64>();
    let (mut width, mut mean) = (f64::INFINITY, 0.0);
    // The leaves from `first` up to the current one have at least half of the weight, but not without the leaf `first`.
    let (mut first, mut weights, mut sum) = (0, 0.0, 0.0);
    for (deviation, weight) in &sorted {
        weights += weight;
        sum += weight * deviation;
        while weights - sorted[first].1 >= half {
            weights -= sorted[first].1;
            sum -= sorted[first].1 * sorted[first].0;
            first += 1;
        }
        let own = deviation - sorted[first].0;
        if weights >= half && own < width {
            (width, mean) = (own, sum / weights);
        }
    }
    mean
}

/// The position of each row's value in a column, and the number of distinct values.
pub(crate) type Column<'a> = (&'a [u32], u64);

/// Returns a number for each row. Equal combinations have equal numbers, and the numbers have the order of the combinations.
pub(crate) fn keys(columns: &[Column<'_>], rows: usize) -> Vec<u64> {
    let mut keys = vec![0; rows];
    let mut room = 1_u64;
    for (ids, values) in columns {
        let values = (*values).max(1);
        if room.checked_mul(values).is_none() {
            let (numbers, count) = numbered(&keys);
            keys = numbers.into_iter().map(u64::from).collect();
            room = count as u64;
        }
        for (key, id) in keys.iter_mut().zip(*ids) {
            *key = *key * values + u64::from(*id);
        }
        // After numbering, this can't overflow: there are fewer than 2^32 rows and fewer than 2^32 values.
        room = room.saturating_mul(values);
    }
    keys
}

/// Returns the rank of each key among the distinct keys, and the number of distinct keys.
pub(crate) fn numbered(keys: &[u64]) -> (Vec<u32>, usize) {
    let mut sorted: Vec<(u64, u32)> = keys.iter().copied().zip(0..).collect();
    sorted.sort_unstable();
    let mut numbers = vec![0; keys.len()];
    let (mut count, mut last) = (0, None);
    for (key, row) in sorted {
        if last.replace(key) != Some(key) {
            count += 1;
        }
        numbers[row as usize] = count as u32 - 1;
    }
    (numbers, count)
}
