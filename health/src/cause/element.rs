//! A combination of attribute values.

/// A combination of attribute values: a bit for each attribute that it names, and the position of each value. The
/// positions of other attributes are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub(crate) attributes: u8,
    pub(crate) values: [u32; 8],
}

impl Element {
    /// The combination of a leaf's values of some attributes.
    pub(crate) fn of_leaf(attributes: u8, id: impl Fn(usize) -> u32) -> Self {
        let mut element = Self {
            attributes,
            values: [0; 8],
        };
        for (place, value) in element.values.iter_mut().enumerate() {
            if attributes & 1 << place != 0 {
                *value = id(place);
            }
        }
        element
    }

    /// Whether it names an attribute.
    pub(crate) fn names(self, attribute: usize) -> bool {
        self.attributes & 1 << attribute != 0
    }

    /// The same with any value of an attribute.
    pub(crate) fn without(mut self, attribute: usize) -> Self {
        self.attributes &= !(1 << attribute);
        self.values[attribute] = 0;
        self
    }

    /// Whether a leaf has all its values.
    pub(crate) fn is_of(self, id: impl Fn(usize) -> u32) -> bool {
        let mut values = self.values.iter().enumerate();
        values.all(|(place, value)| !self.names(place) || id(place) == *value)
    }

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

/// The result of a search: causes in the order in which they were found, and the other candidates of the first round,
/// best first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finds {
    pub(crate) causes: Vec<Found>,
    pub(crate) others: Vec<Found>,
    /// Whether no combination is a cause, because everything changed.
    pub(crate) is_global: bool,
}
