//! Workloads: what is asked of a drive, by fio job or by trace.

pub mod job;
