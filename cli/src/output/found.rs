//! What `check` has found, before it is written in any format.

use std::path::PathBuf;

use tallyfold::{Timestamp, Window};
use tallyfold_health::{Check, Finding, Replay, Unjudged};

use super::report::Missing;
use crate::failure::{Exit, Failure};

/// What was found in all clusters.
#[derive(Debug)]
pub(crate) struct Found {
    /// When it was checked.
    pub(crate) at: Timestamp,
    /// The range of a replay.
    pub(crate) replay: Option<Window>,
    /// The file with the rules; `None` for the standard rules.
    pub(crate) rules: Option<PathBuf>,
    /// What was found, in the order of the configuration.
    pub(crate) parts: Vec<FoundPart>,
    /// The clusters of which nothing is known.
    pub(crate) missing: Vec<Missing>,
    /// Whether the clusters have names.
    pub(crate) is_named: bool,
}

/// What was found in one cluster.
#[derive(Debug)]
pub(crate) struct FoundPart {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// The labels that the configuration gives it.
    pub(crate) labels: Vec<(String, String)>,
    /// What was found.
    pub(crate) verdict: Verdict,
    /// The time that could not be read.
    pub(crate) gaps: Vec<Window>,
    /// Why not.
    pub(crate) failure: Option<Failure>,
    /// Whether the service was asked and gave nothing.
    pub(crate) is_unanswered: bool,
}

/// What rules have found.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Now.
    Check(Check),
    /// In a range.
    Replay(Replay),
}

impl FoundPart {
    /// What was found.
    pub(crate) fn findings(&self) -> &[Finding] {
        match &self.verdict {
            Verdict::Check(check) => &check.findings,
            Verdict::Replay(replay) => &replay.findings,
        }
    }

    /// The rules that could not judge anything.
    pub(crate) fn unjudged(&self) -> &[Unjudged] {
        match &self.verdict {
            Verdict::Check(check) => &check.unjudged,
            Verdict::Replay(replay) => &replay.unjudged,
        }
    }

    /// How many windows of groups were judged.
    pub(crate) fn judged(&self) -> u64 {
        match &self.verdict {
            Verdict::Check(check) => check.judged,
            Verdict::Replay(replay) => replay.judged,
        }
    }

    /// How many findings were left out, because there are too many.
    pub(crate) fn left_out(&self) -> u64 {
        match &self.verdict {
            Verdict::Check(check) => check.left_out,
            Verdict::Replay(replay) => replay.left_out,
        }
    }

    /// Whether nothing is wrong. A replay looks at the past, and is always well.
    pub(crate) fn is_healthy(&self) -> bool {
        match &self.verdict {
            Verdict::Check(check) => check.healthy,
            Verdict::Replay(_) => true,
        }
    }
}

impl Found {
    /// The exit code by what was found. (A receiver that refuses the alerts makes it another one.)
    pub(crate) fn exit(&self) -> Exit {
        if self.parts.iter().any(|part| !part.is_healthy()) {
            return Exit::Unhealthy;
        }
        let unanswered = self.parts.iter().filter(|part| part.is_unanswered);
        let unanswered = unanswered.filter_map(|part| part.failure.as_ref());
        let failed = unanswered.chain(self.missing.iter().map(|missing| &missing.failure));
        let failed: Vec<&Failure> = failed.collect();
        let has_gaps = self.parts.iter().any(|part| !part.gaps.is_empty());
        match failed.first() {
            Some(first) if failed.len() == self.parts.len() + self.missing.len() => first.exit,
            Some(_) => Exit::Missing,
            None if has_gaps => Exit::Missing,
            None => Exit::Fine,
        }
    }
}
