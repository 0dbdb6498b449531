//! Scans 32 bytes of text at once with SSE2, which every x86-64 processor has.
//!
//! All unsafe code of the project is here: the compiler requires a promise that the processor has
//! SSE2. By the definition of the architecture, every x86-64 processor has it.
#![expect(unsafe_code, reason = "a promise about the processor can't be made otherwise")]

use core::arch::x86_64::{
    _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
    _mm_xor_si128,
};

/// A mask with a bit for each byte that is a quote, a backslash, a control character or not ASCII.
#[inline]
pub(crate) fn ends_of_text(block: [u8; 32]) -> u32 {
    // SAFETY: this is x86-64, which includes SSE2.
    unsafe { in_registers(block) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn in_registers(block: [u8; 32]) -> u32 {
    let (halves, _) = block.as_chunks();
    let [low, high] = [halves[0], halves[1]].map(|half| ends(half) as u32);
    high << 16 | low
}

#[inline]
#[target_feature(enable = "sse2")]
fn ends(half: [u8; 16]) -> i32 {
    let both = u128::from_le_bytes(half);
    let bytes = _mm_set_epi64x((both >> 64) as i64, both as i64);
    let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
    // With this bit flipped, a quote comes right after the control characters and a space does not.
    // As signed bytes, those that are not ASCII are below zero.
    let flipped = _mm_xor_si128(bytes, _mm_set1_epi8(b'"' as i8 ^ 0x20));
    let others = _mm_cmplt_epi8(flipped, _mm_set1_epi8(0x21));
    _mm_movemask_epi8(_mm_or_si128(backslash, others))
}
