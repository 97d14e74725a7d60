//! Drives' and hosts' files: read or refused with a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::catalogue_file(bytes));
