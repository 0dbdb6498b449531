//! A push in progress: a state machine without I/O.

use std::fmt;

use serde::Serialize;

use super::delivery::{Answer, Delivery, Partly, Source, Transport};
use super::options::{Guarantee, PushOptions, Target, TargetHeaders};
use crate::calls::broken::broken;
use crate::calls::delay::Delay;
use crate::calls::retry::jitter::Jitter;
use crate::calls::retry::passing::LONGEST_TIMER_MS;
use crate::calls::step::HostFailure;
use crate::code::Code;
use crate::error::{Error, Result};
use crate::secret::Secret;
use crate::time::now::Now;
use crate::time::patience::Patience;
use crate::wire::excerpt::Excerpt;
use crate::wire::headers::named;
use crate::wire::retry_after::retry_after;

/// At most this many bytes of a response's body are read to find what was rejected.
const MOST_OF_ANSWER: usize = 64 * 1024;

/// The error detail for a datagram that is too large for the network.
const TOO_LARGE: &str = "EMSGSIZE";

/// Error details that prove that the destination received no byte of a message, also without
/// [`HostFailure::NotSent`]: there was no connection.
const NEVER_SENT: &[&str] = &["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "OFFLINE"];

/// What the caller must do next. It must handle every step, so a new kind of step breaks its build, on purpose.
#[derive(Debug)]
#[must_use = "the host must carry out the step"]
pub enum PushStep<'a> {
    /// Send this message. For an HTTP response, call [`Push::head`], [`Push::chunk`] and [`Push::end`]; after a
    /// datagram was sent, [`Push::sent`]; after a failure, [`Push::failed`].
    Send(Message<'a>),
    /// Wait this long, or less, and call [`Push::step`] again.
    Wait {
        /// Milliseconds on the monotonic clock, at most 2^31 - 1.
        ms: u32,
    },
    /// Store these numbers if another process may resume this push ([`PushOptions::finished`] and
    /// [`PushOptions::in_doubt`]), and call [`Push::step`] again. A message that must be sent at most once counts as
    /// finished before it is sent. If the destination refuses it, the number decreases again.
    Finished {
        /// How many of the export's samples are finished.
        samples: u64,
        /// How many samples are in doubt if the process ends now: those that are being sent, and all that
        /// [`PushReport::unsure`] counts. Always 0 without [`PushOptions::in_doubt`]. Keep the number until somebody has
        /// seen the report of a push.
        in_doubt: u64,
    },
    /// Everything was sent.
    Done,
}

/// A message to send: a POST request, or a datagram.
pub struct Message<'a> {
    /// The whole address.
    pub url: &'a str,
    /// The bytes to send.
    pub body: &'a [u8],
    media_type: &'static str,
    delivery: &'static Delivery,
    headers: &'a TargetHeaders,
}

impl Message<'_> {
    /// The headers of the request, with names in lower case.
    pub fn headers(&self) -> impl Iterator<Item = (&str, &str)> {
        let own = [("content-type", self.media_type)].into_iter();
        own.chain(self.delivery.headers.iter().copied()).chain(self.headers.0.iter())
    }

    /// Whether this is a datagram and not a request.
    #[must_use]
    pub fn is_datagram(&self) -> bool {
        self.delivery.transport == Transport::Datagrams
    }
}

impl fmt::Debug for Message<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.headers().map(|(name, _)| name).collect();
        f.debug_struct("Message")
            .field("headers", &names)
            .field("bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// A push in progress. Its steps make the caller send one message after the other. It interprets the responses, and
/// then waits and retries, or ends with an error.
///
/// A 2xx response means that the destination accepted the message only if it is the response that the destination
/// documents for success. 413 means that the message is too large, so it is cut in two. A
/// message is sent again after 429, which may contain a waiting time, after a server's transient failures and after
/// broken connections, unless it must be sent at most once and may have arrived. Anything else ends the push. The error
/// about a response quotes the beginning of its body, unless that is a web page.
pub struct Push<S> {
    source: S,
    /// The source as it was before the current message.
    before: S,
    delivery: &'static Delivery,
    media_type: &'static str,
    target: Target,
    headers: TargetHeaders,
    /// Secrets that no message may quote.
    secrets: Vec<Secret>,
    is_careful: bool,
    patience: Patience,
    state: State,
    body: Vec<u8>,
    /// The samples in `body`.
    samples: usize,
    /// The most samples in a message, once one was too large.
    most_samples: usize,
    finished: u64,
    /// Whether the caller stores how many samples are in doubt.
    is_marking: bool,
    /// How many of the finished samples are being sent.
    being_sent: u64,
    /// The values of `finished` and `in_doubt` that the caller got last.
    reported: [u64; 2],
    retries_of_message: u32,
    /// When the first failed attempt since the last accepted message was sent.
    failing_since: Option<Now>,
    now: Now,
    jitter: Jitter,
    report: PushReport,
    /// The last reason for sending a message again.
    trouble: Option<Error>,
}

/// The result of a push.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct PushReport {
    /// Messages that were taken.
    pub messages: u64,
    /// Samples in them: the counts of a group in a window are one sample.
    pub samples: u64,
    /// Bytes of their bodies.
    pub bytes: u64,
    /// Messages that were sent again.
    pub retries: u64,
    /// Samples that were sent but not acknowledged, and are not sent again: only if each is to be sent at most once.
    pub unsure: u64,
    /// What the destination rejected in messages that it took otherwise. This is not sent again.
    pub rejected: Vec<Rejected>,
}

/// What a destination rejected in a message that it took otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "surface", derive(schemars::JsonSchema))]
pub struct Rejected {
    /// How many data points, if the destination says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub points: Option<u64>,
    /// What it says, as one line; empty if it says nothing.
    pub message: String,
}

enum State {
    /// The next message has to be made.
    Ready,
    /// Before the message is sent, the caller must store that it is finished.
    Stored,
    /// The message has to be sent.
    Due,
    Waiting(Delay),
    /// The caller is sending the message.
    UnderWay,
    /// The caller is passing the body of the response.
    Answered {
        status: u16,
        media_type: String,
        verdict: Verdict,
        body: Vec<u8>,
    },
    /// The destination accepted the message. The caller must store that, unless it did so before the message was sent.
    Taken,
    Ended(Option<Error>),
}

/// What the head of a response means.
enum Verdict {
    /// The message was accepted, if the body agrees.
    Accepted,
    Refused(Error),
    /// The destination may accept the same message later.
    Passing {
        error: Error,
        /// The waiting time that the response requests.
        asked_ms: Option<u64>,
        /// Whether the destination accepted nothing of it.
        is_refused: bool,
    },
}

impl<S: Source> Push<S> {
    /// Begins to send the messages of a source.
    ///
    /// # Errors
    /// `invalid_argument` for a source that isn't meant to be sent, for a guarantee if the destination accepts repeated
    /// messages without harm, and for more `finished` samples than there are; `invalid_base_address` and
    /// `insecure_base_address` for the address.
    pub fn new(mut source: S, options: &PushOptions) -> Result<Self> {
        let delivery = source.delivery()?;
        let target = options.target(delivery)?;
        if source.skip(options.finished) > 0 {
            let message = "there are fewer samples: this belongs to a push of other counts";
            return Err(Error::argument("finished", Code::InvalidArgument, message));
        }
        let guarantee = options.guarantee.unwrap_or(Guarantee::AtMostOnce);
        Ok(Self {
            before: source.clone(),
            media_type: source.media_type(),
            secrets: [options.secrets(delivery), source.secrets().to_vec()].concat(),
            source,
            delivery,
            target,
            headers: options.headers.clone(),
            is_careful: !delivery.is_repeatable && guarantee == Guarantee::AtMostOnce,
            patience: options.patience_ms,
            state: State::Ready,
            body: Vec::new(),
            samples: 0,
            most_samples: usize::MAX,
            finished: options.finished,
            is_marking: options.in_doubt.is_some(),
            being_sent: 0,
            reported: [options.finished, options.in_doubt.unwrap_or_default()],
            retries_of_message: 0,
            failing_since: None,
            now: Now { monotonic_ms: 0, unix_ms: 0 },
            jitter: Jitter::new(options.seed),
            report: PushReport {
                // What an earlier process was sending when it ended.
                unsure: options.in_doubt.unwrap_or_default(),
                ..PushReport::default()
            },
            trouble: None,
        })
    }

    /// What to do next.
    ///
    /// # Errors
    /// The error that ended the push: `rate_limited`, `server_error`, `network_failed` or `timed_out` if the patience
    /// has run out, or if the message may have arrived and must be sent at most once; `redirected`, `forbidden` or
    /// `unexpected_status` for other responses, with an excerpt of their body; `out_of_order` while a message is being
    /// sent.
    pub fn step(&mut self, now: Now) -> Result<PushStep<'_>> {
        self.now = now;
        loop {
            let is_reported = self.reported == self.numbers();
            match &mut self.state {
                // Only this step shows how long the failed message took.
                State::Waiting(Delay::For(wait_ms))
                    if is_over(self.patience, self.failing_since.unwrap_or(now), now, *wait_ms) =>
                {
                    self.report.retries -= 1;
                    self.state = State::Ended(self.trouble.clone());
                }
                // The caller may have stored a refused message as finished, or an accepted one as in doubt, so it gets the
                // corrected numbers.
                State::Ready | State::Waiting(_) | State::Ended(_) if !is_reported => {
                    return Ok(self.tell());
                }
                State::Ready => {
                    self.before = self.source.clone();
                    self.retries_of_message = 0;
                    match self.source.next_message(self.most_samples, &mut self.body) {
                        None => self.state = State::Ended(None),
                        Some(samples) => {
                            self.samples = samples;
                            self.state = self.before_sending();
                        }
                    }
                }
                State::Stored => {
                    self.finished += self.samples as u64;
                    self.being_sent = self.samples as u64;
                    self.state = State::Due;
                    return Ok(self.tell());
                }
                State::Waiting(delay) => match delay.rest(now) {
                    0 => self.state = self.before_sending(),
                    ms => {
                        return Ok(PushStep::Wait { ms: ms.min(LONGEST_TIMER_MS) as u32 });
                    }
                },
                State::Due => {
                    self.state = State::UnderWay;
                    return Ok(PushStep::Send(Message {
                        url: &self.target.url,
                        body: &self.body,
                        media_type: self.media_type,
                        delivery: self.delivery,
                        headers: &self.headers,
                    }));
                }
                State::Taken => {
                    self.state = State::Ready;
                    if !self.is_careful {
                        self.finished += self.samples as u64;
                        return Ok(self.tell());
                    }
                }
                State::Ended(None) => return Ok(PushStep::Done),
                State::Ended(Some(error)) => return Err(error.clone()),
                State::UnderWay | State::Answered { .. } => return Err(out_of_order()),
            }
        }
    }

    /// Whether another process could resume now from the number of the last [`PushStep::Finished`] without losing a
    /// sample or sending one twice.
    #[must_use]
    pub fn is_at_rest(&self) -> bool {
        match self.state {
            State::Ready | State::Waiting(_) => self.reported == self.numbers(),
            State::Taken => self.is_careful && self.reported == self.numbers(),
            _ => false,
        }
    }

    /// Takes the status and headers of a response. Returns whether to pass its body. If so, pass it to [`Push::chunk`]
    /// and then call [`Push::end`]; otherwise don't read it.
    ///
    /// # Errors
    /// `out_of_order` if no message is under way.
    pub fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        self.check_under_way()?;
        if status == 413 && self.samples > 1 {
            self.cut_in_two();
            return Ok(false);
        }
        let is_passing = status == 429 || status >= 500 && (self.delivery.is_passing)(status);
        let verdict = match status {
            200..=299 => match self.unproven(status, headers) {
                None => Verdict::Accepted,
                Some(error) => Verdict::Refused(error),
            },
            _ if is_passing => Verdict::Passing {
                error: refusal(status),
                asked_ms: retry_after(headers, self.now.unix_ms),
                is_refused: matches!(status, 429 | 503),
            },
            _ => Verdict::Refused(refusal(status)),
        };
        let media_type = named(headers, "content-type").next().unwrap_or_default();
        let media_type = media_type.split(';').next().unwrap_or_default();
        self.state = State::Answered {
            status,
            media_type: media_type.trim().to_ascii_lowercase(),
            verdict,
            body: Vec::new(),
        };
        Ok(true)
    }

    /// Takes a piece of the body. Returns whether to pass more of it.
    ///
    /// # Errors
    /// `out_of_order` if no body is expected.
    pub fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        let State::Answered { body, .. } = &mut self.state else {
            return Err(out_of_order());
        };
        let room = MOST_OF_ANSWER - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        Ok(body.len() < MOST_OF_ANSWER)
    }

    /// Takes the end of the body, or of the part of it that was wanted.
    ///
    /// # Errors
    /// `out_of_order` if no body is expected.
    pub fn end(&mut self) -> Result<()> {
        if !matches!(self.state, State::Answered { .. }) {
            return Err(out_of_order());
        }
        let State::Answered { status, media_type, verdict, body } =
            std::mem::replace(&mut self.state, State::UnderWay)
        else {
            return Ok(());
        };
        let answer = Answer { status, media_type: &media_type, body: &body };
        let partly = match answer.is_page() {
            true => None,
            false => (self.delivery.partly)(status, &body),
        };
        // Even with an error status, the body may report that the rest was accepted.
        if let Some(Partly { points, said }) = partly {
            let message = quoted(said.as_bytes(), &self.secrets).unwrap_or_default();
            self.report.rejected.push(Rejected { points, message });
            self.take();
            return Ok(());
        }
        let excerpt = quoted(&body, &self.secrets);
        match verdict {
            Verdict::Refused(_) if status < 300 && answer.is_page() => {
                self.refuse(web_page(status));
            }
            Verdict::Accepted => match unlike_success(&answer, self.delivery) {
                None => self.take(),
                Some(error) => self.refuse(error.with_excerpt(excerpt)),
            },
            Verdict::Passing { error, .. } if (self.delivery.is_final)(&answer) => {
                self.refuse(error.with_excerpt(excerpt));
            }
            // The server has failed at some point, perhaps after it had accepted the message.
            Verdict::Refused(error) if status >= 500 && self.is_careful => {
                self.doubt(error.with_excerpt(excerpt));
            }
            Verdict::Refused(error) => self.refuse(error.with_excerpt(excerpt)),
            Verdict::Passing { error, asked_ms, is_refused } => {
                self.try_again(error.with_excerpt(excerpt), asked_ms, is_refused)
            }
        }
        Ok(())
    }

    /// Reports that a datagram was sent.
    ///
    /// # Errors
    /// `out_of_order` if no message is under way.
    pub fn sent(&mut self) -> Result<()> {
        self.check_under_way()?;
        self.take();
        Ok(())
    }

    /// Reports that an exchange failed in the caller, before or after the head of its response.
    ///
    /// # Errors
    /// `out_of_order` if no message is under way.
    pub fn failed(&mut self, failure: HostFailure, detail: &str) -> Result<()> {
        match &self.state {
            // Only the missing part of the body would have shown whether the message was accepted.
            State::Answered { verdict: Verdict::Accepted, .. } => self.state = State::UnderWay,
            // The status and a part of the body have arrived.
            State::Answered { .. } => return self.end(),
            _ => {}
        }
        self.check_under_way()?;
        if detail == TOO_LARGE && self.samples > 1 {
            self.cut_in_two();
            return Ok(());
        }
        // The operating system accepts a datagram whole or not at all.
        let is_datagram = self.delivery.transport == Transport::Datagrams;
        let failure = match failure {
            HostFailure::Network if is_datagram => HostFailure::NotSent,
            other => other,
        };
        let error = broken(failure, detail, &self.target.shown);
        let was_not_sent =
            is_datagram || failure == HostFailure::NotSent || NEVER_SENT.contains(&detail);
        if error.is_lasting() || detail == TOO_LARGE {
            self.refuse(error);
        } else {
            self.try_again(error, None, was_not_sent);
        }
        Ok(())
    }

    /// The result of the push; `None` while it is in progress.
    #[must_use]
    pub fn outcome(&self) -> Option<Result<(), &Error>> {
        match &self.state {
            State::Ended(None) => Some(Ok(())),
            State::Ended(Some(error)) => Some(Err(error)),
            _ => None,
        }
    }

    /// The report so far.
    #[must_use]
    pub fn report(&self) -> &PushReport {
        &self.report
    }

    /// The last reason for sending a message again; `None` if no message was sent again.
    #[must_use]
    pub fn trouble(&self) -> Option<&Error> {
        self.trouble.as_ref()
    }

    /// How many samples of the export are finished: accepted or, if each must be sent at most once, given up.
    #[must_use]
    pub fn finished(&self) -> u64 {
        self.finished
    }

    fn check_under_way(&self) -> Result<()> {
        match self.state {
            State::UnderWay => Ok(()),
            _ => Err(out_of_order()),
        }
    }

    /// The state before a message is sent.
    fn before_sending(&self) -> State {
        if self.is_careful { State::Stored } else { State::Due }
    }

    /// What the caller stores: how many samples are finished, and how many are in doubt if the process ends now.
    fn numbers(&self) -> [u64; 2] {
        let in_doubt = match self.is_marking {
            true => self.report.unsure + self.being_sent,
            false => 0,
        };
        [self.finished, in_doubt]
    }

    fn tell(&mut self) -> PushStep<'static> {
        self.reported = self.numbers();
        let [samples, in_doubt] = self.reported;
        PushStep::Finished { samples, in_doubt }
    }

    /// Records that the destination accepted the message.
    fn take(&mut self) {
        self.report.messages += 1;
        self.report.samples += self.samples as u64;
        self.report.bytes += self.body.len() as u64;
        self.failing_since = None;
        self.being_sent = 0;
        self.state = State::Taken;
    }

    /// Handles a message that is too large: its first half is sent next.
    fn cut_in_two(&mut self) {
        self.most_samples = self.samples / 2;
        self.take_back();
        self.source = self.before.clone();
        self.state = State::Ready;
    }

    /// The error for a successful response that doesn't prove that the message was understood.
    fn unproven(&self, status: u16, headers: &[(&str, &str)]) -> Option<Error> {
        let proof = self.delivery.proof?;
        if named(headers, proof).any(|written| written.trim() != "0") {
            return None;
        }
        let message = "the destination does not confirm that it wrote a sample, so it does not know this format";
        Some(Error::new(Code::UnexpectedStatus, message).with_status(status))
    }

    /// Records that the destination did not accept the message, so none of its samples is finished.
    fn take_back(&mut self) {
        self.being_sent = 0;
        if self.is_careful {
            self.finished -= self.samples as u64;
        }
    }

    /// Ends the push, because the destination refused the message. None of its samples is finished.
    fn refuse(&mut self, error: Error) {
        self.take_back();
        self.give_up(error);
    }

    /// Ends the push, because the destination may have accepted the message, which must not be sent again.
    fn doubt(&mut self, error: Error) {
        self.being_sent = 0;
        self.report.unsure += self.samples as u64;
        self.give_up(error);
    }

    /// Sends the message again later, if that is allowed and the patience has not run out. `is_refused` means that the
    /// destination accepted nothing of it.
    fn try_again(&mut self, error: Error, asked_ms: Option<u64>, is_refused: bool) {
        if self.is_careful && !is_refused {
            return self.doubt(error);
        }
        self.take_back();
        let since = *self.failing_since.get_or_insert(self.now);
        self.retries_of_message += 1;
        let wait_ms = self.jitter.wait_ms(self.retries_of_message, u64::MAX, asked_ms.unwrap_or(0));
        if is_over(self.patience, since, self.now, wait_ms) {
            return self.give_up(error);
        }
        self.report.retries += 1;
        self.trouble = Some(error);
        self.state = State::Waiting(Delay::For(wait_ms));
    }

    fn give_up(&mut self, error: Error) {
        self.state = State::Ended(Some(error));
    }
}

/// Whether the patience is over before a message could be sent again.
fn is_over(patience: Patience, since: Now, now: Now, wait_ms: u64) -> bool {
    let is_over = |patience_ms| now.since(since).saturating_add(wait_ms) > patience_ms;
    patience.ms().is_some_and(is_over)
}

/// The error for a 2xx response that isn't the one that the destination documents for success.
fn unlike_success(answer: &Answer<'_>, delivery: &Delivery) -> Option<Error> {
    if answer.is_page() {
        return Some(web_page(answer.status));
    }
    let message = "the response is not the one to an accepted message: is this the address of the destination?";
    let error = || Error::new(Code::UnexpectedStatus, message).with_status(answer.status);
    (!(delivery.is_accepted)(answer)).then(error)
}

fn web_page(status: u16) -> Error {
    let message = "a web page answers, not the destination: is the address right, or is this the page of a login or a proxy?";
    Error::new(Code::HtmlResponse, message).with_status(status)
}

/// The text of a response, as one line of bounded length, without secrets.
fn quoted(said: &[u8], secrets: &[Secret]) -> Option<String> {
    let mut excerpt = Excerpt::default();
    excerpt.push(said);
    excerpt.text(secrets.iter())
}

fn refusal(status: u16) -> Error {
    let (code, message) = match status {
        300..=399 => (
            Code::Redirected,
            "the destination redirects, and no redirect is followed: pass the final address",
        ),
        401 | 403 => {
            (Code::Forbidden, "the destination wants other credentials; pass them in the headers")
        }
        413 => (Code::UnexpectedStatus, "the destination finds even a single sample too large"),
        429 => (Code::RateLimited, "the destination limits the rate of messages"),
        500.. => (Code::ServerError, "the destination failed"),
        _ => (Code::UnexpectedStatus, "the destination refused the message"),
    };
    Error::new(code, message).with_status(status)
}

fn out_of_order() -> Error {
    let message = "a push was driven in the wrong order: after a step to send, want the response or the failure";
    Error::new(Code::OutOfOrder, message)
}

impl<S> fmt::Debug for Push<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Push")
            .field("finished", &self.finished)
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
