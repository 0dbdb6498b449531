//! Finds a place in what is sorted.

/// The first number from `from` on that is not less, or `len`. It searches in steps that double, so
/// that finding a few among many takes a time that grows with the few.
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
