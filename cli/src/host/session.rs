//! The client of one cluster: the core's `Machine`, the network, the wall clock, the monotonic clock, and the loop that drives
//! calls.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tallyfold::{
    Attempt, Call, CallOutput, Dimension, Error, Machine, MachineOptions, Metric, Now, Result, Step,
};
use tokio::sync::Notify;
use tokio::time::sleep;

use super::exchange::{Outgoing, ResponseReader, within};
use super::network::Http;
use super::shared::{Asked, Copied, Sharer};
use crate::stderr::Stderr;

/// A function to call with each request that has ended.
pub(crate) type OnAttempt = Box<dyn FnMut(&Attempt)>;

/// A client of one cluster. Several of its calls may be driven at the same time.
#[derive(Clone)]
pub(crate) struct Session {
    /// The name of the cluster.
    pub(crate) name: String,
    /// The core's machine, which makes calls.
    pub(crate) machine: Machine,
    /// The monotonic clock and the wall clock.
    pub(crate) clock: Clock,
    pub(crate) http: Http,
    /// Prints messages to the user.
    pub(crate) stderr: Rc<Stderr>,
    /// What all copies of this session share.
    common: Rc<Common>,
    /// The part of the process that uses this session, if several parts share responses.
    sharer: Option<Sharer>,
}

/// What all copies of a session share.
#[derive(Default)]
struct Common {
    /// Notified whenever an exchange has ended. The exchange may have requested a token that other calls wait for.
    exchanged: Notify,
    on_attempt: RefCell<Option<OnAttempt>>,
    /// How urgent the last message about the clocks was.
    clock_notice: Cell<ClockNotice>,
    ahead_ms: Cell<i64>,
    /// The service's time when the last successful request was sent.
    service: Cell<Option<Now>>,
}

impl Session {
    /// Creates a session with these options.
    ///
    /// # Errors
    /// For options that the core refuses.
    pub(crate) fn new(
        name: String,
        options: MachineOptions,
        http: Http,
        stderr: Rc<Stderr>,
    ) -> Result<Self> {
        let options = options
            .user_agent(concat!("tallyfold-cli/", env!("CARGO_PKG_VERSION")))
            .hash_seed(random())
            .jitter_seed(random());
        Ok(Self {
            name,
            machine: Machine::new(options)?,
            clock: Clock::start(),
            http,
            stderr,
            common: Rc::default(),
            sharer: None,
        })
    }

    /// Returns this client for one of several parts of the process that read the same windows. The calls of each part use
    /// responses that other parts have just read.
    pub(crate) fn shared(&self, sharer: Sharer) -> Rc<Self> {
        Rc::new(Self { sharer: Some(sharer), ..self.clone() })
    }

    /// Returns the dimensions to request in place of `own`, so that the requests of all parts are equal. Returns `None` if
    /// responses are not shared, or if the shared requests lack some of `own`.
    pub(crate) fn shared_by(&self, metric: Metric, own: &[Dimension]) -> Option<&[Dimension]> {
        self.sharer.as_ref()?.by(metric, own)
    }

    /// Returns by how many milliseconds this machine's clock is ahead of the service's; 0 if it is behind or at most a minute
    /// ahead, or before the first successful response.
    pub(crate) fn ahead_ms(&self) -> i64 {
        self.common.ahead_ms.get()
    }

    /// Returns the current time in milliseconds since 1970, by the clock that is behind: this machine's or the service's.
    /// Returns `None` before the first successful response.
    pub(crate) fn corrected_ms(&self) -> Option<i64> {
        let (service, now) = (self.common.service.get()?, self.now());
        let passed_ms = now.monotonic_ms.saturating_sub(service.monotonic_ms);
        let service_ms = service.unix_ms.saturating_add_unsigned(passed_ms);
        Some(now.unix_ms.min(service_ms))
    }

    /// Sets the function that is called with each request that has ended.
    pub(crate) fn watch(&self, on_attempt: OnAttempt) {
        self.common.on_attempt.replace(Some(on_attempt));
    }

    /// Returns the current time by both clocks.
    pub(crate) fn now(&self) -> Now {
        self.clock.now()
    }

    /// Drives a call to its end and returns its output.
    ///
    /// # Errors
    /// The call's final error.
    pub(crate) async fn run<T: CallOutput>(&self, mut call: Call<T>) -> Result<T> {
        self.drive(&mut call).await?;
        call.output()
    }

    /// Drives a call to its end, and returns its output and the body that the service has sent.
    ///
    /// # Errors
    /// The call's final error.
    pub(crate) async fn run_copied<T: CallOutput>(
        &self,
        mut call: Call<T>,
    ) -> Result<(T, Vec<u8>)> {
        let mut copied = Copied::default();
        self.drive_copying(&mut call, Some(&mut copied)).await?;
        Ok((call.output()?, copied.body))
    }

    /// Drives a call to its end. If the future is dropped while the call requests a token, another call requests that token.
    ///
    /// # Errors
    /// The call's final error.
    pub(crate) async fn drive<T>(&self, call: &mut Call<T>) -> Result<()> {
        self.drive_copying(call, None).await
    }

    async fn drive_copying<T>(&self, call: &mut Call<T>, copy: Option<&mut Copied>) -> Result<()> {
        let mut driven = Driven { session: self, call, copy };
        loop {
            let begun = self.now();
            let step = driven.call.step(begun)?;
            let ended = match step {
                Step::Send(request) => {
                    let outgoing = Outgoing::of(&self.http, &request);
                    let asked = Asked::of(&request, driven.call.window());
                    match (asked, &self.sharer) {
                        (None, _) => driven.exchange(outgoing, false).await,
                        (Some(_), None) => driven.exchange(outgoing, true).await,
                        (Some(asked), Some(sharer)) => {
                            driven.exchange_shared(outgoing, sharer, &asked).await
                        }
                    }
                }
                // Unreachable: the command's clients always have a secret, so they request tokens themselves.
                Step::ProvideToken { .. } => driven.call.token_failed(),
                Step::Blocked { epoch } => driven.blocked(epoch).await,
                Step::Wait { ms } => {
                    sleep(Duration::from_millis(ms.into())).await;
                    Ok(())
                }
                Step::Done => return Ok(()),
            };
            self.report(driven.call, begun);
            ended?;
        }
    }

    /// Reports once that this machine's clock differs from the service's, and again if the difference becomes so large that the
    /// user must act.
    fn report_clock(&self, attempt: &Attempt, begun: Now) {
        if attempt.code.is_none() {
            let ahead_ms = attempt.clock.as_ref().map_or(0, |clock| clock.ahead_ms);
            self.common.ahead_ms.set(ahead_ms.max(0));
            self.common
                .service
                .set(Some(Now { unix_ms: begun.unix_ms.saturating_sub(ahead_ms), ..begun }));
        }
        let Some(difference) = &attempt.clock else {
            return;
        };
        let notice = match difference.is_alarming {
            true => ClockNotice::Warning,
            false => ClockNotice::Note,
        };
        if notice <= self.common.clock_notice.get() {
            return;
        }
        self.common.clock_notice.set(notice);
        let (name, text) = (&self.name, &difference.message);
        match notice {
            ClockNotice::Warning => self.stderr.warning(format_args!("{name}: {text}")),
            _ => self.stderr.note(format_args!("{name}: {text}")),
        }
    }

    /// Reports the request that has ended, if any. `begun` is the time at which the request was sent.
    pub(crate) fn report<T>(&self, call: &mut Call<T>, begun: Now) {
        let Some(attempt) = call.attempt() else {
            return;
        };
        self.stderr.detail(AttemptLine(&self.name, &attempt));
        self.report_clock(&attempt, begun);
        if let Some(on_attempt) = &mut *self.common.on_attempt.borrow_mut() {
            on_attempt(&attempt);
        }
    }
}

/// How urgent a message about the difference between this machine's clock and the service's is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum ClockNotice {
    #[default]
    None,
    Note,
    Warning,
}

/// A call that is being driven. Dropping this value closes the call, and wakes the calls that wait for its token.
struct Driven<'a, T> {
    session: &'a Session,
    call: &'a mut Call<T>,
    /// Gets a copy of the last response.
    copy: Option<&'a mut Copied>,
}

impl<T> Driven<'_, T> {
    /// Uses the response that another part has read, if there is one. Otherwise sends the request, and keeps the response for
    /// the other parts.
    async fn exchange_shared(
        &mut self,
        outgoing: Outgoing,
        sharer: &Sharer,
        asked: &Asked,
    ) -> Result<()> {
        let _turn = sharer.turn(asked).await;
        let begun = self.session.now();
        if let Some(response) = sharer.take(asked, begun) {
            let fed = response.feed(self.call);
            self.session.common.exchanged.notify_waiters();
            // Discards the report of the request, because the request was not sent.
            let _ = self.call.attempt();
            if let Some(copy) = self.copy.as_deref_mut() {
                copy.clone_from(&response);
            }
            return fed;
        }
        let mut response = Copied::default();
        let limit = self.limit();
        let reported = exchange(outgoing, limit, self.call, Some(&mut response)).await;
        self.session.common.exchanged.notify_waiters();
        if let Some(copy) = self.copy.as_deref_mut() {
            copy.clone_from(&response);
        }
        if reported.is_ok() && response.is_whole {
            sharer.keep(asked, response, begun);
        }
        reported
    }

    /// Sends a request. `copies` is false for a response that must not be copied, because it contains a token.
    async fn exchange(&mut self, outgoing: Outgoing, copies: bool) -> Result<()> {
        let limit = self.limit();
        let copy = self.copy.as_deref_mut().filter(|_| copies);
        let reported = exchange(outgoing, limit, self.call, copy).await;
        self.session.common.exchanged.notify_waiters();
        reported
    }

    /// Waits until another call has ended its token request.
    async fn blocked(&mut self, epoch: u64) -> Result<()> {
        let session = self.session;
        let token_request = async {
            loop {
                let exchanged = session.common.exchanged.notified();
                if session.machine.token_epoch() != epoch {
                    return;
                }
                exchanged.await;
            }
        };
        if within(self.limit(), token_request).await.is_none()
            && self.call.time_left(session.now()) != Some(0)
        {
            let message = "no token came in time: another call of this client was requesting it";
            return Err(Error::new(tallyfold::Code::TimedOut, message));
        }
        Ok(())
    }

    /// Returns the time limit for the current step of the call; `None` if there is no limit.
    fn limit(&mut self) -> Option<Duration> {
        let usual = self.session.machine.timeout().ms();
        let left = self.call.time_left(self.session.now());
        let ms = [usual, left].into_iter().flatten().min();
        ms.map(Duration::from_millis)
    }
}

impl<T> Drop for Driven<'_, T> {
    fn drop(&mut self) {
        self.call.close();
        self.session.common.exchanged.notify_waiters();
    }
}

/// Sends a request of a call, and reports the outcome to the call. `copy` gets a copy of the response.
///
/// # Errors
/// The call's final error.
pub(super) async fn exchange<T>(
    outgoing: Outgoing,
    limit: Option<Duration>,
    call: &mut Call<T>,
    copy: Option<&mut Copied>,
) -> Result<()> {
    let ended = outgoing.exchange(limit, &mut Reading(call, copy)).await;
    ended.or_else(|broken| broken.report(call))
}

/// Passes a response to a call, and copies the response.
struct Reading<'a, T>(&'a mut Call<T>, Option<&'a mut Copied>);

impl<T> ResponseReader for Reading<'_, T> {
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> Result<bool> {
        if let Some(copy) = &mut self.1 {
            let headers = headers.iter();
            **copy = Copied {
                status,
                headers: headers
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                    .collect(),
                ..Copied::default()
            };
        }
        self.0.head(status, headers)
    }

    fn chunk(&mut self, chunk: &[u8]) -> Result<bool> {
        self.0.chunk(chunk)?;
        if let Some(copy) = &mut self.1 {
            copy.body.extend_from_slice(chunk);
        }
        Ok(true)
    }

    fn end(&mut self) -> Result<()> {
        self.0.end()?;
        if let Some(copy) = &mut self.1 {
            copy.is_whole = true;
        }
        Ok(())
    }
}

/// A line about a request, for `--verbose`.
struct AttemptLine<'a>(&'a str, &'a Attempt);

impl std::fmt::Display for AttemptLine<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self(name, attempt) = self;
        write!(f, "{name}: {} attempt {}", attempt.target.as_str(), attempt.number)?;
        if let Some(window) = attempt.window {
            write!(f, " {window:?}")?;
        }
        match attempt.status {
            Some(status) => write!(f, ": status {status}")?,
            None => f.write_str(": no response")?,
        }
        if let Some(code) = attempt.code {
            write!(f, ", {code}")?;
        }
        match attempt.wait_ms {
            Some(ms) => write!(f, ", again in {ms} ms"),
            None => Ok(()),
        }
    }
}

/// Returns a random number, or 0 on a machine without a source of randomness. Hashes and waits are then the same in each
/// process.
pub(crate) fn random() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// Reads the monotonic clock and the wall clock. The monotonic clock starts at 0 when this value is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock(Instant);

impl Clock {
    /// Starts the monotonic clock at 0.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the current time by both clocks.
    pub(crate) fn now(self) -> Now {
        Now {
            monotonic_ms: u64::try_from(self.0.elapsed().as_millis()).unwrap_or(u64::MAX),
            unix_ms: unix_ms(),
        }
    }
}

/// Returns the time of the wall clock, in milliseconds since 1970.
pub(crate) fn unix_ms() -> i64 {
    let ms = |elapsed: Duration| i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX);
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => ms(since),
        Err(before) => -ms(before.duration()),
    }
}
