//! Traces named as `tencent`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(Some("tencent"), bytes));
