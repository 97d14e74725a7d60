//! Files of jobs and their file system, which no option of fio specifies.

use model::host::Filesystem;

use super::JobSet;

/// Puts the files of jobs into a file system. `None`: all jobs use the drive directly, as with `direct=1`.
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

/// Checks whether a `filename` names a block device and not a file: `/dev/...`, `\\.\PhysicalDrive1`, or SPDK's
/// `trtype=PCIe traddr=...`.
pub(super) fn is_device(name: &str) -> bool {
    name.starts_with("/dev/") || name.starts_with("\\\\.\\") || name.contains("traddr=")
}
