//! NVMe over TCP: drives as namespaces that the kernel's initiator, SPDK, ESXi and Windows connect to.
//!
//! `wire` knows bytes, [`Connection`] PDUs and queues, `fabrics`, `admin` and `io` the commands, [`Target`] what all
//! connections share. None of them has a socket: [`NvmeTcp`] gives them one.

pub mod admin;
mod connection;
pub mod controller;
mod copy;
mod data;
mod describe;
mod extended;
pub mod fabrics;
mod facts;
pub mod features;
mod format;
mod front;
pub mod identify;
pub mod initiator;
pub mod io;
mod layout;
mod lba_status;
mod life;
pub mod log;
mod namespaces;
mod pages;
mod persistent;
pub mod protection;
mod self_test;
mod slots;
mod target;
pub mod wire;

pub use connection::Connection;
pub use extended::add_formats;
pub use front::NvmeTcp;
pub use target::{DISCOVERY_NQN, Options, Target};

/// Opcode of all commands of fabrics.
pub(crate) const FABRICS: u8 = 0x7f;
