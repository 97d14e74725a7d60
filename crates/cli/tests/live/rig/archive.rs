//! An archive that a kernel unpacks into its root: cpio, "newc", in the format of the kernel's
//! Documentation/driver-api/early-userspace/buffer-format.rst. Folders and plain files only.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

const FOLDER: u32 = 0o040_755;
const FILE: u32 = 0o100_644;
const PROGRAM: u32 = 0o100_755;

fn entry(out: &mut Vec<u8>, inode: u32, mode: u32, name: &str, contents: &[u8]) {
    let size = u32::try_from(contents.len()).expect("a small file");
    let name_size = u32::try_from(name.len()).expect("a short name") + 1;
    // inode, mode, user, group, links, time, size, device (2), device of a special file (2), length of name, checksum
    let fields = [inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0];
    out.extend(b"070701");
    for field in fields {
        write!(out, "{field:08x}").expect("memory");
    }
    out.extend(name.as_bytes());
    out.push(0);
    pad(out);
    out.extend(contents);
    pad(out);
}

fn pad(out: &mut Vec<u8>) {
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Returns files in a folder, as one archive.
pub(crate) fn folder(name: &str, files: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    entry(&mut out, 1, FOLDER, name, &[]);
    for (inode, (file, text)) in (2..).zip(files) {
        let path = format!("{name}/{file}");
        entry(&mut out, inode, FILE, &path, text.as_bytes());
    }
    entry(&mut out, 0, 0, "TRAILER!!!", &[]);
    out
}

/// Returns a program at a path whose folder exists, as an archive.
pub(crate) fn program(place: &str, contents: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    entry(&mut out, 1, PROGRAM, place, contents);
    entry(&mut out, 0, 0, "TRAILER!!!", &[]);
    out
}

/// Concatenates archives; each begins at a multiple of four bytes.
pub(crate) fn join(archives: &[&Path], last: &[u8], to: &Path) -> io::Result<()> {
    let mut out = fs::File::create(to)?;
    for path in archives {
        let length = io::copy(&mut fs::File::open(path)?, &mut out)?;
        let padding = length.next_multiple_of(4) - length;
        out.write_all(&[0; 4][..padding as usize])?;
    }
    out.write_all(last)
}
