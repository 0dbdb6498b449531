//! Events that a test or a demo adds to the sandbox.

tallyfold::names! {
    /// The outcome of an event (service reference 2.3).
    pub enum Outcome {
        /// It was delivered.
        Success = "success",
        /// It was not sent due to an error.
        Errors = "errors",
        /// It was filtered from the stream.
        Filtered = "filtered",
    }
}

tallyfold::options! {
    /// `count` equal events to store.
    #[derive(Clone, Debug)]
    pub struct SandboxEvent {
        /// When they happened, as ISO 8601 with `Z` or an offset from UTC.
        timestamp: String [Instant],
        /// Their outcome.
        outcome: Outcome,
        /// The name of the event.
        event_name: String,
        /// The write key of their source.
        write_key: String,
        /// The integration that they were for.
        integration: String,
        /// Why they were filtered.
        reason: String = String::new(),
        /// How many events to store.
        count: u64 = 1,
    }
}
