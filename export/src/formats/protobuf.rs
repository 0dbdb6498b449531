//! The functions that all protobuf formats share.

use prost::Message;

/// Appends a message. Consecutive messages of one type are read as one message, whose lists have the elements of all of them.
pub(crate) fn add(message: &impl Message, out: &mut Vec<u8>) {
    // Encoding fails only if the buffer is full, and a vector grows.
    _ = message.encode(out);
}
