//! Served drives with real clients: a Linux guest, qemu's tools, libnbd's, fio.

mod container;
#[path = "../serve/contents.rs"]
mod contents;
mod crashes;
mod durable;
mod guest;
mod interop;
mod log_writes;
mod measure;
mod nbd;
mod nvme;
mod pools;
mod programs;
mod recipes;
mod rig;
mod robust;
mod second;
mod stores;
mod tiers;
mod tls;
mod vhost_user;
