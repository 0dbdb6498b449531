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

/// For receivers that may recover from any status of 500 or above.
pub(crate) fn any_server_error(status: u16) -> bool {
    status >= 500
}

/// For receivers that take a message whole or not at all.
pub(crate) fn never_partly(_: u16, _: &[u8]) -> Option<Partly> {
    None
}
