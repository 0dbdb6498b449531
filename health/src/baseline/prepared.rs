//! A stream as floats, with what is needed of each window many times.

/// A stream as floats. The powers of 2/3 are those of Anscombe's residuals.
pub(crate) struct Prepared {
    pub(crate) parts: Vec<f64>,
    pub(crate) part_roots: Vec<f64>,
    /// Of a volume, 1.
    pub(crate) wholes: Vec<f64>,
    pub(crate) whole_roots: Vec<f64>,
    /// The square of the part over the whole.
    pub(crate) squares: Vec<f64>,
    /// 1 where the window teaches: it is known, and of a rate its whole is not 0. Otherwise 0.
    pub(crate) teaches: Vec<f64>,
    pub(crate) is_rate: bool,
}

impl Prepared {
    /// Of the windows that teach, and none for each that does not.
    pub(crate) fn new(known: &[Option<(u64, u64)>], is_rate: bool) -> Self {
        let parts: Vec<f64> = known
            .iter()
            .map(|found| found.map_or(0.0, |(part, _)| part as f64))
            .collect();
        let wholes: Vec<f64> = known
            .iter()
            .map(|found| found.map_or(1.0, |(_, whole)| whole as f64))
            .collect();
        Self {
            teaches: known
                .iter()
                .map(|found| if found.is_some() { 1.0 } else { 0.0 })
                .collect(),
            part_roots: parts.iter().map(|&part| power_two_thirds(part)).collect(),
            whole_roots: if is_rate {
                wholes
                    .iter()
                    .map(|&whole| power_two_thirds(whole))
                    .collect()
            } else {
                wholes.clone()
            },
            squares: parts
                .iter()
                .zip(&wholes)
                .map(|(part, whole)| part * part / whole)
                .collect(),
            parts,
            wholes,
            is_rate,
        }
    }
}

/// `value` to the power of 2/3.
pub(crate) fn power_two_thirds(value: f64) -> f64 {
    let root = libm::cbrt(value);
    root * root
}
