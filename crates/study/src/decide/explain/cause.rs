//! A possible cause of a difference: its subject, its texts and the case that has it.
//!
//! The texts name checks of Linux (`lspci`, nvme-cli, cpupower). Not included: the conditions themselves, which are in
//! [`super::causes`].

use super::runs::ExplainCase;

/// Subject of a cause; only one cause of each subject applies at a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CauseSubject {
    /// Data on the drive.
    State,
    /// Lanes and generation of the drive's link.
    Link,
    /// Start of the partition or file.
    Alignment,
    /// Power governor of the drive.
    Power,
    /// Wear of the drive.
    Wear,
    /// Time since power-on.
    Uptime,
    /// The host of the drive.
    Host,
    /// An option of the file.
    Option,
}

impl CauseSubject {
    /// Returns the shortest check on the machine, for a first line; `None` for options, which are in the file.
    pub const fn check(self) -> Option<&'static str> {
        match self {
            CauseSubject::State => Some("precondition and measure again"),
            CauseSubject::Link => Some("lspci -vv"),
            CauseSubject::Alignment => Some("the partition's start"),
            CauseSubject::Power => Some("nvme get-feature -f 2"),
            CauseSubject::Wear => Some("nvme smart-log"),
            CauseSubject::Uptime => Some("measure again after an hour"),
            CauseSubject::Host => Some("cpupower idle-info"),
            CauseSubject::Option => None,
        }
    }

    /// Returns how to find out on the machine whether the condition applied; `None` for options, which are in the
    /// file.
    pub const fn to_tell(self) -> Option<&'static str> {
        match self {
            CauseSubject::State => Some(
                "write the drive over twice, at random, and measure again (`drivelab measure --plan fit` does both)",
            ),
            CauseSubject::Link => Some(
                "`lspci -vv` shows the link's present rate and width (LnkSta) and its maximum (LnkCap)",
            ),
            CauseSubject::Alignment => {
                Some("the partition's `start` in /sys/block must be a multiple of 8 sectors")
            }
            CauseSubject::Power => Some(
                "`nvme get-feature -f 2` has the power state, `nvme smart-log` the temperature and the counts of thermal management",
            ),
            CauseSubject::Wear => Some("`nvme smart-log` has percentage_used"),
            CauseSubject::Uptime => Some("measure again after an hour under power"),
            CauseSubject::Host => {
                Some("measure again with `cpupower idle-set -D 0`, which keeps cores awake")
            }
            CauseSubject::Option => None,
        }
    }
}

/// A cause, and the case that has it (a condition) or does not have it (an option).
#[derive(Clone, Debug)]
pub struct Cause {
    /// Subject of the cause.
    pub about: CauseSubject,
    /// Identifier for programs.
    pub key: String,
    /// Description of the cause.
    pub what: String,
    /// The cause as a supposition, to follow "if"; empty for options.
    pub supposition: String,
    /// The shortest check on the machine; empty for options.
    pub check: Vec<&'static str>,
    /// How to find out on the machine whether it applied.
    pub to_tell: Vec<&'static str>,
    /// The simulated case.
    pub case: ExplainCase,
}

impl Cause {
    pub(super) fn new(
        about: CauseSubject,
        key: impl Into<String>,
        what: impl Into<String>,
        case: ExplainCase,
    ) -> Cause {
        Cause {
            about,
            key: key.into(),
            what: what.into(),
            supposition: String::new(),
            check: about.check().into_iter().collect(),
            to_tell: about.to_tell().into_iter().collect(),
            case,
        }
    }

    /// Returns the cause with its text as a supposition.
    pub(super) fn supposing(self, supposition: impl Into<String>) -> Cause {
        Cause {
            supposition: supposition.into(),
            ..self
        }
    }
}
