//! A combination of attribute values.

/// A combination of values: which attributes it names, as bits, and the position of each value. Positions of attributes
/// that it does not name are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Element {
    pub(crate) attributes: u8,
    pub(crate) values: [u32; 8],
}

impl Element {
    /// The values of some attributes that a leaf has.
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

/// What was found: causes in the order of their finding, and the other candidates of the first search, best first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Finds {
    pub(crate) causes: Vec<Found>,
    pub(crate) others: Vec<Found>,
    /// Whether nothing narrower than everything is a cause.
    pub(crate) is_global: bool,
}
