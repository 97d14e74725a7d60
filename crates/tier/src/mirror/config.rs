//! Settings of a mirror, and its durability guarantee.

use alloc::string::String;
use alloc::vec::Vec;

use model::device::Range;

use super::{Mirror, recover};
use crate::copies::Reads;
use crate::offline::{ChildImages, Damage};
use crate::read_errors::READ_ERRORS;
use crate::{Child, Promise, TierSettings, label, legs};

/// Settings of a mirror.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct MirrorConfig {
    /// Policy for selecting the member to read.
    pub reads: Reads,
    /// Bytes per region, the unit of marking writes: a power of two, at least 4096. Larger if the mirror is so large
    /// that the marks would not fit into a label.
    pub region: u64,
    /// Bytes copied at a time to a member that has returned: a multiple of 4096, not zero.
    pub copied: u32,
    /// Maximum rate of a resync in bytes per second; 0 without a limit.
    pub resync_rate: u64,
    /// Number of consecutive read errors of a member after which the next one puts it out.
    pub read_errors: u16,
}

impl Default for MirrorConfig {
    fn default() -> MirrorConfig {
        MirrorConfig {
            reads: Reads::default(),
            region: 64 << 20,
            copied: 256 << 10,
            resync_rate: 0,
            read_errors: READ_ERRORS,
        }
    }
}

/// Maximum number of mirror members.
pub const MOST_LEGS: usize = 32;

impl TierSettings for MirrorConfig {
    type Tier = Mirror;

    fn build(&self, children: &[u64]) -> Mirror {
        Mirror::new(self, children.len(), self.capacity(children))
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        let smallest = children.iter().copied().min().unwrap_or(0);
        (smallest / 4096 * 4096).saturating_sub(label::AREA)
    }

    fn promise(&self, children: &[Promise]) -> Promise {
        Promise::joined(children, children.len() as u16)
    }

    fn recovers(&self) -> bool {
        true
    }

    fn does_without(&self, _child: Child) -> bool {
        true
    }

    fn renews(&self) -> bool {
        true
    }

    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let mut of_leg = ranges.to_vec();
        of_leg.push(Range {
            offset: self.capacity(children),
            bytes: label::AREA,
        });
        alloc::vec![of_leg; children.len()]
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if children.len() < 2 || children.len() > MOST_LEGS {
            problems.push(alloc::format!(
                "a mirror must have 2 to {MOST_LEGS} members"
            ));
        }
        if children.iter().any(|&bytes| bytes < label::AREA + 4096) {
            problems.push(String::from(
                "a member is too small for a label and a block",
            ));
        }
        if self.copied == 0 || !self.copied.is_multiple_of(4096) {
            problems.push(String::from("its copy size must be a multiple of 4 KiB"));
        }
        if !self.region.is_power_of_two() || self.region < 4096 {
            problems.push(String::from(
                "its region must be a power of two and at least 4 KiB",
            ));
        }
        problems
    }

    fn format(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        let bytes = self.capacity(children);
        legs::format(&mut self.build(children).labels, bytes, pool, below)
    }

    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<Mirror, Damage> {
        recover::recover(self.build(children), pool, below)
    }
}
