//! Places files and blocks of a storage service on a drive, in extents of [`EXTENT`] bytes. The extents follow each
//! other in the order of their first access, as a file system places newly written files.
//!
//! Such traces name files and not addresses. Data within one extent of a file stays together; the distance between
//! extents on the recorded drives is unknown. A request that extends beyond the end of its extent is not split.

use std::collections::HashMap;

use super::requests::Requests;

/// Bytes of an extent: the longest request of Meta's and of Google's traces.
pub(super) const EXTENT: u64 = 8 << 20;

/// Extents of one or more volumes.
#[derive(Default)]
pub(super) struct Extents {
    slots: HashMap<Box<[u8]>, u64>,
    /// Number of extents, by volume.
    used: HashMap<Box<[u8]>, u64>,
    key: Vec<u8>,
}

impl Extents {
    /// Returns the byte of the volume for byte `offset` of a file.
    pub(super) fn place(
        &mut self,
        (volume, file): (&[u8], &[u8]),
        offset: u64,
        bytes: u64,
        requests: &mut Requests,
    ) -> u64 {
        self.key.clear();
        self.key.extend_from_slice(&(offset / EXTENT).to_le_bytes());
        self.key
            .extend_from_slice(&(volume.len() as u64).to_le_bytes());
        self.key.extend_from_slice(volume);
        self.key.extend_from_slice(file);
        let slot = match self.slots.get(&*self.key) {
            Some(&slot) => slot,
            None => {
                let next = self.used.entry(volume.into()).or_default();
                let slot = *next;
                *next += 1;
                self.slots.insert(self.key.as_slice().into(), slot);
                slot
            }
        };
        let within = offset % EXTENT;
        if within.saturating_add(bytes) > EXTENT {
            requests.note("requests that run past the end of their extent of 8 MiB");
        }
        // Fewer than 2^41 extents: each needs a line of the trace.
        slot * EXTENT + within
    }
}
