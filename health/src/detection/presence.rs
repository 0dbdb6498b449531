//! Groups that appeared or vanished.

use crate::baseline::stream::Stream;

tallyfold::names! {
    /// What became of a group.
    pub enum Presence {
        /// It has events, and had none before.
        Appeared = "appeared",
        /// It had events, and has none.
        Vanished = "vanished",
    }
}

/// Whether a group appeared or vanished with the window `at`: the `range` windows up to it against all known windows before
/// them. At least `minimum` events must have come, or must have been there before.
#[must_use]
pub fn presence(stream: &Stream, at: usize, range: usize, minimum: u64) -> Option<Presence> {
    let first = (at + 1).saturating_sub(range.max(1));
    let (before, known_before) = events(stream, 0..first);
    let (now, known_now) = events(stream, first..at.saturating_add(1));
    let minimum = minimum.max(1);
    if known_before && before == 0 && now >= minimum {
        return Some(Presence::Appeared);
    }
    (known_now && now == 0 && before >= minimum).then_some(Presence::Vanished)
}

fn events(stream: &Stream, windows: std::ops::Range<usize>) -> (u64, bool) {
    let known = windows.filter_map(|window| stream.known_at(window));
    known.fold((0, false), |(sum, _), (part, _)| {
        (u64::saturating_add(sum, part), true)
    })
}
