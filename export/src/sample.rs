//! What encoders write: groups, their samples, and single counts.

use tallyfold::{CountName, Deltas, Timestamp, Window, WindowRows};

/// The counts of a group in one window, or their changes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) window: Window,
    /// Whether the counts are complete and no longer change; for changes, whether no other revision of the window follows.
    pub(crate) settled: bool,
    counts: Deltas,
    /// Whether these are changes; changes of 0 are not written.
    is_change: bool,
}

impl Sample {
    pub(crate) fn new(rows: &WindowRows, counts: Deltas, is_change: bool) -> Self {
        Self { window: rows.window, settled: rows.settled, counts, is_change }
    }

    /// The timestamp of the sample: the last millisecond of its window, so that sums over ranges that include their start
    /// and sums over ranges that include their end both contain the same windows.
    pub(crate) fn unix_ms(self) -> i64 {
        last_ms(self.window.end())
    }

    /// The same timestamp in whole seconds.
    pub(crate) fn unix_seconds(self) -> i64 {
        last_second(self.window.end())
    }

    /// All three counts.
    pub(crate) fn counts(self) -> Deltas {
        self.counts
    }

    /// The count with this name; `None` for a change of 0.
    pub(crate) fn count(self, name: CountName) -> Option<Amount> {
        let amount = self.amount(name);
        (amount.size != 0 || !self.is_change).then_some(amount)
    }

    /// The count with this name, even if it is a change of 0. For formats that write all three counts together.
    pub(crate) fn amount(self, name: CountName) -> Amount {
        Amount::from(match name {
            CountName::Success => self.counts.success,
            CountName::Errors => self.counts.errors,
            CountName::Filtered => self.counts.filtered,
        })
    }

    /// Whether there is nothing to write.
    pub(crate) fn is_nothing(self) -> bool {
        self.is_change && self.counts == Deltas::default()
    }

    /// The largest absolute value of the three counts.
    pub(crate) fn largest(self) -> u64 {
        let sizes = self.counts.each().map(|count| Amount::from(count).size);
        sizes.into_iter().max().unwrap_or_default()
    }
}

/// The last millisecond that begins before `end`, in milliseconds since 1970.
pub(crate) fn last_ms(end: Timestamp) -> i64 {
    // The year of a timestamp has four digits, so the result fits.
    (end.unix_ns() - 1).div_euclid(1_000_000) as i64
}

/// The second that contains [`last_ms`], in seconds since 1970.
pub(crate) fn last_second(end: Timestamp) -> i64 {
    last_ms(end).div_euclid(1000)
}

/// A count, or a change of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) is_negative: bool,
    pub(crate) size: u64,
}

impl From<i128> for Amount {
    fn from(count: i128) -> Self {
        Self {
            is_negative: count < 0,
            // The difference of two counts, without its sign, fits into the type of a count.
            size: count.unsigned_abs() as u64,
        }
    }
}

impl Amount {
    /// The nearest 64-bit float.
    pub(crate) fn as_float(self) -> f64 {
        let size = self.size as f64;
        if self.is_negative { -size } else { size }
    }

    /// The number as a signed 64-bit integer, for formats that represent no larger numbers: [`Numbers::Signed`].
    ///
    /// [`Numbers::Signed`]: crate::form::Numbers::Signed
    pub(crate) fn as_signed(self) -> i64 {
        let size = self.size as i64;
        if self.is_negative { -size } else { size }
    }

    /// Writes the digits, after a `-` if it is below 0.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        if self.is_negative {
            out.push(b'-');
        }
        out.extend_from_slice(itoa::Buffer::new().format(self.size).as_bytes());
    }

    /// Writes the number as JSON: a number up to 2^53 - 1, and a string of digits above that, so that no reader rounds it.
    pub(crate) fn write_json(self, out: &mut Vec<u8>) {
        const LARGEST: u64 = (1 << 53) - 1;
        let quote: &[u8] = if self.size > LARGEST { b"\"" } else { b"" };
        out.extend_from_slice(quote);
        self.write(out);
        out.extend_from_slice(quote);
    }
}

/// A group and its samples, in time order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a> {
    /// The values of the dimensions, in the order of the dimensions.
    pub(crate) values: &'a [&'a str],
    pub(crate) samples: &'a [Sample],
    /// The counts to write.
    pub(crate) counts: &'a [CountName],
    /// Whether no group with these counts was written before.
    pub(crate) is_first: bool,
}
