//! Studies: many runs, and what they say about drives.
//!
//! [`review`] puts drives side by side, [`ledger`] published figures beside runs, [`fit`] finds parameters from
//! measurements. How results are shown is another crate's business (`report`).

pub mod fit;
pub mod ledger;
pub mod review;
