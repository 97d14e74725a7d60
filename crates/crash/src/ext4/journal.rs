//! The journal of ext4: transactions of copies of blocks (JBD2).

use std::collections::BTreeMap;

/// First four bytes of each block of the journal that is not a copy.
const MAGIC: u32 = 0xc03b_3998;

const DESCRIPTOR: u32 = 1;
const COMMIT: u32 = 2;
const SUPERBLOCKS: [u32; 2] = [3, 4];
const REVOKE: u32 = 5;

/// Flags of a tag.
const ESCAPED: u32 = 1;
const SAME_UUID: u32 = 2;
const LAST: u32 = 8;

/// Features of the journal.
const WIDE: u32 = 2;
const SUMS_V2: u32 = 8;
const SUMS_V3: u32 = 16;

/// Reads a big-endian number; 0 outside the bytes.
fn be16(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|it| it.try_into().ok());
    u16::from_be_bytes(two.unwrap_or_default())
}

/// Reads a big-endian number; 0 outside the bytes.
fn be32(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
    u32::from_be_bytes(four.unwrap_or_default())
}

/// Purpose of a block of the journal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Role {
    Superblock,
    Descriptor,
    Commit,
    Revoke,
    /// New contents of the block `of` of the file system.
    Copy {
        of: u64,
        /// Whether the first four bytes were [`MAGIC`], and are zeroes in the copy.
        escaped: bool,
    },
    Unused,
}

/// A tag of a descriptor: a block of the file system whose copy follows.
struct Tag {
    of: u64,
    flags: u32,
}

/// The journal of a file system.
#[derive(Default)]
pub(super) struct Journal {
    /// Blocks of the journal on the drive, in order.
    blocks: Vec<u64>,
    first: usize,
    /// First transaction that a mount replays; `None` if it replays nothing.
    start: Option<(usize, u32)>,
    features: u32,
    /// By block on the drive: transaction and purpose.
    pub(super) roles: BTreeMap<u64, (Option<u32>, Role)>,
    /// By block of the file system: its copies as transaction and block on the drive.
    copies: BTreeMap<u64, BTreeMap<u32, u64>>,
    /// By transaction: blocks on the drive with its copies.
    of_transaction: BTreeMap<u32, Vec<u64>>,
}

impl Journal {
    /// Reads the journal that has these blocks, all different; blocks at `end` and after it are zeroes.
    pub(super) fn read(blocks: &[u64], end: u64, block: &dyn Fn(u64) -> Vec<u8>) -> Journal {
        let mut journal = Journal::default();
        let Some(&first) = blocks.first() else {
            return journal;
        };
        let head = block(first);
        if be32(&head, 0) != MAGIC || !SUPERBLOCKS.contains(&be32(&head, 4)) {
            return journal;
        }
        let count = (be32(&head, 16) as usize).min(blocks.len());
        journal.first = (be32(&head, 20) as usize).max(1);
        if journal.first >= count {
            return journal;
        }
        journal.blocks = blocks[..count].to_vec();
        journal.features = be32(&head, 40);
        let start = be32(&head, 28) as usize;
        journal.start = (start > 0).then(|| (start, be32(&head, 24)));
        let unused = journal.blocks.iter().map(|it| (*it, (None, Role::Unused)));
        journal.roles = unused.collect();
        journal.roles.insert(first, (None, Role::Superblock));
        for index in (journal.first..count).filter(|it| blocks[*it] < end) {
            journal.take(index, &block(blocks[index]));
        }
        for (at, (transaction, role)) in &journal.roles {
            if let (Some(transaction), Role::Copy { of, .. }) = (transaction, role) {
                let copies = journal.copies.entry(*of).or_default();
                copies.insert(*transaction, *at);
                let all = journal.of_transaction.entry(*transaction).or_default();
                all.push(*at);
            }
        }
        journal
    }

    /// Notes the purpose of a block, and of those that it describes.
    fn take(&mut self, index: usize, bytes: &[u8]) {
        if be32(bytes, 0) != MAGIC {
            return;
        }
        let transaction = be32(bytes, 8);
        let own = match be32(bytes, 4) {
            DESCRIPTOR => Role::Descriptor,
            COMMIT => Role::Commit,
            REVOKE => Role::Revoke,
            _ => return,
        };
        self.put(index, transaction, own);
        if own != Role::Descriptor {
            return;
        }
        let mut at = index;
        for tag in self.tags(bytes) {
            at = self.next_index(at);
            let role = Role::Copy {
                of: tag.of,
                escaped: tag.flags & ESCAPED != 0,
            };
            self.put(at, transaction, role);
        }
    }

    /// Notes the purpose of a block, unless a later transaction has reused it.
    fn put(&mut self, index: usize, transaction: u32, role: Role) {
        let known = self.blocks.get(index).and_then(|it| self.roles.get_mut(it));
        if let Some(known) = known.filter(|it| it.0.is_none_or(|other| other <= transaction)) {
            *known = (Some(transaction), role);
        }
    }

    fn next_index(&self, index: usize) -> usize {
        match index + 1 {
            next if next < self.blocks.len() => next,
            _ => self.first,
        }
    }

    fn tags(&self, bytes: &[u8]) -> Vec<Tag> {
        let has = |feature| self.features & feature != 0;
        let size = match (has(SUMS_V3), has(SUMS_V2), has(WIDE)) {
            (true, _, _) => 16,
            (_, sums, wide) => 8 + 2 * usize::from(sums) + 4 * usize::from(wide),
        };
        let (mut tags, mut at) = (Vec::new(), 12);
        while at + size <= bytes.len() {
            let flags = match has(SUMS_V3) {
                true => be32(bytes, at + 4),
                false => be16(bytes, at + 6).into(),
            };
            let high = if has(WIDE) { be32(bytes, at + 8) } else { 0 };
            tags.push(Tag {
                of: u64::from(be32(bytes, at)) | u64::from(high) << 32,
                flags,
            });
            if flags & LAST != 0 {
                break;
            }
            at += size + if flags & SAME_UUID == 0 { 16 } else { 0 };
        }
        tags
    }

    fn revoked(&self, bytes: &[u8]) -> Vec<u64> {
        let size = if self.features & WIDE != 0 { 8 } else { 4 };
        let end = (be32(bytes, 12) as usize).min(bytes.len());
        let entries = (16..end).step_by(size);
        let entry = |at| match size {
            8 => u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4)),
            _ => be32(bytes, at).into(),
        };
        entries.map(entry).collect()
    }

    /// Returns the blocks that a mount restores, each with the block of the journal that has its contents.
    pub(super) fn replay(&self, block: &dyn Fn(u64) -> Vec<u8>) -> BTreeMap<u64, u64> {
        let Some((mut index, mut transaction)) = self.start else {
            return BTreeMap::new();
        };
        // By block of the file system: last transaction that revokes it.
        let mut revoked: BTreeMap<u64, u32> = BTreeMap::new();
        let (mut committed, mut open, mut revoking) = (Vec::new(), Vec::new(), Vec::new());
        // Not more than one lap.
        let mut left = self.blocks.len();
        while left > 0 {
            left -= 1;
            let Some(bytes) = self.blocks.get(index).map(|it| block(*it)) else {
                break;
            };
            if be32(&bytes, 0) != MAGIC || be32(&bytes, 8) != transaction {
                break;
            }
            match be32(&bytes, 4) {
                DESCRIPTOR => {
                    for tag in self.tags(&bytes).into_iter().take(left) {
                        left -= 1;
                        index = self.next_index(index);
                        open.push((transaction, tag.of, self.blocks[index]));
                    }
                }
                REVOKE => revoking.extend(self.revoked(&bytes)),
                COMMIT => {
                    committed.append(&mut open);
                    let all = revoking.drain(..).map(|of| (of, transaction));
                    revoked.extend(all);
                    transaction = transaction.wrapping_add(1);
                }
                _ => break,
            }
            index = self.next_index(index);
        }
        let valid = { committed.into_iter() }
            .filter(|(of_transaction, of, _)| revoked.get(of).is_none_or(|it| it < of_transaction));
        valid.map(|(_, of, at)| (of, at)).collect()
    }

    /// Returns the blocks on the drive with the copies of a transaction.
    pub(super) fn copies_of(&self, transaction: Option<u32>) -> impl Iterator<Item = u64> {
        let copies = transaction.and_then(|it| self.of_transaction.get(&it));
        copies.into_iter().flatten().copied()
    }

    /// Returns the contents of a block of which this is the copy at a block of the journal.
    pub(super) fn copied(&self, at: u64, mut bytes: Vec<u8>) -> Vec<u8> {
        if let Some((_, Role::Copy { escaped: true, .. })) = self.roles.get(&at) {
            bytes[..4].copy_from_slice(&MAGIC.to_be_bytes());
        }
        bytes
    }

    /// Returns the last copy of a block before a transaction.
    pub(super) fn copy_before(&self, of: u64, transaction: Option<u32>) -> Option<u64> {
        let copies = self.copies.get(&of)?;
        let earlier = copies.range(..transaction?).next_back();
        earlier.map(|(_, at)| *at)
    }
}
