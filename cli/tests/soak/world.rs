//! Simulates five clusters in virtual time, the network between them and a program, and a database that gets its pushes.

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::{Duration, UNIX_EPOCH};

use serde_json::Value;
use tallyfold::{Now, Timestamp};
use tallyfold_sandbox::{Outcome, Sandbox, SandboxEvent, SandboxOptions};

use crate::support::pushed::{Points, add_points};
use crate::support::{Draw, Received};

pub(crate) const CLUSTERS: usize = 5;
pub(crate) const START: &str = "2026-03-01T00:00:00Z";
/// The number of hours in which events happen.
pub(crate) static HOURS: LazyLock<i64> = LazyLock::new(|| setting("SOAK_HOURS", 36));
pub(crate) static SEED: LazyLock<i64> = LazyLock::new(|| setting("SOAK_SEED", 20_260_301));
pub(crate) const MINUTE: i64 = 60_000;
pub(crate) const HOUR: i64 = 60 * MINUTE;
/// The maximum delay of an event. It is less than the settle time of a window.
const LATEST: i64 = 175 * MINUTE;
const INTEGRATIONS: [&str; 4] = ["CRM", "email", "push", "warehouse"];
const OUTCOMES: [Outcome; 3] = [Outcome::Success, Outcome::Errors, Outcome::Filtered];

/// A number from the environment, or else the usual one.
fn setting(name: &str, usual: i64) -> i64 {
    std::env::var(name).map_or(usual, |text| text.parse().unwrap())
}

/// Success, errors and filtered.
pub(crate) type Counts = [i128; 3];

/// Counts by cluster, hour since the start, and integration.
pub(crate) type Truth = BTreeMap<(usize, i64, String), Counts>;

/// Everything outside of the machine that the program runs on.
pub(crate) struct World {
    draw: Draw,
    /// The true time since [`START`].
    pub(crate) now_ms: i64,
    pub(crate) truth: Truth,
    /// How many events arrive more than a minute late.
    pub(crate) late: usize,
    sandboxes: Vec<Sandbox>,
    /// The events that have not arrived yet, with their time of arrival and their cluster. The next event is the last element.
    coming: Vec<(i64, usize, SandboxEvent)>,
    /// The outages of each cluster, followed by the outages of the database.
    outages: Vec<Vec<Outage>>,
    pub(crate) database: Database,
}

struct Outage {
    from_ms: i64,
    until_ms: i64,
    trouble: Trouble,
}

/// How a service behaves while it is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    /// It refuses connections.
    Refuses,
    /// It responds with 429 or 5xx, sometimes with `Retry-After`.
    Answers,
    /// It accepts requests and doesn't respond.
    Hangs,
}

/// How a service reacts to a request.
pub(crate) enum Reaction {
    Answer(Vec<u8>),
    /// It sends a part of a response, and closes the connection.
    Cut(Vec<u8>),
    Silence,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let sandbox = |_| Sandbox::new(SandboxOptions::default()).unwrap();
        let mut world = Self {
            draw: Draw(seed),
            now_ms: 0,
            truth: Truth::new(),
            late: 0,
            sandboxes: (0..CLUSTERS).map(sandbox).collect(),
            coming: Vec::new(),
            outages: Vec::new(),
            database: Database::default(),
        };
        for cluster in 0..CLUSTERS {
            for _ in 0..*HOURS * 3 {
                world.plan_event(cluster);
            }
        }
        world.coming.sort_by_key(|(comes_ms, ..)| -comes_ms);
        for _ in 0..=CLUSTERS {
            let outages = world.plan_outages();
            world.outages.push(outages);
        }
        world
    }

    /// A random number from 0 to below `end`.
    pub(crate) fn below(&mut self, end: i64) -> i64 {
        i64::try_from(self.draw.below(u64::try_from(end).unwrap())).unwrap()
    }

    fn plan_event(&mut self, cluster: usize) {
        let at_ms = self.below(*HOURS * HOUR);
        let integration = INTEGRATIONS[self.draw.below(4) as usize];
        let place = self.draw.below(3) as usize;
        let count = match self.draw.below(100) {
            // A 64-bit float can't represent this number.
            0 => (1 << 53) + 1,
            _ => 1 + self.draw.below(1_000),
        };
        let late_ms = match self.draw.below(3) {
            0 => self.below(LATEST),
            _ => self.below(1_000),
        };
        self.late += usize::from(late_ms > MINUTE);
        let key = (cluster, at_ms / HOUR, integration.to_owned());
        self.truth.entry(key).or_default()[place] += i128::from(count);
        let named = |name: &str| name.to_owned();
        let event = SandboxEvent::with_defaults(
            text(at_ms),
            OUTCOMES[place],
            named("order"),
            named("web"),
            named(integration),
        );
        self.coming.push((at_ms + late_ms, cluster, event.count(count)));
    }

    /// Plans outages of up to five hours, about one a day.
    fn plan_outages(&mut self) -> Vec<Outage> {
        let mut all = Vec::new();
        let mut from_ms = self.below(24 * HOUR);
        while from_ms < *HOURS * HOUR {
            let until_ms = from_ms + self.below(5 * HOUR);
            let troubles = [Trouble::Refuses, Trouble::Answers, Trouble::Hangs];
            let trouble = troubles[self.draw.below(3) as usize];
            all.push(Outage { from_ms, until_ms, trouble });
            from_ms = until_ms + self.below(48 * HOUR);
        }
        all
    }

    /// The true time.
    pub(crate) fn unix_ms(&self) -> i64 {
        unix_ms(self.now_ms)
    }

    /// Advances the time, and records the events that arrive meanwhile.
    pub(crate) fn pass(&mut self, ms: i64) {
        self.now_ms += ms;
        let now_ms = self.now_ms;
        while let Some((_, cluster, event)) =
            self.coming.pop_if(|(comes_ms, ..)| *comes_ms <= now_ms)
        {
            self.sandboxes[cluster].record(&event).unwrap();
        }
    }

    fn trouble(&self, place: usize) -> Option<Trouble> {
        let is_now = |one: &&Outage| (one.from_ms..one.until_ms).contains(&self.now_ms);
        let outage = self.outages[place].iter().find(is_now);
        outage.map(|one| one.trouble)
    }

    /// Whether a service, which is a cluster or the database, accepts connections.
    pub(crate) fn listens(&self, place: usize) -> bool {
        self.trouble(place) != Some(Trouble::Refuses)
    }

    /// Passes a request to a service, and returns the reaction.
    pub(crate) fn react(&mut self, place: usize, line: &str, received: &Received) -> Reaction {
        let ms = self.below(2_000);
        self.pass(ms);
        match self.trouble(place) {
            None => {}
            Some(Trouble::Answers) => return Reaction::Answer(self.unavailable()),
            // The connection was opened before the outage.
            Some(Trouble::Refuses) => return Reaction::Cut(Vec::new()),
            Some(Trouble::Hangs) => return Reaction::Silence,
        }
        let chance = self.draw.below(200);
        if chance == 0 {
            return Reaction::Cut(Vec::new());
        }
        let unix_ms = self.unix_ms();
        let answer = match self.sandboxes.get_mut(place) {
            None => self.database.take(line, &received.body),
            Some(sandbox) => {
                if chance == 1 {
                    sandbox.revoke_tokens();
                }
                ask(sandbox, line, received, unix_ms)
            }
        };
        match chance {
            2 => Reaction::Cut(answer[..self.draw.below(answer.len() as u64) as usize].to_vec()),
            _ => Reaction::Answer(answer),
        }
    }

    fn unavailable(&mut self) -> Vec<u8> {
        let answers = [
            "500 -\r\ncontent-length: 0\r\n\r\n",
            "503 -\r\ncontent-length: 0\r\n\r\n",
            "503 -\r\nretry-after: 60\r\ncontent-length: 4\r\n\r\nbusy",
            "429 -\r\nretry-after: 20\r\ncontent-length: 0\r\n\r\n",
        ];
        let answer = answers[self.draw.below(answers.len() as u64) as usize];
        format!("HTTP/1.1 {answer}").into_bytes()
    }
}

fn unix_ms(ms: i64) -> i64 {
    Timestamp::parse(START).unwrap().unix_ms() + ms
}

/// Formats a time since [`START`] for flags and events.
pub(crate) fn text(ms: i64) -> String {
    Timestamp::from_unix_ms(unix_ms(ms)).unwrap().to_string()
}

/// The response of a cluster.
fn ask(sandbox: &mut Sandbox, line: &str, received: &Received, unix_ms: i64) -> Vec<u8> {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let headers = received.headers.iter();
    let headers: Vec<(&str, &str)> = headers.map(|(name, value)| (&**name, &**value)).collect();
    let since_1970 = u64::try_from(unix_ms).unwrap();
    let now = Now { monotonic_ms: since_1970, unix_ms };
    let response = sandbox.handle(method, target, &headers, &received.body, now);
    let mut answer = format!("HTTP/1.1 {} -\r\n", response.status);
    for (name, value) in &response.headers {
        answer.push_str(&format!("{name}: {value}\r\n"));
    }
    let date = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_millis(since_1970));
    let length = response.body.len();
    answer.push_str(&format!("date: {date}\r\ncontent-length: {length}\r\n\r\n"));
    [answer.as_bytes(), &response.body].concat()
}

/// A database that stores what the program pushes.
#[derive(Default)]
pub(crate) struct Database {
    /// Points in line protocol, each with a change.
    pub(crate) points: Points,
    /// Running totals: for each series its start, and the time and value of its newest sample.
    pub(crate) totals: BTreeMap<(usize, String, usize), (u64, u64, i128)>,
}

impl Database {
    fn take(&mut self, line: &str, body: &[u8]) -> Vec<u8> {
        if line.contains("/write") {
            add_points(&mut self.points, body);
            return b"HTTP/1.1 204 -\r\n\r\n".to_vec();
        }
        self.take_totals(&serde_json::from_slice(body).unwrap());
        b"HTTP/1.1 200 -\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}".to_vec()
    }

    /// Stores totals. Checks that a series keeps its start, and that neither its time nor its value decreases.
    fn take_totals(&mut self, message: &Value) {
        let metrics = &message["resourceMetrics"][0]["scopeMetrics"][0]["metrics"];
        for metric in metrics.as_array().unwrap() {
            let place = place_of(metric["name"].as_str().unwrap());
            assert_eq!(metric["sum"]["aggregationTemporality"], 2);
            for point in metric["sum"]["dataPoints"].as_array().unwrap() {
                let attribute = |name: &str| {
                    let mut all = point["attributes"].as_array().unwrap().iter();
                    let found = all.find(|one| one["key"] == name).unwrap();
                    found["value"]["stringValue"].as_str().unwrap()
                };
                let digits = |name: &str| point[name].as_str().unwrap();
                let start: u64 = digits("startTimeUnixNano").parse().unwrap();
                let time: u64 = digits("timeUnixNano").parse().unwrap();
                let value: i128 = digits("asInt").parse().unwrap();
                let (cluster, name) = (attribute("cluster"), attribute("integration"));
                let series = (number_of(cluster), name.to_owned(), place);
                let before = self.totals.insert(series, (start, time, value));
                if let Some(before) = before {
                    let (_, time_before, value_before) = before;
                    let is_same = (time, value) == (time_before, value_before);
                    let is_next = time > time_before && value >= value_before;
                    assert!(
                        before.0 == start && (is_same || is_next),
                        "SOAK_SEED={}: {cluster} {name} {place}: after {before:?}, there is {:?}",
                        *SEED,
                        (start, time, value)
                    );
                }
            }
        }
    }
}

/// The position of a metric's count in [`Counts`].
pub(crate) fn place_of(metric: &str) -> usize {
    let mut names = ["success", "errors", "filtered"].iter();
    names.position(|name| metric.contains(name)).unwrap()
}

/// The name of a cluster in the configuration.
pub(crate) fn name_of(cluster: usize) -> String {
    format!("c{cluster}")
}

pub(crate) fn number_of(cluster: &str) -> usize {
    cluster.strip_prefix('c').unwrap().parse().unwrap()
}
