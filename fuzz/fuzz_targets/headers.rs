//! Headers of responses.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::headers(data));
