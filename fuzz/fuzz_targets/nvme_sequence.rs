//! Sequences of messages over several NVMe/TCP connections.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::nvme::sequence(bytes));
