//! How people write and read small values, the same in every part of this project: lengths of time, numbers, shares,
//! names, and values that are not safe to display.

mod duration;
mod fraction;
mod harmless;
mod names;
mod numbers;

pub use duration::{duration, milliseconds, roughly};
pub use fraction::Fraction;
pub use harmless::{escape, harmless, is_unseen};
pub use names::{list, nearest};
pub use numbers::{grouped, signed, whole};
