//! Messages to other systems, and the rules by which they are sent.
//!
//! [`Push`] is the state machine. It takes messages from a [`Source`], and decides what to send next and what a
//! response means. [`Delivery`] describes the system that receives the messages, as data.

mod delivery;
mod options;
mod push;

pub use self::delivery::{Answer, DATAGRAMS, Delivery, HTTP, Partly, Source, Transport};
pub use self::options::{Guarantee, PushOptions, TargetHeaders};
pub use self::push::{Message, Push, PushReport, PushStep, Rejected};
pub use crate::calls::broken::{UNCONNECTED, broken};
pub use crate::wire::headers::named;
