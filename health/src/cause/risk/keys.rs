//! Combinations of values as numbers.

/// A column of positions, and how many values there are.
pub(crate) type Column<'a> = (&'a [u32], u64);

/// A number for each row: equal for equal combinations, and ordered like them.
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
        // Fewer than 2^32 rows, and fewer than 2^32 values.
        room = room.saturating_mul(values);
    }
    keys
}

/// The rank of each key among the distinct keys, and the number of distinct keys.
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
