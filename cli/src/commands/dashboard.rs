//! `tallyfold dashboard`: serves the web page of the dashboard, and queries the service for it.
//!
//! The page can read all counts of the clusters, so the server checks each request in three steps. First it checks the `Host`
//! header, because another site can let its own name resolve to this server (DNS rebinding). Then it checks the headers by
//! which browsers report the origin of a request. Last, it checks the cookie, the password or the proxy's header.

mod pages;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io::{self, IsTerminal, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use flate2::read::GzDecoder;
use hyper::body::Incoming;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HOST, HeaderName, HeaderValue,
    LOCATION, ORIGIN, REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use serde::Serialize;
use sha2::{Digest, Sha256};
use tallyfold::Secret;
use tallyfold_health::Rules;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::sleep;

use self::pages::Pages;
use super::serve::listening;
use crate::app::App;
use crate::arguments::secret::{Place, Source};
use crate::config::settings::Cluster;
use crate::failure::{Exit, Failure, Result};
use crate::files::{file_name, hex, read_text};
use crate::health::files::{Places, places, rules};
use crate::host::server::{
    Answer, Server, body_of, empty, encode, host_name, host_of, is_for, plain, takes_gzip,
    target_of, typed, whole,
};
use crate::host::session::Session;
use crate::stderr::Stderr;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold dashboard
      Opens the dashboard in your browser, with the clusters of the configuration.
  tallyfold sandbox -- tallyfold dashboard
      The same with the counts of the sandbox, which needs no configuration.
  tallyfold dashboard --no-open --listen 127.0.0.1:8123
      Only prints the address, for example for a tunnel: ssh -L 8123:127.0.0.1:8123 HOST
  tallyfold dashboard --listen 0.0.0.0:8123 --password-file ~/.config/tallyfold/password --allow-host counts.example
      For other people, who sign in with the password. Put a proxy with HTTPS in front of the dashboard.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
By default, the address contains a token that works once, in the first browser that opens it. After
each use, the command prints a new address.
The command stores responses for settled windows in memory, and in the folder --history for its next
start.
With --trust-header, everybody who can reach this port can read all counts. Make sure that only the
proxy can reach it, and that the proxy removes that header from the requests of its users.";

/// The environment variable with the password.
const PASSWORD: &str = "TALLYFOLD_DASHBOARD_PASSWORD";
/// The default address and port.
const USUAL: (&str, u16) = ("127.0.0.1", 9465);
/// The minimum length of a password, in characters.
const LEAST_PASSWORD: usize = 12;
/// The time that checking a password takes. Only one password is checked at a time, so guessing is slow.
const PASSWORD_CHECK: Duration = Duration::from_secs(1);
/// The maximum number of sign-ins that wait, including the one that is being checked.
const MOST_SIGN_INS: usize = 20;
/// How many seconds a browser should wait before it tries again, if [`MOST_SIGN_INS`] are waiting.
const RETRY_AFTER_S: u16 = 5;
/// The maximum length of a request's body, in bytes. The page sends a few hundred.
const LONGEST_BODY: usize = 16 * 1024;
/// The Content-Security-Policy: the page may load only files of this server, and send requests only to this server.
const POLICY: &str = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; style-src 'self'; img-src 'self' data: blob:; \
     connect-src 'self'; worker-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct DashboardFlags {
    /// The address and port to listen on; port 0 selects a free one [default: 127.0.0.1:9465, or a free port]
    ///
    /// An address that other machines can reach requires a password (--password-file) or --trust-header.
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "Serving")]
    listen: Option<String>,
    #[command(flatten)]
    entry: EntryFlags,
    /// Also answers requests for this hostname, such as counts.example; may be repeated
    ///
    /// The dashboard always answers requests for IP addresses and for localhost. It refuses all other names, because a
    /// malicious site could point its own name to this server and read the counts.
    #[arg(long = "allow-host", value_name = "NAME", value_parser = host_name, help_heading = "Serving")]
    hosts: Vec<String>,
    /// Does not open the browser
    #[arg(long, help_heading = "Serving")]
    no_open: bool,
    /// The file with the rules [default: as configured, or else health.toml here, or else the standard rules]
    #[arg(long, value_name = "FILE", help_heading = "Rules")]
    rules: Option<PathBuf>,
    /// Where to store responses for settled windows [default: as configured, or next to the rules, such as health.history]
    #[arg(long, value_name = "FOLDER", help_heading = "Rules")]
    history: Option<PathBuf>,
}

/// Flags for how browsers sign in.
#[derive(Args, Clone, Debug)]
pub(crate) struct EntryFlags {
    /// A file with the dashboard's password; only its owner may have access to it
    ///
    /// Without this flag, the password is the value of the environment variable TALLYFOLD_DASHBOARD_PASSWORD, if it is set.
    #[arg(long, value_name = "FILE", help_heading = "Serving")]
    password_file: Option<PathBuf>,
    /// Accepts requests with this header, which a proxy adds for users who have signed in
    #[arg(long, value_name = "NAME", conflicts_with = "password_file", help_heading = "Serving")]
    trust_header: Option<String>,
}

/// What the server needs to answer requests.
struct Site {
    app_url: String,
    hosts: Vec<String>,
    entry: Entry,
    /// The value of the session cookie. It is the same for all browsers that have signed in.
    session: String,
    /// The name of the cookie. It contains the port, because a browser sends a cookie to all ports of a host.
    cookie: String,
    files: HashMap<String, PageFile>,
    rules: String,
    clusters: Vec<(String, Rc<Pages>)>,
}

/// How the server authenticates a browser.
pub(super) enum Entry {
    /// By a token in the address. Each token works once.
    Token(RefCell<String>),
    /// By a password.
    Password(SignIn),
    /// By a header that a proxy adds.
    Header(HeaderName),
}

/// The password, and the attempts to sign in with it.
pub(super) struct SignIn {
    password: Secret,
    /// The places for waiting requests, including the request whose password is being checked.
    queue: Semaphore,
    /// Held while a password is checked.
    check: Mutex<()>,
    wrong: Cell<u64>,
    stderr: Rc<Stderr>,
}

/// Serves the dashboard until Ctrl-C or SIGTERM.
///
/// # Errors
/// For flags, settings and files that can't be used, an address that can't be listened on, and a build without the page.
pub(crate) async fn run(app: &App, flags: &DashboardFlags) -> Result<Exit> {
    let (host, port) = match &flags.listen {
        Some(listen) => listening(listen)?,
        None => (USUAL.0.to_owned(), USUAL.1),
    };
    let entry = flags.entry.read(("--listen", &host), &app.stderr)?;
    let places = places((&flags.rules, &None, &flags.history), &app.loaded()?.check);
    let opening = Opening { entry, hosts: &flags.hosts, places: &places, session: secret_text()? };
    let server = async {
        match Server::listen(&host, port).await {
            // Another dashboard may use the default port, so listen on any free port.
            Err(_) if flags.listen.is_none() => Server::listen(&host, 0).await,
            listening => listening,
        }
    };
    let dashboard = opening.listen(app.sessions()?, server).await?;
    let address = dashboard.address();
    dashboard.print();
    let is_seen = io::stdout().is_terminal() || io::stderr().is_terminal();
    if is_seen && !flags.no_open && open::that_detached(&address).is_err() {
        app.stderr.note("open this address in a browser");
    }
    app.stderr.note("Ctrl-C stops the dashboard");
    dashboard.serve(async { _ = app.stop.asked().await }).await;
    Ok(Exit::Fine)
}

/// What [`Opening::listen`] needs to open a dashboard.
pub(super) struct Opening<'a> {
    /// How the server authenticates a browser.
    pub(super) entry: Entry,
    /// The hostnames that requests may be for, in addition to localhost and IP addresses.
    pub(super) hosts: &'a [String],
    /// Where the rules and the history are. The dashboard stores responses in folders below the history.
    pub(super) places: &'a Places,
    /// The value of the session cookie.
    pub(super) session: String,
}

impl Opening<'_> {
    /// Reads the rules and the files of the page, opens the stores, and waits for `server`.
    ///
    /// # Errors
    /// For rules and folders that can't be used, a build without the page, and the errors of the socket.
    pub(super) async fn listen(
        self,
        sessions: Vec<(Cluster, Rc<Session>)>,
        server: impl Future<Output = Result<Server>>,
    ) -> Result<Dashboard> {
        let Places { rules: path, history, .. } = self.places;
        // Parse the rules here only to report mistakes: the page gets their text.
        rules(path.as_deref())?;
        let text = path.as_deref().map(|path| read_text(path, "a rules file"));
        let mut clusters = Vec::new();
        for (cluster, session) in sessions {
            let folder = history.join(file_name(&cluster.name, "")).join("pages");
            clusters.push((cluster.name, Rc::new(Pages::new(session, &folder)?)));
        }
        let files = page_files(&clusters)?;
        let rules = text.unwrap_or_else(|| Ok(Rules::STANDARD.to_owned()))?;
        let server = server.await?;
        let app_url = server.url();
        let port = app_url.rsplit(':').next().unwrap_or_default();
        let site = Rc::new(Site {
            hosts: self.hosts.to_owned(),
            entry: self.entry,
            session: self.session,
            cookie: format!("tallyfold-{port}"),
            files,
            rules,
            clusters,
            app_url,
        });
        Ok(Dashboard { server, site })
    }
}

/// A dashboard with its open socket.
pub(super) struct Dashboard {
    server: Server,
    site: Rc<Site>,
}

impl Dashboard {
    /// Returns the address to open in a browser.
    pub(super) fn address(&self) -> String {
        self.site.address()
    }

    /// Prints the address to stdout.
    pub(super) fn print(&self) {
        self.site.print();
    }

    /// Answers requests until `stop` completes.
    pub(super) async fn serve(self, stop: impl Future<Output = ()>) {
        let site = self.site;
        let handler = move |request| answer(Rc::clone(&site), request);
        self.server.serve(handler, stop).await;
    }
}

impl EntryFlags {
    /// Returns how the server authenticates a browser. If other machines can reach `host`, a token is not enough. An error about
    /// the host begins with the name of its setting.
    ///
    /// # Errors
    /// For flags and a file that can't be used.
    pub(super) fn read(&self, (setting, host): (&str, &str), stderr: &Rc<Stderr>) -> Result<Entry> {
        if let Some(name) = &self.trust_header {
            let wanted = |what| Failure::usage(format!("--trust-header {name}: want {what}"));
            let header = HeaderName::try_from(name).map_err(|_| wanted("the name of a header"))?;
            let lower = header.as_str();
            let is_usual = lower.starts_with("sec-") || SENT_BY_ALL.contains(&lower);
            return match is_usual {
                true => Err(wanted(
                    "a header that only your proxy adds; browsers send this one by themselves",
                )),
                false => Ok(Entry::Header(header)),
            };
        }
        let file = self.password_file.clone().map(Place::File);
        let is_set = std::env::var_os(PASSWORD).is_some();
        let variable = is_set.then(|| Place::Variable(PASSWORD.to_owned()));
        let Some(place) = file.or(variable) else {
            let is_loopback = host == "localhost"
                || host.parse().is_ok_and(|address: IpAddr| address.is_loopback());
            return match is_loopback {
                true => Ok(Entry::Token(RefCell::new(secret_text()?))),
                false => Err(Failure::usage(format!(
                    "{setting} {host}: other machines could read all counts; want --password-file FILE, or --trust-header NAME \
                 behind a proxy"
                ))),
            };
        };
        let what = match &self.password_file {
            Some(path) => format!("--password-file {}", path.display()),
            None => PASSWORD.to_owned(),
        };
        let wrong = |text: String| Failure::usage(format!("{what}: {text}"));
        let password = Source::new(place).secret().map_err(wrong)?;
        match password.expose().chars().count() >= LEAST_PASSWORD {
            true => Ok(Entry::Password(SignIn {
                password,
                queue: Semaphore::new(MOST_SIGN_INS),
                check: Mutex::default(),
                wrong: Cell::default(),
                stderr: Rc::clone(stderr),
            })),
            false => Err(wrong(format!("want a password of {LEAST_PASSWORD} characters or more"))),
        }
    }
}

/// Headers that clients send by themselves, in addition to all headers that begin with `sec-`.
const SENT_BY_ALL: [&str; 15] = [
    "accept",
    "accept-encoding",
    "accept-language",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "cookie",
    "host",
    "if-none-match",
    "origin",
    "pragma",
    "referer",
    "upgrade-insecure-requests",
    "user-agent",
];

/// Returns 128 random bits in hexadecimal.
pub(super) fn secret_text() -> Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        Failure::usage(format!("this machine provides no random numbers: {error}"))
    })?;
    Ok(hex(&bytes))
}

/// Returns whether two secrets are equal. Compares their digests, so that the time it takes reveals nothing about them.
fn is_equal(one: &str, other: &str) -> bool {
    Sha256::digest(one.as_bytes()) == Sha256::digest(other.as_bytes())
}

impl Site {
    /// Returns the address to open in a browser.
    fn address(&self) -> String {
        match &self.entry {
            Entry::Token(token) => format!("{}/?token={}", self.app_url, token.borrow()),
            Entry::Password(_) | Entry::Header(_) => format!("{}/", self.app_url),
        }
    }

    /// Prints the address to stdout. Ignores errors, because the reader may have closed the pipe.
    fn print(&self) {
        let _ = writeln!(io::stdout(), "{}", self.address());
    }

    /// Returns whether a request names this server as its host: by an IP address, as localhost, or by an allowed name. Another
    /// site can let any other name resolve to this server.
    fn is_for_this_server(&self, headers: &HeaderMap) -> bool {
        let (_, bare) = host_of(headers);
        let inner = bare.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let is_address = inner.unwrap_or(bare).parse::<IpAddr>().is_ok();
        is_address || bare.eq_ignore_ascii_case("localhost") || is_for(&self.hosts, headers)
    }

    fn is_signed_in(&self, headers: &HeaderMap) -> bool {
        if let Entry::Header(name) = &self.entry {
            return headers.get(name).is_some_and(|value| !value.is_empty());
        }
        let values = headers.get_all(COOKIE).iter();
        let values = values.filter_map(|value| value.to_str().ok());
        let mut pairs = values
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        pairs.any(|(name, value)| name == self.cookie && is_equal(value, &self.session))
    }

    /// Returns a response that sets the session cookie and redirects to the page.
    fn welcome(&self) -> Answer {
        let mut response = empty(StatusCode::SEE_OTHER);
        let cookie = format!("{}={}; Path=/; HttpOnly; SameSite=Strict", self.cookie, self.session);
        let headers = response.headers_mut();
        headers.insert(LOCATION, HeaderValue::from_static("/"));
        headers.extend(HeaderValue::try_from(cookie).map(|cookie| (SET_COOKIE, cookie)));
        response
    }
}

/// Returns whether a page of another origin has sent this request, according to the browser's headers. A user may follow a link
/// from another page to the dashboard.
fn is_foreign(request: &Request<Incoming>) -> bool {
    let of = |name: &str| {
        let value = request.headers().get(name);
        value.and_then(|value| value.to_str().ok())
    };
    let host = of(HOST.as_str());
    let origin = of(ORIGIN.as_str());
    let is_other_origin =
        origin.is_some_and(|origin| origin.split_once("://").map(|(_, host)| host) != host);
    let is_link = request.method() == Method::GET && of("sec-fetch-mode") == Some("navigate");
    let is_own = matches!(of("sec-fetch-site"), None | Some("same-origin" | "none"));
    is_other_origin || !(is_own || is_link)
}

async fn answer(site: Rc<Site>, request: Request<Incoming>) -> Answer {
    let mut response = answered(&site, request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let no_store = HeaderValue::from_static("no-store");
    headers.entry(CACHE_CONTROL).or_insert(no_store);
    response
}

async fn answered(site: &Rc<Site>, request: Request<Incoming>) -> Answer {
    if !site.is_for_this_server(request.headers()) {
        let text = "This server does not answer for that host. If it is yours, restart the dashboard with --allow-host NAME.\n";
        return plain(StatusCode::MISDIRECTED_REQUEST, text);
    }
    if is_foreign(&request) {
        let text = "This request comes from a page of another origin.\n";
        return plain(StatusCode::FORBIDDEN, text);
    }
    let (head, body) = request.into_parts();
    let (method, path) = (head.method.as_str(), head.uri.path());
    let query = head.uri.query().unwrap_or_default();
    if path == "/login" && method == "POST" {
        return login(site, body).await;
    }
    if let (Entry::Token(token), "GET", "/") = (&site.entry, method, path)
        && let Some(given) = query.strip_prefix("token=")
    {
        let is_right = !given.is_empty() && is_equal(given, &token.borrow());
        if is_right {
            // If there are no random numbers, the token becomes empty, and an empty token never works.
            token.replace(secret_text().unwrap_or_default());
            site.print();
        }
        // A browser that already has the cookie may open the address again.
        if is_right || site.is_signed_in(&head.headers) {
            return site.welcome();
        }
    }
    if !site.is_signed_in(&head.headers) {
        return refusal(site, method, path);
    }
    if let Some((name, _)) = path.strip_prefix("/c/").and_then(|rest| rest.split_once('/')) {
        let named = site.clusters.iter().find(|(own, _)| file_name(own, "") == name);
        let Some((_, pages)) = named else {
            return plain(StatusCode::NOT_FOUND, "There is no such cluster.\n");
        };
        let body = match body_of(body, LONGEST_BODY).await {
            Ok(body) => body,
            Err(status) => return empty(status),
        };
        let target = target_of(&head.uri);
        let pages = Rc::clone(pages);
        return pages.answer(method, target, &head.headers, &body).await;
    }
    if method != "GET" && method != "HEAD" {
        return plain(StatusCode::METHOD_NOT_ALLOWED, "Want GET or HEAD.\n");
    }
    if path == "/rules.toml" {
        return typed(StatusCode::OK, "application/toml", site.rules.clone());
    }
    if path == "/favicon.ico" {
        return empty(StatusCode::NO_CONTENT);
    }
    let name = match path {
        "/" => "index.html",
        path => path.trim_start_matches('/'),
    };
    match site.files.get(name) {
        Some(file) => file.answer(&head.headers),
        None => plain(StatusCode::NOT_FOUND, "There is no such page.\n"),
    }
}

/// Returns the response to a request without a valid cookie or header.
fn refusal(site: &Site, method: &str, path: &str) -> Answer {
    let is_page = matches!(method, "GET" | "HEAD") && path == "/";
    let text = match &site.entry {
        Entry::Password(_) if is_page => {
            return login_page(StatusCode::UNAUTHORIZED, "");
        }
        Entry::Password(_) => "Sign in first.\n",
        Entry::Token(_) => {
            "Open the address that tallyfold printed last in its terminal. Each address works once.\n"
        }
        Entry::Header(_) => "The proxy in front of the dashboard has not signed you in.\n",
    };
    plain(StatusCode::UNAUTHORIZED, text)
}

const HTML: &str = "text/html; charset=utf-8";

/// The page with the form for the password. The reason why the last attempt failed replaces `{alert}`.
const LOGIN: &str = "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
    <meta name=\"viewport\" content=\"width=device-width\"><meta name=\"color-scheme\" content=\"light dark\">\
    <title>tallyfold</title></head><body><main><h1>Event delivery</h1>{alert}<form method=\"post\" action=\"/login\">\
    <p><label>Password <input type=\"password\" name=\"password\" autocomplete=\"current-password\" required autofocus></label> \
    <button>Sign in</button></p></form></main></body></html>";

/// Returns the page with the form for the password. `why` is the reason why the last attempt failed; empty if there was none.
fn login_page(status: StatusCode, why: &str) -> Answer {
    let alert = match why {
        "" => String::new(),
        why => format!("<p role=\"alert\">{why}</p>"),
    };
    typed(status, HTML, LOGIN.replace("{alert}", &alert))
}

async fn login(site: &Site, body: Incoming) -> Answer {
    let Entry::Password(sign_in) = &site.entry else {
        return plain(StatusCode::NOT_FOUND, "There is no such page.\n");
    };
    let body = match body_of(body, LONGEST_BODY).await {
        Ok(body) => body,
        Err(status) => return empty(status),
    };
    let mut fields = form_urlencoded::parse(&body);
    let given = fields.find(|(name, _)| name == "password");
    let given = given.map(|(_, value)| value).unwrap_or_default();
    match sign_in.is_right(&given).await {
        Some(true) => site.welcome(),
        Some(false) => login_page(StatusCode::UNAUTHORIZED, "Wrong password."),
        None => {
            let why = "Busy: your password was not checked. Try again.";
            let mut busy = login_page(StatusCode::SERVICE_UNAVAILABLE, why);
            busy.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S.into());
            busy
        }
    }
}

impl SignIn {
    /// Waits for [`PASSWORD_CHECK`], and returns whether `given` is the password. A correct password takes as long as a wrong
    /// one, so a client learns nothing by closing the connection early. If too many requests are waiting, returns `None` at
    /// once.
    async fn is_right(&self, given: &str) -> Option<bool> {
        // Dropping the place frees it, even if the client has closed the connection.
        let _place = self.queue.try_acquire().ok()?;
        let _turn = self.check.lock().await;
        sleep(PASSWORD_CHECK).await;
        let is_right = is_equal(given, self.password.expose());
        if !is_right {
            let wrong = self.wrong.get() + 1;
            self.wrong.set(wrong);
            if wrong.is_power_of_two() {
                self.stderr
                    .warning(format_args!("dashboard: wrong passwords since the start: {wrong}"));
            }
        }
        Some(is_right)
    }
}

/// The files of the page, which the build of the npm package writes. A debug build reads them when it starts; a release build
/// contains them.
#[derive(rust_embed::Embed)]
#[folder = "page"]
#[allow_missing = true]
struct Page;

/// A file of the page.
struct PageFile {
    media: &'static str,
    bytes: Bytes,
    is_packed: bool,
    /// Whether the file's name changes with its content. Browsers then keep the file for a year.
    is_hashed: bool,
}

impl PageFile {
    fn answer(&self, headers: &HeaderMap) -> Answer {
        let is_taken = takes_gzip(headers);
        let bytes = match self.is_packed && !is_taken {
            true => unpacked(&self.bytes),
            false => self.bytes.clone(),
        };
        let mut response = Response::new(whole(bytes));
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media));
        if self.is_packed {
            encode(headers, "accept-encoding", is_taken);
        }
        if self.is_hashed {
            let lasting = HeaderValue::from_static("private, max-age=31536000, immutable");
            headers.insert(CACHE_CONTROL, lasting);
        }
        response
    }
}

fn unpacked(bytes: &[u8]) -> Bytes {
    let mut text = Vec::new();
    let _ = io::Read::read_to_end(&mut GzDecoder::new(bytes), &mut text);
    text.into()
}

/// Returns the names and contents of the page's files. Debug builds can read them from another folder, for tests and for
/// changes to the page.
fn embedded() -> Vec<(String, Bytes)> {
    #[cfg(debug_assertions)]
    if let Some(folder) = std::env::var_os("TALLYFOLD_DASHBOARD_PAGE") {
        let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let files = files.filter_map(|file| {
            let bytes = std::fs::read(file.path()).ok()?;
            Some((file.file_name().into_string().ok()?, bytes.into()))
        });
        return files.collect();
    }
    let file = |name: std::borrow::Cow<'static, str>| {
        let bytes = match Page::get(&name)?.data {
            std::borrow::Cow::Borrowed(bytes) => Bytes::from_static(bytes),
            std::borrow::Cow::Owned(bytes) => bytes.into(),
        };
        Some((name.into_owned(), bytes))
    };
    Page::iter().filter_map(file).collect()
}

/// Returns the files of the page by the names in their addresses.
fn page_files(clusters: &[(String, Rc<Pages>)]) -> Result<HashMap<String, PageFile>> {
    let mut files = HashMap::new();
    for (name, bytes) in embedded() {
        let stem = name.strip_suffix(".gz");
        let is_packed = stem.is_some();
        let name = stem.unwrap_or(&name).to_owned();
        let Some(media) = media_of(Path::new(&name)) else {
            continue;
        };
        let is_index = name == "index.html";
        let bytes = match is_index {
            true if is_packed => index(&unpacked(&bytes), clusters),
            true => index(&bytes, clusters),
            false => bytes,
        };
        let file =
            PageFile { media, bytes, is_packed: is_packed && !is_index, is_hashed: !is_index };
        files.insert(name, file);
    }
    match files.contains_key("index.html") {
        true => Ok(files),
        false => Err(Failure::usage(
            "this build of tallyfold has no page for the dashboard: it was compiled before the page was built; install a released \
             build, or run `make npm` in the source before `cargo build`",
        )),
    }
}

fn media_of(name: &Path) -> Option<&'static str> {
    Some(match name.extension()?.to_str()? {
        "html" => HTML,
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "wasm" => "application/wasm",
        "json" => "application/json",
        _ => return None,
    })
}

/// Returns the page with the clusters of this run in its attributes.
fn index(page: &[u8], clusters: &[(String, Rc<Pages>)]) -> Bytes {
    #[derive(Serialize)]
    struct Named<'a> {
        name: &'a str,
        src: String,
    }
    let named =
        clusters.iter().map(|(name, _)| Named { name, src: format!("/c/{}", file_name(name, "")) });
    let json = serde_json::to_string(&named.collect::<Vec<_>>()).unwrap_or_default();
    let escaped = json.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
    let own = format!("clusters=\"{escaped}\" rules=\"/rules.toml\"");
    let page = String::from_utf8_lossy(page);
    page.replacen("clusters=\"[]\"", &own, 1).into_bytes().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_gets_the_clusters_and_the_address_of_the_rules() {
        let page = b"<tallyfold-dashboard clusters=\"[]\"></tallyfold-dashboard>";
        let text = index(page, &[]);
        let expected =
            "<tallyfold-dashboard clusters=\"[]\" rules=\"/rules.toml\"></tallyfold-dashboard>";
        assert_eq!(text, expected);
    }
}
