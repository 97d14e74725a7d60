//! The files of a mounted XFS, with the ranges of the drive that they have: by `xfs_io`, in a guest.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::job::{DIRECTORY, FileRange};

/// Number of files for each run of `xfs_io`, which opens all of them.
const AT_ONCE: usize = 200;

/// Bytes of the unit in which `xfs_io` counts.
const SECTOR: u64 = 512;

/// Lists the files and directories of the mounted file system.
pub(super) fn list(environment: &[(String, String)]) -> io::Result<Vec<FileRange>> {
    let mut found = vec![(PathBuf::from(DIRECTORY), true)];
    let mut next = 0;
    while let Some((path, is_directory)) = found.get(next).cloned() {
        next += 1;
        if is_directory {
            for entry in fs::read_dir(&path)? {
                let (entry, kind) = entry.and_then(|it| it.file_type().map(|kind| (it, kind)))?;
                if kind.is_dir() || kind.is_file() {
                    found.push((entry.path(), kind.is_dir()));
                }
            }
        }
    }
    let directories: BTreeMap<PathBuf, bool> = found.iter().cloned().collect();
    let mut list = Vec::new();
    for some in found.chunks(AT_ONCE) {
        let output = Command::new("xfs_io")
            .env_clear()
            .envs(environment.iter().cloned())
            .args(["-r", "-c", "bmap -v"])
            .args(some.iter().map(|it| &it.0))
            .output()?;
        ranges(
            &String::from_utf8_lossy(&output.stdout),
            &directories,
            &mut list,
        );
    }
    Ok(list)
}

/// Reads the output of `bmap -v`: a line with the path, then a line for each extent.
fn ranges(text: &str, directories: &BTreeMap<PathBuf, bool>, into: &mut Vec<FileRange>) {
    let mut file = None;
    for line in text.lines() {
        let path = line.strip_suffix(':').map(Path::new);
        if let Some((path, is_directory)) = path.and_then(|it| directories.get_key_value(it)) {
            file = Some((path, *is_directory));
            continue;
        }
        let (Some((path, is_directory)), Some((logical, physical))) = (file, extent(line)) else {
            continue;
        };
        let within = path.strip_prefix(DIRECTORY).unwrap_or(path);
        into.push(FileRange {
            path: format!("/{}", within.display()),
            is_directory,
            offset: logical.0 * SECTOR,
            start: physical.0 * SECTOR,
            bytes: (physical.1 + 1 - physical.0) * SECTOR,
        });
    }
}

/// Reads `0: [0..7]: 192..199 0 (192..199) 8`: the range in the file and on the drive, both ends included.
fn extent(line: &str) -> Option<((u64, u64), (u64, u64))> {
    let range = |text: &str| {
        let (from, to) = text.split_once("..")?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        (from <= to).then_some((from, to))
    };
    let mut words = line.split_whitespace().skip(1);
    let logical = words.next()?.strip_prefix('[')?.strip_suffix("]:")?;
    Some((range(logical)?, range(words.next()?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_read_and_holes_are_not() {
        let text = "/run/drivelab/a b:\n \
             EXT: FILE-OFFSET      BLOCK-RANGE      AG AG-OFFSET        TOTAL FLAGS\n   \
             0: [0..7]:          192..199          0 (192..199)           8 000000\n   \
             1: [8..15]:         hole                                     8\n   \
             2: [16..23]:        400..407          0 (400..407)           8 000000\n\
             /run/drivelab/empty: no extents\n";
        let files = [("/run/drivelab/a b", false), ("/run/drivelab/empty", false)];
        let files = files.map(|(path, kind)| (PathBuf::from(path), kind)).into();
        let mut list = Vec::new();
        ranges(text, &files, &mut list);
        let found: Vec<_> = { list.iter() }
            .map(|it| (&*it.path, it.offset, it.start, it.bytes))
            .collect();
        let expected = [
            ("/a b", 0, 192 * 512, 4096),
            ("/a b", 16 * 512, 400 * 512, 4096),
        ];
        assert_eq!(found, expected);
    }
}
