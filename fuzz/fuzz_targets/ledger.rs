//! Ledger files: read or refused with a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::ledger(bytes));
