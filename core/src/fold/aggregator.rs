//! Makes a [`CountTable`] from response bytes. Responses are all-or-nothing.

use super::read_options::ReadOptions;
use super::shape::ResultShape;
use super::tolerate::Tolerate;
use crate::code::Code;
use crate::counts::dimension::{Dimension, Dimensions};
use crate::counts::identity::Identity;
use crate::counts::metric::Metric;
use crate::counts::part::Part;
use crate::counts::subject::Subject;
use crate::counts::table::CountTable;
use crate::error::{Error, Result};
use crate::time::window::Window;
use crate::wire::json::lexer::Lexer;
use crate::wire::json::path::Shown;
use crate::wire::limits::Limits;

crate::options! {
    /// What an [`Aggregator`] needs to know, apart from the dimensions of the response.
    #[derive(Clone, Debug)]
    pub struct AggregatorOptions: Default {
        /// The endpoint that the bytes are from; the table remembers it.
        metric: Option<Metric> = None,
        /// The dimensions to keep, in this order; an empty list gives one grand total. By default,
        /// all are kept.
        ///
        /// If fewer are kept than were requested, a repeated combination is not detected.
        group_by: Option<Vec<Dimension>> = None,
        /// The requested `start` and `end`, which the response is checked against.
        window: Option<Window> = None,
        /// How much is read before the response is refused.
        limits: Limits = Limits::default(),
        /// Which deviations to tolerate.
        tolerate: Tolerate = Tolerate::default(),
        /// The seed of the hashes. No result depends on it. Draw it at random if dimension values
        /// may come from strangers, who could otherwise choose values whose hashes collide, so that
        /// reading takes very long.
        hash_seed: u64 [Host] = 0,
    }
}

/// Folds the body of one metrics response, chunk by chunk, into a table.
///
/// It holds the groups so far and at most one entry of the body. The table and the error do not
/// depend on where chunks end; but an error may be reported with the chunk after the one that
/// contains it.
///
/// ```
/// use tallyfold::{Aggregator, AggregatorOptions, Dimension};
///
/// let body = br#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
///     "totalDelivered": "7", "totalErrors": "0", "totalFiltered": "0",
///     "counts": [{"success": "7", "errors": "0", "filtered": "0",
///                 "dimensions": {"integration": "warehouse", "reason": ""}}]}"#;
/// let options = AggregatorOptions::default().group_by([Dimension::Integration]);
/// let mut aggregator = Aggregator::new(&["integration", "reason"], options)?;
/// for chunk in body.chunks(10) {
///     aggregator.push(chunk)?;
/// }
/// assert_eq!(aggregator.finish()?.totals().success, 7);
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Debug)]
pub struct Aggregator(State);

#[derive(Debug)]
enum State {
    Reading(Box<Reading>),
    Failed(Error),
    Finished,
}

#[derive(Debug)]
struct Reading {
    lexer: Lexer,
    shape: ResultShape,
    subject: Subject,
}

impl Aggregator {
    /// An aggregator for a response with these dimensions.
    ///
    /// # Errors
    /// `no_dimensions`, `unknown_dimension` and `repeated_dimension`.
    pub fn new<S: AsRef<str>>(dimensions: &[S], options: AggregatorOptions) -> Result<Self> {
        let hash_seed = options.hash_seed;
        Ok(AggregatorPlan::new(dimensions, options)?.aggregator(hash_seed))
    }

    /// An aggregator for a response with the `requested` dimensions. Its table counts the `subject`. Its
    /// errors show only the keys in `shown`.
    pub(crate) fn of_parts(
        requested: Dimensions,
        subject: Subject,
        window: Option<Window>,
        options: ReadOptions,
        shown: Shown,
    ) -> Self {
        let lexer = Lexer::new(options.limits, shown);
        let shape = ResultShape::new(requested, subject.dimensions, window, options);
        Self(State::Reading(Box::new(Reading { lexer, shape, subject })))
    }

    /// Reads the next bytes of the body, any number of them.
    ///
    /// # Errors
    /// Every error of kind `response`, with the JSON path and the byte offset. After an error the
    /// aggregator only repeats it.
    pub fn push(&mut self, chunk: &[u8]) -> Result<()> {
        match &mut self.0 {
            State::Reading(reading) => {
                let Reading { lexer, shape, .. } = &mut **reading;
                lexer.push(chunk, shape).inspect_err(|error| self.0 = State::Failed(error.clone()))
            }
            State::Failed(error) => Err(error.clone()),
            State::Finished => Err(finished()),
        }
    }

    /// Ends the body and returns the table. A truncated body is detected only here.
    ///
    /// # Errors
    /// As [`Aggregator::push`], and `empty_body` and `truncated_body`; `out_of_order` once the
    /// table has been taken.
    pub fn finish(&mut self) -> Result<CountTable> {
        match std::mem::replace(&mut self.0, State::Finished) {
            State::Reading(reading) => {
                reading.finish().inspect_err(|error| self.0 = State::Failed(error.clone()))
            }
            State::Failed(error) => {
                self.0 = State::Failed(error.clone());
                Err(error)
            }
            State::Finished => Err(finished()),
        }
    }
}

/// Checked options for any number of aggregators, so that the options are checked once.
///
/// ```
/// use tallyfold::{AggregatorOptions, AggregatorPlan};
///
/// let plan = AggregatorPlan::new(&["integration"], AggregatorOptions::default())?;
/// for (seed, body) in [(1, "{"), (2, "[")] {
///     let pushed = plan.aggregator(seed).push(body.as_bytes());
///     assert_eq!(pushed.is_ok(), body == "{");
/// }
/// # Ok::<(), tallyfold::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct AggregatorPlan {
    requested: Dimensions,
    kept: Dimensions,
    window: Option<Window>,
    metric: Option<Metric>,
    options: ReadOptions,
}

impl AggregatorPlan {
    /// A plan for responses with these dimensions.
    ///
    /// # Errors
    /// As [`Aggregator::new`].
    pub fn new<S: AsRef<str>>(dimensions: &[S], options: AggregatorOptions) -> Result<Self> {
        let requested = Dimensions::requested(dimensions)?;
        if let Some(metric) = options.metric {
            requested.check_available(metric)?;
        }
        let kept = match &options.group_by {
            Some(names) => requested.subset(names)?,
            None => requested,
        };
        Ok(Self {
            requested,
            kept,
            window: options.window,
            metric: options.metric,
            options: ReadOptions {
                limits: options.limits,
                tolerate: options.tolerate,
                hash_seed: options.hash_seed,
            },
        })
    }

    /// An aggregator for one response, with a hash seed of its own.
    #[must_use]
    pub fn aggregator(&self, hash_seed: u64) -> Aggregator {
        let options = ReadOptions { hash_seed, ..self.options };
        let subject = Subject::whole(self.kept, self.metric, Identity::default());
        Aggregator::of_parts(self.requested, subject, self.window, options, Shown::All)
    }
}

impl Reading {
    fn finish(mut self) -> Result<CountTable> {
        self.lexer.finish(&mut self.shape)?;
        let (window, reported, notes, rows) = self.shape.into_parts()?;
        let part = Part {
            window,
            reported: Some(reported),
            notes,
            provisional: false,
            unfinished: false,
            rows: rows.into(),
        };
        Ok(CountTable::of_response(self.subject, part))
    }
}

fn finished() -> Error {
    let message =
        "the aggregator has already given its table; make a new one for the next response";
    Error::new(Code::OutOfOrder, message)
}
