//! Serves HTTP on one thread, for the sandbox, scrapes and the dashboard.

use std::convert::Infallible;
use std::future::Future;
use std::io::{self, IoSlice, Write};
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HOST, HeaderValue, VARY};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{HeaderMap, Request, Response, StatusCode, Uri};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::spawn_local;
use tokio::time::{Sleep, sleep, timeout};

use crate::failure::{Failure, Result};

/// The response of a handler.
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BrokenOff>>;

/// The error that ends a body before its declared length, on purpose. The server then closes the connection.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer ends here on purpose")
    }
}

impl std::error::Error for BrokenOff {}

/// How long a client may take to send the head of a request. After that, it may take as long again to send the body.
const SENDING: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 10_000 });

/// How long a client may take to read a response, from the first write that has to wait for the client.
const READING: Duration = Duration::from_millis(if cfg!(test) { 300 } else { 30_000 });

/// How long unfinished responses may still take when the server stops.
const GRACE: Duration = Duration::from_secs(2);

/// Creates a body from all of its bytes.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, BrokenOff> {
    Full::new(bytes.into()).map_err(|never: Infallible| match never {}).boxed_unsync()
}

/// Creates a response without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut response = Response::new(whole(Bytes::new()));
    *response.status_mut() = status;
    response
}

/// Attaches a permit to bytes. The permit is released when the bytes are dropped, after the last of them is sent.
pub(crate) fn with_permit(bytes: Bytes, permit: OwnedSemaphorePermit) -> Bytes {
    struct Held(Bytes, #[allow(dead_code, reason = "it is held, not read")] OwnedSemaphorePermit);

    impl AsRef<[u8]> for Held {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    Bytes::from_owner(Held(bytes, permit))
}

/// Creates a response of plain text.
pub(crate) fn plain(status: StatusCode, text: impl Into<String>) -> Answer {
    typed(status, "text/plain; charset=utf-8", text.into())
}

/// Creates a response with this content type.
pub(crate) fn typed(status: StatusCode, media: &'static str, text: String) -> Answer {
    let mut response = Response::new(whole(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media));
    response
}

/// Returns the `Host` header of a request, with and without the port.
pub(crate) fn host_of(headers: &HeaderMap) -> (&str, &str) {
    let host = headers.get(HOST).and_then(|value| value.to_str().ok());
    let host = host.unwrap_or_default();
    let bare = match host.rsplit_once(':') {
        Some((bare, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => bare,
        _ => host,
    };
    (host, bare)
}

/// Parses the host of a flag, with or without a port.
///
/// # Errors
/// For a text that can't be equal to the host of any request.
pub(crate) fn host_name(text: &str) -> Result<String, &'static str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
    match !text.is_empty() && text.chars().all(is_part) {
        true => Ok(text.to_owned()),
        false => Err("want a host name such as counts.example, without scheme, path or wildcard"),
    }
}

/// Returns whether a request is for one of these hosts, at any port.
pub(crate) fn is_for(hosts: &[String], headers: &HeaderMap) -> bool {
    let (host, bare) = host_of(headers);
    hosts.iter().any(|known| known.eq_ignore_ascii_case(bare) || known.eq_ignore_ascii_case(host))
}

/// Returns whether a client accepts gzip.
pub(crate) fn takes_gzip(headers: &HeaderMap) -> bool {
    let codings = headers.get_all(ACCEPT_ENCODING).iter();
    let codings = codings.filter_map(|value| value.to_str().ok());
    codings.flat_map(|value| value.split(',')).any(|coding| {
        let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
        let quality = quality.trim().strip_prefix("q=").unwrap_or("1");
        name.trim().eq_ignore_ascii_case("gzip") && quality.parse().is_ok_and(|q: f64| q > 0.0)
    })
}

/// Compresses bytes with gzip. Writing to memory never fails, so errors are ignored.
pub(crate) fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let _ = encoder.write_all(bytes);
    encoder.finish().unwrap_or_default()
}

/// Adds a `Vary` header for a response that depends on the request headers in `vary`. Also adds a `Content-Encoding` header if
/// the response is compressed with gzip.
pub(crate) fn encode(headers: &mut HeaderMap, vary: &'static str, is_packed: bool) {
    headers.insert(VARY, HeaderValue::from_static(vary));
    if is_packed {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
}

/// Reads the body of a request.
///
/// # Errors
/// The status of the response: 413 for a body of more than `longest` bytes, and 408 for a body that takes longer than
/// [`SENDING`].
pub(crate) async fn body_of(body: Incoming, longest: usize) -> Result<Bytes, StatusCode> {
    match timeout(SENDING, Limited::new(body, longest).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(_)) => Err(StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// Returns the path and the query of a request.
pub(crate) fn target_of(uri: &Uri) -> &str {
    uri.path_and_query().map_or("/", |target| target.as_str())
}

/// Returns the names and values of all headers whose values are ASCII text.
pub(crate) fn texts_of(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let headers = headers.iter();
    headers.filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?))).collect()
}

/// A socket that listens.
pub(crate) struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

impl Server {
    /// Listens on an address. Port 0 selects any free port.
    ///
    /// # Errors
    /// If the address can't be listened on.
    pub(crate) async fn listen(host: &str, port: u16) -> Result<Self> {
        let as_failure =
            |error| Failure::usage(format!("can't listen on {host}, port {port}: {error}"));
        let listener = TcpListener::bind((host, port)).await.map_err(as_failure)?;
        let address = listener.local_addr().map_err(as_failure)?;
        Ok(Self { listener, address })
    }

    /// Returns the address at which this machine can reach the server.
    pub(crate) fn url(&self) -> String {
        let port = self.address.port();
        match self.address {
            SocketAddr::V4(address) if address.ip().is_unspecified() => {
                format!("http://127.0.0.1:{port}")
            }
            SocketAddr::V6(address) if address.ip().is_unspecified() => {
                format!("http://[::1]:{port}")
            }
            address => format!("http://{address}"),
        }
    }

    /// Answers requests until `stop` completes. Then finishes the requests that have begun, for at most [`GRACE`].
    pub(crate) async fn serve<F: Future<Output = Answer> + 'static>(
        self,
        handler: impl Fn(Request<Incoming>) -> F + 'static,
        stop: impl Future<Output = ()>,
    ) {
        let handler = Rc::new(handler);
        let connections = GracefulShutdown::new();
        tokio::pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = self.listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _)) => {
                    let handler = Rc::clone(&handler);
                    let handler = move |request| handler(request);
                    spawn_local(connection(stream, handler, connections.watcher()));
                }
                // No file descriptor is free, or the client has disconnected. Without a pause, a lack of descriptors would
                // keep this loop busy.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        // Idle connections close at once.
        let _ = timeout(GRACE, connections.shutdown()).await;
    }
}

async fn connection<F: Future<Output = Answer> + 'static>(
    stream: TcpStream,
    handler: impl Fn(Request<Incoming>) -> F + 'static,
    watcher: Watcher,
) {
    // Nagle's algorithm would delay small responses until the client has acknowledged the earlier ones.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(SENDING);
    // A client that disconnects is not an error of the server.
    let _ = watcher
        .watch(builder.serve_connection(TokioIo::new(ClientStream::new(stream)), service))
        .await;
}

/// The connection to a client. Writing fails if the client does not read its responses in time.
struct ClientStream {
    stream: TcpStream,
    /// The timer that ends the connection, while a write waits for the client.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl ClientStream {
    fn new(stream: TcpStream) -> Self {
        Self { stream, waiting: None }
    }

    /// Returns the result of a write, or an error if the client has taken longer than [`READING`] to read the response.
    fn limited(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        if written.is_ready() {
            return written;
        }
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(READING)));
        ready!(waiting.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.limited(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, pieces);
        self.limited(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // Everything was written, so the timer starts again with the next response. A slow client is not cut off as long as it
        // reads each response in time.
        self.waiting = None;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Semaphore;
    use tokio::task::LocalSet;

    use super::*;

    #[tokio::test]
    async fn a_client_that_does_not_send_its_body_is_disconnected() {
        let work = async {
            let server = Server::listen("127.0.0.1", 0).await.unwrap();
            let address = server.address;
            let handler = |request: Request<Incoming>| async {
                match body_of(request.into_body(), 100).await {
                    Ok(body) => plain(StatusCode::OK, String::from_utf8_lossy(&body)),
                    Err(status) => empty(status),
                }
            };
            let _serving = spawn_local(server.serve(handler, std::future::pending()));
            let long = "a".repeat(101);
            for (length, body, status) in [(5, "whole", 200), (6, "part", 408), (101, &*long, 413)]
            {
                let mut client = TcpStream::connect(address).await.unwrap();
                let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}");
                let request = format!("{head}\r\n\r\n{body}");
                client.write_all(request.as_bytes()).await.unwrap();
                let mut answer = String::new();
                let read = timeout(Duration::from_secs(20), client.read_to_string(&mut answer));
                read.await.unwrap().unwrap();
                let begin = format!("HTTP/1.1 {status} ");
                assert!(answer.starts_with(&begin), "{length}: {answer}");
            }
        };
        LocalSet::new().run_until(work).await;
    }

    #[tokio::test]
    async fn a_client_that_does_not_read_is_disconnected_and_releases_its_permit() {
        let work = async {
            let server = Server::listen("127.0.0.1", 0).await.unwrap();
            let address = server.address;
            let permits = Arc::new(Semaphore::new(1));
            let handed = Arc::clone(&permits);
            let handler = move |_| {
                let permit = Arc::clone(&handed).try_acquire_owned().unwrap();
                let large = Bytes::from(vec![b'a'; 64 << 20]);
                std::future::ready(Response::new(whole(with_permit(large, permit))))
            };
            let _serving = spawn_local(server.serve(handler, std::future::pending()));
            let mut client = TcpStream::connect(address).await.unwrap();
            client.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            let mut waited = Duration::ZERO;
            let step = Duration::from_millis(10);
            while permits.available_permits() == 1 && waited < Duration::from_secs(10) {
                sleep(step).await;
                waited += step;
            }
            assert_eq!(permits.available_permits(), 0, "the response is under way");
            let released = timeout(Duration::from_secs(20), permits.acquire()).await;
            assert!(released.is_ok(), "a client that reads nothing holds the response");
        };
        LocalSet::new().run_until(work).await;
    }
}
