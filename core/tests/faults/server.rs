//! A server that follows the script of a run on the wire, one request after the other.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use serde_json::Value;
use socket2::SockRef;

/// The server of one run, and another server to which nothing may be sent.
pub(crate) struct Server<'a> {
    listener: TcpListener,
    elsewhere: TcpListener,
    file: &'a Value,
    exchanges: &'a [Value],
}

/// The parts of a request that are checked.
struct Asked {
    /// The method and the path.
    line: String,
    authorization: Option<String>,
    body: String,
}

impl<'a> Server<'a> {
    pub(crate) fn new(file: &'a Value, run: &'a Value) -> Self {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        Self {
            listener: listen(),
            elsewhere: listen(),
            file,
            exchanges: run["exchanges"].as_array().expect("a list"),
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", port(&self.listener))
    }

    /// Serves until a connection sends no request.
    pub(crate) fn serve(&self) -> Result<(), String> {
        let mut exchanges = self.exchanges.iter();
        loop {
            let (mut stream, _) = self.listener.accept().expect("a connection");
            stream.set_nodelay(true).expect("a socket's option");
            let Some(asked) = read_request(&stream) else {
                let left = exchanges.len();
                let all = (left == 0).then_some(());
                return all.ok_or_else(|| format!("{left} requests were never sent"));
            };
            let Some(exchange) = exchanges.next() else {
                return Err(format!("unexpected {}", asked.line));
            };
            self.check_request(exchange, &asked)?;
            // A client that needs no more of the response may close the connection.
            let _ = self.answer(&mut stream, &exchange["answer"]);
        }
    }

    /// Ends [`Server::serve`].
    pub(crate) fn hang_up(&self) {
        drop(connect(&self.listener));
    }

    pub(crate) fn assert_nobody_went_elsewhere(&self, place: &str) {
        self.elsewhere.set_nonblocking(true).expect("a socket's option");
        let nobody = self.elsewhere.accept().expect_err(place);
        assert_eq!(nobody.kind(), io::ErrorKind::WouldBlock, "{place}");
    }

    fn check_request(&self, exchange: &Value, asked: &Asked) -> Result<(), String> {
        let bearer = exchange["bearer"].as_str().map(|token| format!("Bearer {token}"));
        // The secret is sent to token endpoints, and only to them.
        let secret = self.file["client"]["client_secret"].as_str().expect("text");
        let as_told = (exchange["request"] == *asked.line)
            && asked.authorization == bearer
            && asked.body.contains(secret) == asked.line.ends_with("/oauth/token");
        let told = || format!("want {exchange}, not {} {:?}", asked.line, asked.authorization);
        as_told.then_some(()).ok_or_else(told)
    }

    fn answer(&self, stream: &mut TcpStream, answer: &Value) -> io::Result<()> {
        let answer = answer.as_str().map_or(answer, |name| &self.file["answers"][name]);
        for act in answer.as_array().expect("a list") {
            let text = || {
                let port = port(&self.elsewhere).to_string();
                act[1].as_str().expect("text").replace("ELSEWHERE_PORT", &port)
            };
            match act[0].as_str().expect("text") {
                "send" => stream.write_all(text().as_bytes())?,
                "send_hex" => stream.write_all(&from_hex(&text()))?,
                "drip" => {
                    for byte in text().into_bytes() {
                        stream.write_all(&[byte])?;
                        pause(&act[2]);
                    }
                }
                "pause" => pause(&act[1]),
                "stall" => drop(stream.read(&mut [0])?),
                "reset" => SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?,
                other => panic!("unknown {other}"),
            }
        }
        Ok(())
    }
}

/// Reads a whole request; `None` if the connection sends none.
fn read_request(stream: &TcpStream) -> Option<Asked> {
    let mut lines = BufReader::new(stream);
    let mut line = String::new();
    let mut next = |line: &mut String| {
        line.clear();
        lines.read_line(line).is_ok_and(|length| length > 2)
    };
    next(&mut line).then_some(())?;
    let (mut authorization, mut length) = (None, 0);
    let (asked, _) = line.rsplit_once(' ').expect("a request line");
    let asked = asked.to_owned();
    while next(&mut line) {
        let (name, value) = line.split_once(':').expect("a header");
        match name.to_ascii_lowercase().as_str() {
            "authorization" => authorization = Some(value.trim().to_owned()),
            "content-length" => length = value.trim().parse().expect("a length"),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    lines.read_exact(&mut body).ok()?;
    Some(Asked { line: asked, authorization, body: String::from_utf8(body).expect("UTF-8") })
}

fn port(listener: &TcpListener) -> u16 {
    listener.local_addr().expect("an address").port()
}

#[allow(clippy::disallowed_methods, reason = "this is the other side")]
fn connect(listener: &TcpListener) -> io::Result<TcpStream> {
    TcpStream::connect(listener.local_addr()?)
}

#[allow(clippy::disallowed_methods, reason = "this is the other side")]
fn pause(milliseconds: &Value) {
    let milliseconds = milliseconds.as_u64().expect("milliseconds");
    std::thread::sleep(Duration::from_millis(milliseconds));
}

fn from_hex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    let pairs = digits.map(|pair| std::str::from_utf8(pair).expect("ASCII"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("hex")).collect()
}
