//! Decides which faults affect a request, and applies them to its response.

use std::mem::discriminant;

use chrono::DateTime;
use tallyfold::Now;

use crate::endpoint::SandboxEndpoint;
use crate::fault::{Fault, FaultEffect};
use crate::response::SandboxResponse;

/// The active faults, each with the number of requests that it has matched.
#[derive(Default)]
pub(crate) struct Faults(Vec<(Fault, u64)>);

impl Faults {
    pub(crate) fn add(&mut self, fault: Fault) {
        self.0.push((fault, 0));
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the faults of this request, and removes those that happen only once.
    pub(crate) fn due(&mut self, endpoint: SandboxEndpoint) -> Due {
        let mut due = Due(Vec::new());
        self.0.retain_mut(|(fault, matched)| {
            let elsewhere = fault.endpoint.is_some_and(|only| only != endpoint);
            if elsewhere || !fault.effect.fits(endpoint) {
                return true;
            }
            *matched += 1;
            match fault.every {
                None => !due.take(&fault.effect),
                Some(every) => {
                    if *matched % every == 0 {
                        due.take(&fault.effect);
                    }
                    true
                }
            }
        });
        due
    }
}

/// The faults of one request: at most one of each kind.
pub(crate) struct Due(Vec<FaultEffect>);

impl Due {
    /// Adds a fault, unless the request already has one of this kind. Returns whether it was added.
    fn take(&mut self, effect: &FaultEffect) -> bool {
        let free = self.0.iter().all(|other| discriminant(other) != discriminant(effect));
        if free {
            self.0.push(effect.clone());
        }
        free
    }

    pub(crate) fn revokes_tokens(&self) -> bool {
        self.0.contains(&FaultEffect::RevokeToken)
    }

    /// What is added to `totalDelivered`.
    pub(crate) fn excess(&self) -> u64 {
        let amount = |effect: &FaultEffect| match effect {
            FaultEffect::WrongTotal { amount } => Some(*amount),
            _ => None,
        };
        self.0.iter().find_map(amount).unwrap_or(0)
    }

    /// The whole response, if a fault replaces it.
    pub(crate) fn answer(&self) -> Option<SandboxResponse> {
        let (status, retry_after) = self.0.iter().find_map(|effect| match effect {
            FaultEffect::Status { status, retry_after } => Some((*status, retry_after)),
            _ => None,
        })?;
        let mut response =
            SandboxResponse::refusal(status, "injected_fault", "a fault of the test");
        if matches!(status, 301 | 302 | 303 | 307 | 308) {
            response = response.with_header("location", "/moved");
        }
        if let Some(text) = retry_after {
            response = response.with_header("retry-after", text);
        }
        // HTTP allows no body with these statuses, and some HTTP libraries refuse to build such a response.
        if matches!(status, 204 | 205 | 304) {
            response.body.clear();
        }
        Some(response)
    }

    /// Applies the faults to the finished response. A cut counts bytes of the body that is actually sent.
    pub(crate) fn apply(self, mut response: SandboxResponse, now: Now) -> SandboxResponse {
        for effect in self.0 {
            match effect {
                FaultEffect::Delay { milliseconds } => response.delay_ms = milliseconds,
                FaultEffect::Truncate { bytes } => {
                    response.cut_at = Some(bytes.try_into().unwrap_or(u32::MAX))
                }
                FaultEffect::ContentType { content_type } => {
                    response = response.with_header("content-type", &content_type);
                }
                FaultEffect::Date { milliseconds } => {
                    let behind_ms = now.unix_ms.saturating_sub(milliseconds.into());
                    if let Some(instant) = DateTime::from_timestamp_millis(behind_ms) {
                        let date = instant.format("%a, %d %b %Y %H:%M:%S GMT").to_string();
                        response = response.with_header("date", &date);
                    }
                }
                FaultEffect::Body { body } => response.body = body.into_bytes(),
                _ => {}
            }
        }
        response.cut_at = response.cut_at.filter(|bytes| (*bytes as usize) < response.body.len());
        response
    }
}
