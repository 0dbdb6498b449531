//! How a stream is scanned.

/// How a stream is scanned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScanOptions {
    /// Windows in a season: 52 of a week are a year, 7 of a day are a week. 0 or 1: there is no season.
    pub period: usize,
    /// Waves of a season, the first with one cycle; at most 3. They are used from two seasons of history on.
    pub waves: usize,
    /// How many windows back to learn from. From three seasons on there is a trend.
    pub history: usize,
    /// How many of the last windows teach nothing: they may belong to the incident.
    pub guard: usize,
    /// The probability at which the sum of 1, 2 or 3 windows alarms.
    pub limits: [f64; 3],
    /// Windows of the past that are less probable than this teach the less the less probable they are.
    pub incident: f64,
    /// No alarm where fewer events came and fewer were expected.
    pub least: u64,
}

impl ScanOptions {
    /// Weeks of a year: the last five years teach. The sum of two weeks has the highest limit, since incidents seldom end with
    /// the week in which they begin. `make grade-detect` grades these options.
    #[must_use]
    pub const fn weeks() -> Self {
        Self {
            period: 52,
            waves: 1,
            history: 263,
            guard: 5,
            limits: [0.004, 0.013, 0.004],
            incident: 0.01,
            least: 5,
        }
    }
}
