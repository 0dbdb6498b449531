//! How a result is read, whatever it is about.

use super::tolerate::Tolerate;
use crate::wire::limits::Limits;

/// How a result is read, whatever it is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadOptions {
    pub(crate) limits: Limits,
    pub(crate) tolerate: Tolerate,
    pub(crate) hash_seed: u64,
}
