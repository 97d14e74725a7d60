//! Logs of recorded drives, and those of dm-log-writes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::crashes::log(bytes));
