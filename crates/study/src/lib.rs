//! Studies: analyses of drives that need many runs.
//!
//! [`review`] compares drives. [`ledger`] compares published figures with runs. [`fit`] finds parameters from
//! measurements. [`prove`] tests the crash consistency of pools. [`decide`] answers questions of buyers, which [`ask`] has as
//! values. [`sweep`] runs thousands of scenarios into a table. [`measure`] selects the fio jobs that measure a real drive. [`act`] runs
//! Aerospike's certification test. [`smart`] reads the SMART data of real drives. The crate `report` formats the
//! results.

pub mod act;
pub mod ask;
pub mod decide;
pub mod fit;
pub mod ledger;
pub mod measure;
pub mod prove;
pub mod review;
pub mod smart;
pub mod sweep;
