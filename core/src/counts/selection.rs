//! The filter of a table.

use super::dimension::Dimension;

/// For each dimension that a table was filtered by, the wanted values, sorted. Tables with
/// different selections are never added up, because the sum would cover only a part of the events
/// of some windows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection(pub(crate) Vec<(Dimension, Vec<String>)>);

impl Selection {
    /// This selection, restricted by another filter.
    pub(crate) fn narrowed(&self, dimension: Dimension, wanted: &[String]) -> Self {
        let mut narrowed = self.clone();
        let found = narrowed.0.binary_search_by_key(&dimension, |(known, _)| *known);
        match found {
            Ok(place) => narrowed.0[place].1.retain(|value| wanted.contains(value)),
            Err(place) => {
                let mut values = wanted.to_vec();
                values.sort_unstable();
                values.dedup();
                narrowed.0.insert(place, (dimension, values));
            }
        }
        narrowed
    }
}
