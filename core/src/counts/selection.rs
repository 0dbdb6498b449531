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
        match narrowed.0.iter_mut().find(|(known, _)| *known == dimension) {
            Some((_, values)) => values.retain(|value| wanted.contains(value)),
            None => narrowed.0.push((dimension, wanted.to_vec())),
        }
        narrowed.0.sort_unstable_by_key(|(dimension, _)| *dimension);
        for (_, values) in &mut narrowed.0 {
            values.sort_unstable();
            values.dedup();
        }
        narrowed
    }
}
