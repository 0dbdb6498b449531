//! The level of a single window.

use crate::baseline::choice::choose;
pub(crate) use crate::baseline::expectation::Level;
use crate::baseline::fit::{Bench, fit};
use crate::baseline::noise::Noise;
use crate::baseline::sample::Sample;
use crate::baseline::season::Season;
use crate::baseline::stream::Stream;

/// What is expected of the window `at`, by the windows before it. None where there is not enough history for any rule.
///
/// Its dispersion is learned from the windows of the level only. [`Levels`](crate::Levels) judges many windows of a stream; it
/// is faster, and joins that with how much all windows before vary, which makes fewer false alarms.
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
