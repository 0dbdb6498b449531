//! The properties of the system that receives messages, as data, and the source of the messages.

use crate::error::Result;
use crate::secret::Secret;

/// The source of a push's messages. A message consists of samples, such as the counts of a group in a window.
///
/// A clone continues at the same place, and both give the same messages.
pub trait Source: Clone {
    /// How the messages are delivered.
    ///
    /// # Errors
    /// `invalid_argument` if the messages aren't meant to be sent.
    fn delivery(&self) -> Result<&'static Delivery>;

    /// The media type of each message, for `Content-Type`.
    fn media_type(&self) -> &'static str;

    /// Replaces the contents of `out` with the next message, which has at most `most` samples. Returns how many samples
    /// it has, or `None` after the last message.
    fn next_message(&mut self, most: usize, out: &mut Vec<u8>) -> Option<usize>;

    /// Skips the next samples, and returns how many of them don't exist.
    fn skip(&mut self, samples: u64) -> u64;

    /// Secrets that no error message may quote, in addition to the headers and the secrets in the address.
    fn secrets(&self) -> &[Secret] {
        &[]
    }
}

/// How messages are delivered.
#[derive(Debug)]
pub struct Delivery {
    /// How messages are transported.
    pub transport: Transport,
    /// Headers next to `content-type`.
    pub headers: &'static [(&'static str, &'static str)],
    /// Whether the other system accepts the same samples again without harm. Then messages in doubt are sent again.
    pub is_repeatable: bool,
    /// Whether a message is sent again after this status, which is 500 or above. After 429, it is always sent again.
    pub is_passing: fn(u16) -> bool,
    /// A header in each response of a system that knows the format. It contains how many samples the system wrote.
    pub proof: Option<&'static str>,
    /// Whether a 2xx response that isn't an HTML page is the one that the other system documents for success.
    pub is_accepted: fn(&Answer<'_>) -> bool,
    /// Whether a response with a status that is otherwise transient refuses the message for good.
    pub is_final: fn(&Answer<'_>) -> bool,
    /// Whether the whole address is a secret. Then it is used with https only, unless the caller allows http, and
    /// messages show only its host.
    pub hides_address: bool,
    /// Reads from a response which samples the other system rejected while it accepted others; `None` if the response
    /// reports nothing of that kind.
    pub partly: fn(u16, &[u8]) -> Option<Partly>,
}

/// A response of the other system.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status.
    pub status: u16,
    /// The media type of the body, in lower case and without parameters; empty without one.
    pub media_type: &'a str,
    /// The body, or the first 64 KiB of it.
    pub body: &'a [u8],
}

impl Answer<'_> {
    /// Whether the body may be of this media type: it is the one that the response names, if it names one.
    #[must_use]
    pub fn is_of(&self, media_type: &str) -> bool {
        self.media_type.is_empty() || self.media_type == media_type
    }

    /// Whether the body has nothing but white space.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.body.trim_ascii().is_empty()
    }

    /// Whether the body is a web page, such as a login page, or a page of a proxy or of another server. Systems that receive
    /// messages never respond with one.
    #[must_use]
    pub fn is_page(&self) -> bool {
        let begin = self.body.trim_ascii_start();
        let begins = |tag: &[u8]| {
            begin.get(..tag.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(tag))
        };
        matches!(self.media_type, "text/html" | "application/xhtml+xml")
            || begins(b"<!doctype html")
            || begins(b"<html")
    }
}

/// The usual delivery by POST requests. A format states what differs.
pub const HTTP: Delivery = Delivery {
    transport: Transport::Http,
    headers: &[],
    is_repeatable: false,
    is_passing: |status| status >= 500,
    proof: None,
    is_accepted: |_| true,
    is_final: |_| false,
    hides_address: false,
    partly: |_, _| None,
};

/// The usual delivery by datagrams.
pub const DATAGRAMS: Delivery = Delivery { transport: Transport::Datagrams, ..HTTP };

/// The data points that the other system rejected while it accepted others, from the body of its response.
#[derive(Debug)]
pub struct Partly {
    /// How many, if the body contains the number.
    pub points: Option<u64>,
    /// The reason in the words of the other system.
    pub said: String,
}

/// How messages get to the other system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Transport {
    /// As the bodies of POST requests.
    Http,
    /// As datagrams, to which there is no response.
    Datagrams,
}
