//! The levels of a stream, window after window, or of a single window.

use super::fit::{Bench, Fit, fit, variance_of};
use super::sample::{Sample, Windows, choose};
use super::stream::{Basis, Level, Season, Stream};
use super::variance::Noise;

/// The levels of adjacent windows of a stream, one by one. Each level is predicted from the windows before it, and is
/// `None` if there is not enough history for any rule.
pub struct Levels<'w> {
    windows: Windows<'w>,
    is_rate: bool,
    season: Season,
    next: usize,
    noise: Noise,
    /// The rule by which the noise was learned.
    basis: Option<Basis>,
    sample: Sample,
    bench: Bench,
}

impl<'w> Levels<'w> {
    /// Starts at the window `from`. It also reads the season before, to learn how much the stream varies.
    #[must_use]
    pub fn new(stream: &Stream<'_>, season: &Season, from: usize) -> Self {
        let windows = Windows::new(stream, season);
        let warm_up = season.period.clamp(1, 1_000);
        Self::of(windows, stream.wholes.is_some(), season, (from, warm_up))
    }

    /// The levels of prepared windows, starting at the window `from`. How much the stream varies is learned from the
    /// `warm_up` windows before it.
    pub(crate) fn of(
        windows: Windows<'w>,
        is_rate: bool,
        season: &Season,
        (from, warm_up): (usize, usize),
    ) -> Self {
        let mut levels = Self {
            windows,
            is_rate,
            season: *season,
            next: from.saturating_sub(warm_up),
            noise: Noise::fading(season.period.clamp(1, 1_000)),
            basis: None,
            sample: Sample::default(),
            bench: Bench::default(),
        };
        while levels.next < from && levels.next().is_some() {}
        levels
    }

    /// The level of a window, by the first rule that finds enough windows.
    fn level(&mut self, at: usize) -> Option<(Level, Fit)> {
        let basis = choose(&mut self.sample, &self.windows, at, &self.season)?;
        Some(self.fitted(basis))
    }

    fn fitted(&mut self, basis: Basis) -> (Level, Fit) {
        if self.basis != Some(basis) {
            self.basis = Some(basis);
            self.noise = Noise::fading(self.season.period.clamp(1, 1_000));
        }
        let fit = fit(
            &self.windows.each,
            &mut self.sample,
            &self.noise,
            self.is_rate,
            &mut self.bench,
        );
        (fit.level(basis, self.sample.windows, self.is_rate), fit)
    }

    /// Learns from the window how much the stream varies.
    fn learn(&mut self, at: usize, level: &Level, fit: &Fit) {
        if !self.windows.each[at].teaches() {
            return;
        }
        let whole = self.windows.each[at].whole;
        let expected = level.expected * whole;
        let residual = self.windows.each[at].part - expected;
        let variance =
            expected * variance_of(level.expected, self.is_rate) * (1.0 + fit.uncertainty);
        self.noise
            .learn(expected, residual * residual / variance, fit.dispersion);
    }
}

impl Iterator for Levels<'_> {
    type Item = Option<Level>;

    fn next(&mut self) -> Option<Self::Item> {
        let at = self.next;
        if at > self.windows.each.len() {
            return None;
        }
        self.next += 1;
        let found = self.level(at);
        if let Some((level, fit)) = &found
            && at < self.windows.each.len()
        {
            self.learn(at, level, fit);
        }
        Some(found.map(|(level, _)| level))
    }
}

/// The level of the window `at`, predicted from the windows before it; `None` if there is not enough history for any
/// rule.
///
/// Its dispersion is learned only from the windows that the level is learned from. [`Levels`](crate::Levels) judges
/// many windows of a stream. It is faster, and also uses how much all earlier windows vary, which makes fewer false
/// alarms.
#[must_use]
pub fn level(stream: &Stream<'_>, at: usize, season: &Season) -> Option<Level> {
    let mut sample = Sample::default();
    let basis = choose(&mut sample, stream, at, season)?;
    let (windows, is_rate) = (sample.gather(stream), stream.wholes.is_some());
    let fit = fit(
        &windows,
        &mut sample,
        &Noise::fading(1),
        is_rate,
        &mut Bench::default(),
    );
    Some(fit.level(basis, sample.windows, is_rate))
}
