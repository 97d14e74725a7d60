//! SMART data as `drivelab life --smart` reads it: drives with figures that make sense, or a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::smart(bytes));
