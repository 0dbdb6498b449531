//! Delivery responses of any size: the same number of entries, the same bytes.

/// How entries are written.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Without white space, the keys of each entry in the same order.
    Plain,
    /// With the white space of a pretty-printer.
    Pretty,
    /// The keys of each entry in an order of their own.
    Shuffled,
}

impl Kind {
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "pretty" => Self::Pretty,
            "shuffled" => Self::Shuffled,
            _ => Self::Plain,
        }
    }
}

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
const COMBINATIONS: u64 = WRITE_KEYS * INTEGRATIONS * EVENT_NAMES * REASONS.len() as u64;

/// A stride without a common divisor with [`COMBINATIONS`]: no combination comes twice.
const STRIDE: u64 = 1_000_003;

/// A response of so many entries with four dimensions, at most [`COMBINATIONS`].
pub(crate) fn body(kind: Kind, entries: u64) -> String {
    assert!(entries <= COMBINATIONS, "there are no more combinations");
    let mut random = Random(7);
    let mut totals = [0; 3];
    let entries: Vec<String> = (0..entries)
        .map(|number| entry(kind, number, &mut random, &mut totals))
        .collect();
    let [delivered, errors, filtered] = totals;
    let separator = if kind == Kind::Pretty { ",\n    " } else { "," };
    format!(
        "{{\"start\":\"2026-01-01T00:00:00Z\",\"end\":\"2026-01-01T00:15:00Z\",\
         \"totalDelivered\":\"{delivered}\",\"totalErrors\":\"{errors}\",\
         \"totalFiltered\":\"{filtered}\",\"counts\":[{}]}}",
        entries.join(separator)
    )
}

fn entry(kind: Kind, number: u64, random: &mut Random, totals: &mut [u64; 3]) -> String {
    let combination = (number * STRIDE) % COMBINATIONS;
    let (write_key, rest) = (combination % WRITE_KEYS, combination / WRITE_KEYS);
    let (integration, rest) = (rest % INTEGRATIONS, rest / INTEGRATIONS);
    let (event_name, reason) = (rest % EVENT_NAMES, rest / EVENT_NAMES);
    let mut dimensions = [
        field("event_name", &format!("Event Number {event_name}")),
        field(
            "write_key",
            &format!(
                "wk_{:016x}",
                (write_key + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)
            ),
        ),
        field("integration", &format!("Integration {integration}")),
        field("reason", REASONS[reason as usize]),
    ];
    let counts = [
        random.below(100_000),
        random.below(100),
        random.below(1_000),
    ];
    for (total, count) in totals.iter_mut().zip(counts) {
        *total += count;
    }
    let [success, errors, filtered] = counts.map(|count| count.to_string());
    if kind == Kind::Shuffled {
        random.shuffle(&mut dimensions);
    }
    let (comma, open, close) = match kind {
        Kind::Pretty => (",\n        ", "{\n        ", "\n      }"),
        Kind::Plain | Kind::Shuffled => (",", "{", "}"),
    };
    let mut fields = [
        field("success", &success),
        field("errors", &errors),
        field("filtered", &filtered),
        format!("\"dimensions\":{open}{}{close}", dimensions.join(comma)),
    ];
    if kind == Kind::Shuffled {
        random.shuffle(&mut fields);
    }
    format!("{open}{}{close}", fields.join(comma))
}

fn field(name: &str, value: &str) -> String {
    format!("\"{name}\":\"{value}\"")
}

/// SplitMix64: the same numbers everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
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
