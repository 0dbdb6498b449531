//! Scenes: incidents in the seeded traffic, during the hours before the first request.

use std::ops::Range;

use crate::vocabulary::REASONS;

tallyfold::names! {
    /// An incident in the seeded traffic. It begins some hours before the first request to the sandbox, and affects a
    /// busy integration, source or event.
    #[non_exhaustive]
    pub enum Scene {
        /// An integration fails for 45 minutes: nine of ten events to it are errors.
        Outage = "outage",
        /// A new filter withholds most events of a source, because consent is missing. It is still active.
        ConsentFilter = "consent_filter",
        /// An event no longer matches its schema for 90 minutes, and nearly all of it is filtered.
        SchemaMismatch = "schema_mismatch",
        /// A source has sent nothing for two hours, and still sends nothing.
        SilentSource = "silent_source",
        /// Most events of a source are counted 25 minutes late, so the counts of recent windows are corrected. This still
        /// goes on.
        LateData = "late_data",
    }
}

const MINUTE_MS: i64 = 60_000;
const LATE_MS: i64 = 25 * MINUTE_MS;
/// Fractions are in 1/65536.
const ONE: u64 = 1 << 16;
const EVENT_NAME: usize = 0;
const WRITE_KEY: usize = 1;
const INTEGRATION: usize = 2;
const SCHEMA_MISMATCH: usize = 2;
const CONSENT_WITHHELD: usize = 4;

/// What happens to the events of some combinations.
#[derive(Clone, Copy)]
pub(crate) enum Change {
    /// This share of them are errors.
    Errors(u64),
    /// This share of the events that are not errors is filtered, with the reason at this place in `REASONS`.
    Filtered(u64, usize),
    /// This share of them is counted.
    Counted(u64),
}

/// A scene in progress.
pub(crate) struct Staged {
    scene: Scene,
    /// The times of the first and of the latest request.
    begun_ms: Option<i64>,
    now_ms: i64,
    /// The ids of the event name, the write key and the integration, of which the scene affects one.
    victim: [u32; 3],
}

impl Staged {
    pub(crate) fn new(scene: Scene, victim: [u32; 3]) -> Self {
        Self { scene, begun_ms: None, now_ms: 0, victim }
    }

    /// Notes the time of a request.
    pub(crate) fn pass(&mut self, now_ms: i64) {
        self.begun_ms.get_or_insert(now_ms);
        self.now_ms = self.now_ms.max(now_ms);
    }

    /// Returns what happens to the events with these values in a slot; `None` if nothing does. `slot` is in milliseconds
    /// since 1970.
    pub(crate) fn change(&self, values: [u32; 3], slot: &Range<i64>) -> Option<Change> {
        let (place, since_min, until_min) = match self.scene {
            Scene::Outage => (INTEGRATION, 180, Some(135)),
            Scene::ConsentFilter => (WRITE_KEY, 240, None),
            Scene::SchemaMismatch => (EVENT_NAME, 210, Some(120)),
            Scene::SilentSource => (WRITE_KEY, 120, None),
            Scene::LateData => (WRITE_KEY, 180, None),
        };
        let begun_ms = self.begun_ms?;
        let since = slot.start >= begun_ms - since_min * MINUTE_MS;
        let until = until_min.is_none_or(|min: i64| slot.start < begun_ms - min * MINUTE_MS);
        if values[place] != self.victim[place] || !(since && until) {
            return None;
        }
        Some(match self.scene {
            Scene::Outage => Change::Errors(ONE / 10 * 9),
            Scene::ConsentFilter => Change::Filtered(ONE / 10 * 7, CONSENT_WITHHELD),
            Scene::SchemaMismatch => Change::Filtered(ONE / 20 * 19, SCHEMA_MISMATCH),
            Scene::SilentSource => Change::Counted(0),
            Scene::LateData if self.now_ms < slot.end + LATE_MS => Change::Counted(ONE / 10 * 3),
            Scene::LateData => return None,
        })
    }
}

const _: () = assert!(CONSENT_WITHHELD < REASONS.len() && SCHEMA_MISMATCH < REASONS.len());
