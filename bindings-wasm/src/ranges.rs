//! [`tallyfold::Collect`], [`tallyfold::Probe`] and [`tallyfold::Follow`], which are driven in the same way.

use serde::Serialize;
use tallyfold::{AdditivityVerdict, CollectStep, Drive, FollowStep, Window};
use wasm_bindgen::JsValue;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::arguments::required;
use crate::call::Call;
use crate::comparison::Comparison;
use crate::error::{Returned, Thrown};
use crate::host;
use crate::plain::plain;
use crate::table::CountTable;

/// [`tallyfold::CollectStep`] and [`tallyfold::FollowStep`].
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Step {
    Drive {
        task: u32,
        window: Window,
        #[serde(with = "serde_wasm_bindgen::preserve")]
        call: JsValue,
    },
    Idle,
    Wait {
        ms: u32,
    },
    Done,
}

impl From<Drive> for Step {
    fn from(Drive { task, window, call }: Drive) -> Self {
        let call = Call(call).into();
        Self::Drive { task, window, call }
    }
}

impl From<CollectStep> for Step {
    fn from(step: CollectStep) -> Self {
        match step {
            CollectStep::Drive(drive) => drive.into(),
            CollectStep::Idle => Self::Idle,
            CollectStep::Done => Self::Done,
        }
    }
}

impl TryFrom<FollowStep> for Step {
    type Error = tallyfold::Error;

    fn try_from(step: FollowStep) -> tallyfold::Result<Self> {
        Ok(match step {
            FollowStep::Drive(drive) => drive.into(),
            FollowStep::Wait { ms } => Self::Wait { ms },
            FollowStep::Failed(error) => return Err(error),
            FollowStep::Done => Self::Done,
        })
    }
}

/// [`tallyfold::Settled`].
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
enum Settled {
    Kept {
        provisional: bool,
    },
    Halved,
    Failed {
        #[serde(with = "serde_wasm_bindgen::preserve")]
        error: JsValue,
    },
    GivenBack,
    TooLarge,
    Postponed,
    Probed,
}

impl From<tallyfold::Settled> for Settled {
    fn from(settled: tallyfold::Settled) -> Self {
        match settled {
            tallyfold::Settled::Kept { provisional } => Self::Kept { provisional },
            tallyfold::Settled::Halved => Self::Halved,
            tallyfold::Settled::Failed(error) => Self::Failed { error: Thrown::from(error).into() },
            tallyfold::Settled::GivenBack => Self::GivenBack,
            tallyfold::Settled::TooLarge => Self::TooLarge,
            tallyfold::Settled::Postponed => Self::Postponed,
            tallyfold::Settled::Probed => Self::Probed,
        }
    }
}

/// The result of a collect: a table, or an error with what was read.
#[derive(Serialize)]
#[serde(untagged)]
enum Ended {
    Whole {
        #[serde(with = "serde_wasm_bindgen::preserve")]
        table: JsValue,
    },
    Failed {
        #[serde(with = "serde_wasm_bindgen::preserve")]
        error: JsValue,
        #[serde(with = "serde_wasm_bindgen::preserve")]
        partial: JsValue,
        gaps: Vec<Window>,
        failures: Vec<Failure>,
    },
}

#[derive(Serialize)]
struct Failure {
    window: Window,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    error: JsValue,
}

/// A long range, window by window.
#[wasm_bindgen(js_name = CoreCollect)]
pub struct Collect(pub(crate) tallyfold::Collect);

#[wasm_bindgen(js_class = CoreCollect)]
impl Collect {
    /// How many windows to read at the same time.
    pub fn concurrency(&self) -> u32 {
        self.0.concurrency()
    }

    /// What to do next.
    pub fn next(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(plain(&Step::from(self.0.next(host::now(now)?))))
    }

    /// Takes the result of a call.
    pub fn settle(
        &mut self,
        task: &JsValue,
        call: &mut Call,
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let (task, now) = (required("task", task)?, host::now(now)?);
        let settled = self.0.settle(task, &mut call.0, now)?;
        Ok(plain(&Settled::from(settled)))
    }

    /// The progress, in windows.
    pub fn progress(&self) -> Returned {
        Ok(plain(&self.0.progress()))
    }

    /// The windows that were read so early that their counts may still change.
    pub fn provisional(&self) -> Returned {
        Ok(plain(&self.0.provisional()))
    }

    /// The table, or the error with what was read.
    pub fn finish(&self) -> Returned {
        let table = |table| CountTable(table).into();
        Ok(plain(&match self.0.finish() {
            Ok(whole) => Ended::Whole { table: table(whole) },
            Err(ended) => Ended::Failed {
                error: Thrown::from(ended.error).into(),
                partial: ended.partial.map_or(JsValue::UNDEFINED, table),
                gaps: ended.gaps,
                failures: ended
                    .failures
                    .into_iter()
                    .map(|(window, error)| Failure { window, error: Thrown::from(error).into() })
                    .collect(),
            },
        }))
    }

    /// The next segment to store, as its name and its text.
    pub fn unsaved(&mut self) -> Option<Vec<String>> {
        let segment = self.0.unsaved()?;
        Some(vec![segment.name, segment.json])
    }

    /// The name of the stored segment to load next.
    pub fn wanted(&self) -> String {
        self.0.wanted()
    }

    /// Loads a stored segment.
    pub fn load(&mut self, name: &JsValue, json: &[u8]) -> Result<(), Thrown> {
        let name: String = required("name", name)?;
        Ok(self.0.load(&name, json)?)
    }
}

/// The name of the segment with this number.
#[wasm_bindgen(js_name = segmentName)]
#[must_use]
pub fn segment_name(number: f64) -> String {
    tallyfold::keeper::segment_name(number as u64)
}

/// Tests whether counts of adjacent windows add up.
#[wasm_bindgen(js_name = CoreProbe)]
pub struct Probe(pub(crate) tallyfold::Probe);

/// [`tallyfold::Additivity`].
#[derive(Serialize)]
struct Additivity {
    verdict: AdditivityVerdict,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    whole: JsValue,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    difference: JsValue,
}

#[wasm_bindgen(js_class = CoreProbe)]
impl Probe {
    /// What to do next.
    pub fn step(&mut self) -> Returned {
        Ok(plain(&Step::from(self.0.step())))
    }

    /// Takes the result of a call.
    pub fn settle(&mut self, task: &JsValue, call: &mut Call) -> Result<(), Thrown> {
        Ok(self.0.settle(required("task", task)?, &mut call.0)?)
    }

    /// The result of the probe.
    pub fn finish(&self) -> Result<JsValue, Thrown> {
        let found = self.0.finish()?;
        Ok(plain(&Additivity {
            verdict: found.verdict,
            whole: CountTable(found.whole).into(),
            difference: Comparison(found.difference).into(),
        }))
    }
}

/// Reads windows as they close, and again while their counts may change.
#[wasm_bindgen(js_name = CoreFollow)]
pub struct Follow(pub(crate) tallyfold::Follow);

/// [`tallyfold::Revision`].
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Revision {
    window: Window,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    table: JsValue,
    #[serde(with = "serde_wasm_bindgen::preserve")]
    changes: JsValue,
    settled: bool,
    number: u32,
    clock_ahead_ms: f64,
}

#[wasm_bindgen(js_class = CoreFollow)]
impl Follow {
    /// What to do next.
    pub fn next(&mut self, now: &JsValue) -> Result<JsValue, Thrown> {
        Ok(plain(&Step::try_from(self.0.next(host::now(now)?))?))
    }

    /// Takes the result of a call. Returns a revision if there is a new one.
    pub fn settle(
        &mut self,
        task: &JsValue,
        call: &mut Call,
        now: &JsValue,
    ) -> Result<JsValue, Thrown> {
        let (task, now) = (required("task", task)?, host::now(now)?);
        let revision = self.0.settle(task, &mut call.0, now)?;
        Ok(plain(&revision.map(|revision| Revision {
            window: revision.window,
            table: CountTable(revision.table).into(),
            changes: Comparison(revision.changes).into(),
            settled: revision.settled,
            number: revision.number,
            clock_ahead_ms: revision.clock_ahead_ms as f64,
        })))
    }

    /// How many milliseconds the follow waits before the next try, if the service is down.
    #[wasm_bindgen(js_name = waitingMs)]
    pub fn waiting_ms(&self) -> Option<u32> {
        self.0.waiting_ms()
    }

    /// The position of the follow, as JSON.
    pub fn state(&self) -> String {
        self.0.state()
    }

    /// The windows that are not settled.
    pub fn provisional(&self) -> Returned {
        Ok(plain(&self.0.provisional()))
    }
}
