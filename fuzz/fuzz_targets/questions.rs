//! Requests of web apps.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::questions(data));
