//! Owners of ranges of a drive: the file, or the structure of the file system, that the bytes belong to.

use std::fmt;

/// Maximum number of names that a text lists.
const NAMED: usize = 3;

/// A range of the drive and its owner.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OwnedRange {
    /// First byte on the drive.
    pub start: u64,
    /// End on the drive.
    pub end: u64,
    /// Owner of the range.
    pub owner: Owner,
}

/// Owner of a range of the drive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owner {
    /// Data of a file.
    File {
        /// Path from the root folder of the file system.
        path: String,
        /// Offset of the range in the file, in bytes.
        offset: u64,
    },
    /// Entries of a directory.
    Directory {
        /// Path from the root folder of the file system.
        path: String,
        /// Entries that the write adds, removes or changes.
        changes: Vec<String>,
    },
    /// Other blocks of a file: its extent tree, extended attributes, or the target of a symbolic link.
    Mapping(String),
    /// Inodes that the write changes, by path.
    Inodes(Vec<String>),
    /// A structure of the file system, by its name.
    Structure(&'static str),
    /// A block of the journal.
    Journal {
        /// Number of the transaction; `None` if the block is not in use.
        transaction: Option<u32>,
        /// Purpose of the block.
        part: JournalPart,
    },
    /// Not known: free, or not a block of a file system that can be read.
    Unknown,
}

/// Purpose of a block of the journal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum JournalPart {
    /// Start and length of the journal.
    Superblock,
    /// First block of a transaction, or of a part of one.
    Descriptor,
    /// Last block of a transaction, which makes it valid; with the owners of the blocks that the transaction changes.
    Commit(Vec<Owner>),
    /// List of blocks whose earlier copies are void.
    Revoke,
    /// New contents of a block of the file system.
    Copy(Box<Owner>),
    /// Not in use.
    Unused,
}

impl Owner {
    /// Returns the word for reports.
    pub fn word(&self) -> &'static str {
        match self {
            Owner::File { .. } => "file",
            Owner::Directory { .. } => "directory",
            Owner::Mapping(_) => "mapping",
            Owner::Inodes(_) => "inodes",
            Owner::Structure(_) => "structure",
            Owner::Journal { .. } => "journal",
            Owner::Unknown => "unknown",
        }
    }

    /// Returns the path of the file or directory.
    pub fn path(&self) -> Option<&str> {
        match self {
            Owner::File { path, .. } | Owner::Directory { path, .. } | Owner::Mapping(path) => {
                Some(path)
            }
            Owner::Journal {
                part: JournalPart::Copy(of),
                ..
            } => of.path(),
            _ => None,
        }
    }

    /// Checks whether a range directly after this one, with this owner, continues it.
    fn is_continued_by(&self, bytes: u64, next: &Owner) -> bool {
        match (self, next) {
            (
                Owner::File { path, offset },
                Owner::File {
                    path: other,
                    offset: at,
                },
            ) => path == other && offset + bytes == *at,
            // Each block of the journal has its own purpose.
            (Owner::Journal { part, .. }, _) => *part == JournalPart::Unused && self == next,
            _ => self == next,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::File { path, offset } => write!(f, "{path} at {offset}"),
            Owner::Directory { path, changes } if changes.is_empty() => {
                write!(f, "directory {path}")
            }
            Owner::Directory { path, changes } => {
                write!(f, "directory {path} ({})", few(changes))
            }
            Owner::Mapping(path) => write!(f, "metadata of {path}"),
            Owner::Inodes(paths) if paths.is_empty() => f.write_str("inode table, unchanged"),
            Owner::Inodes(paths) => write!(f, "inode table ({})", few(paths)),
            Owner::Structure(name) => f.write_str(name),
            Owner::Journal { transaction, part } => {
                write!(f, "{}: {part}", journal(*transaction))
            }
            Owner::Unknown => f.write_str("no known file"),
        }
    }
}

impl fmt::Display for JournalPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            JournalPart::Superblock => "superblock",
            JournalPart::Descriptor => "first block",
            JournalPart::Commit(of) if of.is_empty() => "commit block",
            JournalPart::Commit(of) => {
                let of: Vec<String> = of.iter().map(Owner::to_string).collect();
                return write!(f, "commit block of {}", few(&of));
            }
            JournalPart::Revoke => "revoked blocks",
            JournalPart::Copy(owner) => return owner.fmt(f),
            JournalPart::Unused => "unused",
        })
    }
}

fn journal(transaction: Option<u32>) -> String {
    match transaction {
        Some(number) => format!("journal, transaction {number}"),
        None => String::from("journal"),
    }
}

/// Returns the texts of places. Blocks of one transaction of the journal have one text.
pub fn texts(places: &[OwnedRange]) -> Vec<String> {
    let alike = |a: &OwnedRange, b: &OwnedRange| match (&a.owner, &b.owner) {
        (
            Owner::Journal { transaction, .. },
            Owner::Journal {
                transaction: other, ..
            },
        ) => transaction == other,
        _ => false,
    };
    let text = |run: &[OwnedRange]| match &run[0].owner {
        Owner::Journal { transaction, .. } => {
            let parts = run.iter().filter_map(|it| match &it.owner {
                Owner::Journal { part, .. } => Some(part.to_string()),
                _ => None,
            });
            let parts: Vec<String> = parts.collect();
            format!("{}: {}", journal(*transaction), parts.join(", "))
        }
        Owner::Unknown => format!("{} B at {}", run[0].end - run[0].start, run[0].start),
        owner => format!("{owner} ({} B)", run[0].end - run[0].start),
    };
    places.chunk_by(alike).map(text).collect()
}

/// Returns the first names of a list.
fn few(names: &[String]) -> String {
    match names.len() {
        all if all <= NAMED => names.join(", "),
        all => format!("{} and {} more", names[..NAMED].join(", "), all - NAMED),
    }
}

/// Merges adjacent places of the same owner.
pub fn merged(places: impl IntoIterator<Item = OwnedRange>) -> Vec<OwnedRange> {
    let mut list: Vec<OwnedRange> = Vec::new();
    for place in places {
        match list.last_mut() {
            Some(last)
                if last.end == place.start
                    && (last.owner).is_continued_by(last.end - last.start, &place.owner) =>
            {
                last.end = place.end;
            }
            _ => list.push(place),
        }
    }
    list
}
