//! Escapes the bytes of a value that have a special meaning in a format.

/// A set of bytes.
pub(crate) struct Bytes([bool; 256]);

impl Bytes {
    /// The set of these bytes.
    pub(crate) const fn of(bytes: &[u8]) -> Self {
        Self([false; 256]).with(bytes, true)
    }

    /// The set of these bytes and of the ASCII control characters.
    pub(crate) const fn of_controls_and(bytes: &[u8]) -> Self {
        let mut set = Self::of(bytes);
        let mut byte = 0;
        while byte < 32 {
            set.0[byte] = true;
            byte += 1;
        }
        set.0[127] = true;
        set
    }

    /// The set of all bytes except these.
    pub(crate) const fn all_but(bytes: &[u8]) -> Self {
        Self([true; 256]).with(bytes, false)
    }

    const fn with(mut self, bytes: &[u8], is_in: bool) -> Self {
        let mut position = 0;
        while position < bytes.len() {
            self.0[bytes[position] as usize] = is_in;
            position += 1;
        }
        self
    }

    pub(crate) const fn has(&self, byte: u8) -> bool {
        self.0[byte as usize]
    }
}

/// Writes a value. For each byte in the set, calls `write` instead of copying the byte.
pub(crate) fn escape(
    value: &str,
    set: &Bytes,
    out: &mut Vec<u8>,
    mut write: impl FnMut(u8, &mut Vec<u8>),
) {
    let mut rest = value.as_bytes();
    while let Some(place) = rest.iter().position(|byte| set.has(*byte)) {
        out.extend_from_slice(&rest[..place]);
        write(rest[place], out);
        rest = &rest[place + 1..];
    }
    out.extend_from_slice(rest);
}

/// Writes a byte as `sign` and two hexadecimal digits. With the sign `%`, this is percent-encoding.
pub(crate) fn write_hex(sign: u8, byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let (high, low) = (byte as usize >> 4, byte as usize & 15);
    out.extend_from_slice(&[sign, DIGITS[high], DIGITS[low]]);
}

/// Writes a text as a JSON string.
pub(crate) fn write_json(text: &str, out: &mut Vec<u8>) {
    // Writing to a vector does not fail, and every text can be a JSON string.
    let _ = serde_json::to_writer(out, text);
}
