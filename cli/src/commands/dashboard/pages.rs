//! Answers the web app's requests about one cluster, if the core's rules allow them. Stores answers in memory, and answers for
//! settled windows also on the disk.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use futures_util::future::{FutureExt, LocalBoxFuture, Shared, WeakShared, join_all};
use futures_util::stream::{self, StreamExt};
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyper::header::{HeaderValue, IF_NONE_MATCH};
use hyper::{HeaderMap, Response, StatusCode};
use lru::LruCache;
use sha2::{Digest, Sha256};
use tallyfold::{
    Error, ErrorLog, LAST_LINE, Metric, MetricsQuestion, PageQuestion, PageRequest, PagesOptions,
    Permission, RangeTag, Spelling, Window, WindowsQuestion, failed_line, regrouped_body, sealed,
    unsealed, window_lines,
};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::{sleep, timeout};

use crate::failure::{Failure, Result};
use crate::files::{create_for_owner, create_private_folder, hex};
use crate::host::server::{Answer, encode, packed, plain, takes_gzip, texts_of, whole};
use crate::host::session::{Session, random};

/// The maximum size of a body that is sent uncompressed, in bytes. Sending a small body is faster than compressing it.
const WORTH_COMPRESSING: usize = 1024;
/// How long an answer with a range waits for the range's provisional windows. After this time, the answer starts without a tag,
/// so browsers don't cache it.
const RANGE_PATIENCE: Duration = Duration::from_secs(1);
/// How many windows of a range the server finds ahead of the window that it is sending.
const AHEAD: usize = 64;
/// After how many seconds a client may repeat a request that the server refused because the queue was full.
const BUSY_S: u64 = 1;
/// The approximate memory that an answer takes in addition to its key and its body, in bytes.
const ENTRY_BYTES: usize = 500;
/// The maximum size of the stored answers on the disk, in bytes for each cluster.
const MOST_BYTES_ON_DISK: u64 = 256 << 20;
/// The maximum size of an answer that is read from the disk, in bytes after decompression.
const LONGEST_BODY: u64 = 256 << 20;

/// The answer for a window.
#[derive(Clone)]
struct Found {
    body: Bytes,
    is_settled: bool,
}

/// Why there is no answer for a window.
#[derive(Clone)]
enum Missed {
    /// The call failed. The error's text is on stderr, with this reference.
    Failed(Error, String),
    /// Too many calls are waiting for their turn.
    Busy,
}

type Work = LocalBoxFuture<'static, Result<Found, Missed>>;

type Finding = Shared<Work>;

/// How a call waits for its turn.
#[derive(Clone)]
enum Manner {
    /// A call for a single window. It is refused if too many others are waiting.
    Single,
    /// A call for a window of a range. It is never refused. The semaphore limits how many calls one range makes at the
    /// same time. The number is what `Machine::failures` returned when the range was requested.
    Range(Arc<Semaphore>, u64),
}

/// Answers the web app's requests about one cluster.
pub(super) struct Pages {
    session: Rc<Session>,
    options: PagesOptions,
    /// The beginning of all keys: the client's identity; empty if the identity is unknown.
    identity: String,
    turns: Arc<Semaphore>,
    /// The places for calls for a single window that wait for their turn.
    queue: Semaphore,
    kept: RefCell<Kept>,
    store: Option<Arc<Store>>,
    under_way: RefCell<HashMap<String, WeakShared<Work>>>,
    /// The beginning of all tags of ranges. A new value makes browsers discard the ranges that they have cached.
    tag_prefix: Cell<u64>,
    log: RefCell<ErrorLog>,
}

impl Pages {
    /// Prepares the answers about a cluster. If the client's identity is known, stores answers in `folder`.
    ///
    /// # Errors
    /// If the folder can't be created.
    pub(super) fn new(session: Rc<Session>, folder: &Path) -> Result<Self> {
        let options = PagesOptions::default();
        // If the client's identity is unknown, store nothing: another client may use the same folder.
        let identity = session.machine.shared_identity().ok().map(str::to_owned);
        let store = identity.as_ref().map(|_| Store::open(folder)).transpose()?;
        Ok(Self {
            identity: identity.unwrap_or_default(),
            turns: Arc::new(Semaphore::new(options.concurrency as usize)),
            queue: Semaphore::new(options.queue as usize),
            kept: RefCell::new(Kept::new(options.memory_bytes)),
            store: store.map(Arc::new),
            under_way: RefCell::default(),
            tag_prefix: Cell::new(random()),
            log: RefCell::default(),
            session,
            options,
        })
    }

    /// Answers a request that the dashboard has accepted. `target` is the request's path and query.
    pub(super) async fn answer(
        self: Rc<Self>,
        method: &str,
        target: &str,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Answer {
        let texts = texts_of(headers);
        let request = PageRequest {
            method,
            target,
            headers: &texts,
            body,
            permission: &Permission::Everything,
        };
        let now = self.session.now();
        let question = PageQuestion::read(&self.options, &self.identity, request, now);
        let is_packed = takes_gzip(headers);
        match question {
            Ok(PageQuestion::Metrics(question)) => {
                let found = self.find(question, Manner::Single).await;
                sent(self.answer_of(found), is_packed)
            }
            Ok(PageQuestion::Windows(question)) => {
                let known = headers.get(IF_NONE_MATCH);
                let known = known.and_then(|value| value.to_str().ok());
                self.range(question, known, is_packed).await
            }
            // The default options allow neither of these requests.
            Ok(PageQuestion::Token(_) | PageQuestion::AuditLogs(_)) => {
                plain(StatusCode::NOT_FOUND, "There is no such page.\n")
            }
            Err(error) => sent(tallyfold::Answer::of_error(&error), is_packed),
        }
    }

    fn answer_of(&self, found: Result<Found, Missed>) -> tallyfold::Answer {
        match found {
            Ok(found) => tallyfold::Answer::good(found.body.into()),
            Err(Missed::Busy) => tallyfold::Answer::busy(BUSY_S),
            Err(Missed::Failed(error, reference)) => tallyfold::Answer::failed_inside(
                error.code(),
                error.status(),
                text_of(&error),
                error.retry_after_s(),
                &reference,
            ),
        }
    }

    /// Returns the answer from memory, if it is there. Otherwise waits for the call that is under way for the same window, or
    /// starts a new call. A call ends early when no future waits for it any more.
    async fn find(
        self: &Rc<Self>,
        question: MetricsQuestion,
        manner: Manner,
    ) -> Result<Found, Missed> {
        let key = question.key.clone();
        let now_ms = self.session.now().monotonic_ms;
        if let Some(found) = self.kept.borrow_mut().get(&key, now_ms) {
            return Ok(found);
        }
        let known = self.under_way.borrow().get(&key).and_then(WeakShared::upgrade);
        let finding = known.unwrap_or_else(|| {
            let pages = Rc::clone(self);
            let finding: Finding =
                async move { pages.find_uncached(question, manner).await }.boxed_local().shared();
            let mut all = self.under_way.borrow_mut();
            // Remove the calls whose clients have all disconnected.
            all.retain(|_, one| one.upgrade().is_some());
            all.extend(finding.downgrade().map(|weak| (key.clone(), weak)));
            finding
        });
        let found = finding.await;
        self.under_way.borrow_mut().remove(&key);
        found
    }

    /// Reads the answer from the disk or, if it is not there, from the service. Stores the answer in memory and, if it is
    /// settled, on the disk.
    async fn find_uncached(
        &self,
        question: MetricsQuestion,
        manner: Manner,
    ) -> Result<Found, Missed> {
        let key = &question.key;
        let stored = match &self.store {
            Some(store) if question.is_settled => store.read(key).await,
            _ => None,
        };
        let is_stored = stored.is_some();
        let found = match stored {
            Some(body) => Found { body, is_settled: true },
            None => self.call(&question, &manner).await?,
        };
        let now_ms = self.session.now().monotonic_ms;
        let until_ms = match found.is_settled {
            true => u64::MAX,
            false => now_ms.saturating_add(self.options.provisional_ms),
        };
        self.kept.borrow_mut().set(key, &found, until_ms);
        if let Some(store) = self.store.as_ref().filter(|_| found.is_settled && !is_stored) {
            store.write(key, found.body.clone());
        }
        Ok(found)
    }

    /// Waits for its turn, and then calls the service.
    async fn call(&self, question: &MetricsQuestion, manner: &Manner) -> Result<Found, Missed> {
        let (since, _place) = match manner {
            Manner::Single => (self.session.machine.failures(), None),
            Manner::Range(limit, since) => (*since, Arc::clone(limit).acquire_owned().await.ok()),
        };
        let is_single = matches!(manner, Manner::Single);
        let must_wait = self.turns.available_permits() == 0;
        let waiting = match is_single && must_wait {
            true => Some(self.queue.try_acquire().map_err(|_| Missed::Busy)?),
            false => None,
        };
        let _turn = self.turns.acquire().await;
        drop(waiting);
        match self.read(question, since).await {
            Ok(found) => Ok(found),
            Err(error) => {
                let (name, text) = (&self.session.name, text_of(&error));
                let now_ms = self.session.now().monotonic_ms;
                let reference = format!("{:016x}", random());
                let (reference, line) = self.log.borrow_mut().note(&text, now_ms, reference);
                if let Some(line) = line {
                    let warning = format_args!("{name}: the dashboard got no answer {line}");
                    self.session.stderr.warning(warning);
                }
                Err(Missed::Failed(error, reference))
            }
        }
    }

    /// Calls the service, and fails fast while it is down. `since` is what `Machine::failures` returned when the wait for the
    /// answer began.
    async fn read(&self, question: &MetricsQuestion, since: u64) -> tallyfold::Result<Found> {
        let (metric, asked) = (question.metric, &question.query.dimensions);
        // Other parts of the process read only windows that may still change, so only requests for these can be shared.
        let by = self.session.shared_by(metric, asked);
        let by = by.filter(|_| !question.is_settled);
        let mut query = question.query.clone();
        query.dimensions = by.unwrap_or(asked).to_owned();
        let machine = &self.session.machine;
        let call = match metric {
            Metric::EventDelivery => machine.event_delivery(&query),
            Metric::EventIngestion => machine.event_ingestion(&query),
        };
        let mut call = call?;
        call.fail_fast(since);
        let (table, mut body) = self.session.run_copied(call).await?;
        if by.is_some() {
            body = regrouped_body(&query, asked, &body, random())?;
        }
        Ok(Found {
            body: body.into(),
            // The table also considers the service's clock, because this machine's clock may be ahead.
            is_settled: table.provisional().is_empty(),
        })
    }

    /// Returns the answer with all windows of a range. Reads the windows that may still change first, because the tag depends
    /// on them.
    async fn range(
        self: Rc<Self>,
        question: WindowsQuestion,
        known: Option<&str>,
        is_packed: bool,
    ) -> Answer {
        let limit = Arc::new(Semaphore::new(self.options.concurrency as usize));
        let manner = Manner::Range(limit, self.session.machine.failures());
        let own = format!("{:016x}", self.tag_prefix.get());
        let find = {
            let pages = Rc::clone(&self);
            move |window: MetricsQuestion| {
                let (pages, manner) = (Rc::clone(&pages), manner.clone());
                async move { pages.find_patiently(window, manner).await }.boxed_local().shared()
            }
        };
        let provisional: Vec<(String, Finding)> = question
            .windows
            .iter()
            .filter(|window| !window.is_settled)
            .map(|window| (window.key.clone(), find(window.clone())))
            .collect();
        let all = join_all(provisional.iter().map(|(_, finding)| finding.clone()));
        let begun = timeout(RANGE_PATIENCE, all).await.unwrap_or_default();
        let is_whole = begun.len() == provisional.len() && begun.iter().all(Result::is_ok);
        let tag = is_whole.then(|| {
            let tag = RangeTag::new(&own, &question.key);
            let windows = provisional.iter().zip(begun.iter().flatten());
            windows.fold(tag, |tag, ((key, _), found)| tag.with(key, &found.body))
        });
        let head = tallyfold::Answer::of_range(tag.as_ref(), known);
        if head.status == StatusCode::NOT_MODIFIED {
            return sent(head, false);
        }
        let (sender, receiver) = mpsc::channel(4);
        let mut begun: HashMap<String, Finding> = provisional.into_iter().collect();
        let pages = Rc::clone(&self);
        let findings: Vec<_> = question.windows;
        let sending = sender.clone();
        let lines = async move {
            let mut lines = Lines::new(is_packed);
            let mut found = stream::iter(findings)
                .map(|window| {
                    let finding = begun.remove(&window.key);
                    let finding = finding.unwrap_or_else(|| find(window.clone()));
                    async move { (window, finding.await) }
                })
                .buffered(AHEAD);
            while let Some((window, found)) = found.next().await {
                let piece = lines.piece(&pages.lines_of(&window, found));
                if sender.send(piece).await.is_err() {
                    return;
                }
            }
            let _ = sender.send(lines.end()).await;
        };
        spawn_local(async move {
            tokio::select! {
                () = lines => {}
                // The client has disconnected.
                () = sending.closed() => {}
            }
        });
        let frames = stream::unfold(receiver, async |mut receiver| {
            let bytes: Bytes = receiver.recv().await?;
            Some((Ok(Frame::data(bytes)), receiver))
        });
        let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
        set_head(&mut response, head.status, head.headers);
        encode(response.headers_mut(), "accept-encoding", is_packed);
        response
    }

    /// Finds the answer for a window of a range. The window may wait for a call that a request for this window alone has
    /// started. If that call is refused because the queue is full, tries again after a second.
    async fn find_patiently(
        self: Rc<Self>,
        window: MetricsQuestion,
        manner: Manner,
    ) -> Result<Found, Missed> {
        loop {
            match self.find(window.clone(), manner.clone()).await {
                Err(Missed::Busy) => sleep(Duration::from_secs(BUSY_S)).await,
                found => return found,
            }
        }
    }

    /// Returns the lines of a window. If a window that should be settled is provisional or has failed, changes the beginning of
    /// all tags, so that browsers request the range again.
    fn lines_of(&self, question: &MetricsQuestion, found: Result<Found, Missed>) -> Vec<u8> {
        let query = &question.query;
        let is_settled = found.as_ref().is_ok_and(|found| found.is_settled);
        if question.is_settled && !is_settled {
            self.tag_prefix.set(random());
        }
        let Ok(window) = Window::new(query.start, query.end) else {
            return Vec::new();
        };
        match found {
            Ok(found) => window_lines(window, found.is_settled, &found.body),
            Err(Missed::Failed(error, reference)) => failed_line(
                window,
                error.code(),
                error.status(),
                text_of(&error),
                error.retry_after_s(),
                &reference,
            ),
            Err(Missed::Busy) => Vec::new(),
        }
    }
}

fn text_of(error: &Error) -> String {
    error.text_in(Spelling::JavaScript).to_string()
}

/// Converts an answer of the core to a response. Compresses a long body if `is_packed`.
fn sent(answer: tallyfold::Answer, is_packed: bool) -> Answer {
    let is_long = answer.body.len() > WORTH_COMPRESSING;
    let packed = (is_long && is_packed).then(|| packed(&answer.body));
    let is_packed = packed.is_some();
    let mut response = Response::new(whole(packed.unwrap_or(answer.body)));
    set_head(&mut response, answer.status, answer.headers);
    if is_long {
        encode(response.headers_mut(), "accept-encoding", is_packed);
    }
    response
}

fn set_head(response: &mut Answer, status: u16, headers: Vec<(&'static str, String)>) {
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    for (name, value) in headers {
        if let Ok(value) = HeaderValue::try_from(value) {
            response.headers_mut().insert(name, value);
        }
    }
}

/// The pieces of an answer with a range. Each piece is flushed, so the page can read each window as soon as it arrives.
struct Lines(Option<GzEncoder<Vec<u8>>>);

impl Lines {
    fn new(is_packed: bool) -> Self {
        let encoder = || GzEncoder::new(Vec::new(), Compression::fast());
        Self(is_packed.then(encoder))
    }

    fn piece(&mut self, lines: &[u8]) -> Bytes {
        let Some(encoder) = &mut self.0 else {
            return Bytes::copy_from_slice(lines);
        };
        // Writing to memory never fails.
        let _ = encoder.write_all(lines);
        let _ = encoder.flush();
        std::mem::take(encoder.get_mut()).into()
    }

    fn end(mut self) -> Bytes {
        let last = self.piece(LAST_LINE);
        let rest = self.0.take().and_then(|encoder| encoder.finish().ok());
        [&last[..], &rest.unwrap_or_default()].concat().into()
    }
}

/// Answers in memory, each with the time until which it may be used, in milliseconds on the monotonic clock. The least recently
/// used ones are dropped first.
struct Kept {
    most: u64,
    bytes: u64,
    answers: LruCache<String, (Found, u64)>,
}

impl Kept {
    fn new(most: u64) -> Self {
        Self { most, bytes: 0, answers: LruCache::unbounded() }
    }

    fn get(&mut self, key: &str, now_ms: u64) -> Option<Found> {
        let (found, until_ms) = self.answers.get(key)?;
        (*until_ms > now_ms).then(|| found.clone())
    }

    fn set(&mut self, key: &str, found: &Found, until_ms: u64) {
        self.bytes += size(key, found);
        let entry = (found.clone(), until_ms);
        if let Some((key, (old, _))) = self.answers.push(key.to_owned(), entry) {
            self.bytes -= size(&key, &old);
        }
        while self.bytes > self.most
            && let Some((key, (old, _))) = self.answers.pop_lru()
        {
            self.bytes -= size(&key, &old);
        }
    }
}

fn size(key: &str, found: &Found) -> u64 {
    (key.len() + found.body.len() + ENTRY_BYTES) as u64
}

/// Answers on the disk, each in a compressed file that only its owner can read. Damaged files are removed.
struct Store {
    folder: PathBuf,
    bytes: AtomicU64,
}

impl Store {
    fn open(folder: &Path) -> Result<Self> {
        let as_failure = |error| Failure::file("make the folder", folder, &error);
        // The parent folders belong to the history, so they get the usual permissions.
        folder.parent().map_or(Ok(()), fs::create_dir_all).map_err(as_failure)?;
        create_private_folder(folder).map_err(as_failure)?;
        let store = Self { folder: folder.to_owned(), bytes: AtomicU64::new(0) };
        store.prune();
        Ok(store)
    }

    async fn read(self: &Arc<Self>, key: &str) -> Option<Bytes> {
        let (path, key) = (self.path(key), key.to_owned());
        let reading = spawn_blocking(move || {
            let file = File::open(&path).ok()?;
            let mut kept = Vec::new();
            let read = GzDecoder::new(file).take(LONGEST_BODY).read_to_end(&mut kept);
            let body = read.ok().and_then(|_| unsealed(&key, &kept));
            match body {
                Some(body) => Some(Bytes::copy_from_slice(body)),
                // Remove the damaged file, because `write` can't replace a file.
                None => fs::remove_file(&path).ok().and(None),
            }
        });
        reading.await.ok().flatten()
    }

    /// Writes an answer in the background. If that fails, a later request calls the service again.
    fn write(self: &Arc<Self>, key: &str, body: Bytes) {
        let (store, key) = (Arc::clone(self), key.to_owned());
        spawn_blocking(move || {
            let bytes = packed(&sealed(&key, &body));
            if create_for_owner(&store.path(&key), &bytes).is_ok() {
                let length = bytes.len() as u64;
                let before = store.bytes.fetch_add(length, Ordering::Relaxed);
                if before + length > MOST_BYTES_ON_DISK {
                    store.prune();
                }
            }
        });
    }

    fn path(&self, key: &str) -> PathBuf {
        let digest = Sha256::digest(key.as_bytes());
        self.folder.join(hex(&digest[..16]) + ".gz")
    }

    /// Adds up the bytes of all files. If there are too many, removes the oldest files until three quarters of the maximum
    /// remain.
    fn prune(&self) {
        let mut files = files(&self.folder).unwrap_or_default();
        files.sort_unstable();
        let mut bytes: u64 = files.iter().map(|(_, length, _)| length).sum();
        if bytes > MOST_BYTES_ON_DISK {
            for (_, length, path) in files {
                if bytes <= MOST_BYTES_ON_DISK / 4 * 3 {
                    break;
                }
                if fs::remove_file(path).is_ok() {
                    bytes -= length;
                }
            }
        }
        self.bytes.store(bytes, Ordering::Relaxed);
    }
}

/// Returns the files of the store, each with its modification time and its length in bytes.
fn files(folder: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|end| end == "gz")
            && let Ok(found) = entry.metadata()
        {
            files.push((found.modified()?, found.len(), path));
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(length: usize) -> Found {
        Found { body: vec![b'a'; length].into(), is_settled: true }
    }

    #[test]
    fn the_least_recently_used_answers_are_dropped_first() {
        let mut kept = Kept::new(5_000);
        for key in ["a", "b"] {
            kept.set(key, &found(1_500), u64::MAX);
        }
        assert!(kept.get("a", 0).is_some());
        kept.set("c", &found(1_500), u64::MAX);
        assert!(kept.get("b", 0).is_none());
        assert!(kept.get("a", 0).is_some() && kept.get("c", 0).is_some());
        kept.set("a", &found(1), 7);
        assert!(kept.get("a", 6).is_some() && kept.get("a", 7).is_none());
        kept.set("d", &found(9_000), u64::MAX);
        assert_eq!((kept.bytes, kept.answers.len()), (0, 0));
    }

    #[tokio::test]
    async fn a_stored_answer_is_private_and_used_only_if_it_is_undamaged() {
        let folder = tempfile::tempdir().unwrap();
        let store = Arc::new(Store::open(&folder.path().join("pages")).unwrap());
        store.write("key", Bytes::from_static(b"{}"));
        let path = store.path("key");
        while store.read("key").await.as_deref() != Some(b"{}") {
            sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(store.read("other").await, None);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!((mode(&path), mode(&store.folder)), (0o600, 0o700));
        }
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        assert_eq!(store.read("key").await, None);
        assert!(!path.exists());
        // A file that was written for another key isn't used either.
        fs::write(store.path("other"), &whole).unwrap();
        assert_eq!(store.read("other").await, None);
    }

    #[test]
    fn each_piece_of_a_range_can_be_read_as_soon_as_it_arrives() {
        let mut lines = Lines::new(true);
        let first = lines.piece(b"first\n");
        let mut decoder = GzDecoder::new(&first[..]);
        let mut text = [0; 6];
        decoder.read_exact(&mut text).unwrap();
        assert_eq!(&text, b"first\n");
        let mut all = first.to_vec();
        all.extend_from_slice(&lines.end());
        let mut text = String::new();
        GzDecoder::new(&all[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, "first\n{\"done\":true}\n");
    }
}
