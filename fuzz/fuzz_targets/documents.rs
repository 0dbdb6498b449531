//! Documents that the bytes choose, and damaged ones.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::documents(data));
