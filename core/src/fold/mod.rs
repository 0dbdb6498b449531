//! Response bytes to a [`CountTable`]: each response counts whole or not at all.

mod shape;

use std::sync::Arc;

use shape::ResultShape;

use crate::dimension::{Dimensions, Metric};
use crate::error::{Code, Error, Result};
use crate::json::{Lexer, Limits};
use crate::table::{CountTable, Part};
use crate::window::Window;

/// What to let pass that the service reference does not show, but a Beta might send. Each pass is
/// counted in [`Notes`](crate::Notes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tolerate {
    /// Add up entries of the same combination of dimension values.
    pub repeated_combination: bool,
    /// Read a dimension value of `null` as an empty string.
    pub null_dimension: bool,
}

impl Tolerate {
    /// Parses names: `repeated_combination` and `null_dimension`.
    ///
    /// # Errors
    /// `invalid_argument` for any other name.
    pub fn parse<S: AsRef<str>>(names: &[S]) -> Result<Self> {
        let mut tolerate = Self::default();
        for name in names {
            match name.as_ref() {
                "repeated_combination" => tolerate.repeated_combination = true,
                "null_dimension" => tolerate.null_dimension = true,
                _ => {
                    let message = "want repeated_combination or null_dimension";
                    return Err(Error::argument("tolerate", Code::InvalidArgument, message));
                }
            }
        }
        Ok(tolerate)
    }
}

/// How an [`Aggregator`] reads.
#[derive(Clone, Debug, Default)]
pub struct AggregatorOptions {
    /// The endpoint that the bytes are from, if it is to be known to the table.
    pub metric: Option<Metric>,
    /// The dimensions to keep; `None` for all of them, an empty list for one grand total.
    ///
    /// Where fewer are kept than were requested, a repeated combination can't be seen.
    pub group_by: Option<Vec<String>>,
    /// The requested `start` and `end`, if the response is to be held to them.
    pub window: Option<(String, String)>,
    /// How much is read before the response is refused.
    pub limits: Limits,
    /// What to let pass.
    pub tolerate: Tolerate,
    /// What hashes are keyed with. Nothing depends on it but the time that dimension values take
    /// which were made to collide: where they come from strangers, draw it at random.
    pub hash_seed: u64,
}

/// How a result is read, whatever it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOptions {
    pub(crate) limits: Limits,
    pub(crate) tolerate: Tolerate,
    pub(crate) hash_seed: u64,
}

/// Folds the body of one metrics response, chunk by chunk, into a table.
///
/// It holds the groups so far and at most the entry at hand, and no more of the body. Where chunks
/// end makes no difference, neither to the table nor to an error, though the error may come with
/// the chunk after the one that it is in.
///
/// ```
/// use tallyfold::{Aggregator, AggregatorOptions};
///
/// let body = br#"{"start": "2026-01-01T00:00:00Z", "end": "2026-01-01T00:15:00Z",
///     "totalDelivered": "7", "totalErrors": "0", "totalFiltered": "0",
///     "counts": [{"success": "7", "errors": "0", "filtered": "0",
///                 "dimensions": {"integration": "warehouse", "reason": ""}}]}"#;
/// let group_by = Some(vec!["integration".to_owned()]);
/// let options = AggregatorOptions { group_by, ..AggregatorOptions::default() };
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
    kept: Dimensions,
    metric: Option<Metric>,
}

impl Aggregator {
    /// An aggregator for a response with these dimensions.
    ///
    /// # Errors
    /// `no_dimensions`, `unknown_dimension`, `repeated_dimension`, and for a window
    /// `invalid_timestamp` and `invalid_window`.
    pub fn new<S: AsRef<str>>(dimensions: &[S], options: AggregatorOptions) -> Result<Self> {
        let hash_seed = options.hash_seed;
        Ok(AggregatorPlan::new(dimensions, options)?.aggregator(hash_seed))
    }

    pub(crate) fn of_parts(
        requested: Dimensions,
        kept: Dimensions,
        window: Option<Window>,
        metric: Option<Metric>,
        options: ReadOptions,
    ) -> Self {
        let lexer = Lexer::new(options.limits);
        let shape = ResultShape::new(requested, kept, window, options);
        Self(State::Reading(Box::new(Reading {
            lexer,
            shape,
            kept,
            metric,
        })))
    }

    /// Reads the next bytes of the body, as many as there are.
    ///
    /// # Errors
    /// Every error of kind `response`, with the JSON path and the byte offset. After an error the
    /// aggregator only repeats it.
    pub fn push(&mut self, chunk: &[u8]) -> Result<()> {
        match &mut self.0 {
            State::Reading(reading) => {
                let Reading { lexer, shape, .. } = &mut **reading;
                lexer
                    .push(chunk, shape)
                    .inspect_err(|error| self.0 = State::Failed(error.clone()))
            }
            State::Failed(error) => Err(error.clone()),
            State::Finished => Err(finished()),
        }
    }

    /// Says that the body is over, and takes the table. Only here can be seen that a body was cut.
    ///
    /// # Errors
    /// As [`Aggregator::push`], and `empty_body` and `truncated_body`; `out_of_order` once the
    /// table has been taken.
    pub fn finish(&mut self) -> Result<CountTable> {
        match std::mem::replace(&mut self.0, State::Finished) {
            State::Reading(reading) => reading
                .finish()
                .inspect_err(|error| self.0 = State::Failed(error.clone())),
            State::Failed(error) => {
                self.0 = State::Failed(error.clone());
                Err(error)
            }
            State::Finished => Err(finished()),
        }
    }
}

/// What aggregators for responses to one question begin with, so that it is checked once.
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
        let window = match &options.window {
            Some((start, end)) => Some(Window::parse(start, end)?),
            None => None,
        };
        Ok(Self {
            requested,
            kept,
            window,
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
        let options = ReadOptions {
            hash_seed,
            ..self.options
        };
        Aggregator::of_parts(self.requested, self.kept, self.window, self.metric, options)
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
            rows: Arc::new(rows),
        };
        Ok(CountTable::of_response(self.kept, self.metric, part))
    }
}

fn finished() -> Error {
    let message = "the aggregator has given its table; make a new one for the next response";
    Error::new(Code::OutOfOrder, message)
}
