//! Values of dimensions in every text format that is read back.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::exports(data));
