//! The state file beside a drive's data.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::live::store_state(bytes));
