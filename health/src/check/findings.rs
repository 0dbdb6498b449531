//! The findings of a rule, as they are told.

use tallyfold::Timestamp;

use super::causes::explanation;
use super::course::Course;
use super::finding::Finding;
use super::state::Live;
use super::task::Task;
use super::told::{Telling, told};

/// The findings of a rule that are explained at most: it takes time.
const MOST_EXPLAINED: usize = 200;

/// The findings of a rule.
pub(super) struct Findings<'t, 'a> {
    task: &'t Task<'a>,
    /// The instant for which silences are looked up.
    pub(super) at: Timestamp,
    explained: usize,
    /// Those so far.
    pub(super) all: Vec<Finding>,
}

impl<'t, 'a> Findings<'t, 'a> {
    /// None yet.
    pub(super) fn new(task: &'t Task<'a>, at: Timestamp) -> Self {
        Self {
            task,
            at,
            explained: 0,
            all: Vec::new(),
        }
    }

    /// Tells what was resolved, unless it has come again.
    pub(super) fn take_resolved(&mut self, group: Option<usize>, course: &Course) {
        let is_firing = course
            .live
            .as_ref()
            .is_some_and(|live| live.fired.is_some());
        if let (Some((live, end)), false) = (course.resolved.last(), is_firing) {
            self.tell(group, live, Some(*end), false);
        }
    }

    /// Tells what is pending or firing. What is so only by counts that may still change is marked.
    pub(super) fn take_live(
        &mut self,
        group: Option<usize>,
        live: Option<&Live>,
        later: Option<Live>,
    ) {
        let is_firing = live.is_some_and(|live| live.fired.is_some());
        match later.filter(|later| !is_firing && Some(later) != live) {
            Some(later) => self.tell(group, &later, None, true),
            None => {
                if let Some(live) = live {
                    self.tell(group, live, None, false);
                }
            }
        }
    }

    /// Tells one.
    pub(super) fn tell(
        &mut self,
        group: Option<usize>,
        live: &Live,
        resolved: Option<Timestamp>,
        provisional: bool,
    ) {
        let Task {
            rules,
            rule,
            grid,
            slots,
            ..
        } = self.task;
        let mut cause = None;
        if let (Some(group), true) = (group, self.explained < MOST_EXPLAINED) {
            self.explained += 1;
            cause = explanation(rule, grid, slots, group, live);
        }
        let telling = Telling {
            rules,
            rule,
            at: self.at,
            provisional,
        };
        self.all.push(told(&telling, live, resolved, cause));
    }
}
