//! What formats of JSON have in common.

/// Writes a text as a string.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut written = 0;
    for (place, byte) in bytes.iter().enumerate() {
        if !matches!(byte, b'"' | b'\\' | ..b' ') {
            continue;
        }
        out.extend_from_slice(&bytes[written..place]);
        written = place + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', *byte]),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}
