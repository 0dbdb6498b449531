//! What is known of the receiver of a format, as data.

/// How messages of a format are delivered.
pub(crate) struct Delivery {
    /// How they get there.
    pub(crate) way: Way,
    /// Headers beside `content-type`.
    pub(crate) headers: &'static [(&'static str, &'static str)],
    /// Whether the receiver takes the same samples again without harm, so that whatever is in doubt is sent again.
    pub(crate) is_repeatable: bool,
    /// Whether a message is sent again after that status, besides 429. It is 500 or above.
    pub(crate) is_passing: fn(u16) -> bool,
    /// A header of each answer by a receiver that knows the format: how many samples it wrote.
    pub(crate) proof: Option<&'static str>,
    /// What the body of an answer says of samples that were rejected, while others were taken; `None` if it says nothing
    /// of that kind.
    pub(crate) partly: fn(u16, &[u8]) -> Option<Partly>,
}

/// For receivers of POST requests. What is known of one beside this, its format says.
pub(crate) const HTTP: Delivery = Delivery {
    way: Way::Http,
    headers: &[],
    is_repeatable: false,
    is_passing: |status| status >= 500,
    proof: None,
    partly: |_, _| None,
};

/// For receivers of datagrams.
pub(crate) const DATAGRAMS: Delivery = Delivery {
    way: Way::Datagrams,
    ..HTTP
};

/// What the body of an answer says of points that were rejected, while others were taken.
pub(crate) struct Partly {
    /// How many, if it says so.
    pub(crate) points: Option<u64>,
    /// Why.
    pub(crate) said: String,
}

/// How messages get to the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// As the bodies of POST requests.
    Http,
    /// As datagrams, which are never answered.
    Datagrams,
}
