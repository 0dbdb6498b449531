//! Numbers the distinct combinations of some columns.

/// Numbers of combinations, in the order of their first leaves.
///
/// If the table has room for every possible combination, each combination has a fixed slot in it. Otherwise it is a
/// hash table with open addressing, whose keys are the first leaves of the combinations.
pub(crate) struct Numbers {
    /// Number plus 1, or 0 where a slot is free.
    slots: Vec<u32>,
    /// The factor of each column in the position of a slot; `None` for a hash table.
    strides: Option<Vec<usize>>,
}

impl Numbers {
    /// For at most so many leaves.
    pub(crate) fn new(columns: &[&[u32]], sizes: &[usize], leaves: usize) -> Self {
        debug_assert_eq!(columns.len(), sizes.len());
        let most = leaves.saturating_mul(4).saturating_add(1024);
        let mut room = 1usize;
        let mut strides = Vec::with_capacity(sizes.len());
        for size in sizes {
            strides.push(room);
            room = room.saturating_mul(*size);
        }
        if room <= most {
            return Self {
                slots: vec![0; room],
                strides: Some(strides),
            };
        }
        // At most half of the slots are taken.
        Self {
            slots: vec![0; (leaves.max(1) * 2).next_power_of_two()],
            strides: None,
        }
    }

    /// The number of a leaf's combination; `firsts` are the leaves that got a number, in order. If it is new, its number is
    /// their count.
    pub(crate) fn of(&mut self, leaf: u32, columns: &[&[u32]], firsts: &[u32]) -> u32 {
        let leaf = leaf as usize;
        let next = firsts.len() as u32;
        if let Some(strides) = &self.strides {
            let parts = columns.iter().zip(strides);
            let place: usize = parts
                .map(|(column, stride)| column[leaf] as usize * stride)
                .sum();
            return taken(&mut self.slots[place], next);
        }
        let last = self.slots.len() - 1;
        let hash = columns
            .iter()
            .fold(0, |hash, column| mixed(hash, column[leaf]));
        let mut place = (hash ^ hash >> 32) as usize & last;
        while let Some(number) = self.slots[place].checked_sub(1) {
            let first = firsts[number as usize] as usize;
            if columns.iter().all(|column| column[leaf] == column[first]) {
                return number;
            }
            place = (place + 1) & last;
        }
        taken(&mut self.slots[place], next)
    }
}

/// The number in a slot; a free slot takes the next one.
fn taken(slot: &mut u32, next: u32) -> u32 {
    if *slot == 0 {
        *slot = next + 1;
    }
    *slot - 1
}

/// A step of a hash (FxHash); 2^64 divided by the golden ratio spreads numbers that are close.
fn mixed(hash: u64, id: u32) -> u64 {
    (hash.rotate_left(26) ^ u64::from(id)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The numbers of all leaves.
    fn numbered(columns: &[&[u32]], sizes: &[usize]) -> (bool, Vec<u32>) {
        let leaves = columns[0].len();
        let mut numbers = Numbers::new(columns, sizes, leaves);
        let mut firsts = Vec::new();
        let all = (0..leaves as u32).map(|leaf| {
            let number = numbers.of(leaf, columns, &firsts);
            if number as usize == firsts.len() {
                firsts.push(leaf);
            }
            number
        });
        let all = all.collect();
        (numbers.strides.is_some(), all)
    }

    #[test]
    fn a_table_and_a_hash_table_number_alike() {
        let one: Vec<u32> = (0..3000).map(|leaf| leaf * 7 % 50).collect();
        let other: Vec<u32> = (0..3000).map(|leaf| leaf * leaf % 61).collect();
        let (in_table, small) = numbered(&[&one, &other], &[50, 61]);
        let (still_in_table, large) = numbered(&[&one, &other], &[50, 1_000_000]);
        assert!(in_table && !still_in_table);
        assert_eq!(small, large);
        let mut seen = std::collections::BTreeMap::new();
        for (leaf, number) in small.iter().enumerate() {
            let next = seen.len() as u32;
            assert_eq!(
                *number,
                *seen.entry((one[leaf], other[leaf])).or_insert(next)
            );
        }
    }
}
