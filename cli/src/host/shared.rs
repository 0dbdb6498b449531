//! Shares responses between the parts of `tallyfold run`, such as pushes and the check, so that the service gets only one
//! request for each window.

use std::cell::RefCell;
use std::rc::Rc;

use tallyfold::{Call, Dimension, Metric, Now, Request, Result, Window};
use tokio::sync::Notify;

/// How long a response is kept. A part that needs the response later sends its own request. The time is short, because the
/// `Date` of an older response would look like a difference between this machine's clock and the service's.
const KEPT_MS: u64 = 30_000;

/// The maximum size of all bodies that are kept for a cluster, in bytes: enough for several windows.
const KEPT_BYTES: usize = 4 << 20;

/// A response to a part that looks back is kept only if its window settled at most this long ago. Other parts don't read
/// older windows.
const READ_BY_ALL_MS: i64 = 86_400_000;

/// A copy of a response. A response with counts contains no secret.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copied {
    /// The status; 0 if no response has begun.
    pub(super) status: u16,
    /// The names and values of the headers.
    pub(super) headers: Vec<(String, String)>,
    /// The decoded body.
    pub(super) body: Vec<u8>,
    /// Whether the body is complete.
    pub(super) is_whole: bool,
}

impl Copied {
    /// Passes the response to a call, as if it had just arrived.
    ///
    /// # Errors
    /// The call's final error.
    pub(super) fn feed<T>(&self, call: &mut Call<T>) -> Result<()> {
        let headers = self.headers.iter();
        let headers: Vec<(&str, &str)> =
            headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        if call.head(self.status, &headers)? {
            call.chunk(&self.body)?;
            call.end()?;
        }
        Ok(())
    }
}

/// What identifies a request for counts. Equal requests get equal responses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    url: String,
    body: Vec<u8>,
    window: Window,
}

impl Asked {
    /// Returns what identifies a request for the counts of a window; `None` for a token request, whose body contains a secret.
    pub(super) fn of(request: &Request, window: Option<Window>) -> Option<Self> {
        let is_authorized = request.headers().any(|(name, _)| name == "authorization");
        is_authorized.then_some(Self {
            url: request.url().to_owned(),
            body: request.body().unwrap_or_default().to_vec(),
            window: window?,
        })
    }
}

/// A response that is kept.
struct Kept {
    asked: Asked,
    response: Rc<Copied>,
    /// When the request was sent.
    begun: Now,
    /// For each part, whether it has received the response.
    had: Vec<bool>,
}

/// The latest responses of one cluster, for all parts that read the same windows.
///
/// A part gets each response at most once, so when it reads a window again, it gets a new response. Each part has its own
/// state, which decides which windows are settled and what has changed. So sharing reduces the number of requests, and changes
/// no counts.
pub(crate) struct Readings {
    parts: usize,
    /// The dimensions that all parts request, so that their requests are equal.
    by: Vec<(Metric, Vec<Dimension>)>,
    kept: RefCell<Vec<Kept>>,
    /// The requests whose responses have not arrived yet. Other parts wait for them instead of sending equal requests.
    under_way: RefCell<Vec<Asked>>,
    ended: Notify,
}

/// How a part reads windows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    /// The part treats a window as settled when this many milliseconds have passed since the window's end.
    pub(crate) settle_ms: u64,
    /// Whether the part also reads old windows, which no other part reads.
    pub(crate) looks_back: bool,
}

/// One of the parts that share responses.
#[derive(Clone)]
pub(crate) struct Sharer {
    readings: Rc<Readings>,
    part: usize,
    reader: Reader,
}

/// A part's turn to send a request. Until it is dropped, no other part sends an equal request.
pub(super) struct Turn<'a> {
    readings: &'a Readings,
    asked: &'a Asked,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut under_way = self.readings.under_way.borrow_mut();
        under_way.retain(|one| one != self.asked);
        self.readings.ended.notify_waiters();
    }
}

impl Readings {
    /// Returns a sharer for each part. All parts request the dimensions that `by` contains for a metric.
    pub(crate) fn shared_by(readers: &[Reader], by: Vec<(Metric, Vec<Dimension>)>) -> Vec<Sharer> {
        let readings = Rc::new(Self {
            parts: readers.len(),
            by,
            kept: RefCell::default(),
            under_way: RefCell::default(),
            ended: Notify::new(),
        });
        let sharer = |(part, reader): (usize, &Reader)| Sharer {
            readings: Rc::clone(&readings),
            part,
            reader: *reader,
        };
        readers.iter().enumerate().map(sharer).collect()
    }
}

impl Sharer {
    /// Returns the dimensions that all parts request for a metric; `None` if they lack some of `own`.
    pub(super) fn by(&self, metric: Metric, own: &[Dimension]) -> Option<&[Dimension]> {
        let (_, all) = self.readings.by.iter().find(|(of, _)| *of == metric)?;
        own.iter().all(|one| all.contains(one)).then_some(all)
    }

    /// Waits until no other part's equal request is under way.
    pub(super) async fn turn<'a>(&'a self, asked: &'a Asked) -> Turn<'a> {
        let readings = &*self.readings;
        loop {
            let ended = readings.ended.notified();
            if !readings.under_way.borrow().contains(asked) {
                readings.under_way.borrow_mut().push(asked.clone());
                return Turn { readings, asked };
            }
            ended.await;
        }
    }

    /// Returns the time from which this part may treat a window as settled, in milliseconds since 1970.
    fn settles_ms(&self, asked: &Asked) -> i64 {
        let end_ms = asked.window.end().unix_ms();
        end_ms.saturating_add_unsigned(self.reader.settle_ms)
    }

    /// Returns a response that another part has read, and that this part has not received. Once this part may treat the
    /// window as settled, it needs a response to a request that was sent after the settle time, so older responses are not
    /// returned.
    pub(super) fn take(&self, asked: &Asked, now: Now) -> Option<Rc<Copied>> {
        let settles_ms = self.settles_ms(asked);
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

    /// Keeps a response that this part has read, in place of an earlier response to the same request. A response without a
    /// `Date` is not kept, because nothing would show its age.
    pub(super) fn keep(&self, asked: &Asked, response: Copied, begun: Now) {
        let mut kept = self.readings.kept.borrow_mut();
        kept.retain(|one| one.asked != *asked);
        let has_date = response.headers.iter().any(|(name, _)| name == "date");
        let is_old = self.reader.looks_back
            && begun.unix_ms.saturating_sub(self.settles_ms(asked)) > READ_BY_ALL_MS;
        if response.status != 200 || !has_date || is_old {
            return;
        }
        let parts = 0..self.readings.parts;
        kept.push(Kept {
            asked: asked.clone(),
            response: Rc::new(response),
            begun,
            had: parts.map(|part| part == self.part).collect(),
        });
        let bytes = |kept: &[Kept]| kept.iter().map(|one| one.response.body.len()).sum::<usize>();
        while bytes(&kept) > KEPT_BYTES {
            kept.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use tallyfold::Timestamp;

    use super::*;

    /// Returns a request for a window of ten milliseconds.
    fn asked(body: &str) -> Asked {
        let time = |ms| Timestamp::from_unix_ms(ms).unwrap();
        Asked {
            url: "https://a.example/".to_owned(),
            body: body.into(),
            window: Window::new(time(0), time(10)).unwrap(),
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
        Now { monotonic_ms: ms, unix_ms: i64::try_from(ms).unwrap() }
    }

    fn shared_by(settle_ms: &[u64]) -> Vec<Sharer> {
        let reader = |(part, settle_ms): (usize, &u64)| Reader {
            settle_ms: *settle_ms,
            looks_back: part == 2,
        };
        let readers: Vec<Reader> = settle_ms.iter().enumerate().map(reader).collect();
        let by = vec![Dimension::Integration, Dimension::Reason];
        Readings::shared_by(&readers, vec![(Metric::EventDelivery, by)])
    }

    const NEVER: u64 = 1 << 40;

    #[test]
    fn each_part_gets_a_response_once() {
        let parts = shared_by(&[NEVER; 3]);
        assert!(parts[0].take(&asked("a"), at(0)).is_none());
        parts[0].keep(&asked("a"), response(), at(0));
        assert!(parts[1].take(&asked("b"), at(1)).is_none());
        assert!(parts[0].take(&asked("a"), at(1)).is_none());
        assert!(parts[1].take(&asked("a"), at(1)).is_some());
        assert!(parts[1].take(&asked("a"), at(1)).is_none());
        assert!(parts[2].take(&asked("a"), at(1)).is_some());
        assert!(parts[0].readings.kept.borrow().is_empty());
        // A new response to the same request is for all parts again.
        parts[0].keep(&asked("a"), response(), at(2));
        assert!(parts[1].take(&asked("a"), at(2)).is_some());
    }

    #[test]
    fn only_recent_successful_responses_are_shared() {
        // The window ends at 10 ms. The second part may treat it as settled at 15 ms, and the third part at 21 ms.
        let parts = shared_by(&[NEVER, 5, 11]);
        parts[0].keep(&asked("a"), response(), at(10));
        assert!(parts[1].take(&asked("a"), at(10 + KEPT_MS)).is_none());
        parts[0].keep(&asked("a"), response(), at(10));
        assert!(parts[1].take(&asked("a"), at(20)).is_none());
        assert!(parts[2].take(&asked("a"), at(20)).is_some());
        for wrong in
            [Copied { status: 500, ..response() }, Copied { headers: Vec::new(), ..response() }]
        {
            parts[0].keep(&asked("a"), wrong, at(20));
            assert!(parts[1].take(&asked("a"), at(20)).is_none());
        }
        let week_ms = 7 * READ_BY_ALL_MS.unsigned_abs();
        parts[2].keep(&asked("a"), response(), at(week_ms));
        assert!(parts[1].take(&asked("a"), at(week_ms)).is_none());
        parts[1].keep(&asked("a"), response(), at(week_ms));
        assert!(parts[2].take(&asked("a"), at(week_ms)).is_some());
    }

    #[test]
    fn parts_request_the_same_dimensions() {
        let parts = shared_by(&[NEVER]);
        let by = |own: &[Dimension]| parts[0].by(Metric::EventDelivery, own).map(<[_]>::len);
        assert_eq!(by(&[Dimension::Reason]), Some(2));
        assert_eq!(by(&[Dimension::Reason, Dimension::WriteKey]), None);
        assert_eq!(parts[0].by(Metric::EventIngestion, &[]), None);
    }

    #[tokio::test]
    async fn only_equal_requests_wait_for_each_other() {
        let parts = shared_by(&[NEVER; 2]);
        let (one, other) = (asked("a"), asked("b"));
        let turn = parts[0].turn(&one).await;
        drop(parts[1].turn(&other).await);
        let mut waiting = Box::pin(parts[1].turn(&one));
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(turn);
        drop(waiting.await);
        assert!(parts[0].readings.under_way.borrow().is_empty());
    }
}
