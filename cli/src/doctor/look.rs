//! Drives a call and looks at what it does not tell: how long it took, and how its last response came.

use std::time::{Duration, Instant};

use reqwest::header::{CONTENT_ENCODING, HeaderName, LOCATION};
use tallyfold::sending::named;
use tallyfold::{Call, Code, Error, HostFailure, Result, Spelling, Step};
use tokio::time::{sleep, timeout};

use super::advice;
use super::check::{Check, CheckName};
use super::route::Place;
use crate::host::exchange::{Broken, Outgoing, Receiver};
use crate::host::session::Session;

/// What was seen of a call.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The coding of the last response; `None` if it was not compressed.
    pub(crate) coding: Option<String>,
    /// The length of its body, decoded.
    pub(crate) bytes: u64,
    /// Where its last response redirects to.
    pub(crate) leads_to: Option<String>,
    /// The name of what happened on the network, if the exchange broke.
    pub(crate) trouble: Option<&'static str>,
    /// How long the call took.
    pub(crate) took: Duration,
}

/// Drives a call to its end, at most so long.
pub(crate) async fn look(
    session: &Session,
    call: &mut Call,
    limit: Option<Duration>,
) -> (Result<()>, Seen) {
    let mut seen = Seen::default();
    let started = Instant::now();
    let drive = drive(session, call, &mut seen);
    let ended = match limit {
        None => drive.await,
        Some(limit) => timeout(limit, drive).await.unwrap_or_else(|_| Err(slow())),
    };
    seen.took = started.elapsed();
    (ended, seen)
}

/// The error of a check that took too long.
pub(crate) fn slow() -> Error {
    Error::new(Code::TimedOut, "the check took too long")
}

async fn drive(session: &Session, call: &mut Call, seen: &mut Seen) -> Result<()> {
    loop {
        let ended = match call.step(session.now())? {
            Step::Send(request) => {
                *seen = Seen::default();
                let outgoing = Outgoing::of(&session.http, &request);
                let mut looking = Looking { call, seen };
                // The limit of the whole check holds for the exchange too.
                let ended = outgoing.exchange(None, &mut looking).await;
                match ended {
                    Ok(()) => Ok(()),
                    Err(Broken::Refused(error)) => Err(error),
                    Err(Broken::Network(name)) => {
                        seen.trouble = Some(name);
                        call.failed(HostFailure::Network, name)
                    }
                    Err(Broken::TimedOut) => call.failed(HostFailure::Timeout, "TimeoutError"),
                }
            }
            Step::Wait { ms } => {
                sleep(Duration::from_millis(ms.into())).await;
                Ok(())
            }
            Step::Done => return Ok(()),
            // The calls of a check are made one after the other, with a secret.
            Step::Blocked { .. } | Step::ProvideToken { .. } => {
                Err(Error::new(Code::OutOfOrder, "another call is under way"))
            }
        };
        session.report(call);
        ended?;
    }
}

struct Looking<'a> {
    call: &'a mut Call,
    seen: &'a mut Seen,
}

impl Receiver for Looking<'_> {
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        let first = |name: HeaderName| named(headers, name.as_str()).next();
        self.seen.coding = first(CONTENT_ENCODING).map(str::to_owned);
        self.seen.leads_to = first(LOCATION).map(destination);
        self.call.head(status, headers)
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        self.seen.bytes += chunk.len() as u64;
        self.call.chunk(chunk).map(|()| true)
    }

    fn end(&mut self) -> Result<()> {
        self.call.end()
    }
}

/// Where a redirect leads, without the path, the query and the user, which may hold a secret.
fn destination(location: &str) -> String {
    match Place::of(location) {
        Some(place) if !place.origin.contains('@') => place.origin,
        None if location.starts_with('/') && !location.starts_with("//") => {
            "another path of the same server".to_owned()
        }
        _ => "an address that is not shown".to_owned(),
    }
}

/// The failed check of a call.
pub(crate) fn failed(name: CheckName, error: &Error, seen: &Seen) -> Check {
    let next = match seen.trouble {
        Some(trouble) => advice::of_trouble(trouble),
        None => advice::of_code(error.code(), error.status()),
    };
    let text = error.text_in(Spelling::Flag).to_string();
    // The code has a field of its own.
    let text = text
        .strip_prefix(&format!("{}: ", error.code()))
        .unwrap_or(&text);
    let what = match (error.status(), &seen.leads_to) {
        (Some(status), Some(place)) => format!("status {status}, which leads to {place}"),
        (Some(status), None) => format!("status {status}"),
        (None, _) => "no usable response".to_owned(),
    };
    Check {
        code: Some(error.code()),
        status: error.status(),
        ..Check::failed(name, error.kind().into(), what, text, next).took(seen.took)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_shown_without_what_may_be_secret() {
        for (location, shown) in [
            ("https://login.example/a?session=1", "https://login.example"),
            ("http://a.example:81", "http://a.example:81"),
            ("/login?session=1", "another path of the same server"),
            ("https://me:pw@a.example/", "an address that is not shown"),
            ("//a.example/login", "an address that is not shown"),
            ("login", "an address that is not shown"),
            ("", "an address that is not shown"),
        ] {
            assert_eq!(destination(location), shown);
        }
    }
}
