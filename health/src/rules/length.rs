//! Lengths of time, such as `6h`.

/// The longest length, in seconds: ten years.
const MOST: u64 = 10 * 366 * 86_400;

/// Reads digits and one of `s`, `m`, `h`, `d` and `w`, as seconds: from one second to ten years.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let unit = match text.bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3_600,
        b'd' => 86_400,
        b'w' => 604_800,
        _ => return None,
    };
    let digits = &text[..text.len() - 1];
    // Rust's parser accepts a sign, which a length must not have.
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
    count
        .checked_mul(unit)
        .filter(|length| (1..=MOST).contains(length))
}
