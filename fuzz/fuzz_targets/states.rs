//! Ledgers, outboxes, and the states of follow and check.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| tallyfold_fuzz::states(data));
