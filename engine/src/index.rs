//! Numbers by hash.

use std::hint::black_box;

/// How many slots there are at first.
const LEAST_SLOTS: usize = 64;

/// Up to so many slots, which caches hold, most stay free: then one look nearly always decides.
const FEW_SLOTS: usize = 1 << 12;

/// From so many slots on, they grow by less, as they take much memory.
const MOST_SLOTS: usize = 1 << 20;

/// A hash table of the numbers from 0 on: the caller keeps what they stand for.
///
/// Open addressing with linear probing, at most half full.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index<S> {
    slots: Vec<S>,
    len: u32,
}

/// A number plus one, and as much of its hash as there is room for. Free slots are all zeros.
pub(crate) trait Slot: Copy + Default + PartialEq {
    /// The mask has the bits of the hash that say where a look for it starts.
    fn new(hash: u32, number: u32, mask: usize) -> Self;

    /// The number, if its hash may be this one.
    fn number(self, hash: u32, mask: usize) -> Option<u32>;
}

/// All of the hash, so that the table grows without asking for hashes again.
impl Slot for u64 {
    #[inline(always)]
    fn new(hash: u32, number: u32, _: usize) -> Self {
        Self::from(hash) << 32 | Self::from(number + 1)
    }

    #[inline(always)]
    fn number(self, hash: u32, _: usize) -> Option<u32> {
        ((self >> 32) as u32 == hash).then_some(self as u32 - 1)
    }
}

/// Those bits of the hash that the mask lacks: half the memory.
impl Slot for u32 {
    #[inline(always)]
    fn new(hash: u32, number: u32, mask: usize) -> Self {
        hash & !(mask as Self) | (number + 1)
    }

    #[inline(always)]
    fn number(self, hash: u32, mask: usize) -> Option<u32> {
        // Equal bits of the hash leave only those below them.
        (self ^ hash <= mask as Self).then_some((self & mask as Self).wrapping_sub(1))
    }
}

impl<S: Slot> Index<S> {
    /// The number under that hash which `equals` knows.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, equals: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == S::default() {
                return None;
            }
            if let Some(number) = slot.number(hash, mask)
                && equals(number)
            {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    fn is_full(&self) -> bool {
        let spare = if self.slots.len() < FEW_SLOTS { 8 } else { 2 };
        self.len as usize * spare >= self.slots.len()
    }

    /// More slots than so many, all of them free.
    fn more_than(slots: usize) -> Vec<S> {
        let times = if slots >= MOST_SLOTS { 2 } else { 4 };
        match slots * times {
            // Most allocators are slower at few zeros than at few bytes to fill.
            0 => [black_box(S::default()); LEAST_SLOTS].to_vec(),
            slots => vec![S::default(); slots],
        }
    }

    #[inline(always)]
    fn place(&mut self, hash: u32, number: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != S::default() {
            at = (at + 1) & mask;
        }
        self.slots[at] = S::new(hash, number, mask);
    }
}

impl Index<u64> {
    /// Adds the next number, below 2^32 - 1.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32) {
        if self.is_full() {
            self.grow();
        }
        self.place(hash, self.len);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self) {
        let larger = Self::more_than(self.slots.len());
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot != 0 {
                self.place((slot >> 32) as u32, slot as u32 - 1);
            }
        }
    }
}

impl Index<u32> {
    /// Adds the next number, below 2^32 - 1. The hash of each that is there may be asked for again.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, hash_of: impl Fn(u32) -> u32) {
        if self.is_full() {
            self.grow(hash_of);
        }
        self.place(hash, self.len);
        self.len += 1;
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(u32) -> u32) {
        // The old ones go first: their memory may be asked for again.
        let slots = std::mem::take(&mut self.slots).len();
        self.slots = Self::more_than(slots);
        for number in 0..self.len {
            self.place(hash_of(number), number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One in eight hashes is among a few.
    #[test]
    fn numbers_are_found_however_their_hashes_spread() {
        const NUMBERS: u32 = 20_000;
        let hash_of = |number: u32| {
            let hash = number.wrapping_mul(0x9E37_79B1);
            if number.is_multiple_of(8) {
                hash % 64
            } else {
                hash
            }
        };
        let mut index = Index::<u32>::default();
        for number in 0..NUMBERS {
            index.insert(hash_of(number), hash_of);
        }
        for number in 0..NUMBERS {
            let found = index.find(hash_of(number), |other| other == number);
            assert_eq!(found, Some(number));
        }
        assert_eq!(index.find(hash_of(NUMBERS), |other| other == NUMBERS), None);
    }
}
