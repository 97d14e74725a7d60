//! Devices made of devices.

pub mod raid0;
