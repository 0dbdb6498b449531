//! Any bytes as a body, with choices before them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::fold(data));
