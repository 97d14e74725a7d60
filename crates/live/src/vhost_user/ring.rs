//! One ring of requests, with its kick and call descriptors.

use std::fs::File;
use std::sync::atomic::Ordering;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{GuestAddress, GuestMemoryMmap};

use super::blk::RING_SIZE;
use super::chain::RingViolation;
use super::inflight::InFlightMemory;

/// A ring of requests.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) index: u16,
    pub(super) queue: Queue,
    kick: Option<File>,
    call: Option<File>,
    pub(super) enabled: bool,
    /// Number of requests that are taken and not completed.
    pub(super) in_flight: u32,
    /// Heads that an earlier server took and did not complete, in their order.
    again: std::collections::VecDeque<u16>,
    /// Whether requests have completed without a notification of the guest.
    signal: bool,
    /// Whether there may be unannounced work.
    pub(super) look: bool,
}

impl Ring {
    pub(super) fn new(index: u16) -> Ring {
        Ring {
            index,
            queue: Queue::new(RING_SIZE).expect("a power of two"),
            kick: None,
            call: None,
            enabled: false,
            in_flight: 0,
            again: std::collections::VecDeque::new(),
            signal: false,
            look: false,
        }
    }

    /// Checks whether requests are taken from it.
    pub(super) fn runs(&self) -> bool {
        self.enabled && self.queue.ready()
    }

    /// Sets the descriptor on which the guest announces requests, and returns the previous one.
    pub(super) fn set_kick(&mut self, file: Option<File>) -> Option<File> {
        std::mem::replace(&mut self.kick, file)
    }

    /// Sets the descriptor that notifies the guest of completed requests. It must never block the server.
    pub(super) fn set_call(&mut self, file: Option<File>) -> std::io::Result<()> {
        if let Some(file) = &file {
            fcntl_setfl(file, fcntl_getfl(file)? | OFlags::NONBLOCK)?;
        }
        self.call = file;
        Ok(())
    }

    /// Begins to take requests, first those that were in flight when an earlier server ended.
    pub(super) fn start(
        &mut self,
        memory: &GuestMemoryMmap,
        in_flight: Option<&mut InFlightMemory>,
    ) -> Result<(), RingViolation> {
        self.queue.set_ready(true);
        if !self.queue.is_valid(memory) {
            self.queue.set_ready(false);
            return Err(RingViolation("the ring is not in the shared memory"));
        }
        let used = self.queue.used_idx(memory, Ordering::Acquire);
        let used = used.map_err(|_| RingViolation("no used index"))?.0;
        self.queue.set_next_used(used);
        self.again.clear();
        if let Some(in_flight) = in_flight {
            if !in_flight.covers(self.index, self.queue.size()) {
                self.queue.set_ready(false);
                return Err(RingViolation(
                    "the ring is larger than the in-flight memory",
                ));
            }
            let heads = in_flight.recover(self.index, used);
            self.again = heads
                .map_err(|_| RingViolation("the in-flight memory"))?
                .into();
            // Everything that was ever made available has either been completed or is in flight.
            let taken = used.wrapping_add(self.again.len() as u16);
            if !self.again.is_empty() {
                self.queue.set_next_avail(taken);
            }
        }
        self.look = true;
        Ok(())
    }

    /// Stops taking requests, and returns the index from which to continue.
    pub(super) fn stop(&mut self) -> u16 {
        self.queue.set_ready(false);
        self.queue.next_avail()
    }

    /// Returns the head of the next request.
    pub(super) fn next(&mut self, memory: &GuestMemoryMmap) -> Result<Option<u16>, RingViolation> {
        if self.in_flight >= u32::from(self.queue.size()) {
            return Ok(None);
        }
        if let Some(head) = self.again.pop_front() {
            return Ok(Some(head));
        }
        let mut available = self
            .queue
            .iter(memory)
            .map_err(|_| RingViolation("the index of available requests is invalid"))?;
        Ok(available.next().map(|chain| chain.head_index()))
    }

    /// Returns the place of its descriptors.
    pub(super) fn table(&self) -> (GuestAddress, u16) {
        (GuestAddress(self.queue.desc_table()), self.queue.size())
    }

    /// Asks the guest to announce the next request. Returns whether the ring already contains a request.
    pub(super) fn ask(&mut self, memory: &GuestMemoryMmap) -> Result<bool, RingViolation> {
        self.queue
            .enable_notification(memory)
            .map_err(|_| RingViolation("the ring is not in the shared memory"))
    }

    /// Reports to the guest that a request has completed, with `bytes` written for it.
    pub(super) fn end(
        &mut self,
        memory: &GuestMemoryMmap,
        in_flight: Option<&InFlightMemory>,
        head: u16,
        bytes: u32,
    ) -> Result<(), RingViolation> {
        let lost = |_| RingViolation("the in-flight memory");
        if let Some(in_flight) = in_flight {
            in_flight.ending(self.index, head).map_err(lost)?;
        }
        self.queue
            .add_used(memory, head, bytes)
            .map_err(|_| RingViolation("a request that is not in the ring"))?;
        if let Some(in_flight) = in_flight {
            let used = self.queue.next_used();
            in_flight.ended(self.index, head, used).map_err(lost)?;
        }
        self.in_flight -= 1;
        self.signal = true;
        Ok(())
    }

    /// Notifies the guest, if something has completed and it requests notifications.
    pub(super) fn signal(&mut self, memory: &GuestMemoryMmap) -> Result<(), RingViolation> {
        if !std::mem::take(&mut self.signal) {
            return Ok(());
        }
        let wanted = self
            .queue
            .needs_notification(memory)
            .map_err(|_| RingViolation("the ring is not in the shared memory"))?;
        if wanted && let Some(call) = &self.call {
            // If the counter is full, the notification is already pending.
            let _ = rustix::io::write(call, &1_u64.to_ne_bytes());
        }
        Ok(())
    }
}
