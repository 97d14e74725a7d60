//! Traces named as `mqsim`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("mqsim"), bytes));
