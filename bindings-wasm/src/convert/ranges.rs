//! Long ranges: what is asked for, and what their machines say.

use js_sys::Array;
use tallyfold::{
    Additivity, Call as CoreCall, CollectError, CollectOptions, CollectStep, CountTable as Table,
    FollowOptions, FollowStep, Metric, Progress, Revision, Settled, TimeStep, Window,
};
use wasm_bindgen::{JsCast, JsValue};

use super::fields::{Fields, integer, size};
use super::values::{array, object, window, windows};
use crate::client::Call;
use crate::comparison::Comparison;
use crate::error::{Result, Thrown};
use crate::table::CountTable;

pub(crate) fn collect_options(query: &JsValue, have: Option<Table>) -> Result<CollectOptions> {
    let query = Fields::of("query", query)?;
    let usual_window = || TimeStep::parse("15m");
    let usual = CollectOptions::new(
        metric(&query)?,
        &query.required_instant("start")?,
        &query.required_instant("end")?,
        &query.required_texts("dimensions")?,
        step_field(&query, "window")?.map_or_else(usual_window, Ok)?,
    );
    Ok(CollectOptions {
        group_by: query.texts("groupBy")?,
        finest: step_field(&query, "finest")?.unwrap_or(usual.finest),
        part: query.value("part")?.map(|of| part(&of)).transpose()?,
        settle_ms: query.integer("settleMs")?.unwrap_or(usual.settle_ms),
        have,
        probe: query.flag("probe")?,
        ..usual
    })
}

pub(crate) fn follow_options(query: &JsValue) -> Result<FollowOptions> {
    let query = Fields::of("query", query)?;
    let usual = FollowOptions::new(
        metric(&query)?,
        &query.required_instant("start")?,
        &query.required_texts("dimensions")?,
        required_window(&query)?,
    );
    Ok(FollowOptions {
        end: query.instant("end")?,
        group_by: query.texts("groupBy")?,
        delay_ms: query.integer("delayMs")?.unwrap_or(usual.delay_ms),
        reread_ms: query.integer("rereadMs")?,
        settle_ms: query.integer("settleMs")?.unwrap_or(usual.settle_ms),
        ..usual
    })
}

pub(crate) fn metric(query: &Fields) -> Result<Metric> {
    Ok(Metric::from_name(&query.required_text("metric")?)?)
}

fn required_window(query: &Fields) -> Result<TimeStep> {
    step_field(query, "window")?.ok_or_else(|| Thrown::missing("window"))
}

/// A step under the name of its argument.
pub(crate) fn step_field(fields: &Fields, name: &'static str) -> Result<Option<TimeStep>> {
    let step = fields.text(name)?.map(|text| TimeStep::parse(&text));
    let step = step.transpose();
    Ok(step.map_err(|error| error.with_argument(name))?)
}

/// The index of a part, and how many parts there are.
pub(crate) fn part(value: &JsValue) -> Result<(u32, u32)> {
    let numbers = || -> Option<_> {
        let [index, of] = <[JsValue; 2]>::try_from(value.dyn_ref::<Array>()?.to_vec()).ok()?;
        let small = |value| u32::try_from(integer(value)?).ok();
        Some((small(&index)?, small(&of)?))
    };
    numbers().ok_or_else(|| Thrown::refused("part", "want [index, of], two whole numbers"))
}

/// The range between `start` and `end`.
pub(crate) fn range(fields: &Fields) -> Result<Window> {
    let (start, end) = (
        fields.required_instant("start")?,
        fields.required_instant("end")?,
    );
    Ok(Window::parse(&start, &end)?)
}

/// The number of a task.
pub(crate) fn task(task: &JsValue) -> Result<u64> {
    Ok(size("task", task)? as u64)
}

pub(crate) fn collect_step(step: CollectStep) -> JsValue {
    match step {
        CollectStep::Drive { task, window, call } => drive(task, window, call),
        CollectStep::Idle => typed("idle"),
        CollectStep::Done => typed("done"),
    }
}

pub(crate) fn follow_step(step: FollowStep) -> JsValue {
    match step {
        FollowStep::Drive { task, window, call } => drive(task, window, call),
        FollowStep::Wait { ms } => object([("type", "wait".into()), ("ms", (ms as f64).into())]),
        FollowStep::Done => typed("done"),
    }
}

fn drive(task: u64, of: Window, call: CoreCall) -> JsValue {
    object([
        ("type", "drive".into()),
        ("task", (task as f64).into()),
        ("window", window(of)),
        ("call", Call(call).into()),
    ])
}

fn typed(name: &str) -> JsValue {
    object([("type", name.into())])
}

pub(crate) fn settled(settled: Settled) -> JsValue {
    match settled {
        Settled::Kept { provisional } => {
            object([("type", "kept".into()), ("provisional", provisional.into())])
        }
        Settled::Halved => typed("halved"),
        Settled::Failed(error) => object([
            ("type", "failed".into()),
            ("error", Thrown::from(error).into()),
        ]),
        Settled::GivenBack => typed("givenBack"),
        Settled::Probed => typed("probed"),
    }
}

pub(crate) fn progress(progress: Progress) -> JsValue {
    object([
        ("planned", (progress.planned as f64).into()),
        ("done", (progress.done as f64).into()),
        ("failed", (progress.failed as f64).into()),
        ("underWay", (progress.under_way as f64).into()),
    ])
}

pub(crate) fn ended(ended: std::result::Result<Table, CollectError>) -> JsValue {
    let table = |table| CountTable::from(table).into();
    match ended {
        Ok(whole) => object([("table", table(whole))]),
        Err(ended) => object([
            ("error", Thrown::from(ended.error).into()),
            ("partial", ended.partial.map_or(JsValue::UNDEFINED, table)),
            ("gaps", windows(&ended.gaps).into()),
            ("failures", failures(ended.failures)),
        ]),
    }
}

fn failures(failures: Vec<(Window, tallyfold::Error)>) -> JsValue {
    let failure = |(of, error)| {
        object([
            ("window", window(of)),
            ("error", Thrown::from(error).into()),
        ])
    };
    array(failures.into_iter().map(failure)).into()
}

pub(crate) fn revision(revision: Revision) -> JsValue {
    object([
        ("window", window(revision.window)),
        ("table", CountTable::from(revision.table).into()),
        ("changes", Comparison::from(revision.changes).into()),
        ("settled", revision.settled.into()),
    ])
}

pub(crate) fn additivity(found: Additivity) -> JsValue {
    object([
        ("verdict", found.verdict.as_str().into()),
        ("whole", CountTable::from(found.whole).into()),
        ("difference", Comparison::from(found.difference).into()),
    ])
}
