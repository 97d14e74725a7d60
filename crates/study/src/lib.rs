//! Studies: many runs, and what they say about drives.
//!
//! [`review`] puts drives side by side, [`ledger`] published figures beside runs, [`fit`] finds parameters from
//! measurements, [`prove`] tries whether a pool keeps its promise, [`decide`] answers a buyer's questions, [`sweep`] runs
//! scenarios by the thousand into a table, [`measure`] says which of fio's jobs a real drive is measured with, [`act`] runs
//! Aerospike's test as it is asked for, [`smart`] reads the SMART data of real drives. How results are shown is another crate's business (`report`).

pub mod act;
pub mod decide;
pub mod fit;
pub mod ledger;
pub mod measure;
pub mod prove;
pub mod review;
pub mod smart;
pub mod sweep;
