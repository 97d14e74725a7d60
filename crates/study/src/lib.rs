//! Workloads, statistics, catalogue and reports around drivelab's model.

pub mod catalogue;
pub mod fit;
pub mod ledger;
pub mod problem;
pub mod report;
pub mod review;
pub mod run;
pub mod statistics;
pub mod workload;
