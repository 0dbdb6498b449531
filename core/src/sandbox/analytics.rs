//! The two analytics endpoints (service reference 4.4 and 4.5): counts of a window, by dimensions.

use std::borrow::Cow;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use serde::{Serialize, Serializer};

use super::events::{Events, Names, Values};
use super::response::SandboxResponse;
use crate::dimension::{Dimensions, Metric};
use crate::time::Timestamp;
use crate::tree::Tree;

const LONGEST_SEEDED_MS: i64 = 400 * 86_400_000;

struct Question<'a> {
    start: Cow<'a, str>,
    end: Cow<'a, str>,
    dimensions: Vec<Cow<'a, str>>,
}

impl<'a> Question<'a> {
    /// Assumption `strict_requests`: a field that the reference does not list is refused.
    fn read(body: &'a [u8]) -> Option<Self> {
        let tree: Tree<'_> = serde_json::from_slice(body).ok()?;
        let [start, end, dimensions] = tree.into_fields(["start", "end", "dimensions"])?;
        Some(Self {
            start: start.into_text()?,
            end: end.into_text()?,
            dimensions: dimensions.into_texts()?,
        })
    }
}

/// Answers with the counts; `excess` is added to `totalDelivered` to make it wrong.
pub(super) fn answer(
    metric: Metric,
    body: &[u8],
    events: &mut Events,
    excess: u64,
) -> SandboxResponse {
    // Assumption `invalid_query_status`: whatever is wrong with the question, the status is 400.
    let (start, end, dimensions) = match parse(metric, body) {
        Ok(question) => question,
        Err((error, message)) => return SandboxResponse::refusal(400, error, message),
    };
    // Assumption `longest_window`: seeded traffic is made as it is asked for, which takes time.
    if events.is_seeded() && end.unix_ms() - start.unix_ms() > LONGEST_SEEDED_MS {
        let message = "a window of seeded traffic has at most 400 days";
        return SandboxResponse::refusal(400, "window_too_long", message);
    }
    events.sort();
    let Some((groups, total)) = count(events, start, end, &dimensions) else {
        let message = "a count of this window is above 2^64 - 1";
        return SandboxResponse::refusal(500, "count_overflow", message);
    };
    let [delivered, errors, filtered] = total;
    // A sum that does not fit is not 0, so that 0 is wrong too.
    let total_delivered = delivered.checked_add(excess).unwrap_or(0).to_string();
    let result = MetricsResult {
        start: start.to_string(),
        end: end.to_string(),
        total_delivered,
        total_errors: errors.to_string(),
        total_filtered: filtered.to_string(),
        counts: groups
            .iter()
            .map(|(values, [success, errors, filtered])| Entry {
                success: success.to_string(),
                errors: errors.to_string(),
                filtered: filtered.to_string(),
                dimensions: Labels {
                    names: &events.names,
                    dimensions: &dimensions,
                    values,
                },
            })
            .collect(),
    };
    SandboxResponse::json(200, &result)
}

type Refusal = (&'static str, &'static str);

fn parse(metric: Metric, body: &[u8]) -> Result<(Timestamp, Timestamp, Dimensions), Refusal> {
    let message = "want a JSON object of start, end and dimensions";
    let question = Question::read(body).ok_or(("invalid_request", message))?;
    let instant = |text: &str| {
        let message = "start and end are UTC ISO 8601 and end in Z";
        Timestamp::parse(text).map_err(|_| ("invalid_timestamp", message))
    };
    let (start, end) = (instant(&question.start)?, instant(&question.end)?);
    if start >= end {
        return Err(("invalid_window", "start has to be before end"));
    }
    let message = "want one or more different ones of event_name, write_key, integration, reason";
    let dimensions =
        Dimensions::requested(&question.dimensions).map_err(|_| ("invalid_dimensions", message))?;
    if !dimensions.iter().all(|dimension| metric.has(dimension)) {
        return Err((
            "invalid_dimensions",
            "reason is available for event delivery only",
        ));
    }
    Ok((start, end, dimensions))
}

/// Counts by outcome: success, errors, filtered.
type Tally = [u64; 3];

/// One tally per combination, in order of first appearance, and the sum of all; `None` when a
/// sum does not fit.
fn count(
    events: &Events,
    start: Timestamp,
    end: Timestamp,
    dimensions: &Dimensions,
) -> Option<(Vec<(Values, Tally)>, Tally)> {
    let mut total = Tally::default();
    let mut groups: Vec<(Values, Tally)> = Vec::new();
    let mut places: HashMap<Values, usize, FixedState> = HashMap::default();
    events.each_within(start, end, |values, outcome, count| {
        let mut key = [u32::MAX; 4];
        for dimension in dimensions.iter() {
            key[dimension as usize] = values[dimension as usize];
        }
        let place = *places.entry(key).or_insert_with(|| {
            groups.push((key, Tally::default()));
            groups.len() - 1
        });
        for sum in [
            &mut groups[place].1[outcome as usize],
            &mut total[outcome as usize],
        ] {
            *sum = sum.checked_add(count)?;
        }
        Some(())
    })?;
    Some((groups, total))
}

/// The event metrics result (service reference 2.2).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MetricsResult<'a> {
    start: String,
    end: String,
    total_delivered: String,
    total_errors: String,
    total_filtered: String,
    counts: Vec<Entry<'a>>,
}

/// The count entry (service reference 2.3).
#[derive(Serialize)]
struct Entry<'a> {
    success: String,
    errors: String,
    filtered: String,
    dimensions: Labels<'a>,
}

/// An entry's dimensions, in the order in which they were requested.
struct Labels<'a> {
    names: &'a Names,
    dimensions: &'a Dimensions,
    values: &'a Values,
}

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.dimensions.iter().map(|dimension| {
            (
                dimension.as_str(),
                self.names.text(self.values[dimension as usize]),
            )
        }))
    }
}
