//! What a host costs: CPU time by interface and step, what sleeping and waking take, and how threads share cores and
//! queues. All zero is a host that is not there.

use core::num::NonZeroU16;

use alloc::vec::Vec;

use super::files::FileCosts;
use crate::time::Span;

/// How an application asks for I/O; the names are fio's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Engine {
    /// read and write, one at a time (sync, psync, vsync, pvsync).
    Sync,
    /// preadv2 and pwritev2, one at a time; polls with `high_priority`.
    Pvsync2,
    /// Linux native asynchronous I/O.
    #[default]
    Libaio,
    /// POSIX asynchronous I/O: threads behind a queue.
    PosixAio,
    /// io_uring.
    IoUring,
    /// A polling driver in user space (SPDK).
    UserSpace,
}

impl Engine {
    /// How many there are.
    pub const COUNT: usize = 6;

    /// All of them, in the order of [`HostConfig::engines`].
    pub const ALL: [Engine; Engine::COUNT] = [
        Engine::Sync,
        Engine::Pvsync2,
        Engine::Libaio,
        Engine::PosixAio,
        Engine::IoUring,
        Engine::UserSpace,
    ];

    /// Whether a thread goes on after submitting, so that submission is told apart from completion.
    pub const fn asynchronous(self) -> bool {
        !matches!(self, Engine::Sync | Engine::Pvsync2)
    }

    /// Whether it can ask for polled completions.
    const fn can_poll(self) -> bool {
        matches!(self, Engine::Pvsync2 | Engine::IoUring)
    }
}

/// How the operating system serves those who ask for polled completions ([`crate::Command::high_priority`] through
/// pvsync2 or io_uring). All others get interrupts, and the user-space driver always polls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum CompletionMode {
    /// It does not poll: they get interrupts too.
    #[default]
    Interrupt,
    /// The core polls from submission on.
    Polling,
    /// The core sleeps for half of the mean time of such commands, then polls.
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
    /// Whether it asks for polled completions; for the record, since each command says so itself.
    pub high_priority: bool,
    /// Whether a kernel thread polls its submission queue, on a host that has figures for it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sq_poll: bool,
}

/// CPU time of one interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct EngineCosts {
    /// The thread's own work between reaping one I/O and beginning to issue the next. fio's latencies leave it out.
    pub application: Span,
    /// Entering and leaving the system to submit; commands of one batch share it.
    pub system_call: Span,
    /// Each command: block layer, driver, doorbell.
    pub submit: Span,
    /// Each command after the doorbell, while the drive works on it: leaving the system and what the thread does before
    /// it waits.
    pub after: Span,
    /// Each completion: from the thread running again until it has the result.
    pub reap: Span,
    /// Time each way through a helper thread, where there is one.
    pub hand_off: Span,
    /// Commands of one thread that its helpers carry at once; 0 means any number.
    pub helpers: u16,
}

impl EngineCosts {
    /// Whether a helper thread stands between the job's thread and the system.
    pub(super) fn has_helpers(&self) -> bool {
        self.helpers != 0 || self.hand_off != Span::ZERO
    }
}

/// A sleep of the core: entered after some time without work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct IdleState {
    /// Idle time after which the core is in it.
    pub after: Span,
    /// Time to wake from it.
    pub exit: Span,
}

/// Timer ticks and other work that takes a core away.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Noise {
    /// Mean time between two on one core (exponential); zero for none.
    pub every: Span,
    /// What each takes at least: no longer than `every`.
    #[cfg_attr(feature = "serde", serde(default))]
    pub least: Span,
    /// Mean length beyond that (exponential).
    pub mean: Span,
}

/// A PCIe switch or bridge between host and drive, as an adapter for several drives has one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Bridge {
    /// What one crossing takes, either way. A read crosses four times in turn: doorbell, the drive's request for the
    /// command, the command, and data with its completion. A write fetches its data besides: six times.
    pub crossing: Span,
    /// Its lanes to the host, picoseconds a byte each way. Data passes packet by packet, so this only bounds.
    pub ps_per_byte: u64,
}

/// A virtual machine's monitor between guest and drive. The guest's core traps into it and carries each command down
/// itself; but while the monitor's thread, which carries completions up, is at work anyhow, commands are left to it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Hypervisor {
    /// A trap of the guest's core into the monitor and back, for a command that is not left to the monitor's thread.
    pub kick: Span,
    /// Its CPU time for a command on the way down.
    pub down: Span,
    /// Its CPU time for a completion on the way up.
    pub up: Span,
    /// Its CPU time for each 4 KiB page of data, on the way down.
    pub per_page: Span,
    /// What else keeps its thread from running.
    pub noise: Noise,
    /// Its sleeps, by rising `after`.
    pub idle_states: Vec<IdleState>,
    /// With this many commands in flight it begins to leave out interrupts; 0 means never. See [`super::Coalescing`].
    pub coalesce_from: u16,
}

/// What polling of submission queues costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SqPoll {
    /// The job's thread: to leave a command in the ring.
    pub leave: Span,
    /// From then until the kernel thread has found it, if it has nothing else to do: half a turn of its loop, and cache lines
    /// that move between two cores.
    pub find: Span,
    /// The job's thread: to find a result and take it.
    pub reap: Span,
}

/// Costs of a host. Valid by construction, made by the catalogue from `catalogue/host/*.toml`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostConfig {
    /// Cores that can run job threads; 0 is taken as 1.
    pub cores: u16,
    /// I/O submission queues the drive offers (31 on the P4800X); cores beyond that share. `None`: one for each core.
    pub io_queues: Option<NonZeroU16>,
    /// The drive reports no volatile write cache, so the system has nothing to flush: a flush ends in it and never
    /// reaches the drive (Linux and FreeBSD alike).
    pub write_through: bool,
    /// How completions are noticed by those who ask for polling.
    pub completion: CompletionMode,
    /// CPU time by interface, in the order of [`Engine::ALL`].
    pub engines: [EngineCosts; Engine::COUNT],
    /// CPU time of an interrupt, from the drive's message until its handler looks.
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
    /// Sleeps of the cores, by rising `after`; empty where they are switched off.
    pub idle_states: Vec<IdleState>,
    /// What else runs on the cores.
    pub noise: Noise,
    /// What stands between the host and its drive.
    pub bridge: Option<Bridge>,
    /// The monitor, where the host is a virtual machine.
    pub hypervisor: Option<Hypervisor>,
    /// What files cost; `None` where that is not known, or in the figures of an engine.
    #[cfg_attr(feature = "serde", serde(default))]
    pub files: Option<FileCosts>,
    /// What kernel threads cost that poll submission queues; `None` where that is not known.
    #[cfg_attr(feature = "serde", serde(default))]
    pub sq_poll: Option<SqPoll>,
}

impl HostConfig {
    /// Whether a command of this thread is polled for below the ring of results.
    pub(super) fn polls(&self, high_priority: bool) -> bool {
        high_priority && self.completion != CompletionMode::Interrupt
    }

    /// How a command of this thread is noticed.
    pub(super) fn mode(&self, thread: &ThreadConfig, high_priority: bool) -> CompletionMode {
        let engine = thread.engine;
        if thread.sq_poll && self.sq_poll.is_some() {
            // The thread looks at the ring of results itself, whoever puts them there.
            CompletionMode::Polling
        } else if self.engines[engine as usize].has_helpers() {
            // The helper waits, and it does not poll.
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

/// How long it takes to wake after `idle`.
pub(super) fn exit_latency(states: &[IdleState], idle: Span) -> Span {
    states
        .iter()
        .rev()
        .find(|state| idle >= state.after)
        .map_or(Span::ZERO, |state| state.exit)
}
