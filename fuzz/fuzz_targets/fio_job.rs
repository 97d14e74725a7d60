//! fio job files: read, and what is read run on a small drive and printed.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::fio_job(bytes));
