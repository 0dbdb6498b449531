//! A stream as floats, with what is needed of each window many times.

/// A window as floats. The powers of 2/3 are those of Anscombe's residuals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prepared {
    pub(crate) part: f64,
    pub(crate) part_root: f64,
    /// Of a volume, 1.
    pub(crate) whole: f64,
    pub(crate) whole_root: f64,
    /// The square of the part over the whole.
    pub(crate) square: f64,
    /// 1 where the window teaches: it is known, and of a rate its whole is not 0. Otherwise 0.
    pub(crate) teaches: f64,
}

impl Prepared {
    /// Of the part and the whole of a window that teaches, or of one that does not.
    pub(crate) fn new(known: Option<(u64, u64)>) -> Self {
        let (part, whole) = known.map_or((0.0, 1.0), |(part, whole)| (part as f64, whole as f64));
        Self {
            part,
            part_root: power_two_thirds(part),
            whole,
            whole_root: if whole == 1.0 {
                1.0
            } else {
                power_two_thirds(whole)
            },
            square: part * part / whole,
            teaches: if known.is_some() { 1.0 } else { 0.0 },
        }
    }
}

/// `value` to the power of 2/3.
pub(crate) fn power_two_thirds(value: f64) -> f64 {
    let root = libm::cbrt(value);
    root * root
}
