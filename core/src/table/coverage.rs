//! Which time a table is of.

use std::sync::Arc;

use tallyfold_engine::{Counts, Rows};

use super::{CountTable, Notes, Part};
use crate::dimension::{Dimensions, Metric};
use crate::window::{Window, join_adjacent, uncovered};

impl CountTable {
    /// What the counts cover: sorted windows, with those that meet joined.
    #[must_use]
    pub fn coverage(&self) -> Vec<Window> {
        join_adjacent(self.parts.iter().map(|part| part.window))
    }

    /// The window of each response in the table, sorted.
    #[must_use]
    pub fn windows(&self) -> Vec<Window> {
        self.parts.iter().map(|part| part.window).collect()
    }

    /// What of a range the counts do not cover, sorted; by default of the time from the first
    /// window's start to the last one's end.
    ///
    /// ```
    /// # use tallyfold::{CountTable, Result, Window};
    /// # fn f(table: &CountTable) -> Result<()> {
    /// let day = Window::parse("2026-01-31T00:00:00Z", "2026-02-01T00:00:00Z")?;
    /// for gap in table.gaps(Some(day)) {
    ///     println!("nothing is known of {} to {}", gap.start(), gap.end());
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn gaps(&self, range: Option<Window>) -> Vec<Window> {
        let coverage = self.coverage();
        let whole = || Window::new(coverage.first()?.start(), coverage.last()?.end()).ok();
        range
            .or_else(whole)
            .map_or_else(Vec::new, |range| uncovered(range, coverage.iter().copied()))
    }

    /// The table of a window of which nothing has been read.
    pub(crate) fn empty(dimensions: Dimensions, metric: Metric, window: Window) -> Self {
        let no_values = vec![Vec::new(); dimensions.len()];
        let part = Part {
            window,
            reported: Some(Counts::default()),
            notes: Notes::default(),
            // Of no rows nothing can be refused.
            rows: Arc::new(Rows::from_values(&no_values, &[]).unwrap_or_default()),
        };
        Self::of_response(dimensions, Some(metric), part)
    }

    /// A table for each window, in the order of time.
    pub(crate) fn split(&self) -> impl Iterator<Item = (Window, Self)> {
        self.parts.iter().map(|part| {
            let one = Self {
                rows: Arc::clone(&part.rows),
                parts: vec![part.clone()],
                selection: self.selection.clone(),
                ..*self
            };
            (part.window, one)
        })
    }
}
