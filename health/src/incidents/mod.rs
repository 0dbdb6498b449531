//! Findings about the same incident, as one incident: a receiver of alerts gets one message for all of them.
//!
//! - `finding` is what a rule has found about a group of events.
//! - `incident` is an incident with its parts, its headline and its history.
//! - `place` is which events a finding is about, and what two findings have in common.
//! - `overlap` decides whether a finding is about an incident.
//! - `follow` takes incidents from one check to the next.

pub(crate) mod finding;
pub(crate) mod follow;
pub(crate) mod incident;
pub(crate) mod overlap;
pub(crate) mod place;
#[cfg(test)]
mod tests;
