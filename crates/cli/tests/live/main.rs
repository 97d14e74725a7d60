//! Served drives with real clients: a Linux guest, qemu's tools, libnbd's, fio.

mod container;
mod crashes;
mod durable;
mod guest;
mod interop;
mod measure;
mod nbd;
mod nvme;
mod pools;
mod programs;
mod recipes;
mod rig;
mod robust;
mod tiers;
mod tls;
mod vhost_user;
