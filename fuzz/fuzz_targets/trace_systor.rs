//! Traces named as `systor`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("systor"), bytes));
