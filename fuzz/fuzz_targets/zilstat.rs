//! Text of `zilstat` or `zpool iostat` as `--zilstat` reads it: rates of a log, shares of writes, or a reason.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::zilstat(bytes));
