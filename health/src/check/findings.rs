//! The findings of a rule, as they are told.

use tallyfold::Timestamp;

use super::causes::explanation;
use super::course::Course;
use super::finding::Finding;
use super::grid::Grid;
use super::slots::Slots;
use super::state::Live;
use super::told::{Telling, told};
use crate::rules::rule::Rule;
use crate::rules::set::Rules;

/// The maximum number of findings of a rule that are explained, because an explanation takes time.
const MOST_EXPLAINED: usize = 200;

/// The findings of a rule.
pub(super) struct Findings<'t> {
    rules: &'t Rules,
    rule: &'t Rule,
    grid: &'t Grid<'t>,
    slots: &'t Slots,
    /// The instant for which silences are looked up.
    pub(super) at: Timestamp,
    explained: usize,
    /// Those so far.
    pub(super) all: Vec<Finding>,
}

impl<'t> Findings<'t> {
    /// None yet.
    pub(super) fn new(
        (rules, rule): (&'t Rules, &'t Rule),
        grid: &'t Grid<'t>,
        slots: &'t Slots,
        at: Timestamp,
    ) -> Self {
        Self {
            rules,
            rule,
            grid,
            slots,
            at,
            explained: 0,
            all: Vec::new(),
        }
    }

    /// Reports a finding that was resolved, unless it fires again.
    pub(super) fn take_resolved(&mut self, group: Option<usize>, course: &Course) {
        let is_firing = course
            .live
            .as_ref()
            .is_some_and(|live| live.fired.is_some());
        if let (Some((live, end)), false) = (course.resolved.last(), is_firing) {
            self.tell(group, live, Some(*end), false);
        }
    }

    /// Reports a finding that is pending or firing. One from counts that may still change is marked as provisional.
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

    /// Reports one.
    pub(super) fn tell(
        &mut self,
        group: Option<usize>,
        live: &Live,
        resolved: Option<Timestamp>,
        provisional: bool,
    ) {
        let mut cause = None;
        if let (Some(group), true) = (group, self.explained < MOST_EXPLAINED) {
            self.explained += 1;
            cause = explanation(self.rule, self.grid, self.slots, group, live);
        }
        let telling = Telling {
            rules: self.rules,
            rule: self.rule,
            at: self.at,
            provisional,
        };
        self.all.push(told(&telling, live, resolved, cause));
    }
}
