//! A table in few bytes, for another process that runs the same version: about six bytes for each row of each window.
//!
//! The parts are the format, the saved table as JSON without any row, the rows of all windows together as dictionaries
//! and ids, the rows of each window as [`Packed`], and a checksum. All lengths are 32-bit little-endian numbers.

use tallyfold_engine::{Counts, Packed, Rows};

use super::loaded::{self, Loaded, invalid_at};
use super::part::Part;
use super::saved::SavedTable;
use super::table::CountTable;
use crate::checksum::checksum;
use crate::error::{Error, Result};
use crate::wire::json::writer::json_of;

const FORMAT: &[u8] = b"tallyfold-compact/1\n";

/// The bytes of a checksum.
const CHECKSUM: usize = 8;

impl CountTable {
    /// The table in few bytes, which [`CountTable::from_compact`] of the same version reads. To keep a table, use
    /// [`Frame::to_json`](crate::Frame::to_json).
    ///
    /// ```
    /// # use tallyfold::{CountTable, Dimension, Metric, Window};
    /// # let window = Window::parse("2026-01-01T00:00:00Z", "2026-01-01T00:15:00Z")?;
    /// # let table = CountTable::without_counts(Metric::EventDelivery, &[Dimension::Integration], &[window])?;
    /// assert_eq!(CountTable::from_compact(&table.to_compact())?, table);
    /// # Ok::<(), tallyfold::Error>(())
    /// ```
    #[must_use]
    pub fn to_compact(&self) -> Vec<u8> {
        let no_rows = no_rows(self.rows.width());
        let bare = |part: &Part| Part { rows: no_rows.clone().into(), ..part.clone() };
        let bare: Vec<Part> = self.parts.iter().map(bare).collect();
        let head = json_of(&SavedTable::of(&self.subject, Counts::default(), &bare));
        let mut bytes = FORMAT.to_vec();
        put(&mut bytes, head.as_bytes());
        for dictionary in self.rows.dictionaries() {
            put_length(&mut bytes, dictionary.len());
            for value in dictionary.values() {
                put(&mut bytes, value.as_bytes());
            }
        }
        put_length(&mut bytes, self.rows.len());
        for id in self.rows.ids().iter().flatten() {
            put_length(&mut bytes, *id as usize);
        }
        for part in &self.parts {
            let rows = part.rows.get();
            put(&mut bytes, Packed::new(&rows, &self.rows.places_of(&rows)).data());
        }
        let checksum = checksum(&[&bytes]);
        bytes.extend_from_slice(checksum.as_bytes());
        bytes
    }

    /// Reads the bytes that [`CountTable::to_compact`] has returned.
    ///
    /// # Errors
    /// `invalid_table` for any other bytes.
    pub fn from_compact(bytes: &[u8]) -> Result<Self> {
        let damaged =
            || invalid_at("$", "want the bytes of a compact table of this version, undamaged");
        let (bytes, expected) =
            bytes.split_at_checked(bytes.len().wrapping_sub(CHECKSUM)).ok_or_else(damaged)?;
        if checksum(&[bytes]).as_bytes() != expected {
            return Err(damaged());
        }
        let mut reader = Reader(bytes.strip_prefix(FORMAT).ok_or_else(damaged)?);
        let Loaded { subject, mut parts, .. } = loaded::read(reader.bytes().ok_or_else(damaged)?)?;
        let all = reader.rows(subject.dimensions.len()).ok_or_else(damaged)?;
        for part in &mut parts {
            let data = reader.bytes().ok_or_else(damaged)?;
            let packed = Packed::from_data(data, all.len()).ok_or_else(damaged)?;
            part.rows = all.unpack(&packed).into();
        }
        let damaged = |error: Error| invalid_at("$", error.message());
        Self::of_parts(subject, parts).map_err(damaged)
    }
}

fn no_rows(width: usize) -> Rows {
    // Without rows, no sum can be refused.
    Rows::from_values(&vec![Vec::new(); width], &[]).unwrap_or_default()
}

fn put_length(bytes: &mut Vec<u8>, length: usize) {
    // Dictionaries and heads are below 4 GiB, and ids are 32-bit numbers.
    bytes.extend_from_slice(&(length as u32).to_le_bytes());
}

fn put(bytes: &mut Vec<u8>, data: &[u8]) {
    put_length(bytes, data.len());
    bytes.extend_from_slice(data);
}

/// What is left of the bytes.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn length(&mut self) -> Option<usize> {
        let number = self.take(size_of::<u32>())?.try_into().ok()?;
        Some(u32::from_le_bytes(number) as usize)
    }

    fn bytes(&mut self) -> Option<&'a [u8]> {
        let length = self.length()?;
        self.take(length)
    }

    /// The rows of all windows together, with no counts.
    fn rows(&mut self, width: usize) -> Option<Rows> {
        let mut values = Vec::with_capacity(width);
        for _ in 0..width {
            let value = |reader: &mut Self| std::str::from_utf8(reader.bytes()?).ok();
            let distinct: Option<Vec<&str>> = (0..self.length()?).map(|_| value(self)).collect();
            values.push(distinct?);
        }
        let length = self.length()?;
        let mut columns = Vec::with_capacity(width);
        for values in &values {
            let column: Option<Vec<&str>> =
                (0..length).map(|_| values.get(self.length()?).copied()).collect();
            columns.push(column?);
        }
        if columns.is_empty() && length > 1 {
            return None;
        }
        let rows = Rows::from_values(&columns, &vec![Counts::default(); length]).ok()?;
        (rows.len() == length).then_some(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counts::dimension::Dimension;
    use crate::counts::frame::Frame as _;
    use crate::counts::identity::Identity;
    use crate::counts::metric::Metric;
    use crate::counts::subject::Subject;
    use crate::time::window::Window;

    /// Three windows: some rows, none, and rows with other values, provisional.
    fn table() -> CountTable {
        let dimensions = [Dimension::Integration, Dimension::Reason];
        let windows = [0, 15, 30].map(|minute| {
            let at = |minute| format!("2026-01-01T00:{minute:02}:00Z");
            Window::parse(&at(minute), &at(minute + 15)).unwrap()
        });
        let bare =
            CountTable::without_counts(Metric::EventDelivery, &dimensions, &windows).unwrap();
        let subject = Subject { identity: Identity::new("a cluster"), ..bare.subject.clone() };
        let mut parts = bare.parts;
        let rows = |values: [&[&'static str]; 2], success: u64| {
            let counts =
                |row| Counts { success: success + row, errors: row, filtered: u64::MAX >> 8 };
            let counts: Vec<Counts> = (0..values[0].len() as u64).map(counts).collect();
            Rows::from_values(&values.map(<[_]>::to_vec), &counts).unwrap().into()
        };
        parts[0].rows = rows([&["b", "ä", ""], &["", "x", "y"]], 7);
        parts[2].rows = rows([&["c", "b"], &["", ""]], u64::MAX >> 2);
        parts[2].reported = None;
        parts[2].provisional = true;
        CountTable::of_parts(subject, parts).unwrap()
    }

    #[test]
    fn a_table_comes_back_as_it_was() {
        let table = table();
        let again = CountTable::from_compact(&table.to_compact()).unwrap();
        assert_eq!(again, table);
        assert_eq!(again.to_json(), table.to_json());
        let totals = table.group_by::<&str>(&[]).unwrap();
        assert_eq!(CountTable::from_compact(&totals.to_compact()).unwrap(), totals);
    }

    #[test]
    fn damage_is_noticed() {
        let bytes = table().to_compact();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert!(CountTable::from_compact(&damaged).is_err(), "{at}");
            assert!(CountTable::from_compact(&bytes[..at]).is_err(), "{at}");
        }
    }

    /// A wrong length, id or place must not cause a panic, even if the checksum is right.
    #[test]
    fn no_bytes_make_it_panic() {
        let bytes = table().to_compact();
        let end = bytes.len() - CHECKSUM;
        for at in FORMAT.len()..end {
            for value in [0, 1, 127, 255] {
                let mut other = bytes[..end].to_vec();
                other[at] = value;
                let sum = checksum(&[&other]);
                other.extend_from_slice(sum.as_bytes());
                let _ = CountTable::from_compact(&other);
            }
        }
    }
}
