//! Control of the false discovery rate: with many groups, some look bad by chance.

use super::judging::Sink;
use crate::stats::discovery::discovery_limit;

/// Keeps a window from firing unless it is bad enough for the number of groups that were judged in the same slot.
pub(super) fn discover(sink: &mut Sink, rate: f64) {
    let is_tested = |place: &usize| {
        let odd = &sink.odds[*place];
        odd.fires && !odd.at_once
    };
    let mut order: Vec<usize> = (0..sink.odds.len()).filter(is_tested).collect();
    order.sort_unstable_by_key(|place| (sink.odds[*place].slot, *place));
    let mut rest = order.as_slice();
    while let Some(first) = rest.first() {
        let slot = sink.odds[*first].slot;
        let length = rest.partition_point(|place| sink.odds[*place].slot == slot);
        let (same, later) = rest.split_at(length);
        let ln_p: Vec<f64> = same
            .iter()
            .filter_map(|place| sink.odds[*place].ln_p)
            .collect();
        let limit = discovery_limit(&ln_p, sink.tests_of(slot as usize), rate);
        for place in same {
            let odd = &mut sink.odds[*place];
            odd.fires = odd.ln_p.is_some_and(|ln_p| ln_p <= limit);
        }
        rest = later;
    }
}
