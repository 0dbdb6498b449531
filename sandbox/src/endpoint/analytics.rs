//! The two analytics endpoints (service reference 4.4 and 4.5). They return the counts of a window, by dimensions.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::{Deserialize, Serialize, Serializer};

use crate::dimensions::{NAMES, REASON, places};
use crate::events::Events;
use crate::instant::{self, Instant};
use crate::numbered::{Names, Values};
use crate::response::SandboxResponse;

const LONGEST_SEEDED_MS: i64 = 400 * 86_400_000;

/// What is counted. Assumption `ingestion_counts`: the same for both.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Metric {
    EventDelivery,
    EventIngestion,
}

/// Assumption `strict_requests`: a field that the reference does not list is refused.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Question<'a> {
    #[serde(borrow)]
    start: Cow<'a, str>,
    #[serde(borrow)]
    end: Cow<'a, str>,
    dimensions: Vec<String>,
}

/// Responds with the counts. `excess` is added to `totalDelivered`, to make it wrong.
pub(super) fn answer(
    metric: Metric,
    body: &[u8],
    events: &mut Events,
    excess: u64,
) -> SandboxResponse {
    // Assumption `invalid_query_status`: whatever is wrong with the request, the status is 400.
    let (start, end, dimensions) = match parse(metric, body) {
        Ok(question) => question,
        Err((error, message)) => return SandboxResponse::refusal(400, error, message),
    };
    // Assumption `longest_window`: seeded traffic is generated for each request, which takes time.
    if events.is_seeded() && end.timestamp_millis() - start.timestamp_millis() > LONGEST_SEEDED_MS {
        let message = "a window of seeded traffic has at most 400 days";
        return SandboxResponse::refusal(400, "window_too_long", message);
    }
    events.sort();
    let Some((groups, total)) = count(events, start, end, &dimensions) else {
        let message = "a count of this window is above 2^64 - 1";
        return SandboxResponse::refusal(500, "count_overflow", message);
    };
    let [delivered, errors, filtered] = total;
    // If the wrong total overflows, 0 is used, which is also wrong because the sum is not 0.
    let total_delivered = delivered.checked_add(excess).unwrap_or(0).to_string();
    let result = MetricsResult {
        start: instant::text(start),
        end: instant::text(end),
        total_delivered,
        total_errors: errors.to_string(),
        total_filtered: filtered.to_string(),
        counts: groups
            .iter()
            .map(|(values, [success, errors, filtered])| Entry {
                success: success.to_string(),
                errors: errors.to_string(),
                filtered: filtered.to_string(),
                dimensions: Labels { names: &events.names, dimensions: &dimensions, values },
            })
            .collect(),
    };
    SandboxResponse::json(200, &result)
}

type Refusal = (&'static str, &'static str);

fn parse(metric: Metric, body: &[u8]) -> Result<(Instant, Instant, Vec<usize>), Refusal> {
    let message = "want a JSON object of start, end and dimensions";
    let question: Question<'_> =
        serde_json::from_slice(body).map_err(|_| ("invalid_request", message))?;
    let instant = |text: &str| {
        let message = "start and end are UTC ISO 8601 and end in Z";
        instant::parse(text).ok_or(("invalid_timestamp", message))
    };
    let (start, end) = (instant(&question.start)?, instant(&question.end)?);
    if start >= end {
        return Err(("invalid_window", "start has to be before end"));
    }
    let message = "want one or more different ones of event_name, write_key, integration, reason";
    let dimensions = places(&question.dimensions).ok_or(("invalid_dimensions", message))?;
    if metric == Metric::EventIngestion && dimensions.contains(&REASON) {
        return Err(("invalid_dimensions", "reason is available for event delivery only"));
    }
    Ok((start, end, dimensions))
}

/// Counts by outcome: success, errors, filtered.
type Tally = [u64; 3];

/// One tally per combination, in order of first appearance, and the sum of all; `None` if a sum is above 2^64 - 1.
fn count(
    events: &Events,
    start: Instant,
    end: Instant,
    dimensions: &[usize],
) -> Option<(Vec<(Values, Tally)>, Tally)> {
    let mut total = Tally::default();
    let mut groups: Vec<(Values, Tally)> = Vec::new();
    let mut places: HashMap<Values, usize> = HashMap::new();
    events.each_within(start, end, |values, outcome, count| {
        let mut key = [u32::MAX; 4];
        for place in dimensions {
            key[*place] = values[*place];
        }
        let place = *places.entry(key).or_insert_with(|| {
            groups.push((key, Tally::default()));
            groups.len() - 1
        });
        for sum in [&mut groups[place].1[outcome as usize], &mut total[outcome as usize]] {
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
    dimensions: &'a [usize],
    values: &'a Values,
}

impl Serialize for Labels<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let label = |place: &usize| (NAMES[*place], self.names.text(self.values[*place]));
        serializer.collect_map(self.dimensions.iter().map(label))
    }
}
