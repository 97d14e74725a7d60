//! Results for people and programs: tables, JSON, CSV, HTML pages.

pub mod act;
mod cells;
pub mod crash;
pub mod csv;
pub mod decide;
pub mod fio;
pub mod fit;
mod guests;
mod over_time;
pub mod page;
mod phases;
pub mod prove;
mod rebuilds;
pub mod replay;
pub mod reproduce;
pub mod sheets;
