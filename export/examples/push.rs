//! A process that exports and pushes what it is told, for `tests/observability`, which sets real servers before it and
//! kills it at any moment.
//!
//! Each line of the standard input is an order, and each line of the output its answer, both JSON. It has the parts that
//! any host has to bring: HTTP, datagrams, a clock and a file.
#![expect(
    clippy::disallowed_methods,
    reason = "a host reads the clock, waits, and stores files"
)]

use std::error::Error as StdError;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::UdpSocket;
use std::path::Path;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde::Deserialize;
use serde_json::{Value, json};
use tallyfold::{Dictionary, HostFailure, Metric, Now, Window, Windowed, WindowedColumns};
use tallyfold_export::{
    Export, ExportOptions, Format, Guarantee, Labels, Ledger, Outbox, Push, PushOptions, PushStep,
    Source, Windows,
};

type Outcome<T> = Result<T, Box<dyn StdError>>;

#[derive(Deserialize)]
#[serde(tag = "order", rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    /// Gives the pieces of an export, as hexadecimal digits.
    Export { export: Exported, counts: Counts },
    /// Pushes counts, by way of an outbox if one is named; without counts, what is pending there.
    Push {
        export: Exported,
        counts: Option<Counts>,
        target: Sent,
        outbox: Option<String>,
        #[serde(default)]
        state: String,
    },
    /// Adds counts to the ledger of that file, if there are any, stores it, and gives it as text for a scrape.
    Add {
        ledger: String,
        export: Exported,
        counts: Option<Counts>,
        #[serde(default)]
        state: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exported {
    format: String,
    #[serde(default)]
    labels: Vec<(String, String)>,
    name: Option<String>,
    windows: Option<String>,
    #[serde(default)]
    exact: bool,
    max_bytes: Option<usize>,
    now_ms: Option<i64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    url: String,
    guarantee: Option<String>,
    patience_ms: Option<u64>,
    /// How long an exchange may take, in real milliseconds.
    #[serde(default = "usual_timeout")]
    timeout_ms: u64,
    /// How many times as fast as usual the time of waits goes by.
    #[serde(default = "usual_speed")]
    speed: f64,
    #[serde(default)]
    seed: u64,
}

fn usual_timeout() -> u64 {
    30_000
}

fn usual_speed() -> f64 {
    1.0
}

/// Rows, sorted by window and by their values.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Counts {
    metric: Option<String>,
    dimensions: Vec<String>,
    windows: Vec<(String, String, bool)>,
    /// The window, the values, and the counts; of changes, the counts before and after.
    rows: Vec<(u32, Vec<String>, [u64; 3], Option<[u64; 3]>)>,
    revision: Option<u32>,
}

fn main() -> Outcome<()> {
    let began = Instant::now();
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        let answer = match serde_json::from_str(&line?) {
            Ok(order) => follow(order, began).unwrap_or_else(|error| describe(&*error)),
            Err(error) => describe(&error),
        };
        writeln!(out, "{answer}")?;
        out.flush()?;
    }
    Ok(())
}

fn describe(error: &(dyn StdError + 'static)) -> Value {
    let code = error
        .downcast_ref::<tallyfold::Error>()
        .map(|error| error.code().as_str());
    json!({"error": error.to_string(), "code": code})
}

fn follow(order: Order, began: Instant) -> Outcome<Value> {
    match order {
        Order::Export { export, counts } => {
            let mut export = Export::new(counts.source()?, &export.options()?)?;
            let mut pieces = Vec::new();
            let mut piece = Vec::new();
            while export.next_piece(&mut piece).is_some() {
                pieces.push(
                    piece
                        .iter()
                        .map(|byte| format!("{byte:02x}"))
                        .collect::<String>(),
                );
            }
            Ok(json!({"pieces": pieces, "notes": export.notes()}))
        }
        Order::Push {
            export,
            counts,
            target,
            outbox: None,
            ..
        } => {
            let counts = counts.ok_or("there are neither counts nor an outbox")?;
            let options = export.options()?;
            push(counts.source()?, &options, &target, 0, began, |_| Ok(()))
        }
        Order::Push {
            export,
            counts,
            target,
            outbox: Some(path),
            state,
        } => {
            let path = Path::new(&path);
            let mut outbox = match fs::read(path) {
                Ok(stored) => Outbox::from_json(&stored)?,
                Err(error) if error.kind() == ErrorKind::NotFound => Outbox::default(),
                Err(error) => return Err(error.into()),
            };
            let options = export.options()?;
            if let Some(counts) = counts {
                outbox.put_source(&counts.source()?, state, options.format)?;
                store(path, &outbox.to_json())?;
            }
            let mut answer = json!({"report": null});
            if let Some((source, finished)) = outbox.pending(options.format)? {
                answer = push(source, &options, &target, finished, began, |samples| {
                    outbox.finish(samples);
                    store(path, &outbox.to_json())
                })?;
                if answer["error"].is_null() {
                    outbox.clear();
                    store(path, &outbox.to_json())?;
                }
            }
            answer["state"] = json!(outbox.state());
            Ok(answer)
        }
        Order::Add {
            ledger: path,
            export,
            counts,
            state,
        } => {
            let path = Path::new(&path);
            let mut ledger = match fs::read(path) {
                Ok(stored) => Ledger::from_json(&stored)?,
                Err(error) if error.kind() == ErrorKind::NotFound => Ledger::default(),
                Err(error) => return Err(error.into()),
            };
            if let Some(counts) = counts {
                let settled = counts.windows.iter().all(|(.., settled)| *settled);
                ledger.add_rows(&counts.columns()?, settled, state)?;
                store(path, &ledger.to_json())?;
            }
            let labels = Labels::new(export.labels.clone())?;
            let text = ledger.openmetrics(&labels, export.name.as_deref())?;
            Ok(json!({"text": text, "state": ledger.state()}))
        }
    }
}

/// Replaces a file in one step.
fn store(path: &Path, text: &str) -> Outcome<()> {
    let new = path.with_extension("new");
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(new, path)?;
    Ok(())
}

fn push(
    source: Source,
    options: &ExportOptions,
    target: &Sent,
    finished: u64,
    began: Instant,
    mut note: impl FnMut(u64) -> Outcome<()>,
) -> Outcome<Value> {
    let mut to = PushOptions {
        finished,
        seed: target.seed,
        ..PushOptions::with_defaults(target.url.clone())
    };
    if let Some(guarantee) = &target.guarantee {
        to.guarantee = Some(Guarantee::from_name(guarantee).ok_or("an unknown guarantee")?);
    }
    if let Some(ms) = target.patience_ms {
        to.patience_ms = tallyfold::Patience::Milliseconds(ms);
    }
    let mut push = Push::new(Export::new(source, options)?, &to)?;
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .max_redirects(0)
        .max_redirects_will_error(false)
        .timeout_global(Some(Duration::from_millis(target.timeout_ms)))
        .build()
        .into();
    let failure = loop {
        let now = now(began, target.speed);
        let message = match push.step(now) {
            Err(error) => break describe(&error),
            Ok(PushStep::Done) => break json!({}),
            Ok(PushStep::Wait { ms }) => {
                sleep(Duration::from_secs_f64(
                    f64::from(ms) / 1000.0 / target.speed,
                ));
                continue;
            }
            Ok(PushStep::Finished { samples }) => {
                note(samples)?;
                continue;
            }
            Ok(PushStep::Send(message)) => message,
        };
        if message.is_datagram() {
            let address = message.url.trim_start_matches("udp://").to_owned();
            let body = message.body.to_vec();
            UdpSocket::bind("127.0.0.1:0")?.send_to(&body, address)?;
            push.sent()?;
            continue;
        }
        let mut request = agent.post(message.url);
        for (name, value) in message.headers() {
            request = request.header(name, value);
        }
        match request.send(message.body) {
            Ok(response) => answer(&mut push, response)?,
            Err(error) => fail(&mut push, &error)?,
        }
    };
    let mut answer = json!({"report": push.report(), "finished": push.finished()});
    if let (Some(answer), Value::Object(failure)) = (answer.as_object_mut(), failure) {
        answer.extend(failure);
    }
    Ok(answer)
}

fn now(began: Instant, speed: f64) -> Now {
    let passed = began.elapsed().as_secs_f64() * speed * 1000.0;
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    Now {
        monotonic_ms: passed as u64,
        unix_ms: unix.as_millis() as i64,
    }
}

fn answer(push: &mut Push, mut response: ureq::http::Response<ureq::Body>) -> Outcome<()> {
    let headers = response.headers().iter();
    let headers: Vec<(&str, &str)> = headers
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    if !push.head(response.status().as_u16(), &headers)? {
        return Ok(());
    }
    let mut reader = response.body_mut().as_reader();
    let mut chunk = vec![0; 8192];
    loop {
        match reader.read(&mut chunk) {
            Ok(0) => return Ok(push.end()?),
            Ok(size) => {
                if !push.chunk(&chunk[..size])? {
                    return Ok(push.end()?);
                }
            }
            Err(_) => return Ok(push.failed(HostFailure::Network, "ECONNRESET")?),
        }
    }
}

fn fail(push: &mut Push, error: &ureq::Error) -> Outcome<()> {
    let (failure, detail) = match error {
        ureq::Error::Timeout(_) => (HostFailure::Timeout, "TimeoutError"),
        ureq::Error::ConnectionFailed => (HostFailure::Network, "ECONNREFUSED"),
        ureq::Error::Io(error) if error.kind() == ErrorKind::ConnectionRefused => {
            (HostFailure::Network, "ECONNREFUSED")
        }
        ureq::Error::Io(error) if error.kind() == ErrorKind::TimedOut => {
            (HostFailure::Timeout, "TimeoutError")
        }
        _ => (HostFailure::Network, "ECONNRESET"),
    };
    Ok(push.failed(failure, detail)?)
}

impl Exported {
    fn options(&self) -> Outcome<ExportOptions> {
        let format = Format::from_name(&self.format).ok_or("an unknown format")?;
        let windows = match &self.windows {
            None => None,
            Some(name) => Some(Windows::from_name(name).ok_or("an unknown choice of windows")?),
        };
        Ok(ExportOptions {
            labels: Labels::new(self.labels.clone())?,
            name: self.name.clone(),
            windows,
            exact: self.exact,
            max_bytes: self.max_bytes,
            now_ms: self.now_ms,
            ..ExportOptions::with_defaults(format)
        })
    }
}

impl Counts {
    fn source(&self) -> Outcome<Source> {
        Ok(Source::of_rows(self.columns()?, self.revision))
    }

    fn columns(&self) -> Outcome<Windowed> {
        let metric = self.metric.as_deref();
        let mut columns = WindowedColumns {
            metric: metric.and_then(Metric::from_name),
            dimensions: self.dimensions.clone(),
            window_ids: self.rows.iter().map(|(window, ..)| *window).collect(),
            ..WindowedColumns::default()
        };
        for (start, end, settled) in &self.windows {
            columns.windows.push((Window::parse(start, end)?, *settled));
        }
        for column in 0..self.dimensions.len() {
            let values = self.rows.iter().map(|(_, values, ..)| &*values[column]);
            let mut distinct: Vec<&str> = values.clone().collect();
            distinct.sort_unstable();
            distinct.dedup();
            let ids = values.filter_map(|value| distinct.binary_search(&value).ok());
            columns.ids.push(ids.map(|id| id as u32).collect());
            let dictionary = Dictionary::of_sorted(distinct.into_iter());
            columns
                .dictionaries
                .push(Arc::new(dictionary.ok_or("values are not sorted")?));
        }
        let mut before: [Vec<u64>; 3] = Default::default();
        for (.., after, earlier) in &self.rows {
            for count in 0..3 {
                columns.counts[count].push(after[count]);
                before[count].extend(earlier.map(|counts| counts[count]));
            }
        }
        columns.before = self.revision.map(|_| before);
        Ok(Windowed::of_columns(columns)?)
    }
}
