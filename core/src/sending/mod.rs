//! Messages to other systems, and the rules by which they are sent.
//!
//! [`Push`] is the machine: it takes messages from a [`Source`], and decides what is sent next and what an answer means.
//! [`Delivery`] is what is known of the system that gets the messages, as data.

mod delivery;
mod options;
mod push;

pub use self::delivery::{DATAGRAMS, Delivery, HTTP, Partly, Source, Way};
pub use self::options::{Guarantee, PushOptions, TargetHeaders};
pub use self::push::{Message, Push, PushReport, PushStep, Rejected};
pub use crate::calls::broken::broken;
pub use crate::wire::headers::named;
