//! Costs of a host: CPU time by interface and step, times to sleep and wake, and how threads share cores and queues. A
//! configuration of zeroes is a host without cost.

use core::num::NonZeroU16;

use alloc::vec::Vec;

use super::files::{FileCosts, PageCacheConfig};
use super::power_states::{PowerPolicy, PowerTransition};
use super::scheduler::SchedulerConfig;
use crate::time::Span;

/// I/O engine of an application; the names are fio's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Engine {
    /// read and write, QD1 (sync, psync, vsync, pvsync).
    Sync,
    /// preadv2 and pwritev2, QD1; polls with `high_priority`.
    Pvsync2,
    /// Linux native asynchronous I/O.
    #[default]
    Libaio,
    /// POSIX asynchronous I/O: helper threads behind a queue.
    PosixAio,
    /// io_uring.
    IoUring,
    /// A polling driver in user space (SPDK).
    UserSpace,
    /// io_uring with NVMe commands that bypass the block layer (io_uring_cmd).
    IoUringCmd,
}

impl Engine {
    /// Number of engines.
    pub const COUNT: usize = 7;

    /// All engines, in the order of [`HostConfig::engines`].
    pub const ALL: [Engine; Engine::COUNT] = [
        Engine::Sync,
        Engine::Pvsync2,
        Engine::Libaio,
        Engine::PosixAio,
        Engine::IoUring,
        Engine::UserSpace,
        Engine::IoUringCmd,
    ];

    /// Whether a thread continues after submission, so that submission and completion are distinct.
    pub const fn asynchronous(self) -> bool {
        !matches!(self, Engine::Sync | Engine::Pvsync2)
    }

    /// Whether the engine can request polled completions.
    const fn can_poll(self) -> bool {
        matches!(self, Engine::Pvsync2) || self.has_rings()
    }

    /// Whether submissions and completions are in rings that the thread shares with the kernel.
    pub(super) const fn has_rings(self) -> bool {
        matches!(self, Engine::IoUring | Engine::IoUringCmd)
    }
}

/// How the operating system completes commands that request polling ([`crate::Command::high_priority`] through pvsync2
/// or io_uring). All other commands complete by interrupt, and the user-space driver always polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CompletionMode {
    /// The system does not poll: these commands complete by interrupt too.
    #[default]
    Interrupt,
    /// The core polls from the time of submission.
    Polling,
    /// The core sleeps for half of the mean time of similar commands, then polls.
    HybridPolling,
}

/// One thread that issues I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ThreadConfig {
    /// The core it runs on (modulo [`HostConfig::cores`]); threads on one core share its time.
    pub core: u16,
    /// The interface it uses.
    pub engine: Engine,
    /// Whether it requests polled completions; informative only, because each command carries its own flag.
    pub high_priority: bool,
    /// Whether a kernel thread polls its submission queue, if the host has figures for that.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sq_poll: bool,
    /// The socket it runs on. The drive is attached to socket 0.
    #[cfg_attr(feature = "serde", serde(default))]
    pub socket: u16,
}

/// CPU time of one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EngineCosts {
    /// The thread's own work between reaping one I/O and starting to issue the next. fio's latencies exclude this time.
    pub application: Span,
    /// Entering and leaving the kernel to submit; commands of one batch share this time.
    pub system_call: Span,
    /// Each command: block layer, driver, doorbell.
    pub submit: Span,
    /// Each command after the doorbell, while the drive works on it: leaving the kernel, and the work of the thread
    /// before it waits.
    pub after: Span,
    /// Each completion: from when the thread runs again until it has the result.
    pub reap: Span,
    /// Time in each direction through a helper thread, if there is one.
    pub hand_off: Span,
    /// Commands of one thread that its helpers process at once; 0 means any number.
    pub helpers: u16,
}

impl EngineCosts {
    /// Whether a helper thread is between the job's thread and the kernel.
    pub(super) fn has_helpers(&self) -> bool {
        self.helpers != 0 || self.hand_off != Span::ZERO
    }
}

/// An idle state of the core, entered after a time without work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdleState {
    /// Idle time after which the core enters this state.
    pub after: Span,
    /// Time to wake from this state.
    pub exit: Span,
}

/// Timer ticks and other work that occupies a core.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Noise {
    /// Mean time between two occurrences on one core (exponential); zero for none.
    pub every: Span,
    /// Minimum length of each occurrence: no longer than `every`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub least: Span,
    /// Mean length in addition to `least` (exponential).
    pub mean: Span,
}

/// A PCIe switch or bridge between host and drive, such as that of an adapter for several drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bridge {
    /// Latency of one crossing in either direction. A read crosses four times in sequence: doorbell, the drive's
    /// request for the command, the command, and data with its completion. A write also fetches its data: six times.
    pub crossing: Span,
    /// Lanes to the host, in picoseconds per byte in each direction. Data passes packet by packet, so this only limits
    /// the bandwidth.
    pub ps_per_byte: u64,
}

/// Costs of a thread on a socket to which the drive is not attached. The queues are in the memory of the drive's socket,
/// as Linux allocates them, and the data of an I/O is in the memory of its thread's socket. Each core handles the
/// interrupts of its own queue. Not modelled: the bandwidth of the link between the sockets.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct RemoteSocket {
    /// CPU time that a submission takes in addition: it writes a queue entry in the memory of the other socket.
    pub submit: Span,
    /// CPU time that a completion takes in addition: it reads a queue entry that the drive has written there.
    pub complete: Span,
    /// Latency of one crossing of the link between sockets. A read crosses twice in sequence: doorbell, and data with
    /// the interrupt. A write also fetches its data: four times.
    pub crossing: Span,
}

/// The monitor of a virtual machine, between guest and drive. The guest's core traps into it and carries each command
/// down itself. While the monitor's thread, which carries completions up, is running, commands are left to that thread.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hypervisor {
    /// A trap of the guest's core into the monitor and back, for a command that is not left to the monitor's thread.
    pub kick: Span,
    /// CPU time of the monitor for a command on the way down.
    pub down: Span,
    /// CPU time of the monitor for a completion on the way up.
    pub up: Span,
    /// CPU time of the monitor for each 4 KiB page of data, on the way down.
    pub per_page: Span,
    /// Other work that keeps the monitor's thread from running.
    pub noise: Noise,
    /// Idle states of the monitor's thread, by rising `after`.
    pub idle_states: Vec<IdleState>,
    /// Commands in flight at and above which the monitor omits interrupts; 0 means never. See [`super::Coalescing`].
    pub coalesce_from: u16,
}

/// Costs of kernel threads that poll submission queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SqPoll {
    /// The job's thread: to put a command into the ring.
    pub leave: Span,
    /// From then until the kernel thread has found the command, if it has nothing else to do: half an iteration of its
    /// loop, and cache lines that move between two cores.
    pub find: Span,
    /// The job's thread: to find a result and take it.
    pub reap: Span,
}

/// Costs of a host. Valid by construction; created by the catalogue from `catalogue/host/*.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostConfig {
    /// Cores of a socket that can run job threads; 0 is treated as 1.
    pub cores: u16,
    /// I/O submission queues that the drive offers (31 on the P4800X); additional cores share them. `None`: one for
    /// each core.
    pub io_queues: Option<NonZeroU16>,
    /// The drive reports no volatile write cache, so a flush has no effect: it ends in the operating system and never
    /// reaches the drive (on Linux and FreeBSD alike).
    pub write_through: bool,
    /// How commands that request polling are completed.
    pub completion: CompletionMode,
    /// CPU time by interface, in the order of [`Engine::ALL`].
    pub engines: [EngineCosts; Engine::COUNT],
    /// CPU time of an interrupt, from the drive's message until its handler looks for completions.
    pub interrupt: Span,
    /// CPU time for each completion that an interrupt finds.
    pub interrupt_each: Span,
    /// Switching the core to another thread, or to one that slept; also away from a thread that goes to sleep.
    pub switch: Span,
    /// CPU time of a poll that finds a completion.
    pub poll: Span,
    /// CPU time for each 4 KiB page of data on the way down (pinning, mapping).
    pub per_page: Span,
    /// How long a submission holds the lock of a queue that cores share.
    pub queue_lock: Span,
    /// Idle states of the cores, by rising `after`; empty if they are switched off.
    pub idle_states: Vec<IdleState>,
    /// Other work on the cores.
    pub noise: Noise,
    /// PCIe switch or bridge between the host and its drive.
    pub bridge: Option<Bridge>,
    /// Number of sockets with [`HostConfig::cores`] cores each; 0 is treated as 1.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sockets: u16,
    /// Costs of threads on sockets other than the drive's; `None` if they are not known.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub remote_socket: Option<RemoteSocket>,
    /// The monitor, if the host is a virtual machine.
    pub hypervisor: Option<Hypervisor>,
    /// Costs of files; `None` if they are not known, or included in the figures of an engine.
    #[cfg_attr(feature = "serde", serde(default))]
    pub files: Option<FileCosts>,
    /// Memory and limits of the page cache; `None` if the host does not state them: then only writes and syncs can be
    /// buffered.
    #[cfg_attr(feature = "serde", serde(default))]
    pub page_cache: Option<PageCacheConfig>,
    /// Costs of kernel threads that poll submission queues; `None` if they are not known.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sq_poll: Option<SqPoll>,
    /// I/O scheduler in front of the drive.
    #[cfg_attr(feature = "serde", serde(default))]
    pub scheduler: SchedulerConfig,
    /// CPU time of each scheduler for a request, in the order of [`super::SchedulerKind::ALL`]; `None` if the host does
    /// not state them.
    #[cfg_attr(feature = "serde", serde(default))]
    pub scheduler_costs: Option<[Span; 4]>,
    /// How the host lets an idle drive enter power states; `None` if it does not.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Option::is_none")
    )]
    pub power_states: Option<PowerPolicy>,
    /// Power state transitions of this drive under [`HostConfig::power_states`]; empty if it has none.
    #[cfg_attr(
        feature = "serde",
        serde(default, skip_serializing_if = "Vec::is_empty")
    )]
    pub power_transitions: Vec<PowerTransition>,
}

impl HostConfig {
    /// Returns this host in front of memory that the submitting thread copies itself: there is no interrupt, no other
    /// thread runs meanwhile, and the core does not sleep.
    pub fn without_interrupts(self) -> HostConfig {
        HostConfig {
            interrupt: Span::ZERO,
            interrupt_each: Span::ZERO,
            switch: Span::ZERO,
            idle_states: Vec::new(),
            ..self
        }
    }

    /// Whether a command of this thread is polled for below the completion ring.
    pub(super) fn polls(&self, high_priority: bool) -> bool {
        high_priority && self.completion != CompletionMode::Interrupt
    }

    /// Returns how the completion of a command of this thread is detected.
    pub(super) fn mode(&self, thread: &ThreadConfig, high_priority: bool) -> CompletionMode {
        let engine = thread.engine;
        if thread.sq_poll && self.sq_poll.is_some() {
            // The thread reads the completion ring itself, whichever component fills it.
            CompletionMode::Polling
        } else if self.engines[engine as usize].has_helpers() {
            // The helper waits, and does not poll.
            CompletionMode::Interrupt
        } else if engine == Engine::UserSpace {
            CompletionMode::Polling
        } else if high_priority && engine.can_poll() && self.hypervisor.is_none() {
            self.completion
        } else {
            CompletionMode::Interrupt
        }
    }
}

/// Returns the time to wake after `idle`.
pub(super) fn exit_latency(states: &[IdleState], idle: Span) -> Span {
    states
        .iter()
        .rev()
        .find(|state| idle >= state.after)
        .map_or(Span::ZERO, |state| state.exit)
}
