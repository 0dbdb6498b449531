//! Responses that several parts of a process share, so that the service gets one request for each window.

use std::cell::RefCell;
use std::rc::Rc;

use tallyfold::{Call, Now, Request, Result};
use tokio::sync::{Mutex, MutexGuard};

/// How long a response is kept. A part that lags further behind sends a request of its own. The time is below the
/// difference from which a part would report that the two clocks differ.
const KEPT_MS: u64 = 30_000;

/// How many bytes of bodies are kept at most.
const KEPT_BYTES: usize = 32 << 20;

/// A response as it came, without its secrets: none of the headers of a response with counts is one.
#[derive(Debug, Default)]
pub(crate) struct Copied {
    /// The status; 0 if no response has begun.
    pub(super) status: u16,
    /// The names and values of the headers.
    pub(super) headers: Vec<(String, String)>,
    /// The decoded body.
    pub(super) body: Vec<u8>,
    /// Whether the body has come to its end.
    pub(super) is_whole: bool,
}

impl Copied {
    /// Passes the response to a call, as if it had just arrived.
    ///
    /// # Errors
    /// The call's final error.
    pub(super) fn feed<T>(&self, call: &mut Call<T>) -> Result<()> {
        let headers = self.headers.iter();
        let headers: Vec<(&str, &str)> = headers
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        if call.head(self.status, &headers)? {
            call.chunk(&self.body)?;
            call.end()?;
        }
        Ok(())
    }
}

/// What a request asks for. Equal requests for counts have equal answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    url: String,
    body: Vec<u8>,
}

impl Asked {
    /// The key of a request for counts; `None` for a request for a token, whose body contains a secret.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let is_authorized = request.headers().any(|(name, _)| name == "authorization");
        is_authorized.then(|| Self {
            url: request.url().to_owned(),
            body: request.body().unwrap_or_default().to_vec(),
        })
    }
}

/// A response that is kept.
struct Kept {
    asked: Asked,
    response: Rc<Copied>,
    /// When the request was sent.
    begun: Now,
    /// Whether each part has had it.
    had: Vec<bool>,
}

/// The last responses of one cluster, for all parts that read the same windows.
///
/// A part gets each response at most once, so it reads a correction anew. Each part keeps a follow and a state of its
/// own, which decide what is settled and what has changed. So sharing changes how many requests are sent, and no count.
pub(crate) struct Readings {
    parts: usize,
    kept: RefCell<Vec<Kept>>,
    /// Held by the part whose request is under way. Another part may need the same response.
    turn: Mutex<()>,
}

/// One of the parts that share responses.
#[derive(Clone)]
pub(crate) struct Sharer {
    readings: Rc<Readings>,
    part: usize,
}

impl Readings {
    /// One value for each of so many parts.
    pub(crate) fn shared_by(parts: usize) -> Vec<Sharer> {
        let readings = Rc::new(Self {
            parts,
            kept: RefCell::default(),
            turn: Mutex::new(()),
        });
        let sharer = |part| Sharer {
            readings: Rc::clone(&readings),
            part,
        };
        (0..parts).map(sharer).collect()
    }
}

impl Sharer {
    /// Waits until no other part's request is under way.
    pub(super) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.readings.turn.lock().await
    }

    /// A response that another part has read and this part has not had. Its window may settle from `settles_ms` on, so a
    /// response from before that time is not given after it.
    pub(super) fn take(&self, asked: &Asked, now: Now, settles_ms: i64) -> Option<Rc<Copied>> {
        let mut kept = self.readings.kept.borrow_mut();
        kept.retain(|one| now.since(one.begun) < KEPT_MS);
        let place = kept.iter().position(|one| one.asked == *asked)?;
        let one = &mut kept[place];
        let is_late = one.begun.unix_ms < settles_ms && settles_ms <= now.unix_ms;
        if is_late || std::mem::replace(one.had.get_mut(self.part)?, true) {
            return None;
        }
        let response = Rc::clone(&one.response);
        if one.had.iter().all(|had| *had) {
            kept.remove(place);
        }
        Some(response)
    }

    /// Keeps a response that this part has read, in place of an earlier one to the same request. A response without a
    /// `Date` is not kept: nothing would show its age.
    pub(super) fn keep(&self, asked: Asked, response: Copied, begun: Now) {
        let mut kept = self.readings.kept.borrow_mut();
        kept.retain(|one| one.asked != asked);
        let has_date = response.headers.iter().any(|(name, _)| name == "date");
        if response.status != 200 || !has_date {
            return;
        }
        let mut had = vec![false; self.readings.parts];
        had.iter_mut()
            .enumerate()
            .for_each(|(part, had)| *had = part == self.part);
        kept.push(Kept {
            asked,
            response: Rc::new(response),
            begun,
            had,
        });
        let bytes = |kept: &[Kept]| {
            kept.iter()
                .map(|one| one.response.body.len())
                .sum::<usize>()
        };
        while bytes(&kept) > KEPT_BYTES {
            kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(window: &str) -> Asked {
        Asked {
            url: "https://a.example/".to_owned(),
            body: window.into(),
        }
    }

    fn response() -> Copied {
        Copied {
            status: 200,
            headers: vec![("date".to_owned(), "x".to_owned())],
            body: b"{}".to_vec(),
            is_whole: true,
        }
    }

    fn at(ms: u64) -> Now {
        Now {
            monotonic_ms: ms,
            unix_ms: i64::try_from(ms).unwrap(),
        }
    }

    const NEVER: i64 = i64::MAX;

    #[test]
    fn each_part_has_a_response_once() {
        let parts = Readings::shared_by(3);
        assert!(parts[0].take(&asked("a"), at(0), NEVER).is_none());
        parts[0].keep(asked("a"), response(), at(0));
        assert!(parts[1].take(&asked("b"), at(1), NEVER).is_none());
        assert!(parts[0].take(&asked("a"), at(1), NEVER).is_none());
        assert!(parts[1].take(&asked("a"), at(1), NEVER).is_some());
        assert!(parts[1].take(&asked("a"), at(1), NEVER).is_none());
        assert!(parts[2].take(&asked("a"), at(1), NEVER).is_some());
        assert!(parts[0].readings.kept.borrow().is_empty());
        // A correction is for all parts again.
        parts[0].keep(asked("a"), response(), at(2));
        assert!(parts[1].take(&asked("a"), at(2), NEVER).is_some());
    }

    #[test]
    fn an_old_response_is_not_shared() {
        let parts = Readings::shared_by(2);
        parts[0].keep(asked("a"), response(), at(10));
        assert!(
            parts[1]
                .take(&asked("a"), at(10 + KEPT_MS), NEVER)
                .is_none()
        );
        parts[0].keep(asked("a"), response(), at(10));
        assert!(parts[1].take(&asked("a"), at(20), 15).is_none());
        assert!(parts[1].take(&asked("a"), at(20), 21).is_some());
        for wrong in [
            Copied {
                status: 500,
                ..response()
            },
            Copied {
                headers: Vec::new(),
                ..response()
            },
        ] {
            parts[0].keep(asked("a"), wrong, at(20));
            assert!(parts[1].take(&asked("a"), at(20), NEVER).is_none());
        }
    }
}
