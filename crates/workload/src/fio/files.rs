//! Which jobs have files, and in which file system: what no option of fio's says.

use model::host::Filesystem;

use super::JobSet;

/// Puts the files of jobs into a file system; `None`: all have the drive itself, as if `direct=1`.
pub fn in_filesystem(set: &mut JobSet, filesystem: Option<Filesystem>) {
    let globals = &set.globals;
    for job in &mut set.jobs {
        let mut written = job.as_written.iter().chain(globals);
        let device = job.on_device
            || written
                .find(|(key, _)| key == "filename")
                .is_some_and(|(_, name)| is_device(name));
        match filesystem {
            None => (job.direct, job.filesystem) = (true, None),
            Some(_) if !device => job.filesystem = filesystem,
            Some(_) => {}
        }
    }
}

/// Whether a `filename` names a block device rather than a file on one: `/dev/...`, `\\.\PhysicalDrive1`, or SPDK's
/// `trtype=PCIe traddr=...`.
pub(super) fn is_device(name: &str) -> bool {
    name.starts_with("/dev/") || name.starts_with("\\\\.\\") || name.contains("traddr=")
}
