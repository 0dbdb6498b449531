//! Which window is read next.

use super::store::Store;
use crate::plan::Plan;
use crate::window::Window;

/// The windows that are still to be started.
pub(super) struct Queue {
    plan: Plan,
    /// How many of the plan's windows have been looked at.
    position: u64,
    /// What comes before the plan's next window; the last one first.
    ahead: Vec<Window>,
    /// How many are left, counted when the first one is taken.
    left: Option<u64>,
    /// The time of two windows that a probe reads in place of the queue.
    probed: Option<Window>,
}

impl Queue {
    pub(super) fn new(plan: Plan) -> Self {
        Self {
            plan,
            position: 0,
            ahead: Vec::new(),
            left: None,
            probed: None,
        }
    }

    /// Whether a window has been taken.
    pub(super) fn has_started(&self) -> bool {
        self.left.is_some()
    }

    /// How many windows are still to be started.
    pub(super) fn left(&self, store: &Store) -> u64 {
        self.left.unwrap_or_else(|| {
            if store.was_empty_before() {
                return self.plan.len();
            }
            let gaps = |window| store.gaps_before(window).len() as u64;
            self.plan.windows().map(gaps).sum()
        })
    }

    /// Takes the next window.
    pub(super) fn take(&mut self, store: &Store) -> Option<Window> {
        let left = self.left(store);
        self.left = Some(left);
        let window = loop {
            if let Some(window) = self.ahead.pop() {
                break window;
            }
            let window = self.plan.window(self.position)?;
            self.position += 1;
            if !self.probed.is_some_and(|probed| probed.contains(window)) {
                self.ahead = store.gaps_before(window);
                self.ahead.reverse();
            }
        };
        self.left = Some(left.saturating_sub(1));
        Some(window)
    }

    /// Puts windows first in the queue, in their order.
    pub(super) fn put_first<const N: usize>(&mut self, windows: [Window; N]) {
        self.left = self.left.map(|left| left + N as u64);
        self.ahead.extend(windows.into_iter().rev());
    }

    /// Takes the first two windows out that meet, can be probed, and of which nothing is there.
    pub(super) fn take_pair(
        &mut self,
        store: &Store,
        can_be_probed: impl Fn(Window) -> bool,
    ) -> Option<[Window; 2]> {
        let left = self.left(store);
        let is_free =
            |window: &Window| can_be_probed(*window) && store.overlapping(*window).is_empty();
        let mut last: Option<Window> = None;
        for window in self.plan.windows() {
            match last.replace(window).filter(is_free) {
                Some(before) if before.end() == window.start() && is_free(&window) => {
                    self.probed = Window::new(before.start(), window.end()).ok();
                    self.left = Some(left.saturating_sub(2));
                    return Some([before, window]);
                }
                _ => {}
            }
        }
        None
    }
}
