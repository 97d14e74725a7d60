//! Pools as expressions: read or refused with a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::pool_expression(bytes));
