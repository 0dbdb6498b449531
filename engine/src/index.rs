//! A hash table of numbers.

use std::hint::black_box;

/// The number of slots at first.
const LEAST_SLOTS: usize = 64;

/// The contents of a free slot. A used slot never has these contents: its number would be the number of slots minus one,
/// and there are always fewer numbers than that.
const FREE: u32 = u32::MAX;

/// A hash table of the numbers from 0 on. The caller keeps the values that they stand for.
///
/// It uses open addressing with linear probing. The low bits of a hash select the slot at which a
/// search starts. A slot holds the number in these bits, and the upper bits of the number's hash in
/// the other bits.
///
/// There are at least `SLOTS_PER_NUMBER` slots for each number. With more slots, more searches end at their
/// first slot; with fewer, more of the slots are in the processor's cache.
#[derive(Debug, Default)]
pub(crate) struct Index<const SLOTS_PER_NUMBER: usize> {
    slots: Vec<u32>,
    len: u32,
}

impl<const SLOTS_PER_NUMBER: usize> Index<SLOTS_PER_NUMBER> {
    /// The number with that hash for which `is_it` is true.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, is_it: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == FREE {
                return None;
            }
            let has_hash = slot ^ hash <= mask as u32;
            let number = slot & mask as u32;
            if has_hash && is_it(number) {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// Loads the slot at which a search for that hash starts into the processor's cache.
    #[inline(always)]
    pub(crate) fn touch(&self, hash: u32) {
        let mask = self.slots.len().wrapping_sub(1);
        black_box(self.slots.get(hash as usize & mask).copied());
    }

    /// Adds the next number; `None` if there is no memory for it. The table is empty then, and must not be used any more.
    /// When the table grows, it calls `hash_of` for the hash of each number in it.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, hash_of: impl Fn(u32) -> u32) -> Option<()> {
        if self.len as usize * SLOTS_PER_NUMBER >= self.slots.len() {
            self.grow(hash_of)?;
        }
        self.place(hash, self.len);
        self.len += 1;
        Some(())
    }

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(u32) -> u32) -> Option<()> {
        // The old slots are freed first, so that their memory can be used again.
        self.slots = Vec::new();
        let mut slots = LEAST_SLOTS;
        while slots <= self.len as usize * SLOTS_PER_NUMBER {
            slots *= 4;
        }
        self.slots.try_reserve_exact(slots).ok()?;
        self.slots.resize(slots, FREE);
        for number in 0..self.len {
            self.place(hash_of(number), number);
        }
        Some(())
    }

    #[inline(always)]
    fn place(&mut self, hash: u32, number: u32) {
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while self.slots[at] != FREE {
            at = (at + 1) & mask;
        }
        self.slots[at] = hash & !(mask as u32) | number;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One in eight numbers has one of a few hashes.
    #[test]
    fn numbers_are_found_however_their_hashes_spread() {
        const NUMBERS: u32 = 20_000;
        let hash_of = |number: u32| {
            let hash = number.wrapping_mul(0x9E37_79B1);
            if number.is_multiple_of(8) { hash % 64 } else { hash }
        };
        let mut index = Index::<4>::default();
        for number in 0..NUMBERS {
            assert_eq!(index.insert(hash_of(number), hash_of), Some(()));
        }
        for number in 0..NUMBERS {
            let found = index.find(hash_of(number), |other| other == number);
            assert_eq!(found, Some(number));
        }
        assert_eq!(index.find(hash_of(NUMBERS), |other| other == NUMBERS), None);
    }
}
