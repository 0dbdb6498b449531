//! Sends one request of the core, decodes the response, and passes it to the core as it arrives.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use reqwest::header::{CONTENT_ENCODING, HeaderMap};
use reqwest::{Method, Response};
use tallyfold::{Call, HostFailure, Request};
use tokio::time::timeout;

use super::body::Body;
use super::network::{Http, name_of, noting_connections};

/// How long the body of an error response may take to arrive. The time is short, because only the error message needs the body,
/// and it quotes only the beginning.
const EXCERPT: Duration = Duration::from_secs(1);

/// What receives a response: a call or a push.
pub(crate) trait ResponseReader {
    /// Receives status and headers, and returns whether it wants the body.
    fn head(&mut self, status: u16, headers: &[(&str, &str)]) -> tallyfold::Result<bool>;
    /// Receives the next bytes of the body, and returns whether it wants more.
    fn chunk(&mut self, chunk: &[u8]) -> tallyfold::Result<bool>;
    /// Receives the end of the body.
    fn end(&mut self) -> tallyfold::Result<()>;
}

/// How an exchange has failed.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The core rejected the response.
    Refused(tallyfold::Error),
    /// The network failed. The core recognizes the failure by this name.
    Network(&'static str),
    /// The network failed before any response, on a reused connection.
    Stale(&'static str),
    /// The exchange took too long.
    TimedOut,
}

impl Broken {
    /// Reports the failure to the call whose exchange has failed.
    ///
    /// # Errors
    /// The call's final error.
    pub(crate) fn report<T>(self, call: &mut Call<T>) -> tallyfold::Result<()> {
        match self {
            Self::Refused(error) => Err(error),
            Self::Network(name) => call.failed(HostFailure::Network, name),
            Self::Stale(name) => call.failed(HostFailure::Stale, name),
            Self::TimedOut => call.failed(HostFailure::Timeout, "TimeoutError"),
        }
    }

    /// Returns the name of the failure: the code of the core's error, or the name of the network failure.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Refused(error) => error.code().as_str(),
            Self::Network(name) | Self::Stale(name) => name,
            Self::TimedOut => "TimeoutError",
        }
    }
}

impl From<tallyfold::Error> for Broken {
    fn from(error: tallyfold::Error) -> Self {
        Self::Refused(error)
    }
}

/// Only the decoder returns an `io::Error`.
impl From<io::Error> for Broken {
    fn from(_: io::Error) -> Self {
        Self::Network("DecodingError")
    }
}

/// A request to send.
pub(crate) struct Outgoing {
    request: reqwest::RequestBuilder,
    has_left: HasLeft,
    /// The lowest status that is an error. The body of such a response is needed only for the error message, which quotes it.
    first_refusal: u16,
}

/// Whether a message may have left this machine. The HTTP client starts to read the message's body only when the connection is
/// ready, so a body that it has not read has not left.
#[derive(Clone, Debug, Default)]
pub(crate) struct HasLeft(Arc<AtomicBool>);

impl HasLeft {
    /// Returns whether any of the message's body may have been sent.
    pub(crate) fn get(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// The body of a message. It records that the HTTP client has started to read it.
struct Watched {
    body: Full<Bytes>,
    has_left: HasLeft,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.has_left.0.store(true, Ordering::Relaxed);
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Outgoing {
    /// Creates the HTTP request for a request of the core.
    pub(crate) fn of(http: &Http, request: &Request) -> Self {
        let method = match request.method() {
            "GET" => Method::GET,
            _ => Method::POST,
        };
        let mut builder = http.to(request.url()).request(method, request.url());
        for (name, value) in request.headers() {
            builder = builder.header(name, value);
        }
        if let Some(body) = request.body() {
            builder = builder.body(body.to_vec());
        }
        Self { request: builder, has_left: HasLeft::default(), first_refusal: 201 }
    }

    /// Creates a request that posts a message to another system.
    pub(crate) fn post<'a>(
        http: &Http,
        url: &str,
        headers: impl Iterator<Item = (&'a str, &'a str)>,
        body: &[u8],
    ) -> Self {
        let has_left = HasLeft::default();
        let watched =
            Watched { body: Full::new(Bytes::copy_from_slice(body)), has_left: has_left.clone() };
        let request = http.to(url).post(url);
        let request = request.body(reqwest::Body::wrap(watched));
        let request = headers.fold(request, |request, (name, value)| request.header(name, value));
        Self {
            request,
            has_left,
            // The body of any other 2xx status matters, too. For example, a 202 of Datadog lists what was rejected.
            first_refusal: 300,
        }
    }

    /// Returns a flag that shows whether the message may have left this machine. The flag is updated while the message is sent.
    pub(crate) fn has_left(&self) -> HasLeft {
        self.has_left.clone()
    }

    /// Sends the request and passes the response to `receiver`, within the time limit.
    pub(crate) async fn exchange(
        self,
        limit: Option<Duration>,
        receiver: &mut impl ResponseReader,
    ) -> Result<(), Broken> {
        let received = within(limit, self.receive(receiver)).await;
        received.unwrap_or(Err(Broken::TimedOut))
    }

    async fn receive(self, receiver: &mut impl ResponseReader) -> Result<(), Broken> {
        let first_refusal = self.first_refusal;
        let (sent, has_connected) = noting_connections(self.request.send()).await;
        let response = sent.map_err(|error| match has_connected {
            true => broken(error),
            false => Broken::Stale(name_of(&error.without_url())),
        })?;
        let status = response.status().as_u16();
        let headers = texts(response.headers());
        let pairs: Vec<(&str, &str)> =
            headers.iter().map(|(name, value)| (*name, &**value)).collect();
        if !receiver.head(status, &pairs)? {
            return Ok(());
        }
        let limit = (status >= first_refusal).then_some(EXCERPT);
        let read = within(limit, read(response, receiver)).await;
        read.unwrap_or(Err(Broken::TimedOut))
    }
}

async fn read(mut response: Response, receiver: &mut impl ResponseReader) -> Result<(), Broken> {
    let coding = response.headers().get(CONTENT_ENCODING);
    let mut body = Body::of(coding.and_then(|value| value.to_str().ok()));
    let mut is_wanted = true;
    let mut take = |piece: &[u8]| -> Result<(), Broken> {
        if is_wanted {
            is_wanted = receiver.chunk(piece)?;
        }
        Ok(())
    };
    while let Some(chunk) = response.chunk().await.map_err(broken)? {
        body.decode(&chunk, &mut take)?;
    }
    body.end(&mut take)?;
    Ok(receiver.end()?)
}

/// Waits for a future, for at most `limit` if there is one. Returns `None` if the future is not ready by then.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    future: impl Future<Output = T>,
) -> Option<T> {
    match limit {
        None => Some(future.await),
        Some(limit) => timeout(limit, future).await.ok(),
    }
}

/// Converts an error to a failure. Removes the URL first, because `name_of` recognizes errors by words such as `proxy`, which the
/// URL may contain.
fn broken(error: reqwest::Error) -> Broken {
    Broken::Network(name_of(&error.without_url()))
}

/// Converts headers to texts. Bytes that are not UTF-8 become replacement characters, so such a value never equals a value that
/// the core expects.
fn texts(headers: &HeaderMap) -> Vec<(&str, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers.iter().map(|(name, value)| (name.as_str(), text(value.as_bytes()))).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;
    use crate::arguments::given::{Origin, Raw, Setting};
    use crate::config::settings::NetworkSettings;

    #[derive(Default)]
    struct Heard(Vec<u8>);

    impl ResponseReader for Heard {
        fn head(&mut self, _: u16, _: &[(&str, &str)]) -> tallyfold::Result<bool> {
            Ok(true)
        }

        fn chunk(&mut self, chunk: &[u8]) -> tallyfold::Result<bool> {
            self.0.extend_from_slice(chunk);
            Ok(true)
        }

        fn end(&mut self) -> tallyfold::Result<()> {
            Ok(())
        }
    }

    /// Answers each request with the number of its connection, followed by a second response that nobody has requested. Writes
    /// both responses at once if `is_together`, otherwise one after the other.
    async fn serve(listener: TcpListener, is_together: bool) {
        let connections = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let number = connections.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tokio::spawn(async move {
                let mut bytes = [0; 4096];
                while stream.read(&mut bytes).await.is_ok_and(|length| length > 0) {
                    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n{number}");
                    let surplus = "HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\nX";
                    if is_together {
                        stream.write_all(format!("{answer}{surplus}").as_bytes()).await.unwrap();
                    } else {
                        stream.write_all(answer.as_bytes()).await.unwrap();
                        stream.write_all(surplus.as_bytes()).await.unwrap();
                    }
                }
            });
        }
    }

    #[tokio::test]
    async fn bytes_after_a_response_are_not_read_as_the_next_response() {
        for is_together in [true, false] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let server = tokio::spawn(serve(listener, is_together));
            let client = Http::new(&NetworkSettings::default()).unwrap();
            for number in 0..9 {
                let mut heard = Heard::default();
                let outgoing = Outgoing::post(&client, &url, std::iter::empty(), b"");
                outgoing.exchange(Some(Duration::from_secs(5)), &mut heard).await.unwrap();
                assert_eq!(heard.0, number.to_string().as_bytes(), "answer {number}");
            }
            server.abort();
        }
    }

    /// Answers `most` requests of each connection, and closes the connection when the next request has arrived.
    async fn serve_some(listener: TcpListener, most: usize) {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = [0; 4096];
            for _ in 0..most {
                let _ = stream.read(&mut bytes).await;
                let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\n\r\n7";
                stream.write_all(answer).await.unwrap();
            }
            let _ = stream.read(&mut bytes).await;
        }
    }

    #[tokio::test]
    async fn a_failure_on_a_reused_connection_is_stale() {
        for (most, wanted) in [(1, [None, Some(true), None]), (0, [Some(false); 3])] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let server = tokio::spawn(serve_some(listener, most));
            let client = Http::new(&NetworkSettings::default()).unwrap();
            for is_stale in wanted {
                let outgoing = Outgoing::post(&client, &url, std::iter::empty(), b"");
                let limit = Some(Duration::from_secs(5));
                let seen = match outgoing.exchange(limit, &mut Heard::default()).await {
                    Ok(()) => None,
                    Err(Broken::Stale(_)) => Some(true),
                    Err(Broken::Network(_)) => Some(false),
                    Err(other) => panic!("{other:?}"),
                };
                assert_eq!(seen, is_stale);
            }
            server.abort();
        }
    }

    #[tokio::test]
    async fn the_failure_of_a_proxy_is_not_reported_as_a_failure_of_the_server() {
        for (proxy, name) in
            [("127.0.0.1:1", "PROXY_ECONNREFUSED"), ("no-such-proxy.invalid:1", "PROXY_ENOTFOUND")]
        {
            let settings = NetworkSettings {
                proxy: Some(Setting {
                    raw: Raw::Secret(format!("http://me:hunter2@{proxy}").into()),
                    origin: Origin::Flag,
                }),
                ..NetworkSettings::default()
            };
            let client = Http::new(&settings).unwrap();
            let url = "https://192.0.2.1:4443/";
            let outgoing = Outgoing::post(&client, url, std::iter::empty(), b"");
            match outgoing.exchange(None, &mut Heard::default()).await {
                Err(Broken::Network(seen)) => assert_eq!(seen, name),
                other => panic!("{other:?}"),
            }
        }
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn decoded(bytes: &[u8], size: usize) -> io::Result<Vec<u8>> {
        let mut body = Body::of(Some("gzip"));
        let mut out = Vec::new();
        let mut take = |piece: &[u8]| -> io::Result<()> {
            out.extend_from_slice(piece);
            Ok(())
        };
        for chunk in bytes.chunks(size) {
            body.decode(chunk, &mut take)?;
        }
        body.end(&mut take)?;
        Ok(out)
    }

    #[test]
    fn a_gzip_member_is_decoded_from_chunks_of_any_size() {
        let text: Vec<u8> =
            (0..100_000_u32).flat_map(|number| number.to_string().into_bytes()).collect();
        for size in [1, 7, 1024, 1 << 20] {
            assert_eq!(decoded(&gzip(&text), size).unwrap(), text);
        }
        assert_eq!(decoded(&gzip(b""), 3).unwrap(), b"");
    }

    #[test]
    fn a_gzip_body_that_is_cut_changed_or_followed_by_bytes_is_refused() {
        let whole = gzip(b"{\"counts\": []}");
        for end in 0..whole.len() {
            assert!(decoded(&whole[..end], 5).is_err(), "cut at {end}");
        }
        let twice = [whole.clone(), whole.clone()].concat();
        assert!(decoded(&twice, 1).is_err() && decoded(&twice, 4096).is_err());
        assert!(decoded(&[&whole[..], b"x"].concat(), 4096).is_err());
        let mut changed = whole;
        let last = changed.len() - 6;
        changed[last] ^= 1;
        assert!(decoded(&changed, 9).is_err());
    }

    #[test]
    fn a_small_body_that_decodes_to_a_large_one_comes_in_pieces() {
        let bytes = gzip(&vec![b' '; 50_000_000]);
        let mut largest = 0;
        let mut take = |piece: &[u8]| -> io::Result<()> {
            largest = largest.max(piece.len());
            Ok(())
        };
        Body::of(Some("gzip")).decode(&bytes, &mut take).unwrap();
        assert!(largest <= 1_100_000, "{largest}");
    }
}
