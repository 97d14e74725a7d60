//! Configuration files of ACT: read, and what is read run for a moment on a small drive.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::act_config(bytes));
