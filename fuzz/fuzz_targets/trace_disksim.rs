//! Traces named as `disksim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("disksim"), bytes));
