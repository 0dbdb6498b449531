//! Rows that are stored in few bytes and refer to the values of a larger set of rows.

use integer_encoding::VarInt;

use crate::counts::Counts;
use crate::rows::Rows;
use crate::seek::seek;

/// The most bytes of a number.
const MOST_OF_NUMBER: usize = 10;

/// Some of the rows of a larger set, with counts of their own.
///
/// For each row it holds its distance from the row before, and its counts, as numbers of seven bits
/// a byte (LEB128): a row of a usual table takes four to ten bytes.
#[derive(Debug)]
pub struct Packed {
    bytes: Box<[u8]>,
    totals: Counts,
}

impl Packed {
    /// Packs rows. `places` has the position of each row in the larger set, in the same order.
    #[must_use]
    pub fn new(rows: &Rows, places: &[u32]) -> Self {
        let mut bytes = Vec::new();
        let mut room = [0; 4 * MOST_OF_NUMBER];
        let mut next = 0;
        for (row, place) in places.iter().enumerate() {
            let [success, errors, filtered] = rows.counts(row).each();
            let mut length = 0;
            for number in [u64::from(place - next), success, errors, filtered] {
                length += number.encode_var(&mut room[length..]);
            }
            bytes.extend_from_slice(&room[..length]);
            next = place + 1;
        }
        Self { bytes: bytes.into_boxed_slice(), totals: rows.totals() }
    }

    /// The bytes that [`from_data`](Self::from_data) reads.
    #[must_use]
    pub fn data(&self) -> &[u8] {
        &self.bytes
    }

    /// Reads packed rows of a larger set, which has `of` rows. `None` if the bytes are not packed
    /// rows of such a set, or if a sum is above 2^64 - 1.
    #[must_use]
    pub fn from_data(data: &[u8], of: usize) -> Option<Self> {
        let mut packed = Self { bytes: data.into(), totals: Counts::default() };
        let (mut at, mut next) = (0, 0);
        while at < data.len() {
            let mut number = || {
                let (number, length) = u64::decode_var(&data[at..])?;
                at += length;
                Some(number)
            };
            let place = number()?.checked_add(next)?;
            if place >= of as u64 {
                return None;
            }
            next = place + 1;
            let counts = Counts { success: number()?, errors: number()?, filtered: number()? };
            packed.totals = packed.totals.checked_add(counts)?;
        }
        Some(packed)
    }

    /// About how many bytes they take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    /// The sum of all rows.
    #[must_use]
    pub fn totals(&self) -> Counts {
        self.totals
    }

    /// The next row: its place in the larger set, and its counts; `None` after the last one.
    pub fn next(&self, reading: &mut PackedReading) -> Option<(u32, Counts)> {
        let mut number = || {
            let (number, length) = u64::decode_var(&self.bytes[reading.byte..])?;
            reading.byte += length;
            Some(number)
        };
        let place = reading.place + number()? as u32;
        reading.place = place + 1;
        let counts = Counts { success: number()?, errors: number()?, filtered: number()? };
        Some((place, counts))
    }

    /// All rows.
    fn iter(&self) -> impl Iterator<Item = (u32, Counts)> {
        let mut reading = PackedReading::default();
        std::iter::from_fn(move || self.next(&mut reading))
    }
}

/// How far packed rows have been read.
#[derive(Clone, Copy, Debug, Default)]
pub struct PackedReading {
    byte: usize,
    /// The first place that the next row can have.
    place: u32,
}

impl Rows {
    /// Unpacks rows of this set, which become rows of their own.
    #[must_use]
    pub fn unpack(&self, packed: &Packed) -> Self {
        let (places, counts): (Vec<u32>, Vec<Counts>) = packed.iter().unzip();
        self.select(&places, &mut counts.into_iter())
    }

    /// The sum of packed rows of this set. Their totals together must not overflow.
    #[must_use]
    pub fn sum_of<'a>(&self, all: impl Iterator<Item = &'a Packed>) -> Self {
        let mut sums: Vec<Option<Counts>> = vec![None; self.len()];
        for (place, counts) in all.flat_map(Packed::iter) {
            sums[place as usize].get_or_insert_default().add(counts);
        }
        let places: Vec<u32> =
            (0..).zip(&sums).filter(|(_, sum)| sum.is_some()).map(|(place, _)| place).collect();
        self.select(&places, &mut sums.into_iter().flatten())
    }

    /// For each of some rows, the position of the row of this set with the same values. All of the
    /// rows must be in this set.
    #[must_use]
    pub fn places_of(&self, rows: &Self) -> Vec<u32> {
        let ids: Vec<Vec<u32>> = self
            .dictionaries
            .iter()
            .zip(&rows.dictionaries)
            .map(|(whole, part)| whole.places_of(part))
            .collect();
        let mut from = 0;
        (0..rows.len())
            .map(|row| {
                let mut key = rows.key(row);
                for (id, ids) in key.iter_mut().zip(&ids) {
                    *id = ids[*id as usize];
                }
                let place = seek(self.len(), from, |row| self.key(row) < key);
                from = place + 1;
                place as u32
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(width: usize, entries: &[(Vec<u8>, [u64; 3])]) -> Rows {
        let mut distinct = std::collections::BTreeMap::new();
        for (values, [success, errors, filtered]) in entries {
            let counts = Counts { success: *success, errors: *errors, filtered: *filtered };
            let values: Vec<String> = values[..width].iter().map(u8::to_string).collect();
            distinct.insert(values, counts);
        }
        let column = |column: usize| distinct.keys().map(|values| &*values[column]).collect();
        let columns: Vec<Vec<&str>> = (0..width).map(column).collect();
        let counts: Vec<Counts> = distinct.values().copied().collect();
        Rows::from_values(&columns, &counts).unwrap()
    }

    /// Counts of every length in bytes; four of the largest do not overflow.
    fn count() -> impl Strategy<Value = u64> {
        (0..62_u32).prop_flat_map(|bits| 0..=(1_u64 << bits))
    }

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked_and_added_up_as_it_was(
            width in 0..=4_usize,
            parts in prop::collection::vec(
                prop::collection::vec(
                    (prop::collection::vec(0..6_u8, 4), [count(), count(), count()]),
                    0..3,
                ),
                1..4,
            ),
        ) {
            let parts: Vec<Rows> = parts.iter().map(|entries| rows(width, entries)).collect();
            let all: Vec<&Rows> = parts.iter().collect();
            if let Ok(sum) = Rows::combine(&all, width) {
                let pack = |rows| Packed::new(rows, &sum.places_of(rows));
                let packed: Vec<Packed> = parts.iter().map(pack).collect();
                for (rows, packed) in parts.iter().zip(&packed) {
                    prop_assert_eq!(&sum.unpack(packed), rows);
                    prop_assert_eq!(sum.unpack(packed).len(), rows.len());
                    prop_assert_eq!(packed.totals(), rows.totals());
                    let again = Packed::from_data(packed.data(), sum.len()).unwrap();
                    prop_assert_eq!(again.totals(), rows.totals());
                    prop_assert_eq!(&sum.unpack(&again), rows);
                    // Its last row is not in a smaller set, and its last number must be complete.
                    let last = packed.iter().last().map_or(0, |(place, _)| place);
                    let is_empty = packed.data().is_empty();
                    prop_assert_eq!(Packed::from_data(packed.data(), last as usize).is_some(), is_empty);
                    let cut = &packed.data()[..packed.data().len().saturating_sub(1)];
                    prop_assert_eq!(Packed::from_data(cut, sum.len()).is_some(), is_empty);
                }
                prop_assert_eq!(&sum.sum_of(packed.iter()), &sum);
                let first = Rows::combine(&all[..1], width).unwrap();
                prop_assert_eq!(sum.sum_of(packed[..1].iter()), first);
            }
        }
    }

    #[test]
    fn a_place_may_be_the_largest_number() {
        let mut data = [0xff; 13];
        data[9..].copy_from_slice(&[1, 0, 0, 0]);
        assert!(Packed::from_data(&data, 1).is_none());
    }

    #[test]
    fn a_usual_row_takes_few_bytes() {
        let entries: Vec<_> =
            (0..200).map(|n| (vec![n; 4], [40_000 + u64::from(n), 37, 5])).collect();
        let rows = rows(4, &entries);
        let packed = Packed::new(&rows, &rows.places_of(&rows));
        assert_eq!(packed.bytes.len(), 200 * 6);
    }
}
