//! Timestamps, windows and steps, in lines.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::timestamps(data));
