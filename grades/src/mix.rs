//! The generator of all random numbers of the grades. It gives the same numbers on every platform.

/// The increment of SplitMix64's state.
pub(crate) const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// One step of SplitMix64 (Steele, Lea and Flood 2014): every bit of the argument changes every bit of the result.
pub(crate) const fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(STEP);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::{STEP, mix};

    /// The first numbers of the published generator with the seed 0.
    #[test]
    fn numbers_are_those_of_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(STEP), 0x6e78_9e6a_a1b9_65f4);
    }
}
