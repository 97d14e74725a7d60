//! The path from an application's call to a drive's submission queue and back.
//!
//! Job threads are pinned to cores. A core does one piece of work at a time: the thread's own work, submission (system
//! call, block layer, driver, doorbell), interrupts, reaping. The core must switch to a thread that slept, and a core
//! that slept must wake first; polling avoids both and spends CPU time instead. Cores that share a submission queue
//! take turns at its lock. Kernel threads may poll submission queues on cores of their own. A bridge delays everything
//! that crosses it. Files (`files`) come before all that: a page cache, syncs and a journal. A virtual machine adds a
//! monitor thread that every command passes twice.
//!
//! Not modelled: memory and NUMA traffic, migration of threads, preemption within a piece
//! of work, the limit of 1023 entries in a queue, splitting of large commands (drives do that internally). A drive's
//! interrupts are not coalesced; a core that is late finds several completions in one interrupt.
//!
//! Source: S4's pages on the CPU cost of I/O and on polling; figures and their rows in `catalogue/host/*.toml`.

mod bridge;
mod coalescing;
mod completions;
mod config;
mod core;
mod files;
mod path;
mod power_states;
mod program;
mod scheduler;

pub use coalescing::Coalescing;
pub use config::{
    Bridge, CompletionMode, Engine, EngineCosts, HostConfig, Hypervisor, IdleState, Noise,
    RemoteSocket, SqPoll, ThreadConfig,
};
pub use files::{
    Advice, Blocking, Durable, FileConfig, FileCosts, Files, Filesystem, PageCacheConfig,
};
pub use path::HostPath;
pub use power_states::{PowerManaged, PowerPolicy, PowerState, PowerTransition};
pub use program::ProgramCosts;
pub use scheduler::{Scheduler, SchedulerConfig, SchedulerKind};
