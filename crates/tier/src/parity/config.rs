//! Settings of a RAID 5 or RAID 6, and its durability guarantee.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use model::device::Range;
use model::engine::Slab;
use model::time::Time;

use super::rebuild::Rebuilding;
use super::shape::ParityLayout;
use super::{ParityArray, recover};
use crate::labels::{self, Labels};
use crate::offline::{ChildImages, Damage};
use crate::read_errors::{READ_ERRORS, ReadErrors};
use crate::{Child, Loss, Promise, TierSettings, label, legs};

/// Settings of a RAID 5 (`PARITY` is 1) or RAID 6 (2).
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ParityArrayConfig<const PARITY: u16> {
    /// Bytes on one child before the next child follows: a multiple of 4096, not zero.
    pub chunk: u32,
    /// Bytes of each child per region, the unit of marking writes: a power of two, at least 4096. Larger if the marks
    /// would not fit into a label.
    pub region: u64,
    /// Maximum rate of a rebuild in bytes per second; 0 without a limit.
    pub resync_rate: u64,
    /// Number of consecutive read errors of a child after which the next one puts it out.
    pub read_errors: u16,
}

/// Maximum number of children.
const MOST: usize = 32;

impl<const PARITY: u16> Default for ParityArrayConfig<PARITY> {
    /// The defaults of md.
    fn default() -> Self {
        ParityArrayConfig {
            chunk: 512 << 10,
            region: 64 << 20,
            resync_rate: 0,
            read_errors: READ_ERRORS,
        }
    }
}

impl<const PARITY: u16> ParityArrayConfig<PARITY> {
    fn stripes(&self, children: &[u64]) -> u64 {
        let smallest = children.iter().min().map_or(0, |bytes| bytes / 4096 * 4096);
        smallest.saturating_sub(label::AREA) / u64::from(self.chunk.max(1))
    }
}

impl<const PARITY: u16> TierSettings for ParityArrayConfig<PARITY> {
    type Tier = ParityArray;

    fn build(&self, children: &[u64]) -> ParityArray {
        let shape = ParityLayout {
            children: children.len() as u64,
            parity: PARITY.into(),
            chunk: self.chunk.into(),
        };
        let stripes = self.stripes(children);
        let bytes = stripes * shape.chunk;
        let region = labels::region_bytes(self.region, bytes);
        let mut labels = Labels::new(children.len(), bytes, region);
        labels.needed = shape.data() as u32;
        ParityArray {
            shape,
            stripes,
            labels,
            requests: Slab::default(),
            works: Slab::default(),
            cells: Vec::new(),
            pieces: Slab::default(),
            locked: Vec::new(),
            waiting: VecDeque::new(),
            unacknowledged: Vec::new(),
            rest_at: Time::NEVER,
            recovered: false,
            last_write: Time::ZERO,
            resting: 0,
            disturbed: false,
            outgoing: Vec::new(),
            rebuilding: Rebuilding::new(self.resync_rate, bytes, children.len()),
            read_errors: ReadErrors::new(children.len(), self.read_errors),
            untrusted: 0,
        }
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        let data = children.len().saturating_sub(PARITY.into()) as u64;
        self.stripes(children) * u64::from(self.chunk) * data
    }

    /// More failed children than parity columns; or one failed child while a crash leaves parity older than data: the
    /// write hole.
    fn promise(&self, children: &[Promise]) -> Promise {
        let all = Promise::joined(children, PARITY + 1);
        let any = Promise::joined(children, 1).loss;
        Promise {
            loss: Loss::any(vec![all.loss, Loss::all(vec![any, Loss::Ram])]),
            ..all
        }
    }

    fn recovers(&self) -> bool {
        true
    }

    fn does_without(&self, _child: Child) -> bool {
        true
    }

    /// Whole chunks of all columns, and the labels.
    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let chunk = u64::from(self.chunk);
        let stripe = chunk * children.len().saturating_sub(PARITY.into()) as u64;
        let rows = |it: &Range| {
            let first = it.offset / stripe * chunk;
            Range {
                offset: first,
                bytes: (it.offset + it.bytes).div_ceil(stripe) * chunk - first,
            }
        };
        let mut used: Vec<Range> = ranges.iter().map(rows).collect();
        used.push(Range {
            offset: self.stripes(children) * chunk,
            bytes: label::AREA,
        });
        vec![used; children.len()]
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        let least = usize::from(PARITY) + 2;
        if !(least..=MOST).contains(&children.len()) {
            problems.push(alloc::format!("it requires {least} to {MOST} drives"));
        }
        if self.chunk == 0 || !self.chunk.is_multiple_of(4096) {
            problems.push(String::from("its chunk must be a multiple of 4 KiB"));
        } else if self.stripes(children) == 0 {
            problems.push(String::from(
                "its members are too small for a chunk and a label",
            ));
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
        let mut array = self.build(children);
        let bytes = array.labels_at();
        legs::format(&mut array.labels, bytes, pool, below)
    }

    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<ParityArray, Damage> {
        recover::recover(self.build(children), pool, below)
    }
}
