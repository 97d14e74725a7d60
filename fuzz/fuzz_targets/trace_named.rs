//! Traces named as each format in turn, so that every reader meets what is meant for another.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    for format in workload::trace::FORMATS {
        fuzz::trace(Some(format), bytes);
    }
});
