//! Results as people and programs read them.

pub mod act;
pub mod csv;
pub mod fio;
pub mod fit;
pub mod page;
pub mod replay;
pub mod reproduce;
pub mod sheets;
