//! Input and output of text: problems with their places, TOML tables, quantities with units, significant digits,
//! tables and sentences that fit a terminal.

pub mod bounded;
pub mod digits;
pub mod foreign;
pub mod problem;
pub mod quantity;
pub mod terminal;
pub mod toml;
pub mod words;
