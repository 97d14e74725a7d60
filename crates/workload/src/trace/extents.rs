//! Where the files and blocks of a storage service lie on a drive: in extents of [`EXTENT`] bytes, placed one after the
//! other in the order in which they are first touched, as a file system places files that are written then.
//!
//! Such traces name files and not places. What lies within one extent of a file stays together; how far extents lie from
//! each other on the recorded drives is not known. A request that runs past the end of its extent is left whole.

use std::collections::HashMap;

use super::requests::Requests;

/// Bytes of an extent: the longest request of Meta's and of Google's traces.
pub(super) const EXTENT: u64 = 8 << 20;

/// The extents of one volume or of several.
#[derive(Default)]
pub(super) struct Extents {
    slots: HashMap<Box<[u8]>, u64>,
    /// By volume: extents so far.
    used: HashMap<Box<[u8]>, u64>,
    key: Vec<u8>,
}

impl Extents {
    /// The byte of the volume at which byte `offset` of a file lies.
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
        // Below 2^41 extents: each took a line to make.
        slot * EXTENT + within
    }
}
