//! A client of NBD inside TLS that speaks well, badly, or stops in the middle of a record.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::tls::nbd_tls(bytes));
