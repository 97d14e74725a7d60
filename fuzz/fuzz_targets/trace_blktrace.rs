//! Traces named as `blktrace`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("blktrace"), bytes));
