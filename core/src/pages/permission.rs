//! What a user may see: everything, nothing, or some rows.

use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};
use tallyfold_engine::Counts;

use crate::code::Code;
use crate::counts::dimension::{Dimension, Dimensions};
use crate::counts::frame::{Frame, Row};
use crate::counts::metric::Metric;
use crate::counts::reconciliation::Reconciliation;
use crate::counts::table::CountTable;
use crate::endpoint::QueryOptions;
use crate::error::{Error, Result};
use crate::fold::aggregator::{Aggregator, AggregatorOptions};
use crate::fold::tolerate::Tolerate;
use crate::time::window::Window;
use crate::wire::json::writer::json_of;
use crate::wire::limits::Limits;

/// What the server's own check has decided about the request of a web app.
#[derive(Clone, Debug)]
pub enum Permission {
    /// The server responds with `forbidden`.
    Refused,
    /// The web app may request everything that the options allow.
    Everything,
    /// The web app gets only these rows, whatever it requests. It gets neither tokens nor audit logs.
    Only(Arc<VisibleRows>),
}

/// The rows that a user may see: those whose value is among the given values, for each dimension that is named.
///
/// ```
/// use tallyfold::{Code, VisibleRows};
///
/// let rows = VisibleRows::new(&[("write_key", vec!["web".to_owned(), "ios".to_owned()])])?;
/// # drop(rows);
/// let refused = VisibleRows::new::<&str>(&[]).unwrap_err();
/// assert_eq!(refused.code(), Code::NoDimensions);
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct VisibleRows {
    dimensions: Dimensions,
    wanted: Vec<(&'static str, Vec<String>)>,
}

impl VisibleRows {
    /// The values that may be seen, for each dimension that is named. If a dimension has no values, no row is visible.
    ///
    /// # Errors
    /// `unknown_dimension`, `repeated_dimension`, and `no_dimensions` if none is named.
    pub fn new<S: AsRef<str>>(values: &[(S, Vec<String>)]) -> Result<Self> {
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_ref()).collect();
        let dimensions =
            Dimensions::requested(&names).map_err(|error| error.with_argument("authorize"))?;
        let mut wanted = Vec::with_capacity(values.len());
        for (name, (_, values)) in dimensions.names().into_iter().zip(values) {
            let mut values = values.clone();
            values.sort_unstable();
            values.dedup();
            wanted.push((name, values));
        }
        // Equal permissions have equal keys.
        wanted.sort_unstable();
        Ok(Self { dimensions, wanted })
    }

    /// The end of the key of a response with these rows only.
    pub(super) fn key(&self) -> String {
        [" only ", &json_of(&self.wanted)].concat()
    }

    /// The dimensions to request from the service, so that these rows can be distinguished from others.
    pub(super) fn with(&self, metric: Metric, asked: &[Dimension]) -> Result<Vec<Dimension>> {
        let mut all = asked.to_vec();
        for dimension in self.dimensions.iter() {
            if !metric.has(dimension) {
                let message = "the user may see only some rows, and this endpoint lacks the dimension that selects them";
                return Err(Error::new(Code::Forbidden, message).with_status(403));
            }
            if !all.contains(&dimension) {
                all.push(dimension);
            }
        }
        Ok(all)
    }

    /// The body for a web app that has requested the dimensions `asked`. It has these rows of `body`, which the service has
    /// sent for `query`, in the form in which the service would send them. Its totals are the sums of these rows. If the
    /// service's totals differ from the sums of its rows, these totals differ from their sums by the same amounts, so that
    /// the web app sees the contradiction.
    ///
    /// The seed of hashes should be random, as in [`AggregatorOptions`].
    ///
    /// # Errors
    /// The errors that a call would return for this body.
    pub fn narrow(
        &self,
        query: &QueryOptions,
        asked: &[Dimension],
        body: &[u8],
        hash_seed: u64,
    ) -> Result<Vec<u8>> {
        rewritten(query, asked, body, hash_seed, |whole| whole.filter(&self.wanted))
    }
}

/// The body that the service would have sent for the dimensions `asked`, which are some of the query's: the counts of `body`,
/// which the service has sent for `query`, added up. The totals stay as they are.
///
/// The seed of hashes should be random, as in [`AggregatorOptions`].
///
/// # Errors
/// The errors that a call would return for this body, and the errors of dimensions that are not among the query's.
pub fn regrouped_body(
    query: &QueryOptions,
    asked: &[Dimension],
    body: &[u8],
    hash_seed: u64,
) -> Result<Vec<u8>> {
    rewritten(query, asked, body, hash_seed, Ok)
}

fn rewritten(
    query: &QueryOptions,
    asked: &[Dimension],
    body: &[u8],
    hash_seed: u64,
    shown: impl FnOnce(CountTable) -> Result<CountTable>,
) -> Result<Vec<u8>> {
    let window = Window::new(query.start, query.end)?;
    // The call that read the body has applied the limits and the tolerance of its client.
    let options = AggregatorOptions::default()
        .window(window)
        .limits(Limits {
            depth: Limits::default().depth,
            string_bytes: usize::MAX,
            keys: usize::MAX,
            body_bytes: u64::MAX,
            groups: usize::MAX,
            table_bytes: u64::MAX,
        })
        .tolerate(Tolerate { repeated_combination: true, null_dimension: true })
        .hash_seed(hash_seed);
    let mut aggregator = Aggregator::new(&query.dimensions, options)?;
    aggregator.push(body)?;
    let whole = aggregator.finish()?;
    let difference = whole.reconciliation();
    let table = shown(whole)?.group_by(asked)?;
    Ok(json_of(&Body::of(window, &table, difference)).into_bytes())
}

/// An event metrics result (service reference 2.2).
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    start: String,
    end: String,
    total_delivered: String,
    total_errors: String,
    total_filtered: String,
    counts: Vec<Entry<'a>>,
}

impl<'a> Body<'a> {
    fn of(window: Window, table: &'a CountTable, difference: Reconciliation) -> Self {
        let differences = match difference {
            Reconciliation::Unbalanced { success, errors, filtered } => [success, errors, filtered],
            Reconciliation::Balanced | Reconciliation::Unavailable => [0; 3],
        };
        let sums = table.totals().each();
        let [delivered, errors, filtered] = [0, 1, 2].map(|place| {
            let total = i128::from(sums[place]) + differences[place];
            u64::try_from(total.max(0)).unwrap_or(u64::MAX).to_string()
        });
        Self {
            start: window.start().to_string(),
            end: window.end().to_string(),
            total_delivered: delivered,
            total_errors: errors,
            total_filtered: filtered,
            counts: table.rows().map(Entry::of).collect(),
        }
    }
}

/// A count entry (service reference 2.3).
#[derive(Serialize)]
struct Entry<'a> {
    success: String,
    errors: String,
    filtered: String,
    dimensions: Values<'a>,
}

impl<'a> Entry<'a> {
    fn of(row: Row<'a, CountTable>) -> Self {
        let Counts { success, errors, filtered } = row.counts();
        Self {
            success: success.to_string(),
            errors: errors.to_string(),
            filtered: filtered.to_string(),
            dimensions: Values(row),
        }
    }
}

/// The values of a row by the names of their dimensions.
struct Values<'a>(Row<'a, CountTable>);

impl Serialize for Values<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let names = self.0.frame.dimensions().names();
        let mut object = serializer.serialize_struct("Values", names.len())?;
        for (name, value) in names.into_iter().zip(self.0.values()) {
            object.serialize_field(name, value)?;
        }
        object.end()
    }
}
