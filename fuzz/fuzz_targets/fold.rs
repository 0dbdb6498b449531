//! Any bytes as a body. The bytes before the body choose how it is read.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::fold(data));
