//! What is usual for a group at a time of day, and how far its counts deviate from this level without an incident.

pub(crate) mod band;
pub(crate) mod calendar;
pub(crate) mod mix;
pub(crate) mod noise;
pub(crate) mod past;
pub(crate) mod zone;
