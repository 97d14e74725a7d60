//! Results as people and programs read them.

pub mod sheets;
