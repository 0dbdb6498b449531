//! Settings with a fixed list of names in a rules file.

tallyfold::names! {
    /// How bad a finding is.
    pub enum Severity {
        /// Good to know.
        Info = "info",
        /// Somebody should look at it in working hours.
        Warning = "warning",
        /// Somebody should look at it now.
        Critical = "critical",
    }
}

tallyfold::names! {
    /// Which deviations from the baseline are bad.
    pub enum Side {
        /// Both.
        Both = "both",
        /// More than usual.
        High = "high",
        /// Less than usual.
        Low = "low",
    }
}
