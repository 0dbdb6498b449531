//! Sums over any adjacent slots.

/// Sums of the known counts of a group, up to each slot.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    parts: Vec<u128>,
    wholes: Vec<u128>,
    known: Vec<u32>,
}

/// What some slots have together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// The events that are counted.
    pub(crate) part: u64,
    /// What those are a part of.
    pub(crate) whole: u64,
    /// How many of the slots are known.
    pub(crate) known: usize,
}

impl Sums {
    /// The sums of those slots that are known.
    pub(crate) fn new(parts: &[u64], wholes: Option<&[u64]>, known: &[bool]) -> Self {
        let mut sums = Self {
            parts: vec![0],
            wholes: vec![0],
            known: vec![0],
        };
        let (mut part, mut whole, mut count) = (0_u128, 0_u128, 0_u32);
        for (slot, known) in known.iter().enumerate() {
            if *known {
                part += u128::from(parts[slot]);
                whole += u128::from(wholes.map_or(0, |wholes| wholes[slot]));
                count += 1;
            }
            sums.parts.push(part);
            sums.wholes.push(whole);
            sums.known.push(count);
        }
        sums
    }

    /// What the `length` slots before a slot have together; those before the first slot are not known.
    pub(crate) fn before(&self, end: usize, length: usize) -> Sum {
        let end = end.min(self.parts.len() - 1);
        let start = end.saturating_sub(length);
        let most = |sum: u128| u64::try_from(sum).unwrap_or(u64::MAX);
        Sum {
            part: most(self.parts[end] - self.parts[start]),
            whole: most(self.wholes[end] - self.wholes[start]),
            known: (self.known[end] - self.known[start]) as usize,
        }
    }
}
