//! Traces named as `vscsi`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("vscsi"), bytes));
