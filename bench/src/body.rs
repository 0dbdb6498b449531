//! Makes delivery responses of any size. The same number of entries always results in the same bytes.

/// How entries are written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Without white space, and with the keys of all entries in the same order.
    Plain,
    /// With the white space of a pretty-printer.
    Pretty,
    /// Without white space, and with the keys of each entry in a random order.
    Shuffled,
}

pub(crate) const DIMENSIONS: [&str; 4] = ["event_name", "write_key", "integration", "reason"];

const REASONS: [&str; 7] = [
    "",
    "playbook filter: internal traffic",
    "playbook filter: sampled out",
    "compliance filter: consent withheld",
    "compliance filter: region blocked",
    "pipeline filter: duplicate event",
    "pipeline filter: schema mismatch",
];
const WRITE_KEYS: u64 = 40;
const INTEGRATIONS: u64 = 30;
const EVENT_NAMES: u64 = 200;

/// A prime that does not divide the number of combinations, so that no combination occurs twice.
const STRIDE: u64 = 1_000_003;

/// A response with this number of entries, by four dimensions.
pub(crate) fn body(kind: Kind, entries: u64) -> Vec<u8> {
    body_of_combinations(kind, entries, EVENT_NAMES)
}

/// A response of 10,000 entries and 2 MB, in which 150 event names and 40 write keys make 6,000 groups.
pub(crate) fn body_of_6_000_groups() -> Vec<u8> {
    body_of_combinations(Kind::Plain, 10_000, 150)
}

/// The same as [`body`], with seven times as many event names, so that few combinations have an entry.
pub(crate) fn sparse_body(entries: u64) -> Vec<u8> {
    body_of_combinations(Kind::Plain, entries, 7 * EVENT_NAMES)
}

fn body_of_combinations(kind: Kind, entries: u64, event_names: u64) -> Vec<u8> {
    let combinations = WRITE_KEYS * INTEGRATIONS * event_names * REASONS.len() as u64;
    assert!(entries <= combinations, "there are no more combinations");
    let mut writer = Writer::new(kind);
    for number in 0..entries {
        let combination = (number * STRIDE) % combinations;
        let (write_key, rest) = (combination % WRITE_KEYS, combination / WRITE_KEYS);
        let (integration, rest) = (rest % INTEGRATIONS, rest / INTEGRATIONS);
        let (event_name, reason) = (rest % event_names, rest / event_names);
        let write_key = (write_key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        writer.entry([
            &format!("Event Number {event_name}"),
            &format!("wk_{write_key:016x}"),
            &format!("Integration {integration}"),
            REASONS[reason as usize],
        ]);
    }
    writer.finish()
}

/// A response with one entry for each of these event names, whatever they are.
pub(crate) fn body_of_event_names(names: &[String]) -> Vec<u8> {
    let mut writer = Writer::new(Kind::Plain);
    for name in names {
        writer.entry([name, "wk_0000000000000001", "Integration 1", ""]);
    }
    writer.finish()
}

struct Writer {
    kind: Kind,
    random: Random,
    totals: [u64; 3],
    entries: String,
}

impl Writer {
    fn new(kind: Kind) -> Self {
        Self { kind, random: Random(7), totals: [0; 3], entries: String::new() }
    }

    /// Writes an entry with these values of [`DIMENSIONS`] and pseudo-random counts.
    fn entry(&mut self, values: [&str; 4]) {
        let mut dimensions: [String; 4] =
            std::array::from_fn(|index| field(DIMENSIONS[index], values[index]));
        let counts = [100_000, 100, 1_000].map(|limit| self.random.below(limit));
        for (total, count) in self.totals.iter_mut().zip(counts) {
            *total += count;
        }
        let [success, errors, filtered] = counts.map(|count| count.to_string());
        if self.kind == Kind::Shuffled {
            self.random.shuffle(&mut dimensions);
        }
        let (comma, open, close) = match self.kind {
            Kind::Pretty => (",\n        ", "{\n        ", "\n      }"),
            Kind::Plain | Kind::Shuffled => (",", "{", "}"),
        };
        let mut fields = [
            field("success", &success),
            field("errors", &errors),
            field("filtered", &filtered),
            format!("\"dimensions\":{open}{}{close}", dimensions.join(comma)),
        ];
        if self.kind == Kind::Shuffled {
            self.random.shuffle(&mut fields);
        }
        if !self.entries.is_empty() {
            let pretty = self.kind == Kind::Pretty;
            self.entries.push_str(if pretty { ",\n    " } else { "," });
        }
        self.entries.push_str(open);
        self.entries.push_str(&fields.join(comma));
        self.entries.push_str(close);
    }

    fn finish(self) -> Vec<u8> {
        let [delivered, errors, filtered] = self.totals;
        let head = format!(
            "{{\"start\":\"2026-01-01T00:00:00Z\",\"end\":\"2026-01-01T00:15:00Z\",\
             \"totalDelivered\":\"{delivered}\",\"totalErrors\":\"{errors}\",\
             \"totalFiltered\":\"{filtered}\",\"counts\":["
        );
        [head.as_bytes(), self.entries.as_bytes(), b"]}"].concat()
    }
}

fn field(name: &str, value: &str) -> String {
    format!("\"{name}\":\"{value}\"")
}

/// SplitMix64: pseudo-random numbers that are the same in every run and on every machine.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (bits ^ (bits >> 31)) % limit
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}
