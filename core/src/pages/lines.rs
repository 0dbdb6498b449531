//! The response with the windows of a range: two lines of JSON for each window, or one if its call has failed, and a last
//! line. A response without the last line was cut.

use std::fmt;

use serde::Serialize;

use crate::checksum::checksum;
use crate::code::Code;
use crate::pages::answer::{Answer, Failure};
use crate::time::timestamp::Timestamp;
use crate::time::window::Window;
use crate::wire::json::writer::json_of;

/// The last line of a response with a range.
pub const LAST_LINE: &[u8] = b"{\"done\":true}\n";

#[derive(Serialize)]
struct Head {
    start: Timestamp,
    end: Timestamp,
    settled: bool,
}

#[derive(Serialize)]
struct FailedLine {
    start: Timestamp,
    end: Timestamp,
    error: FailureInside,
}

#[derive(Serialize)]
struct FailureInside {
    code: Code,
    kind: &'static str,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

/// The lines of a window: its edges, and the body that the service has sent, in one line.
#[must_use]
pub fn window_lines(window: Window, is_settled: bool, body: &[u8]) -> Vec<u8> {
    let head = json_of(&Head { start: window.start(), end: window.end(), settled: is_settled });
    let mut lines = Vec::with_capacity(head.len() + body.len() + 2);
    lines.extend_from_slice(head.as_bytes());
    lines.push(b'\n');
    // No string in JSON contains a line break, so all line breaks are between values.
    lines.extend(body.iter().map(|byte| match byte {
        b'\n' | b'\r' => b' ',
        byte => *byte,
    }));
    lines.push(b'\n');
    lines
}

/// The line of a window whose call has failed. The text of the error stays on the server, as in
/// [`Answer::failed_inside`].
#[must_use]
pub fn failed_line(
    window: Window,
    code: Code,
    status: Option<u16>,
    message: String,
    retry_after_s: Option<u64>,
    reference: &str,
) -> Vec<u8> {
    let Failure { code, kind, message } = Failure::inside(code, status, message, reference);
    let line = FailedLine {
        start: window.start(),
        end: window.end(),
        error: FailureInside {
            code,
            kind,
            message,
            status: status.map(u32::from),
            retry_after: retry_after_s,
        },
    };
    (json_of(&line) + "\n").into_bytes()
}

/// The tag of a range, for the header `etag`. It changes with the counts of the windows that are not settled.
///
/// A host begins with a text of its own, and the key of the range. It adds each window that is not settled, in the order of
/// time. It changes its text when a window that should be settled has failed or is not settled.
#[derive(Clone, Debug)]
pub struct RangeTag(String);

impl RangeTag {
    /// The tag of a range of settled windows only.
    #[must_use]
    pub fn new(own: &str, key: &str) -> Self {
        Self(checksum(&[own.as_bytes(), b" ", key.as_bytes()]))
    }

    /// Adds a window that is not settled.
    #[must_use]
    pub fn with(&self, key: &str, body: &[u8]) -> Self {
        let pieces: [&[u8]; 5] = [self.0.as_bytes(), b" ", key.as_bytes(), b" ", body];
        Self(checksum(&pieces))
    }

    /// The tag that was written as this text.
    #[must_use]
    pub fn resume(text: String) -> Self {
        Self(text)
    }

    /// The value of the header `etag`. It is weak, because a response may be compressed.
    fn header(&self) -> String {
        format!("W/\"{}\"", self.0)
    }

    /// Whether the header `if-none-match` of a request has it.
    fn is_in(&self, if_none_match: &str) -> bool {
        let own = self.header();
        let mut tags = if_none_match.split(',').map(str::trim);
        tags.any(|tag| tag == own)
    }
}

impl fmt::Display for RangeTag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Answer {
    /// The status and headers of the response with a range. The status is 304 if the header `if-none-match` shows that the
    /// browser has the response already; otherwise it is 200, and the lines follow. Without a tag, the browser does not store
    /// the response.
    #[must_use]
    pub fn of_range(tag: Option<&RangeTag>, if_none_match: Option<&str>) -> Self {
        let is_known = tag.zip(if_none_match).is_some_and(|(tag, known)| tag.is_in(known));
        let caching = match tag {
            Some(_) => "private, no-cache",
            None => "no-store",
        };
        let mut answer = Self {
            status: if is_known { 304 } else { 200 },
            headers: vec![("cache-control", caching.to_owned())],
            body: Vec::new(),
        };
        if let Some(tag) = tag {
            answer.headers.push(("etag", tag.header()));
        }
        if !is_known {
            let sent =
                [("content-type", "application/x-ndjson"), ("x-content-type-options", "nosniff")];
            let sent = sent.map(|(name, value)| (name, value.to_owned()));
            answer.headers.extend(sent);
        }
        answer
    }
}
