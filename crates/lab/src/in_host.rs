//! Hosts that a workload can run in: with files, without, or with something that looks on.

use model::host::{Files, HostPath};
use model::{Device, Span};

/// A host that knows what CPU time its threads took.
pub(crate) trait Host: Device {
    /// Of a thread in user and system mode.
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
