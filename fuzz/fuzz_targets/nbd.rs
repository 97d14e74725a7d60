//! A client of NBD that sends anything.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::live::nbd(bytes));
