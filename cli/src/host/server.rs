//! An HTTP server on one thread, for the sandbox and for scrapes.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::spawn_local;
use tokio::time::{sleep, timeout};

use crate::failure::{Failure, Result};

/// The response of a handler.
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BrokenOff>>;

/// Ends a body before its declared length, on purpose, and closes the connection.
#[derive(Debug)]
pub(crate) struct BrokenOff;

impl std::fmt::Display for BrokenOff {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the answer ends here on purpose")
    }
}

impl std::error::Error for BrokenOff {}

/// How long a client may take to send the head of a request.
const HEAD: Duration = Duration::from_secs(10);

/// How long responses that are under way may take when the server stops.
const FAREWELL: Duration = Duration::from_secs(2);

/// A body that is sent whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> UnsyncBoxBody<Bytes, BrokenOff> {
    Full::new(bytes.into())
        .map_err(|never: Infallible| match never {})
        .boxed_unsync()
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

    /// The address at which this machine can reach the server.
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

    /// Answers requests until `stop` completes, and then the requests that are under way.
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
                // No file descriptor is free, or the client has disconnected. Other clients may be served in a moment.
                Err(_) => sleep(Duration::from_millis(50)).await,
            }
        }
        // A connection that is idle closes at once.
        let _ = timeout(FAREWELL, connections.shutdown()).await;
    }
}

async fn connection<F: Future<Output = Answer> + 'static>(
    stream: TcpStream,
    handler: impl Fn(Request<Incoming>) -> F + 'static,
    watcher: Watcher,
) {
    // Without this, small responses wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let answer = handler(request);
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD);
    // A client that disconnects is not an error of the server.
    let _ = watcher
        .watch(builder.serve_connection(TokioIo::new(stream), service))
        .await;
}
