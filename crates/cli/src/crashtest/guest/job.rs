//! Messages between the host and the guest's first process: the guest's job in a file, then lines of JSON on the
//! console.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Folder of the guest in which the file system is mounted.
pub(super) const DIRECTORY: &str = "/run/drivelab";

/// Folder of the guest that the host shares.
pub(super) const SHARED: &str = "/run/host";

/// Beginning of a console line that is a message: the kernel prints on the console too.
pub(super) const MARK: &str = "drivelab-guest: ";

/// Environment variable with the path of the file of the job.
pub(super) const JOB: &str = "DRIVELAB_GUEST_JOB";

/// A file system that the guest makes and mounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::crashtest) enum FileSystem {
    Ext4,
    Xfs,
}

impl FileSystem {
    /// Returns the name that `mount` takes.
    pub(in crate::crashtest) fn name(self) -> &'static str {
        match self {
            FileSystem::Ext4 => "ext4",
            FileSystem::Xfs => "xfs",
        }
    }
}

/// How the drive is mounted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::crashtest) struct Mount {
    pub(in crate::crashtest) file_system: FileSystem,
    /// Options, separated by commas, as `mount -o` takes them.
    pub(in crate::crashtest) options: String,
    /// User that runs programs and owns the root folder; root if there is none.
    pub(in crate::crashtest) user: Option<String>,
}

/// Purpose of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::crashtest) enum Task {
    /// Make the file system, and run the command that is not recorded.
    Prepare,
    /// Run the program once.
    Record,
    /// Check images until the console closes.
    Check,
}

/// Task of a guest, with all that it needs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::crashtest) struct Job {
    pub(in crate::crashtest) task: Task,
    pub(in crate::crashtest) mount: Mount,
    /// Whether unsynchronized data is written soon, or not before it must be.
    pub(in crate::crashtest) eager: bool,
    /// Folder of the host that the guest can read, and write if it checks.
    pub(in crate::crashtest) folder: PathBuf,
    /// Working directory.
    pub(in crate::crashtest) directory: PathBuf,
    pub(in crate::crashtest) environment: Vec<(String, String)>,
    /// Program with its arguments; empty for none.
    pub(in crate::crashtest) program: Vec<String>,
    /// Whether the program is a resident checker.
    pub(in crate::crashtest) resident: bool,
    /// Whether the file system is checked before the program.
    pub(in crate::crashtest) fsck: bool,
    /// Time limit of a check in milliseconds.
    pub(in crate::crashtest) limit_ms: u64,
}

impl Job {
    /// Returns the path in the guest of a file in the folder of the host.
    pub(in crate::crashtest) fn shared(name: &str) -> String {
        format!("{SHARED}/{name}")
    }
}

/// An image to be checked. Its files are in the shared folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Order {
    /// Name of the image.
    pub(in crate::crashtest) name: String,
    /// Names of the files with tokens.
    pub(in crate::crashtest) acks: String,
    pub(in crate::crashtest) tries: String,
    /// List the files of the image instead of checking it.
    pub(in crate::crashtest) list: bool,
}

/// A range of the drive with data of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::crashtest) struct FileRange {
    /// Path from the root folder of the file system.
    pub(in crate::crashtest) path: String,
    pub(in crate::crashtest) is_directory: bool,
    /// Offset in the file in bytes.
    pub(in crate::crashtest) offset: u64,
    /// Offset on the drive in bytes.
    pub(in crate::crashtest) start: u64,
    pub(in crate::crashtest) bytes: u64,
}

/// A message of the guest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::crashtest) enum Message {
    /// The guest is ready: the file system is mounted, or images can be checked. With the release of its kernel.
    Ready(String),
    /// The program has ended.
    Ended(ProgramEnd),
    /// The program cannot be started, for this reason.
    NotStarted(String),
    /// Answer of the resident checker.
    Answered(String),
    /// The resident checker has ended, for this reason.
    Gone(String),
    /// The files of the image.
    Files(Vec<FileRange>),
    /// The check did not end within its limit.
    Hung,
    /// The file system cannot be mounted, for this reason.
    Unmountable(String),
    /// The file system has errors: the last line of its checker.
    Unsound(String),
    /// The guest has given up, for this reason.
    Failed(String),
    /// The task is done.
    Done,
}

/// End of a program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::crashtest) struct ProgramEnd {
    /// As the kernel's `wait` returns it.
    pub(in crate::crashtest) status: i32,
    /// End of its output.
    pub(in crate::crashtest) output: String,
    /// Last lines of its standard output and of its standard error that are not empty.
    pub(in crate::crashtest) said: String,
    pub(in crate::crashtest) complained: String,
}
