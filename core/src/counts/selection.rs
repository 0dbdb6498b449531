//! What a table was filtered by.

use super::dimension::Dimension;

/// The values that a table was filtered by, for each dimension that it was; sorted. A table of a
/// selection is never added to a table of another one, as the sum would claim to be whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Selection(pub(crate) Vec<(Dimension, Vec<String>)>);

impl Selection {
    /// This selection and that of more values.
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
