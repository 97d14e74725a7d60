//! fio's JSON as `drivelab fit` reads it: runs with figures that make sense, or a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::fio_results(bytes));
