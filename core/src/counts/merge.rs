//! Adds up tables of different times.

use std::sync::Arc;

use tallyfold_engine::Rows;

use super::parse::refusal;
use super::part::{Part, pack};
use super::table::CountTable;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::time::window::Window;

impl CountTable {
    /// Adds the counts of a table of another time to these. Without `replace`, the order of merging
    /// makes no difference.
    ///
    /// With `replace`, windows of the other table replace those windows of this table that they
    /// overlap. Each replaced window must lie inside the time that the other table covers, because
    /// the counts of a window can't be split.
    ///
    /// # Errors
    /// `incompatible_tables` for other dimensions, another metric or another filter,
    /// `overlapping_coverage`, `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub fn merge(&self, other: &Self, replace: bool) -> Result<Self> {
        self.subject.check_like(&other.subject, "other")?;
        let theirs = other.coverage();
        let mut parts = other.parts.clone();
        for part in &self.parts {
            let overlapped = theirs.iter().any(|window| window.overlaps(part.window));
            let covered = theirs.iter().any(|window| window.contains(part.window));
            match (overlapped, replace && covered) {
                (false, _) => parts.push(part.clone()),
                (true, true) => {}
                (true, false) => return Err(overlapping(part.window, replace)),
            }
        }
        let all_stay = parts.len() == self.parts.len() + other.parts.len();
        parts.sort_unstable_by_key(|part| part.window);
        if !all_stay {
            return Self::of_parts(self.subject.clone(), parts);
        }
        // The sums of both tables are known, so the parts need not be added up again.
        let width = self.subject.dimensions.len();
        let both = Rows::combine(&[&self.rows, &other.rows], width);
        pack(parts.iter_mut(), width)?;
        Ok(Self {
            rows: Arc::new(both.map_err(refusal)?),
            parts,
            ..self.clone()
        })
    }

    /// Adds up any number of tables of different times at once. This is faster than merging one
    /// after the other, which copies the growing sum each time. The order of the tables makes no
    /// difference.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # let mut host = Host::new()?;
    /// let quarters = [host.quarter(36)?, host.quarter(37)?, host.quarter(38)?, host.quarter(39)?];
    /// let hour = CountTable::merge_all(&quarters)?;
    /// assert_eq!(hour.coverage().len(), 1);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `missing_argument` for no table at all, `incompatible_tables`, `overlapping_coverage`,
    /// `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub fn merge_all<'a>(tables: impl IntoIterator<Item = &'a Self>) -> Result<Self> {
        let mut tables = tables.into_iter();
        let first = tables.next().ok_or_else(|| {
            let message = "want one table or more: without any there are no dimensions";
            Error::argument("tables", Code::MissingArgument, message)
        })?;
        let mut parts = first.parts.clone();
        for table in tables {
            first.subject.check_like(&table.subject, "tables")?;
            parts.extend_from_slice(&table.parts);
        }
        first.with_parts(parts)
    }

    /// A table of the given parts, which may be in any order but must not overlap.
    fn with_parts(&self, mut parts: Vec<Part>) -> Result<Self> {
        parts.sort_unstable_by_key(|part| part.window);
        let overlaps = |pair: &&[Part]| pair[0].window.overlaps(pair[1].window);
        if let Some(pair) = parts.windows(2).find(overlaps) {
            let message = format!("two tables cover time in {:?}", pair[1].window);
            return Err(Error::argument(
                "tables",
                Code::OverlappingCoverage,
                message,
            ));
        }
        Self::of_parts(self.subject.clone(), parts)
    }
}

fn overlapping(window: Window, replace: bool) -> Error {
    let message = if replace {
        format!("{window:?} reaches out of what the other table covers, and counts can't be cut")
    } else {
        format!("both tables cover time in {window:?}; merge with replace to prefer the other's")
    };
    Error::argument("other", Code::OverlappingCoverage, message)
}
