//! The destination of a request.

crate::names! {
    /// The destination of a request: a token endpoint, or an endpoint of an API.
    pub enum Target {
        /// A token endpoint (service reference 4.1 and 4.3).
        Token = "token",
        /// Event delivery metrics (service reference 4.4).
        EventDelivery = "event_delivery",
        /// Event ingestion metrics (service reference 4.5).
        EventIngestion = "event_ingestion",
        /// The audit-log listing (service reference 4.2).
        AuditLogs = "audit_logs",
    }
}
