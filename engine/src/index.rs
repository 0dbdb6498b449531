//! Numbers by hash.

use std::hint::black_box;

/// How many slots there are at first.
const LEAST_SLOTS: usize = 64;

/// Up to so many slots, which caches hold, most stay free: then one look nearly always decides.
const FEW_SLOTS: usize = 1 << 12;

/// From so many slots on, caches don't hold them.
const MANY_SLOTS: usize = 1 << 20;

/// A hash table of numbers: the caller keeps what they stand for.
///
/// Open addressing with linear probing, at most half full. A slot is the hash and the number plus
/// one in one word, so that it grows without asking for hashes again.
#[derive(Clone, Debug, Default)]
pub(crate) struct Index {
    slots: Vec<u64>,
    len: usize,
}

impl Index {
    /// The number under that hash which `equals` knows.
    #[inline(always)]
    pub(crate) fn find(&self, hash: u32, equals: impl Fn(u32) -> bool) -> Option<u32> {
        let mask = self.slots.len().checked_sub(1)?;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return None;
            }
            let number = slot as u32 - 1;
            if (slot >> 32) as u32 == hash && equals(number) {
                return Some(number);
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether a look is likely to wait for memory.
    pub(crate) fn is_large(&self) -> bool {
        self.slots.len() >= MANY_SLOTS
    }

    /// Where the look for a hash would start: a caller that asks for several before it looks any
    /// of them up has the memory fetched at once.
    #[inline(always)]
    pub(crate) fn touch(&self, hash: u32) -> u64 {
        let mask = self.slots.len().wrapping_sub(1);
        self.slots.get(hash as usize & mask).copied().unwrap_or(0)
    }

    /// Adds a number, below 2^32 - 1, which is not there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, number: u32) {
        let spare = if self.slots.len() < FEW_SLOTS { 8 } else { 2 };
        if self.len * spare >= self.slots.len() {
            self.grow();
        }
        self.len += 1;
        self.place(u64::from(hash) << 32 | u64::from(number + 1));
    }

    fn place(&mut self, slot: u64) {
        let mask = self.slots.len() - 1;
        let mut at = (slot >> 32) as usize & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = slot;
    }

    #[cold]
    fn grow(&mut self) {
        let times = if self.is_large() { 2 } else { 4 };
        let larger = match self.slots.len() * times {
            // Most allocators are slower at few zeros than at few bytes to fill.
            0 => [black_box(0); LEAST_SLOTS].to_vec(),
            slots => vec![0; slots],
        };
        for slot in std::mem::replace(&mut self.slots, larger) {
            if slot != 0 {
                self.place(slot);
            }
        }
    }
}
