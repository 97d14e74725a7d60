//! Traces whose format is told by content, plain or compressed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::trace(None, bytes));
