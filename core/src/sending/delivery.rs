//! What is known of the system that gets messages, as data; and where messages come from.

use crate::error::Result;
use crate::secret::Secret;

/// Where a push takes its messages from. A message consists of samples, such as the counts of a group in a window.
///
/// A clone continues at the same place, and both give the same messages.
pub trait Source: Clone {
    /// How the messages are delivered.
    ///
    /// # Errors
    /// `invalid_argument` if they aren't meant to be sent.
    fn delivery(&self) -> Result<&'static Delivery>;

    /// The media type of each message, for `Content-Type`.
    fn media_type(&self) -> &'static str;

    /// Writes the next message, of at most this many samples, in place of what `out` holds. Returns how many samples it
    /// has, or `None` after the last message.
    fn next_message(&mut self, most: usize, out: &mut Vec<u8>) -> Option<usize>;

    /// Leaves out the next samples, and returns how many of them don't exist.
    fn skip(&mut self, samples: u64) -> u64;

    /// What no error message may quote, besides headers and what is secret in the address.
    fn secrets(&self) -> &[Secret] {
        &[]
    }
}

/// How messages are delivered.
#[derive(Debug)]
pub struct Delivery {
    /// How they get there.
    pub way: Way,
    /// Headers next to `content-type`.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether the other system accepts the same samples again without harm. Then messages in doubt are sent again.
    pub is_repeatable: bool,
    /// Whether a message is sent again after this status, which is 500 or above. After 429 it always is.
    pub is_passing: fn(u16) -> bool,
    /// A header of each answer by a system that knows the format: how many samples it wrote.
    pub proof: Option<&'static str>,
    /// Whether an answer of 2xx is the one that the other system documents for success, by its status and body.
    pub is_accepted: fn(u16, &[u8]) -> bool,
    /// Whether the whole address is a secret: it is sent by https only, unless the caller allows http, and messages show
    /// nothing but its host.
    pub hides_address: bool,
    /// Which samples were rejected while others were accepted, by the body of an answer; `None` if it reports nothing
    /// of that kind.
    pub partly: fn(u16, &[u8]) -> Option<Partly>,
}

/// The usual delivery by POST requests. A format states what differs.
pub const HTTP: Delivery = Delivery {
    way: Way::Http,
    headers: &[],
    is_repeatable: false,
    is_passing: |status| status >= 500,
    proof: None,
    is_accepted: |_, _| true,
    hides_address: false,
    partly: |_, _| None,
};

/// The usual delivery by datagrams.
pub const DATAGRAMS: Delivery = Delivery {
    way: Way::Datagrams,
    ..HTTP
};

/// The data points that were rejected while others were accepted, by the body of an answer.
#[derive(Debug)]
pub struct Partly {
    /// How many, if the body contains the number.
    pub points: Option<u64>,
    /// The reason in the words of the other system.
    pub said: String,
}

/// How messages get to the other system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As the bodies of POST requests.
    Http,
    /// As datagrams, which are never answered.
    Datagrams,
}
