//! Traces named as `iolog`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("iolog"), bytes));
