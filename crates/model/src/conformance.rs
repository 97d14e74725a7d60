//! The laws of [`crate::device::Device`] as one suite that every device calls in one line.
