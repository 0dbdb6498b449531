//! Events that a test or a demo adds to the sandbox.

tallyfold::names! {
    /// What became of an event (service reference 2.3).
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
    /// Events to store: `count` equal ones.
    #[derive(Clone, Debug)]
    pub struct SandboxEvent {
        /// When they happened, UTC ISO 8601.
        timestamp: String [Instant],
        /// What became of them.
        outcome: Outcome,
        /// The name of the event.
        event_name: String,
        /// The write key of their source.
        write_key: String,
        /// The integration that they were for.
        integration: String,
        /// Why they were filtered.
        reason: String = String::new(),
        /// How many.
        count: u64 = 1,
    }
}
