//! Adds up tables of different times.

use std::sync::Arc;

use tallyfold_engine::Rows;

use super::identity::Identity;
use super::parse::refusal;
use super::part::{Part, pack};
use super::subject::Subject;
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
    /// `incompatible_tables` for other dimensions, another metric, another filter, and counts of another
    /// cluster or client,
    /// `overlapping_coverage`, `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub fn merge(&self, other: &Self, replace: bool) -> Result<Self> {
        let subject = self.subject.with(&other.subject, "other")?;
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
        sort(&mut parts);
        if !all_stay {
            return Self::of_parts(subject, parts);
        }
        // The sums of both tables are known, so the parts need not be added up again.
        let width = self.subject.dimensions.len();
        let both = Rows::combine(&[&self.rows, &other.rows], width);
        pack(parts.iter_mut(), width)?;
        Ok(Self { rows: Arc::new(both.map_err(refusal)?), parts, subject })
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
        let first = tables.next().ok_or_else(no_table)?;
        let mut parts = first.parts.clone();
        let mut subject = first.subject.clone();
        for table in tables {
            subject = subject.with(&table.subject, "tables")?;
            parts.extend_from_slice(&table.parts);
        }
        sort(&mut parts);
        let overlaps = |pair: &&[Part]| pair[0].window.overlaps(pair[1].window);
        if let Some(pair) = parts.windows(2).find(overlaps) {
            let message = format!("two tables cover time in {:?}", pair[1].window);
            return Err(Error::argument("tables", Code::OverlappingCoverage, message));
        }
        Self::of_parts(subject, parts)
    }
}

impl CountTable {
    /// Adds up the tables of several clusters or clients, which cover the same time. The label is the identity of the sum.
    ///
    /// If the tables have different windows, the sum has the smallest windows that contain whole windows of all tables.
    ///
    /// ```
    /// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/doc/host.rs"));
    /// # fn main() -> Result<()> {
    /// # use tallyfold::Frame;
    /// # let table = Host::new()?.quarter(36)?;
    /// # let other = CountTable::from_json(table.to_json().as_bytes())?;
    /// # let table = CountTable::combine([&table], "eu")?;
    /// let both = CountTable::combine([&table, &other], "all clusters")?;
    /// assert_eq!(both.totals().success, 2 * table.totals().success);
    /// assert_eq!(both.identity().as_str(), Some("all clusters"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `missing_argument` for no table at all and `invalid_argument` for an empty label, `incompatible_tables` for other
    /// dimensions, another metric or filter, for tables of the same cluster and client, and if one lacks time that another
    /// covers; `sum_overflow`, and `group_limit` for more than 1 GiB of values.
    pub fn combine<'a>(tables: impl IntoIterator<Item = &'a Self>, label: &str) -> Result<Self> {
        let tables: Vec<&Self> = tables.into_iter().collect();
        let first = *tables.first().ok_or_else(no_table)?;
        if label.is_empty() {
            return Err(Error::argument("label", Code::InvalidArgument, "want a name for the sum"));
        }
        let incompatible =
            |message| Err(Error::argument("tables", Code::IncompatibleTables, message));
        let coverage = first.coverage();
        let mut parts = Vec::new();
        for (index, table) in tables.iter().enumerate() {
            first.subject.check_like(&table.subject, "tables")?;
            if table.coverage() != coverage {
                return incompatible("one table lacks time that another covers; collect it first");
            }
            let own = table.identity().as_str();
            let is_same = |other: &&Self| own.is_some() && other.identity().as_str() == own;
            if tables[..index].iter().any(is_same) {
                return incompatible("two tables are of the same cluster and client");
            }
            parts.extend_from_slice(&table.parts);
        }
        sort(&mut parts);
        let mut sums: Vec<Part> = Vec::new();
        let mut rest = parts.as_slice();
        let width = first.subject.dimensions.len();
        while let Some(part) = rest.first() {
            let mut window = part.window;
            let mut length = 1;
            while let Some(next) = rest.get(length).filter(|part| part.window.overlaps(window)) {
                window = Window::new(window.start(), window.end().max(next.window.end()))?;
                length += 1;
            }
            let (same, after) = rest.split_at(length);
            sums.push(Part::sum_of(window, same, width)?);
            rest = after;
        }
        let subject = Subject { identity: Identity::new(label), ..first.subject.clone() };
        Self::of_parts(subject, sums)
    }

    /// Which cluster and client the counts belong to.
    #[must_use]
    pub fn identity(&self) -> &Identity {
        &self.subject.identity
    }
}

/// Sorts parts by their windows. It is a function, because otherwise each use would add a copy of the sorting to the
/// WebAssembly.
fn sort(parts: &mut [Part]) {
    parts.sort_unstable_by_key(|part| part.window);
}

fn no_table() -> Error {
    let message = "want one table or more: without any there are no dimensions";
    Error::argument("tables", Code::MissingArgument, message)
}

fn overlapping(window: Window, replace: bool) -> Error {
    let message = if replace {
        format!("{window:?} reaches out of what the other table covers, and counts can't be cut")
    } else {
        format!("both tables cover time in {window:?}; merge with replace to prefer the other's")
    };
    Error::argument("other", Code::OverlappingCoverage, message)
}
