//! The closed lists of names that a rules file uses.

tallyfold::names! {
    /// What a rule looks for.
    pub enum RuleKind {
        /// A count or a share above or below a fixed limit.
        Threshold = "threshold",
        /// A share that is not as in the same windows of earlier weeks.
        Rate = "rate",
        /// A count that is not as in the same windows of earlier weeks.
        Volume = "volume",
        /// No event at all where there usually are some.
        Silent = "silent",
        /// A group that has always been there and is gone.
        Vanished = "vanished",
        /// A group that has never been there.
        New = "new",
        /// Errors that use up a budget too fast.
        Budget = "budget",
        /// Events that came in, of which none was delivered, failed or filtered.
        Undelivered = "undelivered",
        /// Reported totals that are not the sums of their rows.
        Reconciliation = "reconciliation",
    }
}

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
    /// Which deviations from the baseline count.
    pub enum Side {
        /// Both.
        Both = "both",
        /// More than usual.
        High = "high",
        /// Less than usual.
        Low = "low",
    }
}
