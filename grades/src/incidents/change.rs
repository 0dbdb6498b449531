//! The changes of the traffic: incidents, which a detector should find, and life, in which nothing is broken.

use std::collections::BTreeMap;

use super::clock::{DAY, HOUR, WEEK};
use super::names::{EVENT_NAMES, INTEGRATIONS, SOURCES};
use super::world::{Flow, Stream};

/// The kind of an incident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Incident {
    IntegrationFails,
    SmallFails,
    PartFails,
    ErrorsDouble,
    DeliveredTwice,
    SlowDecline,
    ConsentFilter,
    NewReason,
    EventVanishes,
    IntegrationSilent,
}

impl Incident {
    pub(super) const ALL: [Self; 10] = [
        Self::IntegrationFails,
        Self::SmallFails,
        Self::PartFails,
        Self::ErrorsDouble,
        Self::DeliveredTwice,
        Self::SlowDecline,
        Self::ConsentFilter,
        Self::NewReason,
        Self::EventVanishes,
        Self::IntegrationSilent,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::IntegrationFails => "integration fails",
            Self::SmallFails => "small integration fails",
            Self::PartFails => "30% of a pair fail",
            Self::ErrorsDouble => "errors double (2% to 4%)",
            Self::DeliveredTwice => "delivered twice",
            Self::SlowDecline => "half within 36 hours",
            Self::ConsentFilter => "consent filter",
            Self::NewReason => "new reason",
            Self::EventVanishes => "event vanishes",
            Self::IntegrationSilent => "integration is silent",
        }
    }
}

/// The kind of a change in which nothing is broken that an engineer could repair. Outages are the exception: a source
/// sends nothing, and it is right to report that, but not required.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Outage,
    Burst,
    Campaign,
    Launch,
    NewName,
    RetiredName,
    NewPair,
    RetiredPair,
    Holiday,
    LateBatch,
    LateData,
    ClockChange,
}

impl Life {
    pub(super) const ALL: [Self; 12] = [
        Self::Outage,
        Self::Burst,
        Self::Campaign,
        Self::Launch,
        Self::NewName,
        Self::RetiredName,
        Self::NewPair,
        Self::RetiredPair,
        Self::Holiday,
        Self::LateBatch,
        Self::LateData,
        Self::ClockChange,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Outage => "source outage",
            Self::Burst => "burst",
            Self::Campaign => "campaign",
            Self::Launch => "launch",
            Self::NewName => "new name",
            Self::RetiredName => "retired name",
            Self::NewPair => "new pair",
            Self::RetiredPair => "retired pair",
            Self::ClockChange => "clock change",
            Self::Holiday => "holiday",
            Self::LateBatch => "late batch",
            Self::LateData => "late data",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Incident(Incident),
    Life(Life),
}

/// A part of the traffic: everything with these values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) source: Option<usize>,
    pub(super) event_name: Option<usize>,
    pub(super) integration: Option<usize>,
}

impl Slice {
    pub(super) fn has_stream(&self, stream: &Stream) -> bool {
        self.source.is_none_or(|own| own == stream.source)
            && self.event_name.is_none_or(|own| own == stream.event_name)
    }

    pub(super) fn has(&self, stream: &Stream, flow: &Flow) -> bool {
        self.has_stream(stream) && self.integration.is_none_or(|own| own == flow.integration)
    }
}

/// How a change acts on the counts of its slice.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Effect {
    /// The volume is multiplied by one factor before the change, and by another one at its strongest.
    Volume { before: f64, now: f64 },
    /// A share of what would be delivered fails.
    Fails(f64),
    /// The usual error rate is multiplied.
    MoreErrors(f64),
    /// A share of what would be delivered is filtered for a reason.
    Filtered(&'static str, f64),
    /// Each attempt is made this many times.
    Copies(u64),
    /// The same events arrive at another time of the day.
    Moved,
    /// A share of the events arrives too late to be judged.
    Late(f64),
}

/// Something that happens to a part of the traffic for a time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Change {
    pub(super) kind: Kind,
    pub(super) slice: Slice,
    pub(super) effect: Effect,
    /// The first window.
    pub(super) start: usize,
    /// The first window after it. A permanent change ends two weeks after its start, when it is no longer news.
    pub(super) end: usize,
}

/// How many windows a permanent change is news.
pub(super) const NEWS: usize = 2 * WEEK;

impl Change {
    pub(super) fn incident(&self) -> Option<Incident> {
        match self.kind {
            Kind::Incident(incident) => Some(incident),
            Kind::Life(_) => None,
        }
    }

    pub(super) fn life(&self) -> Option<Life> {
        match self.kind {
            Kind::Incident(_) => None,
            Kind::Life(life) => Some(life),
        }
    }

    pub(super) fn is_on(&self, at: usize) -> bool {
        (self.start..self.end).contains(&at)
    }

    /// Whether the change is permanent.
    pub(super) fn is_for_good(&self) -> bool {
        matches!(
            self.kind,
            Kind::Life(
                Life::Launch
                    | Life::NewName
                    | Life::RetiredName
                    | Life::NewPair
                    | Life::RetiredPair
            )
        )
    }

    /// Whether it acts on the counts of a window.
    pub(super) fn acts(&self, at: usize) -> bool {
        match self.effect {
            Effect::Volume { .. } => self.volume(at) != 1.0,
            _ => self.is_on(at),
        }
    }

    /// The factor of the volume in a window.
    pub(super) fn volume(&self, at: usize) -> f64 {
        let Effect::Volume { before, now } = self.effect else {
            return 1.0;
        };
        let Some(passed) = at.checked_sub(self.start) else {
            return before;
        };
        if at >= self.end && !self.is_for_good() {
            return before;
        }
        // How much of the change has taken effect.
        let part = match self.kind {
            Kind::Incident(Incident::SlowDecline) => (passed + 1) as f64 / DECLINE as f64,
            Kind::Life(Life::Campaign) => {
                let rest = (self.end - at) as f64 / (self.end - self.start) as f64;
                ((passed + 1) as f64 / HOUR as f64).min(4.0 * rest)
            }
            Kind::Life(Life::Launch) => (passed + 1) as f64 / DAY as f64,
            _ => 1.0,
        };
        before + (now - before) * part.min(1.0)
    }

    /// The slice and the reason of the change, as attributes and values.
    pub(super) fn values(&self) -> BTreeMap<&'static str, &'static str> {
        let slice = self.slice;
        let reason = match self.effect {
            Effect::Filtered(reason, _) => Some(reason),
            _ => None,
        };
        let all = [
            ("write_key", slice.source.map(|own| SOURCES[own].0)),
            ("event_name", slice.event_name.map(|own| EVENT_NAMES[own])),
            ("integration", slice.integration.map(|own| INTEGRATIONS[own])),
            ("reason", reason),
        ];
        let named = all.into_iter();
        named.filter_map(|(name, value)| Some((name, value?))).collect()
    }
}

/// The number of windows in which a declining source reaches its final level.
pub(super) const DECLINE: usize = 36 * HOUR;

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: Kind, before: f64, now: f64) -> Change {
        Change {
            kind,
            slice: Slice::default(),
            effect: Effect::Volume { before, now },
            start: 100,
            end: 300,
        }
    }

    #[test]
    fn a_decline_reaches_its_half_after_36_hours() {
        let decline = change(Kind::Incident(Incident::SlowDecline), 1.0, 0.5);
        let volumes = [99, 171, 243, 299, 300].map(|at| decline.volume(at));
        assert_eq!(volumes, [1.0, 0.75, 0.5, 0.5, 1.0]);
        assert!(!decline.acts(99) && decline.acts(100) && !decline.acts(300));
    }

    #[test]
    fn what_is_for_good_stays() {
        let new = change(Kind::Life(Life::NewName), 0.0, 1.0);
        assert_eq!([99, 100, 300, 9_000].map(|at| new.volume(at)), [0.0, 1.0, 1.0, 1.0]);
        let launch = change(Kind::Life(Life::Launch), 1.0, 2.0);
        assert_eq!([99, 147, 195, 9_000].map(|at| launch.volume(at)), [1.0, 1.5, 2.0, 2.0]);
        assert!(launch.acts(9_000) && !new.acts(9_000) && new.acts(0));
    }

    #[test]
    fn a_campaign_comes_and_goes() {
        let campaign = change(Kind::Life(Life::Campaign), 1.0, 3.0);
        let volumes = [99, 100, 103, 250, 275, 299, 300].map(|at| campaign.volume(at));
        assert_eq!(volumes, [1.0, 1.5, 3.0, 3.0, 2.0, 1.04, 1.0]);
    }
}
