//! Hosts in which a workload can run: with files, without, or with an observer.

use model::host::{Files, HostPath};
use model::{Device, Span};

/// A host that counts the CPU time of its threads.
pub(crate) trait Host: Device {
    /// Returns the CPU time of a thread in user and system mode.
    fn cpu(&self, thread: usize) -> [Span; 2];
}

impl<H: Host + ?Sized> Host for &mut H {
    fn cpu(&self, thread: usize) -> [Span; 2] {
        (**self).cpu(thread)
    }
}

impl<D: Device> Host for HostPath<D> {
    fn cpu(&self, thread: usize) -> [Span; 2] {
        HostPath::cpu(self, thread)
    }
}

impl<D: Device> Host for Files<D> {
    fn cpu(&self, thread: usize) -> [Span; 2] {
        Files::cpu(self, thread)
    }
}
