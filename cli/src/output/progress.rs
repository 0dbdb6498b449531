//! Progress of long-running commands: a bar for each cluster, on a terminal only.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::stderr::Stderr;

/// A bar for each cluster, on a terminal only.
pub(crate) struct Bars(MultiProgress);

impl Bars {
    /// No bar yet.
    pub(crate) fn new(stderr: &Stderr) -> Self {
        let target = match stderr.shows_progress() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        Self(MultiProgress::with_draw_target(target))
    }

    /// The bar of a cluster.
    pub(crate) fn add(&self, cluster: &str) -> ProgressBar {
        let style = ProgressStyle::with_template(
            "{prefix} {wide_bar} {pos}/{len} windows, {eta} left {msg}",
        );
        let bar = self.0.add(ProgressBar::no_length());
        bar.set_prefix(cluster.to_owned());
        match style {
            Ok(style) => bar.with_style(style),
            Err(_) => bar,
        }
    }

    /// Removes all bars.
    pub(crate) fn clear(&self) {
        // A leftover line of a bar does no harm.
        let _ = self.0.clear();
    }
}

/// Shows the progress, the number of failed windows, and the wait before the next attempt.
pub(crate) fn show(
    bar: &ProgressBar,
    (planned, done, failed): (u32, u32, u32),
    waiting_ms: Option<u32>,
) {
    bar.set_length(planned.into());
    bar.set_position(done.into());
    let mut message = String::new();
    if failed > 0 {
        message = format!("{failed} failed");
    }
    if let Some(ms) = waiting_ms {
        message = format!(
            "the service does not answer, next try in {} s",
            ms.div_ceil(1000)
        );
    }
    bar.set_message(message);
}
