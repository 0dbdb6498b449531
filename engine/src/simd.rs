//! More of the processor than every one of its kind has, and blocks of bytes in registers.
//!
//! All unsafe code of the project is here. The compiler wants to be promised that the processor has
//! what a function is compiled for: SSE2 is in every x86-64 processor, by the definition of the
//! architecture, and whether there is AVX2 is looked up right before.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "a promise about the processor can't be made otherwise"
    )
)]

/// Work that takes less time where the compiler may use more of the processor.
pub(crate) trait Work {
    type Output;

    /// Does the work. To be `#[inline(always)]`, as what it calls often is: what is compiled apart
    /// is compiled for the least processor.
    fn run(self) -> Self::Output;
}

/// Does the work with what the processor has.
#[inline]
pub(crate) fn at_best<W: Work>(work: W) -> W::Output {
    #[cfg(target_arch = "x86_64")]
    if has_avx2() {
        // SAFETY: it was looked up.
        return unsafe { with_avx2(work) };
    }
    work.run()
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn has_avx2() -> bool {
    use std::arch::is_x86_feature_detected;
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2,lzcnt,popcnt")]
fn with_avx2<W: Work>(work: W) -> W::Output {
    work.run()
}

#[cfg(target_arch = "x86_64")]
pub(crate) mod sse2 {
    use core::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_cmplt_epi8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x,
        _mm_set1_epi8,
    };

    /// A bit for each byte that is a quote, a backslash, a control character or not ASCII.
    #[inline]
    pub(crate) fn ends_of_text(block: [u8; 32]) -> u32 {
        // SAFETY: this is x86-64, of which SSE2 is a part.
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
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"' as i8));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\' as i8));
        // With a sign, what is not ASCII is below zero.
        let others = _mm_cmplt_epi8(bytes, _mm_set1_epi8(0x20));
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), others))
    }
}
