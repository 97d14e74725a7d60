//! A guest that does anything to the memory it shares and says anything on the socket.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::vhost_user::guest(bytes));
