//! The way from an application's call to a drive's submission queue and back.
//!
//! A placeholder of the contract for now: [`HostPath`] passes everything through at no cost.

use crate::command::{Command, Completion};
use crate::device::{Capacity, Device, Gauges};
use crate::time::{Span, Time};

/// How an application asks for I/O; the names are fio's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
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
    /// Whether a thread goes on after submitting, so that submission is told apart from completion.
    pub const fn asynchronous(self) -> bool {
        !matches!(self, Engine::Sync | Engine::Pvsync2)
    }
}

/// How completions are noticed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Hash)]
pub enum CompletionMode {
    /// The drive interrupts.
    #[default]
    Interrupt,
    /// The core polls from submission on.
    Polling,
    /// The core sleeps for half of the expected time, then polls.
    HybridPolling,
}

/// One thread that issues I/O.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadConfig {
    /// The core it runs on; threads on one core share its time.
    pub core: u16,
    /// The interface it uses.
    pub engine: Engine,
    /// Whether it asks for polled completions.
    pub high_priority: bool,
}

/// Costs of a host. Valid by construction, made by the catalogue from `catalogue/host/*.toml`.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostConfig {
    /// Cores that can run job threads.
    pub cores: u16,
    /// I/O submission queues the drive offers (31 on the P4800X); cores beyond that share.
    pub io_queues: u16,
    /// How completions are noticed.
    pub completion: CompletionMode,
}

/// A host in front of a device. `Command::queue` names the thread that issues it.
#[derive(Clone, Debug)]
pub struct HostPath<D> {
    device: D,
}

impl<D: Device> HostPath<D> {
    /// Puts a host with these threads in front of `device`; `seed` feeds its scheduler noise.
    pub fn new(config: HostConfig, threads: &[ThreadConfig], seed: u64, device: D) -> HostPath<D> {
        let _ = (config, threads, seed);
        HostPath { device }
    }

    /// CPU time of a thread in user and system mode.
    pub fn cpu(&self, thread: usize) -> [Span; 2] {
        let _ = thread;
        [Span::ZERO; 2]
    }
}

impl<D: Device> Device for HostPath<D> {
    fn capacity(&self) -> Capacity {
        self.device.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        self.device.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.device.next_event()
    }
    fn advance(&mut self, now: Time, done: &mut Vec<Completion>) {
        self.device.advance(now, done);
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.device.inspect(now, gauges);
    }
}
