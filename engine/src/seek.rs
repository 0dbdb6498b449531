//! Searches a sorted list.

/// The first position from `from` on for which `is_less` returns `false`, or `len`. It searches in
/// steps that double, so the time grows with the distance to the result, not with `len`.
pub(crate) fn seek(len: usize, from: usize, is_less: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut stride) = (from, 1);
    while low + stride <= len && is_less(low + stride - 1) {
        low += stride;
        stride *= 2;
    }
    let mut high = len.min(low + stride - 1);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_less(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}
