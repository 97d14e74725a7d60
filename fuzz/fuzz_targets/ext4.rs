//! Images of file systems: the readers of ext4 and XFS.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::crashes::file_system(bytes));
