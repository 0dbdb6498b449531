//! The two analytics endpoints, by the counts that they return.

crate::names! {
    /// Which counts are requested: the two analytics endpoints (service reference 4.4 and 4.5).
    pub enum Metric {
        /// Delivery counts, which have every dimension.
        EventDelivery = "event_delivery",
        /// Ingestion counts, which have every dimension but `reason`.
        EventIngestion = "event_ingestion",
    }
}
