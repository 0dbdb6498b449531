//! An incident: what happens, to which part of the traffic, and when.

use std::collections::BTreeMap;

use super::vocabulary::{EVENT_NAMES, INTEGRATIONS, WRITE_KEYS};
use super::world::{Flow, Stream, World};

/// What happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    IntegrationFails,
    ConsentFilter,
    EventVanishes,
    SlowDecline,
    NewReason,
    SilentStream,
    DuplicateDelivery,
}

impl Kind {
    pub(super) const ALL: [Self; 7] = [
        Self::IntegrationFails,
        Self::ConsentFilter,
        Self::EventVanishes,
        Self::SlowDecline,
        Self::NewReason,
        Self::SilentStream,
        Self::DuplicateDelivery,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::IntegrationFails => "integration fails",
            Self::ConsentFilter => "consent filter",
            Self::EventVanishes => "event vanishes",
            Self::SlowDecline => "slow decline",
            Self::NewReason => "new reason",
            Self::SilentStream => "silent stream",
            Self::DuplicateDelivery => "duplicate delivery",
        }
    }
}

/// A part of the traffic: everything with these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) write_key: Option<usize>,
    pub(super) event_name: Option<usize>,
    pub(super) integration: Option<usize>,
}

impl Slice {
    pub(super) fn has_stream(&self, stream: &Stream) -> bool {
        self.write_key.is_none_or(|own| own == stream.write_key)
            && self.event_name.is_none_or(|own| own == stream.event_name)
    }

    pub(super) fn has(&self, stream: &Stream, flow: &Flow) -> bool {
        self.has_stream(stream) && self.integration.is_none_or(|own| own == flow.integration)
    }
}

/// An incident that is to be found.
#[derive(Clone, Debug)]
pub(super) struct Incident {
    pub(super) kind: Kind,
    pub(super) slice: Slice,
    /// The reason that events are filtered for, if they are.
    pub(super) reason: Option<&'static str>,
    /// The share of events that it affects, up to 1; for a slow decline, the share at its end.
    pub(super) size: f64,
    /// The first window.
    pub(super) start: usize,
    /// The first window after it.
    pub(super) end: usize,
}

impl Incident {
    pub(super) fn is_on(&self, at: usize) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// The share of events that it affects in a window.
    pub(super) fn size_at(&self, at: usize) -> f64 {
        match self.kind {
            _ if !self.is_on(at) => 0.0,
            Kind::SlowDecline => {
                let passed = (at - self.start + 1) as f64 / (self.end - self.start) as f64;
                self.size * passed
            }
            _ => self.size,
        }
    }

    /// How many events it affects in one of its windows, on average.
    pub(super) fn affected(&self, world: &World) -> f64 {
        let mut events = 0.0;
        for stream in world
            .streams
            .iter()
            .filter(|stream| self.slice.has_stream(stream))
        {
            let flows = stream
                .flows
                .iter()
                .filter(|flow| self.slice.has(stream, flow));
            for at in self.start..self.end {
                let level = world.level(stream.write_key, at);
                events += flows.clone().count() as f64 * stream.mean * level * self.size_at(at);
            }
        }
        events / (self.end - self.start) as f64
    }

    /// Its cause as attributes and values.
    pub(super) fn cause(&self) -> BTreeMap<&'static str, &'static str> {
        let slice = self.slice;
        let all = [
            ("write_key", slice.write_key.map(|own| WRITE_KEYS[own])),
            ("event_name", slice.event_name.map(|own| EVENT_NAMES[own])),
            (
                "integration",
                slice.integration.map(|own| INTEGRATIONS[own]),
            ),
            ("reason", self.reason),
        ];
        all.into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect()
    }
}
