//! Values of dimensions, in every text format that can be read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::exports(data));
