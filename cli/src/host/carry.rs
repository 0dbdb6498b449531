//! Sends the messages of a push to its destination.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tallyfold::sending::{Push, PushStep, Source, UNCONNECTED};
use tallyfold::{Code, HostFailure};
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{sleep, timeout};

use super::exchange::{Broken, Outgoing, ResponseReader};
use super::network::{Http, name_of};
use super::session::Clock;
use super::shutdown::Shutdown;
use crate::config::settings::NetworkSettings;
use crate::failure::{Exit, Failure, Result};
use crate::stderr::Stderr;

/// How long the current message may still take after the shutdown has begun, so that it does not stay unacknowledged.
const GRACE: Duration = Duration::from_secs(5);

/// The pause after a datagram. A destination whose buffer is full drops datagrams silently, so a large push must not be
/// sent at full speed.
const PACE: Duration = Duration::from_millis(1);

/// How a push has ended, if it has not failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Everything was sent.
    All,
    /// The shutdown began before everything was sent.
    Part,
}

/// Sends messages to a destination.
pub(crate) struct Carrier {
    pub(crate) http: Http,
    /// How long a message and its response may take.
    pub(crate) timeout: Duration,
    pub(crate) clock: Clock,
    /// The socket for datagrams; `None` until the first datagram.
    pub(crate) socket: Option<UdpSocket>,
    /// Prints messages to the user.
    pub(crate) stderr: Rc<Stderr>,
    /// Whether a message is retried for only a few seconds, so that no retry deserves a warning.
    pub(crate) is_brief: bool,
    /// The beginning of each message to the user, if several pushes write to the same stderr; otherwise empty.
    pub(crate) label: String,
}

/// The next step of a push, as a value that does not borrow from the push.
enum Task {
    Post(Box<Outgoing>),
    Datagram { url: String, body: Vec<u8> },
    Wait(Duration),
    Store { samples: u64, in_doubt: u64 },
    Done,
}

impl Carrier {
    /// Creates a carrier that warns at the first retry of a push (`is_brief` is false), because retries may take a
    /// long time.
    ///
    /// # Errors
    /// For certificates and proxies that can't be used.
    pub(crate) fn new(
        network: &NetworkSettings,
        timeout: Duration,
        stderr: &Rc<Stderr>,
    ) -> Result<Self> {
        Ok(Self {
            http: Http::new(network)?,
            timeout,
            clock: Clock::start(),
            socket: None,
            stderr: Rc::clone(stderr),
            is_brief: false,
            label: String::new(),
        })
    }

    /// Drives a push to its end. `store` stores the progress whenever the push reports it: how many samples are
    /// finished, and how many of them are in doubt.
    ///
    /// # Errors
    /// The error that ended the push, and the errors of `store`.
    pub(crate) async fn carry<S: Source>(
        &mut self,
        push: &mut Push<S>,
        shutdown: &Shutdown,
        mut store: impl AsyncFnMut(u64, u64) -> Result<()>,
    ) -> Result<Carried> {
        let mut unreported = None;
        loop {
            if shutdown.has_begun() && push.is_at_rest() {
                return Ok(Carried::Part);
            }
            let task = self.task(push).map_err(of_destination)?;
            // In `task`, the push has decided whether to retry the last message, so a retry can be reported now.
            if let Some((before, status, name)) = unreported.take() {
                self.report_retry(before, push, status, name);
            }
            match task {
                Task::Done => return Ok(Carried::All),
                Task::Store { samples, in_doubt } => store(samples, in_doubt).await?,
                Task::Wait(time) => {
                    shutdown.unless_begun(sleep(time)).await;
                }
                Task::Post(outgoing) => {
                    let before = push.report().retries;
                    let has_left = outgoing.has_left();
                    let mut reading = Reading { push, status: None };
                    let exchange = outgoing.exchange(Some(self.timeout), &mut reading);
                    let sent = self.in_time(shutdown, exchange).await;
                    let status = reading.status;
                    let name = sent.as_ref().err().map(Broken::name);
                    report(push, sent, has_left.get())?;
                    unreported = Some((before, status, name));
                }
                Task::Datagram { url, body } => {
                    let before = push.report().retries;
                    let sent = self.in_time(shutdown, self.datagram(&url, &body)).await;
                    match sent {
                        Ok(socket) => {
                            self.socket = socket.or(self.socket.take());
                            push.sent()?;
                            sleep(PACE).await;
                        }
                        Err(broken) => {
                            unreported = Some((before, None, Some(broken.name())));
                            report(push, Err(broken), false)?;
                        }
                    }
                }
            }
        }
    }

    /// If the push retries a message, reports this on stderr. Unless `is_brief` is true, the first report is a warning,
    /// because retries may take a long time. `before` is the number of retries before the message was sent.
    fn report_retry<S>(&self, before: u64, push: &Push<S>, status: Option<u16>, name: Option<&str>)
    where
        S: Source,
    {
        if push.report().retries == before {
            return;
        }
        let excerpt = push.trouble().and_then(tallyfold::Error::excerpt);
        let why = match (status, excerpt) {
            (Some(status), Some(excerpt)) => format!("status {status}: {excerpt}"),
            (Some(status), None) => format!("status {status}"),
            (None, _) => name.unwrap_or("no response").to_owned(),
        };
        let label = &self.label;
        match before {
            0 if !self.is_brief => self.stderr.warning(format_args!(
                "{label}the destination did not accept a message ({why}): retrying"
            )),
            _ => self
                .stderr
                .detail(format_args!("{label}the destination did not accept a message: {why}")),
        }
    }

    fn task<S: Source>(&self, push: &mut Push<S>) -> Result<Task> {
        Ok(match push.step(self.clock.now())? {
            PushStep::Done => Task::Done,
            PushStep::Finished { samples, in_doubt } => Task::Store { samples, in_doubt },
            PushStep::Wait { ms } => Task::Wait(Duration::from_millis(ms.into())),
            PushStep::Send(message) if message.is_datagram() => {
                Task::Datagram { url: message.url.to_owned(), body: message.body.to_vec() }
            }
            PushStep::Send(message) => Task::Post(Box::new(Outgoing::post(
                &self.http,
                message.url,
                message.headers(),
                message.body,
            ))),
        })
    }

    /// Waits for an exchange, but not longer than the timeout, and not longer than [`GRACE`] after the shutdown has
    /// begun.
    async fn in_time<T>(
        &self,
        shutdown: &Shutdown,
        exchange: impl Future<Output = Result<T, Broken>>,
    ) -> Result<T, Broken> {
        let farewell = async {
            shutdown.begun().await;
            sleep(GRACE).await;
        };
        tokio::select! {
            done = timeout(self.timeout, exchange) => done.unwrap_or(Err(Broken::TimedOut)),
            () = farewell => Err(Broken::TimedOut),
        }
    }

    /// Sends a datagram. Returns the socket if it was created for this datagram.
    async fn datagram(&self, url: &str, body: &[u8]) -> Result<Option<UdpSocket>, Broken> {
        let made = match &self.socket {
            Some(_) => None,
            None => Some(connected(url).await?),
        };
        if let Some(socket) = self.socket.as_ref().or(made.as_ref()) {
            let sent = socket.send(body).await;
            sent.map_err(|error| Broken::Network(datagram_trouble(&error)))?;
        }
        Ok(made)
    }
}

/// Sets the exit code for refused credentials, if the destination has refused them. The code is the same as for
/// credentials that the service refuses.
fn of_destination(mut failure: Failure) -> Failure {
    if failure.code == Some(Code::Forbidden) {
        failure.exit = Exit::Authentication;
    }
    failure
}

async fn connected(url: &str) -> Result<UdpSocket, Broken> {
    let address = url.trim_start_matches("udp://").trim_end_matches('/');
    let mut found = lookup_host(address).await.map_err(|_| Broken::Network("ENOTFOUND"))?;
    let address = found.next().ok_or(Broken::Network("ENOTFOUND"))?;
    let any = match address.is_ipv4() {
        true => "0.0.0.0:0",
        false => "[::]:0",
    };
    let connect = async {
        let socket = UdpSocket::bind(any).await?;
        socket.connect(address).await?;
        Ok(socket)
    };
    let connected: io::Result<UdpSocket> = connect.await;
    connected.map_err(|error| Broken::Network(name_of(&error)))
}

/// The operating system's error number for a datagram that is too large for the network. The standard library has no
/// name for this error.
const TOO_LARGE: i32 = if cfg!(windows) {
    10040
} else if cfg!(target_os = "linux") {
    90
} else {
    40
};

fn datagram_trouble(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(TOO_LARGE) => "EMSGSIZE",
        _ => name_of(error),
    }
}

/// Reports the outcome of an exchange to the push. `has_left` is whether the message may have left this machine.
fn report<S: Source>(push: &mut Push<S>, sent: Result<(), Broken>, has_left: bool) -> Result<()> {
    match sent {
        Ok(()) => {}
        Err(Broken::Refused(error)) => return Err(error.into()),
        Err(Broken::Network(name)) if !has_left => push.failed(HostFailure::NotSent, name)?,
        Err(Broken::TimedOut) if !has_left => push.failed(HostFailure::NotSent, UNCONNECTED)?,
        Err(Broken::Network(name) | Broken::Stale(name)) => {
            push.failed(HostFailure::Network, name)?;
        }
        Err(Broken::TimedOut) => push.failed(HostFailure::Timeout, "TimeoutError")?,
    }
    Ok(())
}

struct Reading<'a, S> {
    push: &'a mut Push<S>,
    status: Option<u16>,
}

impl<S: Source> ResponseReader for Reading<'_, S> {
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> tallyfold::Result<bool> {
        self.status = Some(status);
        self.push.head(status, headers)
    }

    fn chunk(&mut self, chunk: &[u8]) -> tallyfold::Result<bool> {
        self.push.chunk(chunk)
    }

    fn end(&mut self) -> tallyfold::Result<()> {
        self.push.end()
    }
}
