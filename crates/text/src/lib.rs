//! What people write and what they read: problems with their places, tables of TOML, quantities with units, digits that
//! say enough, tables and sentences that fit a terminal.

pub mod bounded;
pub mod digits;
pub mod foreign;
pub mod problem;
pub mod quantity;
pub mod terminal;
pub mod toml;
pub mod words;
