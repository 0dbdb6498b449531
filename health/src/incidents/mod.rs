//! Combines findings about the same problem into one incident, so that a receiver of alerts gets one alert for all of them.
//!
//! - `finding` defines a finding: what a rule has found about a group of events.
//! - `incident` defines an incident, with its parts, its headline and its history. It also compares the events of two
//!   findings.
//! - `follow` continues incidents from one check to the next. It decides which incident a finding belongs to.

pub(crate) mod finding;
pub(crate) mod follow;
pub(crate) mod incident;
#[cfg(test)]
mod tests;
