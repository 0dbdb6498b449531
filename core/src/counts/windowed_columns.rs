//! Rows by window that come from another memory, as columns.

use std::sync::Arc;

use tallyfold_engine::{Counts, Dictionary, Key};

use super::change::Deltas;
use super::dimension::Dimensions;
use super::frame::Keys;
use super::identity::Identity;
use super::metric::Metric;
use super::windowed::{Keyed, WindowRows, Windowed};
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::window::Window;

/// The rows of a series, or the changes of a comparison, as columns of equal length. They are for a program whose parts
/// have separate memories, such as two instances of WebAssembly.
#[derive(Clone, Debug, Default)]
pub struct WindowedColumns {
    /// The endpoint that the counts are from.
    pub metric: Option<Metric>,
    /// Whose counts they are.
    pub identity: Identity,
    /// The names of the dimensions, in sorting order.
    pub dimensions: Vec<String>,
    /// For each dimension, its distinct values, sorted.
    pub dictionaries: Vec<Arc<Dictionary>>,
    /// For each dimension, the position of each row's value in the dictionary.
    pub ids: Vec<Vec<u32>>,
    /// The windows, sorted, and whether each is settled.
    pub windows: Vec<(Window, bool)>,
    /// The position of each row's window.
    pub window_ids: Vec<u32>,
    /// The counts of each row: success, errors and filtered.
    pub counts: [Vec<u64>; 3],
    /// The counts before, if the rows are changes.
    pub before: Option<[Vec<u64>; 3]>,
}

impl Windowed {
    /// The rows in the columns, by window.
    ///
    /// # Errors
    /// `unknown_dimension` and `repeated_dimension`; `invalid_argument` if columns have different lengths, a position
    /// is out of range, or windows or rows are not sorted.
    pub fn of_columns(columns: WindowedColumns) -> Result<Self> {
        let dimensions = columns.checked()?;
        let columns = Arc::new(columns);
        let rows = Arc::clone(&columns) as Arc<dyn Keyed>;
        Ok(Self {
            metric: columns.metric,
            identity: columns.identity.clone(),
            dimensions,
            windows: WindowRows::all(&rows, &columns.window_ids, columns.windows.iter().copied()),
            dictionaries: columns.dictionaries.clone(),
        })
    }
}

impl WindowedColumns {
    /// The dimensions, if the columns are sound.
    pub(super) fn checked(&self) -> Result<Dimensions> {
        if !self.is_sound() {
            let message = "want the columns of a table, a series or a comparison as they are";
            return Err(Error::argument("counts", Code::InvalidArgument, message));
        }
        Dimensions::parse("counts", &self.dimensions)
    }

    /// Whether all columns have a value for each row, each position is valid, and windows and rows are sorted.
    fn is_sound(&self) -> bool {
        let rows = self.window_ids.len();
        let width = self.dimensions.len();
        let counts = self.counts.iter().chain(self.before.iter().flatten());
        let is_known = |ids: &[u32], values: usize| ids.iter().all(|id| (*id as usize) < values);
        let mut columns = self.ids.iter().zip(&self.dictionaries);
        self.ids.len() == width
            && self.dictionaries.len() == width
            && counts.map(Vec::len).all(|length| length == rows)
            && columns.all(|(ids, values)| ids.len() == rows && is_known(ids, values.len()))
            && is_known(&self.window_ids, self.windows.len())
            && self.windows.is_sorted_by(|one, next| one.0 < next.0)
            && (1..rows).all(|row| self.place(row - 1) < self.place(row))
    }

    /// What rows are sorted by.
    fn place(&self, row: usize) -> (u32, Key) {
        (self.window_ids[row], self.key(row))
    }

    fn key(&self, row: usize) -> Key {
        Keys { dictionaries: &self.dictionaries, ids: &self.ids }.key(row)
    }
}

impl Keyed for WindowedColumns {
    fn row(&self, position: usize) -> (Key, Deltas) {
        let counts_of = |[success, errors, filtered]: &[Vec<u64>; 3]| Counts {
            success: success[position],
            errors: errors[position],
            filtered: filtered[position],
        };
        let before = self.before.as_ref().map(counts_of).unwrap_or_default();
        let changes = Deltas::between(before, counts_of(&self.counts));
        (self.key(position), changes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(hour: u32) -> Window {
        Window::parse(
            &format!("2026-01-01T{hour:02}:00:00Z"),
            &format!("2026-01-01T{:02}:00:00Z", hour + 1),
        )
        .unwrap()
    }

    /// Two windows: one with "a" and "b", one with "b".
    fn columns() -> WindowedColumns {
        let values = Dictionary::of_sorted(["a", "b"].into_iter()).unwrap();
        WindowedColumns {
            metric: Some(Metric::EventDelivery),
            dimensions: vec!["integration".to_owned()],
            dictionaries: vec![Arc::new(values)],
            ids: vec![vec![0, 1, 1]],
            windows: vec![(window(0), true), (window(1), false), (window(2), true)],
            window_ids: vec![0, 0, 1],
            counts: [vec![1, u64::MAX, 3], vec![0; 3], vec![0; 3]],
            ..WindowedColumns::default()
        }
    }

    #[test]
    fn rows_are_those_of_the_columns() {
        let rows = Windowed::of_columns(columns()).unwrap();
        let lengths = rows.windows.iter().map(|of| of.clone().count());
        assert_eq!(lengths.collect::<Vec<_>>(), [2, 1, 0]);
        assert_eq!(
            rows.windows.iter().map(|of| of.settled).collect::<Vec<_>>(),
            [true, false, true]
        );
        let (key, counts) = rows.windows[0].clone().nth(1).unwrap();
        assert_eq!(rows.dictionaries[0].value(key[0]), "b");
        assert_eq!(counts.success, i128::from(u64::MAX));
    }

    #[test]
    fn changes_are_exact_down_to_the_least() {
        let before = [vec![u64::MAX, 0, 4], vec![0; 3], vec![7; 3]];
        let changes = Windowed::of_columns(WindowedColumns {
            counts: [vec![0, u64::MAX, 3], vec![0; 3], vec![8; 3]],
            before: Some(before),
            ..columns()
        });
        let changes = changes.unwrap().windows;
        let all = changes.into_iter().flatten().map(|(_, deltas)| deltas);
        let all: Vec<_> = all.map(|of| (of.success, of.filtered)).collect();
        let most = i128::from(u64::MAX);
        assert_eq!(all, [(-most, 1), (most, 1), (-1, 1)]);
    }

    #[test]
    fn columns_that_do_not_fit_together_are_refused() {
        type Spoil = fn(&mut WindowedColumns);
        let spoils: [(&str, Spoil); 10] = [
            ("a short column", |of| of.counts[2].truncate(2)),
            ("a short column before", |of| {
                of.before = Some([vec![0; 3], vec![0; 2], vec![0; 3]]);
            }),
            ("a short column of values", |of| of.ids[0].truncate(2)),
            ("a column too few", |of| of.ids.clear()),
            ("a dictionary too few", |of| of.dictionaries.clear()),
            ("a value that there is not", |of| of.ids[0][2] = 2),
            ("a window that there is not", |of| of.window_ids[2] = 3),
            ("rows that are not sorted", |of| of.ids[0][0] = 1),
            ("windows that are not sorted", |of| of.windows.swap(0, 1)),
            ("a dimension that there is not", |of| {
                of.dimensions = vec!["colour".to_owned()];
            }),
        ];
        for (what, spoil) in spoils {
            let mut spoilt = columns();
            spoil(&mut spoilt);
            let error = Windowed::of_columns(spoilt).unwrap_err();
            assert_eq!(
                error.argument_in(crate::Spelling::JavaScript).as_deref(),
                Some("counts"),
                "{what}"
            );
        }
    }

    #[test]
    fn a_dictionary_that_is_not_sorted_is_none() {
        for values in [["b", "a"], ["a", "a"]] {
            assert_eq!(Dictionary::of_sorted(values.into_iter()), None);
        }
    }
}
