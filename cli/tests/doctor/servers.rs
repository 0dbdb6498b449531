//! Servers for the tests: the sandbox, and servers with faults.

use std::io::{BufRead, BufReader};
use std::net::TcpListener as BoundListener;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

/// A served sandbox. Dropping this value ends it.
pub(crate) struct Sandbox {
    child: Child,
    /// Stays open, because the sandbox continues to print.
    _stdout: BufReader<ChildStdout>,
    /// The address of the sandbox.
    pub(crate) url: String,
}

impl Sandbox {
    pub(crate) fn start(faults: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command.args(["sandbox", "--port", "0"]).stdout(Stdio::piped());
        for fault in faults {
            command.args(["--fault", fault]);
        }
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let url = line.trim().strip_prefix("tallyfold sandbox on ").unwrap();
        Self { url: url.to_owned(), child, _stdout: stdout }
    }

    pub(crate) fn port(&self) -> u16 {
        self.url.rsplit(':').next().unwrap().parse().unwrap()
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What a server does with a connection.
#[derive(Clone, Debug)]
pub(crate) enum Manner {
    /// Answers every request with these bytes and closes.
    Answer(Vec<u8>),
    /// Forwards the bytes to and from another port of this machine.
    Forward(u16),
    /// Accepts the connection, and sends nothing.
    Silence,
    /// Closes the connection at once.
    Hang,
}

/// A response with a status line, headers and a body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> Manner {
    let length = body.len();
    Manner::Answer(
        format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}").into_bytes(),
    )
}

/// Serves on a port of this machine until the test process ends.
pub(crate) fn serve(tls: Option<Arc<ServerConfig>>, manner: Manner) -> u16 {
    let listener = BoundListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(accept(listener, tls, manner));
    });
    port
}

async fn accept(listener: BoundListener, tls: Option<Arc<ServerConfig>>, manner: Manner) {
    let listener = TcpListener::from_std(listener).unwrap();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (tls, manner) = (tls.clone(), manner.clone());
        tokio::spawn(async move {
            match tls {
                None => attend(stream, manner).await,
                // A client that refuses the certificate ends the handshake.
                Some(config) => {
                    if let Ok(stream) = TlsAcceptor::from(config).accept(stream).await {
                        attend(stream, manner).await;
                    }
                }
            }
        });
    }
}

async fn attend(mut stream: impl AsyncRead + AsyncWrite + Unpin, manner: Manner) {
    match manner {
        Manner::Hang => {}
        Manner::Silence => std::future::pending().await,
        Manner::Forward(port) => {
            let mut other = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
            let _ = copy_bidirectional(&mut stream, &mut other).await;
        }
        Manner::Answer(bytes) => {
            let mut request = Vec::new();
            let is_tls = |request: &[u8]| request.first() == Some(&0x16);
            while !is_tls(&request) && !request.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read_buf(&mut request).await {
                    Ok(1..) => {}
                    _ => return,
                }
            }
            let _ = stream.write_all(&bytes).await;
            let _ = stream.shutdown().await;
        }
    }
}

/// A port on which nothing listens. The system never assigns this low port to a test that requests any free port.
pub(crate) fn dead_port() -> u16 {
    1
}

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// An authority. `change` changes the parameters of its certificate.
    pub(crate) fn with(change: impl FnOnce(&mut CertificateParams)) -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        change(&mut params);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, "Test Authority");
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// The authority's certificate.
    pub(crate) fn pem(&self) -> String {
        self.0.pem()
    }

    /// A server with a self-signed certificate, as `openssl req -x509` creates it.
    pub(crate) fn own_server(name: &str) -> (Self, Arc<ServerConfig>) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        let own = Self(CertifiedIssuer::self_signed(params, key).unwrap());
        let config = server(own.0.der().clone(), private);
        (own, config)
    }

    /// A server with a certificate for a name. `change` changes the parameters of the certificate.
    pub(crate) fn server(
        &self,
        name: &str,
        change: impl FnOnce(&mut CertificateParams),
    ) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let private = PrivatePkcs8KeyDer::from(key.serialize_der());
        server(certificate.der().clone(), private)
    }
}

fn server(
    certificate: CertificateDer<'static>,
    key: PrivatePkcs8KeyDer<'static>,
) -> Arc<ServerConfig> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], PrivateKeyDer::Pkcs8(key))
        .unwrap();
    Arc::new(config)
}
