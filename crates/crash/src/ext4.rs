//! A reader of ext4: the owner of each block of an image.
//!
//! The reader replays the journal in memory, as a mount does, and then reads all directories and extent trees. So the
//! names are those that a mount of the image would show. Many blocks of the journal are copies of other blocks: their
//! owner is that of the original.
//!
//! Not read: files without extents (`^extent`), inline data, META_BG, external journals, fast commits, partition
//! tables. Checksums are not verified: the reader explains images and does not judge them. Any bytes are valid input: each
//! block is read as part of one structure only, so time and memory are limited by the size of the image.
//!
//! Sources: the layout in the kernel's documentation (Documentation/filesystems/ext4 of Linux 6.12) and, for the
//! journal, its `include/linux/jbd2.h`.

mod journal;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::image::Fork;
use crate::places::{JournalPart, OwnedRange, Owner, merged};
use journal::{Journal, Role};

const ROOT: u32 = 2;

/// Offset of the superblock, and of its magic number in it.
const SUPERBLOCK: u64 = 1024;

/// Flag of an inode that has an extent tree.
const EXTENTS: u32 = 0x8_0000;

/// Maximum depth of an extent tree.
const DEPTH: u16 = 5;

/// Maximum number of groups: 16 TiB with blocks of 4 KiB.
const GROUPS: u64 = 1 << 17;

/// Maximum number of blocks of the journal that are read; `mke2fs` makes journals of up to 2^18 blocks.
const JOURNAL: usize = 1 << 20;

/// Maximum bytes of a path.
const LONGEST_PATH: usize = 4096;

/// Reads a little-endian number; 0 outside the bytes.
fn le16(bytes: &[u8], at: usize) -> u16 {
    let two = bytes.get(at..at + 2).and_then(|it| it.try_into().ok());
    u16::from_le_bytes(two.unwrap_or_default())
}

/// Reads a little-endian number; 0 outside the bytes.
fn le32(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..at + 4).and_then(|it| it.try_into().ok());
    u32::from_le_bytes(four.unwrap_or_default())
}

/// Sizes from the superblock.
#[derive(Clone, Copy, Debug)]
struct Geometry {
    /// Bytes of a block.
    block: u64,
    blocks: u64,
    first_block: u64,
    per_group: u64,
    inodes_per_group: u32,
    inode_bytes: u64,
    descriptor_bytes: u64,
    reserved: u64,
    /// Whether only some groups have a copy of the superblock.
    sparse: bool,
    journal: u32,
}

impl Geometry {
    fn read(image: &Fork) -> Option<Geometry> {
        let mut sb = [0; 1024];
        image.read(SUPERBLOCK, &mut sb);
        let log_block = le32(&sb, 24);
        if le16(&sb, 56) != 0xef53 || log_block > 6 {
            return None;
        }
        let wide = le32(&sb, 96) & 0x80 != 0;
        let high = if wide { le32(&sb, 336) } else { 0 };
        let geometry = Geometry {
            block: 1024 << log_block,
            blocks: u64::from(le32(&sb, 4)) | u64::from(high) << 32,
            first_block: le32(&sb, 20).into(),
            per_group: le32(&sb, 32).into(),
            inodes_per_group: le32(&sb, 40),
            inode_bytes: match le32(&sb, 76) {
                0 => 128,
                _ => le16(&sb, 88).into(),
            },
            descriptor_bytes: if wide { le16(&sb, 254).into() } else { 32 },
            reserved: le16(&sb, 206).into(),
            sparse: le32(&sb, 100) & 1 != 0,
            journal: le32(&sb, 224),
        };
        let is_valid = (256..=8 * geometry.block).contains(&geometry.per_group)
            && geometry.groups() <= GROUPS
            && geometry.inodes_per_group > 0
            && (128..=geometry.block).contains(&geometry.inode_bytes)
            && (32..=geometry.block).contains(&geometry.descriptor_bytes)
            && geometry.blocks <= 1 << 32;
        is_valid.then_some(geometry)
    }

    fn groups(&self) -> u64 {
        let blocks = self.blocks.saturating_sub(self.first_block);
        blocks.div_ceil(self.per_group)
    }

    fn has_superblock(&self, group: u64) -> bool {
        let is_power_of = |base: u64| {
            let mut power = base;
            while power < group {
                power *= base;
            }
            power == group
        };
        !self.sparse || group <= 1 || [3, 5, 7].into_iter().any(is_power_of)
    }
}

/// Owner of a run of blocks, without the contents of a write.
#[derive(Clone, PartialEq, Eq, Debug)]
enum RunOwner {
    /// Data of the inode; with the first block's number in the file.
    Data(u32, u64),
    /// Extent tree or extended attributes of the inode.
    Mapping(u32),
    /// The inode table, with the first inode of the run.
    Inodes(u32),
    Structure(&'static str),
}

/// An ext4 file system, as a mount of the image would show it.
pub struct Ext4<'f> {
    image: &'f Fork,
    geometry: Geometry,
    /// End of the last block that may not be all zeroes.
    end: u64,
    /// By block that the journal replaces: the block of the journal with its contents.
    replayed: BTreeMap<u64, u64>,
    journal: Journal,
    /// By first block: number of blocks and owner.
    runs: BTreeMap<u64, (u64, RunOwner)>,
    /// By inode: the directory that names it, and the name.
    names: BTreeMap<u32, (u32, String)>,
    directories: BTreeSet<u32>,
    /// Blocks of extent trees and directories that have been read.
    taken: BTreeSet<u64>,
}

impl<'f> Ext4<'f> {
    /// Reads the file system of an image; `None` if it has no ext4.
    pub fn read(image: &'f Fork) -> Option<Ext4<'f>> {
        let geometry = Geometry::read(image)?;
        let mut it = Ext4 {
            geometry,
            image,
            end: image.end().div_ceil(geometry.block),
            replayed: BTreeMap::new(),
            journal: Journal::default(),
            runs: BTreeMap::new(),
            names: BTreeMap::new(),
            directories: BTreeSet::new(),
            taken: BTreeSet::new(),
        };
        let extents = it.extents(it.geometry.journal);
        let blocks = { extents.data.iter() }.flat_map(|&(_, start, count)| start..start + count);
        let mut known = BTreeSet::new();
        let blocks: Vec<u64> = { blocks.take(JOURNAL) }
            .filter(|it| *it < geometry.blocks && known.insert(*it))
            .collect();
        it.journal = Journal::read(&blocks, it.end, &|block| it.block(block));
        it.replayed = it.journal.replay(&|block| it.block(block));
        it.structures();
        it.walk();
        Some(it)
    }

    /// Returns the owners of a range of the drive. `before` is the image without the write whose range it is.
    pub fn places(&self, before: &Fork, start: u64, end: u64) -> Vec<OwnedRange> {
        let block = self.geometry.block;
        let blocks = start / block..end.div_ceil(block);
        merged(blocks.map(|number| {
            let (from, until) = (start.max(number * block), end.min((number + 1) * block));
            let owner = match self.journal.roles.get(&number) {
                Some((transaction, role)) => self.of_journal(*transaction, role, number),
                None => {
                    let old = self.read_block(before, number);
                    self.owner(number, from % block, &old, &self.in_place(number))
                }
            };
            OwnedRange {
                start: from,
                end: until,
                owner,
            }
        }))
    }

    fn read_block(&self, image: &Fork, number: u64) -> Vec<u8> {
        let mut bytes = vec![0; self.geometry.block as usize];
        // An invalid image can name blocks outside the file system.
        if number < self.geometry.blocks {
            image.read(number * self.geometry.block, &mut bytes);
        }
        bytes
    }

    fn in_place(&self, number: u64) -> Vec<u8> {
        self.read_block(self.image, number)
    }

    /// Returns a block as a mount would see it.
    fn block(&self, number: u64) -> Vec<u8> {
        match self.replayed.get(&number) {
            Some(&copy) => self.journal.copied(copy, self.in_place(copy)),
            None => self.in_place(number),
        }
    }

    fn of_journal(&self, transaction: Option<u32>, role: &Role, number: u64) -> Owner {
        let part = match *role {
            Role::Superblock => JournalPart::Superblock,
            Role::Descriptor => JournalPart::Descriptor,
            Role::Commit => JournalPart::Commit(self.changed_by(transaction)),
            Role::Revoke => JournalPart::Revoke,
            Role::Unused => JournalPart::Unused,
            Role::Copy { of, .. } => {
                let old = match self.journal.copy_before(of, transaction) {
                    Some(copy) => self.journal.copied(copy, self.in_place(copy)),
                    None => self.in_place(of),
                };
                let new = self.journal.copied(number, self.in_place(number));
                JournalPart::Copy(Box::new(self.owner(of, 0, &old, &new)))
            }
        };
        Owner::Journal { transaction, part }
    }

    /// Returns the owners of the blocks that a transaction changes, without bitmaps and other structures.
    fn changed_by(&self, transaction: Option<u32>) -> Vec<Owner> {
        let owners = self.journal.copies_of(transaction).filter_map(|number| {
            let (transaction, role) = self.journal.roles.get(&number)?;
            match self.of_journal(*transaction, role, number) {
                Owner::Journal {
                    part: JournalPart::Copy(owner),
                    ..
                } => Some(*owner),
                _ => None,
            }
        });
        owners
            .filter(|it| !matches!(it, Owner::Structure(_) | Owner::Unknown))
            .collect()
    }

    /// Returns the owner of a block whose contents a write replaces.
    fn owner(&self, number: u64, within: u64, old: &[u8], new: &[u8]) -> Owner {
        let run = self.runs.range(..=number).next_back();
        let Some((first, (_, kind))) = run.filter(|(first, it)| number - *first < it.0) else {
            return Owner::Unknown;
        };
        let block = number - first;
        match *kind {
            RunOwner::Structure(name) => Owner::Structure(name),
            RunOwner::Mapping(inode) => Owner::Mapping(self.name(inode)),
            RunOwner::Data(inode, _) if self.directories.contains(&inode) => Owner::Directory {
                path: self.name(inode),
                changes: changes(old, new),
            },
            RunOwner::Data(inode, logical) => Owner::File {
                path: self.name(inode),
                offset: (logical + block) * self.geometry.block + within,
            },
            RunOwner::Inodes(first) => {
                let size = self.geometry.inode_bytes as usize;
                let per_block = self.geometry.block / self.geometry.inode_bytes;
                let first = first.wrapping_add((block * per_block) as u32);
                let slots = (0..).zip(old.chunks(size).zip(new.chunks(size)));
                let changed = slots.filter(|(_, (old, new))| old != new);
                let inodes = changed.map(|(slot, _)| first.wrapping_add(slot));
                Owner::Inodes(inodes.map(|inode| self.name(inode)).collect())
            }
        }
    }

    fn name(&self, inode: u32) -> String {
        let (mut at, mut names, mut length) = (inode, Vec::new(), 0);
        // The directory that names an inode was found before it, so there is no cycle.
        while at != ROOT {
            let Some((directory, name)) = self.names.get(&at) else {
                return format!("inode {inode}");
            };
            length += name.len() + 1;
            names.push(name.as_str());
            if length > LONGEST_PATH {
                names.push("...");
                break;
            }
            at = *directory;
        }
        names.push("");
        names.reverse();
        match names.len() {
            1 => String::from("/"),
            _ => names.join("/"),
        }
    }

    fn add(&mut self, first: u64, blocks: u64, kind: RunOwner) {
        if blocks > 0 {
            // On an invalid image two owners can claim a block: the first one stays.
            self.runs.entry(first).or_insert((blocks, kind));
        }
    }

    /// Returns the blocks of a group's bitmaps and of its inode table.
    fn group(&self, group: u64) -> [u64; 3] {
        let it = self.geometry;
        let per_block = it.block / it.descriptor_bytes;
        let table = it.first_block + 1 + group / per_block;
        let at = group % per_block * it.descriptor_bytes;
        let mut descriptor = [0; 64];
        let bytes = &mut descriptor[..it.descriptor_bytes.min(64) as usize];
        match self.replayed.contains_key(&table) {
            true => bytes.copy_from_slice(&self.block(table)[at as usize..][..bytes.len()]),
            false => self.image.read(table * it.block + at, bytes),
        }
        [0, 4, 8].map(|field| {
            let high = match it.descriptor_bytes {
                64.. => le32(&descriptor, field + 32),
                _ => 0,
            };
            u64::from(le32(&descriptor, field)) | u64::from(high) << 32
        })
    }

    fn structures(&mut self) {
        let it = self.geometry;
        let descriptors = (it.groups() * it.descriptor_bytes).div_ceil(it.block);
        for group in 0..it.groups() {
            let first = it.first_block + group * it.per_group;
            if it.has_superblock(group) {
                self.add(first, 1, RunOwner::Structure("superblock"));
                self.add(
                    first + 1,
                    descriptors,
                    RunOwner::Structure("group descriptors"),
                );
                let reserved = first + 1 + descriptors;
                self.add(
                    reserved,
                    it.reserved,
                    RunOwner::Structure("reserved group descriptors"),
                );
            }
            let [blocks, inodes, table] = self.group(group);
            self.add(blocks, 1, RunOwner::Structure("block bitmap"));
            self.add(inodes, 1, RunOwner::Structure("inode bitmap"));
            let bytes = u64::from(it.inodes_per_group) * it.inode_bytes;
            let first_inode = (group as u32)
                .wrapping_mul(it.inodes_per_group)
                .wrapping_add(1);
            self.add(
                table,
                bytes.div_ceil(it.block),
                RunOwner::Inodes(first_inode),
            );
        }
    }

    fn inode(&self, number: u32) -> Vec<u8> {
        let it = self.geometry;
        let index = number.saturating_sub(1);
        let [_, _, table] = self.group(u64::from(index / it.inodes_per_group));
        let at = u64::from(index % it.inodes_per_group) * it.inode_bytes;
        let block = self.block(table.saturating_add(at / it.block));
        let from = (at % it.block) as usize;
        let bytes = block.get(from..from + it.inode_bytes as usize);
        bytes.unwrap_or_default().to_vec()
    }

    fn extents(&self, number: u32) -> Extents {
        let inode = self.inode(number);
        let mut extents = Extents::default();
        if le32(&inode, 32) & EXTENTS != 0 && inode.len() >= 100 {
            self.tree(&inode[40..100], DEPTH, &mut extents);
        }
        extents
    }

    /// Reads a node of an extent tree.
    fn tree(&self, node: &[u8], deepest: u16, into: &mut Extents) {
        let depth = le16(node, 6);
        if le16(node, 0) != 0xf30a || depth > deepest {
            return;
        }
        for at in (0..usize::from(le16(node, 2))).map(|it| 12 + 12 * it) {
            if at + 12 > node.len() {
                return;
            }
            if depth == 0 {
                // Above 32768: allocated, not written.
                let count = match le16(node, at + 4) {
                    unwritten @ 32769.. => unwritten - 32768,
                    count => count,
                };
                let start = u64::from(le32(node, at + 8)) | u64::from(le16(node, at + 6)) << 32;
                (into.data).push((le32(node, at).into(), start, count.into()));
                continue;
            }
            let leaf = u64::from(le32(node, at + 4)) | u64::from(le16(node, at + 8)) << 32;
            let is_free = leaf < self.geometry.blocks && !self.taken.contains(&leaf);
            if is_free && into.nodes.insert(leaf) {
                self.tree(&self.block(leaf), depth - 1, into);
            }
        }
    }

    /// Returns the blocks of a range that may not be all zeroes.
    fn written(&self, start: u64, end: u64) -> Vec<u64> {
        let end = end.min(self.geometry.blocks).max(start);
        let known = start.min(self.end)..end.min(self.end);
        let replayed = self.replayed.range(start.max(self.end)..end.max(self.end));
        known.chain(replayed.map(|(block, _)| *block)).collect()
    }

    /// Reads all directories, and the extents of their files.
    fn walk(&mut self) {
        let mut queue = VecDeque::from([(ROOT, ROOT, String::new())]);
        while let Some((number, directory, name)) = queue.pop_front() {
            // A second name of a file, or an invalid image.
            if self.names.contains_key(&number) {
                continue;
            }
            self.names.insert(number, (directory, name));
            let inode = self.inode(number);
            let extents = self.extents(number);
            self.taken.extend(&extents.nodes);
            let attributes = le32(&inode, 104);
            if attributes != 0 {
                self.add(attributes.into(), 1, RunOwner::Mapping(number));
            }
            for &node in &extents.nodes {
                self.add(node, 1, RunOwner::Mapping(number));
            }
            for &(logical, start, count) in &extents.data {
                self.add(start, count, RunOwner::Data(number, logical));
            }
            match le16(&inode, 0) & 0xf000 {
                0x4000 => {}
                _ => continue,
            }
            self.directories.insert(number);
            for (_, start, count) in extents.data {
                for block in self.written(start, start + count) {
                    if self.taken.insert(block) {
                        let named = entries(&self.block(block)).into_iter();
                        queue.extend(named.map(|(name, inode)| (inode, number, name)));
                    }
                }
            }
        }
    }
}

/// Extents of an inode: first block in the file, first block on the drive, number of blocks; and nodes of the tree.
#[derive(Default)]
struct Extents {
    data: Vec<(u64, u64, u64)>,
    nodes: BTreeSet<u64>,
}

/// Returns the entries of a directory's block, without `.` and `..`.
fn entries(block: &[u8]) -> BTreeMap<String, u32> {
    let mut all = BTreeMap::new();
    let mut at = 0;
    while at + 8 <= block.len() {
        let (inode, length) = (le32(block, at), usize::from(le16(block, at + 4)));
        let name = block.get(at + 8..at + 8 + usize::from(block[at + 6]));
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        if inode != 0 && !name.is_empty() && name != "." && name != ".." {
            all.insert(name.into_owned(), inode);
        }
        if length < 8 {
            break;
        }
        at += length;
    }
    all
}

/// Returns the differences between two versions of a directory's block.
fn changes(old: &[u8], new: &[u8]) -> Vec<String> {
    let (old, new) = (entries(old), entries(new));
    let added = new.iter().filter_map(|(name, inode)| match old.get(name) {
        None => Some(format!("adds {name}")),
        Some(before) if before != inode => Some(format!("replaces {name}")),
        Some(_) => None,
    });
    let removed = old.keys().filter(|name| !new.contains_key(*name));
    let removed = removed.map(|name| format!("removes {name}"));
    removed.chain(added).collect()
}
