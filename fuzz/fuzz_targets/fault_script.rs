//! Scripts of faults.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::live::fault_script(bytes));
