//! A combination of attribute values.

/// A combination of values: which attributes it names, as bits, and the position of each value. Positions of attributes
/// that it does not name are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub(crate) attributes: u8,
    pub(crate) values: [u32; 8],
}

impl Element {
    /// How many attributes it names.
    pub(crate) fn layer(self) -> u32 {
        self.attributes.count_ones()
    }
}

/// A combination that was found, and how well it explains the change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) element: Element,
    pub(crate) score: f64,
}

/// What was found: causes in the order of their finding, and the other candidates of the first search, best first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finds {
    pub(crate) causes: Vec<Found>,
    pub(crate) others: Vec<Found>,
}
