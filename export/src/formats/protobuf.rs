//! What formats of protobuf have in common.

use prost::Message;

/// Adds a message. Messages of one type that follow each other are read as one message, whose lists have the elements
/// of all of them.
pub(crate) fn add(message: &impl Message, out: &mut Vec<u8>) {
    // Only a buffer that is full refuses a message, and a vector grows.
    _ = message.encode(out);
}
