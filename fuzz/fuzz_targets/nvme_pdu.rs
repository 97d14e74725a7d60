//! PDUs of NVMe/TCP.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::nvme::pdus(bytes));
