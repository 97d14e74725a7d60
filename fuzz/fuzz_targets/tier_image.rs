//! What stands on the members of a pool when it is recovered.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::tiers::tier_image(bytes));
