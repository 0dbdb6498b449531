//! Carries the messages of a push to its receiver.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use reqwest::Client;
use tallyfold::sending::{Push, PushStep, Source};
use tallyfold::{Code, HostFailure};
use tokio::net::{UdpSocket, lookup_host};
use tokio::time::{sleep, timeout};

use super::clock::Clock;
use super::exchange::{Broken, Outgoing, Receiver};
use super::network::name_of;
use super::shutdown::Shutdown;
use crate::failure::{Exit, Failure, Result};
use crate::stderr::Stderr;

/// How long a message that is under way may still take when the command ends. Without this, nobody would know of it whether it
/// was taken.
const FAREWELL: Duration = Duration::from_secs(5);

/// The pause after a datagram. Nobody answers it, and a receiver whose buffer is full drops it without a word, so a large push
/// must not come at the speed of this machine.
const PACE: Duration = Duration::from_millis(1);

/// How a push has ended, if it is not by an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carried {
    /// Everything was sent.
    All,
    /// The command was asked to end before.
    Part,
}

/// The way to a receiver.
pub(crate) struct Carrier {
    /// What sends requests.
    pub(crate) http: Client,
    /// How long a message may take, with its answer.
    pub(crate) timeout: Duration,
    /// The time.
    pub(crate) clock: Clock,
    /// What sends datagrams, once there was one.
    pub(crate) socket: Option<UdpSocket>,
    /// What is said to the user.
    pub(crate) stderr: Rc<Stderr>,
    /// Whether a message is tried for a few seconds only, so that a retry isn't worth a warning.
    pub(crate) is_brief: bool,
}

/// What is done next; it borrows nothing of the push.
enum Task {
    Post(Box<Outgoing>),
    Datagram { url: String, body: Vec<u8> },
    Wait(Duration),
    Store(u64),
    Done,
}

impl Carrier {
    /// Drives a push to its end. Whenever it says how many samples are finished, `store` stores that number.
    ///
    /// # Errors
    /// What has ended the push, and those of `store`.
    pub(crate) async fn carry<S: Source>(
        &mut self,
        push: &mut Push<S>,
        shutdown: &Shutdown,
        mut store: impl AsyncFnMut(u64) -> Result<()>,
    ) -> Result<Carried> {
        loop {
            if shutdown.has_begun() && push.is_at_rest() {
                return Ok(Carried::Part);
            }
            match self.task(push).map_err(of_receiver)? {
                Task::Done => return Ok(Carried::All),
                Task::Store(samples) => store(samples).await?,
                Task::Wait(time) => {
                    shutdown.unless_begun(sleep(time)).await;
                }
                Task::Post(outgoing) => {
                    let before = push.report().retries;
                    let mut reading = Reading { push, status: None };
                    let exchange = outgoing.exchange(Some(self.timeout), &mut reading);
                    let sent = self.in_time(shutdown, exchange).await;
                    let status = reading.status;
                    let name = sent.as_ref().err().map(Broken::name);
                    tell(push, sent)?;
                    self.say(before, push.report().retries, status, name);
                }
                Task::Datagram { url, body } => {
                    let sent = self.in_time(shutdown, self.datagram(&url, &body)).await;
                    match sent {
                        Ok(socket) => {
                            self.socket = socket.or(self.socket.take());
                            push.sent()?;
                            sleep(PACE).await;
                        }
                        Err(broken) => tell(push, Err(broken))?,
                    }
                }
            }
        }
    }

    /// Says that a message is sent again, if it is: the first time as a warning, as that may take long.
    fn say(&self, before: u64, retries: u64, status: Option<u16>, name: Option<&str>) {
        if retries == before {
            return;
        }
        let why = match (status, name) {
            (Some(status), _) => format!("status {status}"),
            (None, name) => name.unwrap_or("no response").to_owned(),
        };
        match before {
            0 if !self.is_brief => self.stderr.warning(format_args!(
                "the receiver did not take a message ({why}): it is sent again until that is over"
            )),
            _ => self
                .stderr
                .detail(format_args!("the receiver did not take a message: {why}")),
        }
    }

    fn task<S: Source>(&self, push: &mut Push<S>) -> Result<Task> {
        Ok(match push.step(self.clock.now())? {
            PushStep::Done => Task::Done,
            PushStep::Finished { samples } => Task::Store(samples),
            PushStep::Wait { ms } => Task::Wait(Duration::from_millis(ms.into())),
            PushStep::Send(message) if message.is_datagram() => Task::Datagram {
                url: message.url.to_owned(),
                body: message.body.to_vec(),
            },
            PushStep::Send(message) => Task::Post(Box::new(Outgoing::post(
                &self.http,
                message.url,
                message.headers(),
                message.body,
            ))),
        })
    }

    /// Waits for an exchange at most for the time limit, and not much longer than until the command is to end.
    async fn in_time<T>(
        &self,
        shutdown: &Shutdown,
        exchange: impl Future<Output = Result<T, Broken>>,
    ) -> Result<T, Broken> {
        let farewell = async {
            shutdown.begun().await;
            sleep(FAREWELL).await;
        };
        tokio::select! {
            done = timeout(self.timeout, exchange) => done.unwrap_or(Err(Broken::TimedOut)),
            () = farewell => Err(Broken::TimedOut),
        }
    }

    /// Sends a datagram; gives the socket, if it was made now.
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

/// A receiver that wants other credentials ends the command as a service does that wants them.
fn of_receiver(mut failure: Failure) -> Failure {
    if failure.code == Some(Code::Forbidden) {
        failure.exit = Exit::Authentication;
    }
    failure
}

async fn connected(url: &str) -> Result<UdpSocket, Broken> {
    let address = url.trim_start_matches("udp://").trim_end_matches('/');
    let mut found = lookup_host(address)
        .await
        .map_err(|_| Broken::Network("ENOTFOUND"))?;
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

/// The number of the system's error for a datagram that is larger than the network takes. The standard library has no name
/// for it.
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

fn tell<S: Source>(push: &mut Push<S>, sent: Result<(), Broken>) -> Result<()> {
    match sent {
        Ok(()) => {}
        Err(Broken::Refused(error)) => return Err(error.into()),
        Err(Broken::Network(name)) => push.failed(HostFailure::Network, name)?,
        Err(Broken::TimedOut) => push.failed(HostFailure::Timeout, "TimeoutError")?,
    }
    Ok(())
}

struct Reading<'a, S> {
    push: &'a mut Push<S>,
    status: Option<u16>,
}

impl<S: Source> Receiver for Reading<'_, S> {
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
