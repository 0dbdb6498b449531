//! The options for reading any result.

use super::tolerate::Tolerate;
use crate::wire::limits::Limits;

/// The options for reading any result.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadOptions {
    pub(crate) limits: Limits,
    pub(crate) tolerate: Tolerate,
    pub(crate) hash_seed: u64,
}
