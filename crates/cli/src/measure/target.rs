//! The measured target: a block device, a regular file or an export of an NBD server, according to the argument.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

use rustix::fs::{OFlags, major, minor};
use study::measure::{self, MeasuredDevice};
use text::problem::Problems;

use super::of_device;
use super::sysfs::{BlockDevice, Tree};

/// Prefixes of NBD URIs, by the NBD project's uri.md.
const NBD: [&str; 4] = ["nbd://", "nbds://", "nbd+unix://", "nbds+unix://"];

/// A measured target.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MeasuredTarget {
    /// A block device.
    Block { path: String, block: BlockDevice },
    /// A regular file.
    File { path: String, bytes: u64 },
    /// An export of an NBD server.
    Nbd { uri: String },
}

impl MeasuredTarget {
    /// Returns the target that the argument means.
    ///
    /// # Errors
    /// It is not something that can be measured.
    pub(super) fn open(named: &str, tree: &Tree) -> Result<MeasuredTarget, Problems> {
        if NBD.iter().any(|start| named.starts_with(start)) {
            return Ok(MeasuredTarget::Nbd {
                uri: named.to_owned(),
            });
        }
        let refused = |what: String, help: &str| Problems(vec![of_device(named, what, help)]);
        let wanted = "a block device such as /dev/nvme1n1, a regular file, or a URI such as nbd://localhost/disk";
        let metadata = fs::metadata(named).map_err(|error| refused(error.to_string(), wanted))?;
        let path = named.to_owned();
        if metadata.file_type().is_block_device() {
            let number = metadata.rdev();
            let block = tree.block(major(number), minor(number)).map_err(|error| {
                let what = format!("the kernel does not list it in /sys ({error})");
                refused(what, "a block device that is listed in /sys")
            })?;
            return Ok(MeasuredTarget::Block { path, block });
        }
        match metadata.is_file() {
            true if metadata.len() > 0 => Ok(MeasuredTarget::File {
                path,
                bytes: metadata.len(),
            }),
            true => Err(refused(
                "is empty".into(),
                "create it with its final size: truncate -s 8G FILE, then write it once",
            )),
            false => Err(refused(
                "is neither a block device nor a regular file".into(),
                wanted,
            )),
        }
    }

    /// Returns the properties of the target.
    pub(super) fn device(&self, tree: &Tree) -> MeasuredDevice {
        let other = |kind: &str, name: &str, size_bytes| MeasuredDevice {
            kind: kind.to_owned(),
            name: name.to_owned(),
            path: name.to_owned(),
            model: None,
            firmware: None,
            serial: None,
            size_bytes,
            block_bytes: None,
            is_rotational: None,
            scheduler: None,
        };
        match self {
            MeasuredTarget::Block { path, block } => tree.device(block, path),
            MeasuredTarget::File { path, bytes } => {
                let whole = fs::canonicalize(path).map(|it| it.display().to_string());
                let name = whole.unwrap_or_else(|_| path.clone());
                MeasuredDevice {
                    path: path.clone(),
                    ..other("file", &name, Some(*bytes))
                }
            }
            MeasuredTarget::Nbd { uri } => other("nbd", uri, None),
        }
    }

    /// Returns the target for fio.
    pub(super) fn for_fio(&self) -> measure::FioTarget {
        match self {
            MeasuredTarget::Block { path, .. } | MeasuredTarget::File { path, .. } => {
                measure::FioTarget::Path(path.clone())
            }
            MeasuredTarget::Nbd { uri } => measure::FioTarget::Nbd(uri.clone()),
        }
    }

    /// Opens a block device exclusively before writing: while the file is open, nothing can mount the device. The
    /// kernel refuses if the device is in use, which detects more than /proc and /sys show.
    ///
    /// # Errors
    /// The device is in use, or cannot be opened.
    pub(super) fn claim(&self, writes: bool) -> Result<Option<File>, Problems> {
        let (MeasuredTarget::Block { path, .. }, true) = (self, writes) else {
            return Ok(None);
        };
        let flags = OFlags::EXCL.bits() as i32;
        let opened = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(flags)
            .open(path);
        opened.map(Some).map_err(|error| {
            let (what, help) = match error.kind() {
                io::ErrorKind::ResourceBusy => (
                    String::from("is in use: the kernel refuses exclusive access"),
                    "umount it, stop what it is part of (LVM, MD, ZFS, multipath), or measure another",
                ),
                io::ErrorKind::PermissionDenied => (
                    format!("cannot be opened: {error}"),
                    "run it as root",
                ),
                _ => (format!("cannot be opened: {error}"), "a device that can be written"),
            };
            Problems(vec![of_device(path, what, help)])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    #[test]
    fn what_cannot_be_measured_is_refused() {
        let tree = Tree::of_the_machine();
        let folder = TempDir::new().expect("a folder");
        let empty = folder.path().join("empty");
        fs::write(&empty, "").expect("a file");
        let folder = folder.path().to_str().expect("UTF-8");
        let empty = empty.to_str().expect("UTF-8");
        for (named, part) in [
            (folder, "neither a block device nor"),
            (empty, "is empty"),
            ("/dev/null", "neither a block device nor"),
            ("/nowhere/at/all", "No such file"),
        ] {
            let said = MeasuredTarget::open(named, &tree)
                .expect_err(named)
                .to_string();
            assert!(said.contains(part) && said.contains("help"), "{said}");
        }
    }

    #[test]
    fn a_uri_is_an_export() {
        let tree = Tree::of_the_machine();
        let uri = "nbd+unix:///disk?socket=/run/s";
        let target = MeasuredTarget::open(uri, &tree).expect("a URI");
        assert_eq!(target.device(&tree).name, uri);
        assert_eq!(target.for_fio(), measure::FioTarget::Nbd(uri.into()));
        assert!(target.claim(true).is_ok_and(|claim| claim.is_none()));
    }
}
