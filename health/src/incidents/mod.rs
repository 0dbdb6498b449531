//! Combines findings about the same problem into one incident, so that a receiver of alerts gets one message for all of them.
//!
//! - `finding` has the type of what a rule has found about a group of events.
//! - `incident` has the type of an incident, with its parts, its headline and its history. It compares which events two findings
//!   are about.
//! - `follow` continues incidents from one check to the next. It decides which incident a finding belongs to.

pub(crate) mod finding;
pub(crate) mod follow;
pub(crate) mod incident;
#[cfg(test)]
mod tests;
