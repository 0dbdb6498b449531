//! Compressed bodies.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::gunzip(data));
