//! Placement of namespaces in their drives: searching free space, allocating, releasing.
//!
//! A namespace is one contiguous range of bytes of one drive. A drive that hosts have not divided is one namespace,
//! which has the number of the drive; a divided drive saves its division. Source: NVM Express Base Specification 2.0,
//! chapter 8.11 (capacity is allocated in units of the controller's choice: 4 KiB).

use super::facts::Drives;
use crate::store::Share;

/// Unit of allocation in bytes.
pub(super) const UNIT: u64 = 4096;

/// Place of a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Extent {
    /// Index of the drive.
    pub(super) drive: usize,
    /// First byte in the drive, a multiple of [`UNIT`].
    pub(super) first: u64,
    /// Size in bytes; the rest of the last unit is unused.
    pub(super) bytes: u64,
    /// Distinguishes all namespaces ever created; 0 for a whole drive.
    pub(super) salt: u64,
    /// Whether it is attached to controllers that connect.
    pub(super) attached: bool,
}

impl Extent {
    /// Returns the end of the allocated space.
    pub(super) fn end(&self) -> u64 {
        (self.first + self.bytes).next_multiple_of(UNIT)
    }
}

/// Namespaces by their identifiers less one.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct NamespaceTable {
    extents: Vec<Option<Extent>>,
    salts: u64,
    begun: bool,
}

impl NamespaceTable {
    /// Reads the drives' saved namespaces for the first time, if hosts may divide drives.
    pub(super) fn begin(&mut self, served: &[usize], divides: bool, drives: &mut dyn Drives) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        for &drive in served {
            let facts = drives.facts(drive);
            match facts.shares {
                Some(shares) if divides => {
                    for share in &shares {
                        self.put(Some(share.nsid), Extent::from_share(drive, share));
                    }
                }
                _ => {
                    let whole = Extent {
                        drive,
                        first: 0,
                        bytes: facts.bytes,
                        salt: 0,
                        attached: true,
                    };
                    self.put(None, whole);
                }
            }
        }
    }

    pub(super) fn extents(&self) -> &[Option<Extent>] {
        &self.extents
    }

    /// Returns the namespaces attached to a controller that connects now, one bit each.
    pub(super) fn attached(&self) -> u128 {
        let apart = self.extents.iter().take(128).enumerate();
        apart.fold(u128::MAX, |all, (index, extent)| match extent {
            Some(extent) if extent.attached => all,
            _ => all & !(1 << index),
        })
    }

    /// Stores a namespace under this identifier if it is free, otherwise under the lowest free one, and returns the
    /// identifier.
    fn put(&mut self, nsid: Option<u32>, extent: Extent) -> u32 {
        self.salts = self.salts.max(extent.salt);
        let wanted = nsid.map(|nsid| (nsid as usize).wrapping_sub(1));
        let wanted = wanted.filter(|&index| index < 128 && self.is_free(index));
        let index = wanted.unwrap_or_else(|| {
            let free = self.extents.iter().position(Option::is_none);
            free.unwrap_or(self.extents.len())
        });
        if index >= self.extents.len() {
            self.extents.resize(index + 1, None);
        }
        self.extents[index] = Some(extent);
        index as u32 + 1
    }

    fn is_free(&self, index: usize) -> bool {
        self.extents.get(index).is_none_or(Option::is_none)
    }

    /// Returns the lowest free identifier, starting with 1.
    pub(super) fn free_identifier(&self) -> u32 {
        let free = self.extents.iter().position(Option::is_none);
        free.unwrap_or(self.extents.len()) as u32 + 1
    }

    /// Returns the first free range of this size in a drive of this capacity.
    pub(super) fn room(&self, drive: usize, capacity: u64, bytes: u64) -> Option<u64> {
        let mut taken: Vec<(u64, u64)> = self
            .of_drive(drive)
            .map(|it| (it.first, it.end()))
            .collect();
        taken.sort_unstable();
        let mut first = 0;
        for (start, end) in taken {
            if start.checked_sub(first)? >= bytes {
                return Some(first);
            }
            first = end;
        }
        (capacity.saturating_sub(first) >= bytes).then_some(first)
    }

    /// Allocates a namespace and returns its identifier.
    pub(super) fn create(&mut self, drive: usize, first: u64, bytes: u64) -> u32 {
        let extent = Extent {
            drive,
            first,
            bytes,
            salt: self.salts + 1,
            attached: false,
        };
        self.put(None, extent)
    }

    /// Releases a namespace.
    pub(super) fn delete(&mut self, nsid: u32) -> Option<Extent> {
        self.get(nsid)?.take()
    }

    /// Sets whether a namespace is attached to controllers that connect later.
    pub(super) fn attach(&mut self, nsid: u32, attached: bool) {
        if let Some(Some(extent)) = self.get(nsid) {
            extent.attached = attached;
        }
    }

    fn get(&mut self, nsid: u32) -> Option<&mut Option<Extent>> {
        self.extents.get_mut((nsid as usize).wrapping_sub(1))
    }

    fn of_drive(&self, drive: usize) -> impl Iterator<Item = &Extent> {
        let all = self.extents.iter().flatten();
        all.filter(move |extent| extent.drive == drive)
    }

    /// Checks whether a drive has no namespace.
    pub(super) fn is_empty(&self, drive: usize) -> bool {
        self.of_drive(drive).next().is_none()
    }

    /// Returns the allocated bytes in all drives.
    pub(super) fn allocated(&self) -> u64 {
        let all = self.extents.iter().flatten();
        all.map(|extent| extent.end() - extent.first).sum()
    }

    /// Returns the division of a drive for saving; `None` if it is not divided.
    pub(super) fn shares(&self, drive: usize, capacity: u64) -> Option<Vec<Share>> {
        let numbered = (1..).zip(&self.extents);
        let shares: Vec<Share> = numbered
            .filter_map(|(nsid, extent)| Some((nsid, extent.as_ref()?)))
            .filter(|(_, extent)| extent.drive == drive)
            .map(|(nsid, extent)| extent.share(nsid))
            .collect();
        let whole = |it: &Share| it.first == 0 && it.bytes == capacity && it.attached;
        match &shares[..] {
            [one] if whole(one) && one.salt == 0 => None,
            _ => Some(shares),
        }
    }
}

impl Extent {
    fn from_share(drive: usize, share: &Share) -> Extent {
        Extent {
            drive,
            first: share.first,
            bytes: share.bytes,
            salt: share.salt,
            attached: share.attached,
        }
    }

    fn share(&self, nsid: u32) -> Share {
        Share {
            nsid,
            first: self.first,
            bytes: self.bytes,
            salt: self.salt,
            attached: self.attached,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_found_between_namespaces_and_never_twice() {
        let mut layout = NamespaceTable::default();
        let mut add = |bytes| {
            let first = layout.room(0, 64 * UNIT, bytes)?;
            Some((layout.create(0, first, bytes), first))
        };
        assert_eq!(add(UNIT + 1), Some((1, 0)));
        assert_eq!(add(10 * UNIT), Some((2, 2 * UNIT)));
        assert_eq!(add(52 * UNIT), Some((3, 12 * UNIT)));
        assert_eq!(add(1), None);
        assert_eq!(layout.allocated(), 64 * UNIT);
        let gone = layout.delete(2).expect("it was there");
        assert_eq!((gone.first, layout.delete(2)), (2 * UNIT, None));
        assert_eq!(layout.room(0, 64 * UNIT, 11 * UNIT), None);
        assert_eq!(layout.room(0, 64 * UNIT, 10 * UNIT), Some(2 * UNIT));
        assert_eq!(layout.room(1, 64 * UNIT, 64 * UNIT), Some(0));
        assert_eq!(
            (layout.free_identifier(), layout.create(0, 8192, 1)),
            (2, 2)
        );
        let salts: Vec<u64> = layout
            .extents()
            .iter()
            .flatten()
            .map(|it| it.salt)
            .collect();
        assert_eq!(salts, [1, 4, 3], "no name is given twice");
    }

    #[test]
    fn controllers_that_connect_have_what_is_attached() {
        let mut layout = NamespaceTable::default();
        for _ in 0..3 {
            layout.create(0, 0, UNIT);
        }
        assert_eq!(layout.attached() & 7, 0);
        layout.attach(2, true);
        assert_eq!(layout.attached() & 7, 2);
        assert_eq!(layout.shares(0, 9 * UNIT).expect("divided").len(), 3);
        assert_eq!(layout.shares(1, 9 * UNIT), Some(Vec::new()));
    }
}
