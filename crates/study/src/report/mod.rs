//! Results as people and programs read them.

pub mod replay;
pub mod sheets;
