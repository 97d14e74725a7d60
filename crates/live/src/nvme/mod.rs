//! NVMe over TCP: drives as namespaces that the kernel's initiator, SPDK, ESXi and Windows connect to.
//!
//! Layers: `wire` handles bytes, and [`NvmeConnection`] handles PDUs; the connection's queue holds the commands in
//! progress, and `io` executes those of an I/O queue. [`NvmeTarget`] is the state that all connections share: the
//! subsystem, its controllers, self-tests and history. Admin and fabrics commands are functions of that state and of
//! the drives' properties (`facts`). These parts have no socket; [`NvmeTcp`] connects them to one.

pub mod admin;
mod answer;
mod attend;
mod connection;
pub mod controller;
mod controllers;
mod copy;
mod data;
mod describe;
mod extended;
pub mod fabrics;
mod facts;
pub mod features;
mod format;
mod front;
mod history;
pub mod identify;
pub mod initiator;
pub mod io;
mod layout;
mod lba_status;
mod life;
pub mod log;
mod namespaces;
mod opcode;
mod pages;
mod parked;
mod persistent;
mod plan;
pub mod protection;
mod queue;
#[cfg(test)]
mod rack;
mod self_test;
mod service;
mod slots;
mod subsystem;
mod target;
pub mod vendor;
pub mod wire;

pub use connection::NvmeConnection;
pub use extended::add_formats;
pub use front::NvmeTcp;
pub use service::PROTOCOL;
pub use subsystem::{DISCOVERY_NQN, NvmeOptions};
pub use target::NvmeTarget;

/// Opcode of all fabrics commands.
pub(crate) const FABRICS: u8 = 0x7f;
/// Maximum bytes of data in a capsule.
const IN_CAPSULE: u32 = 8192;
