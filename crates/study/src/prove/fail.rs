//! Failures at a tried point.

use super::oracle::WrongContent;
use super::run::ServiceFailure;

/// A failure at a point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Fail {
    /// A failure while the pool was running.
    Up(ServiceFailure),
    /// The pool does not start again.
    Down(String),
    /// The content of a sector is wrong.
    Sector(u64, WrongContent),
    /// A sector cannot be read.
    Unreadable(u64),
    /// Two reads of a sector may differ.
    Ambiguous(u64),
    /// This number of records is reported as lost; 0 if a block that cannot be read may have held one.
    Told(u64),
    /// Records up to this number were durable, and the ring ends before it without a report.
    Untold(u64),
    /// A second recovery has a different result.
    Unstable,
    /// The restarted pool does not serve.
    Service(ServiceFailure),
    /// A trial of the recovery, as a server does first, succeeds and the recovery does not, or the reverse.
    Trial,
    /// Members that continued independently of each other were combined.
    Accepted,
    /// Without data, the members receive other commands than with data.
    Traces,
}

impl Fail {
    /// Returns the failure as text, for a counterexample.
    pub(super) fn words(&self) -> String {
        match self {
            Fail::Up(misdeed) => format!("while the pool was running: {misdeed:?}"),
            Fail::Down(why) => format!("the pool does not open again: {why}"),
            Fail::Sector(sector, WrongContent::Lost) => {
                format!("sector {sector} is older than the guarantee allows")
            }
            Fail::Sector(sector, WrongContent::Others) => format!("sector {sector} is another's"),
            Fail::Sector(sector, WrongContent::Garbage) => {
                format!("sector {sector} has data that was never written")
            }
            Fail::Unreadable(sector) => format!("sector {sector} cannot be read"),
            Fail::Ambiguous(sector) => format!("at sector {sector} two reads may differ"),
            Fail::Told(0) => {
                "a block that cannot be read is said to leave the end of a log in doubt".into()
            }
            Fail::Told(records) => format!("{records} records are said to be lost"),
            Fail::Untold(number) => {
                format!(
                    "the ring ends before record {number}, which was durable, and does not say so"
                )
            }
            Fail::Unstable => "a second recovery has a different result".into(),
            Fail::Service(misdeed) => format!("it does not serve after the recovery: {misdeed:?}"),
            Fail::Trial => "a trial of the recovery has another result than the recovery".into(),
            Fail::Accepted => "members that diverged are served together".into(),
            Fail::Traces => {
                "with data, its members receive other requests than without data".into()
            }
        }
    }
}
