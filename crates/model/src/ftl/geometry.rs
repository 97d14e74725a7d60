//! Geometry of a NAND array, and how a physical page number is composed of die, block and slot.
//!
//! A *slot* holds one 4 KiB map unit. Here, a *page* is a multi-plane page of one die (all planes programmed together)
//! and a *block* is the multi-plane block of such pages, because the modelled drives allocate and erase in these units.
//! Not modelled: locations of bad blocks and parity (they are capacity that [`NandGeometry::reserved`] removes).

use alloc::format;
use alloc::string::String;
use core::ops::Range;

use super::numbers::{Block, Die, Slot};

/// Bytes of one map unit.
pub const UNIT: u32 = 4096;

/// The NAND array of a drive.
#[derive(Clone, Copy, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct NandGeometry {
    /// Number of channels of the controller.
    pub channels: u32,
    /// Number of dies per channel.
    pub dies_per_channel: u32,
    /// Number of planes per die, which are programmed and erased together.
    pub planes: u32,
    /// Number of blocks per plane.
    pub blocks_per_plane: u32,
    /// Number of pages per block of a plane.
    pub pages_per_block: u32,
    /// Bytes per page of one plane, without spare bytes; a multiple of 4096.
    pub page_bytes: u32,
    /// Share of the blocks, 0 to 1, that neither hold host data nor serve as spare area: bad blocks, parity, firmware,
    /// map.
    pub reserved: f64,
    /// Bytes that a host can address; a multiple of 4096.
    pub capacity: u64,
    /// Bytes per map entry: 4096, or a multiple of it; smaller writes are then read, merged and written as a whole.
    #[cfg_attr(feature = "serde", serde(default = "unit"))]
    pub indirection: u32,
    /// Contiguous bytes on one die, before the next die follows, in the computed state of a sequentially filled drive:
    /// a part of a multi-plane page, or all of it. 0 for all of it.
    #[cfg_attr(feature = "serde", serde(default))]
    pub stripe: u32,
}

/// The indirection unit of drives that specify none.
#[cfg(feature = "serde")]
fn unit() -> u32 {
    UNIT
}

/// An invalid geometry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeometryError(pub String);

impl core::fmt::Display for GeometryError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for GeometryError {}

/// A geometry in the units of the translation layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FtlGeometry {
    /// Number of channels.
    pub channels: u32,
    /// Number of dies.
    pub dies: u32,
    /// Slots per multi-plane page.
    pub page_slots: u32,
    /// Slots per multi-plane block.
    pub block_slots: u32,
    /// Usable blocks per die.
    pub blocks: u32,
    /// Slots per die.
    pub die_slots: u32,
    /// Logical pages of 4 KiB.
    pub logical: u32,
    /// Logical pages, counted from the first one, that hold data in a written initial state; the others are trimmed.
    /// All of them, unless set by [`FtlGeometry::filled_to`].
    pub written: u32,
    /// Pages of 4 KiB that are written together, aligned to a multiple of this number: the indirection unit.
    pub together: u32,
    /// Contiguous slots on one die, before the next die follows, after a first sequential fill.
    pub stripe: u32,
}

impl NandGeometry {
    /// Checks the geometry and computes its [`FtlGeometry`].
    ///
    /// # Errors
    /// Names the invalid value: a zero, a page that is not a multiple of the unit, more slots than fit into 32 bits, or
    /// too little spare area for garbage collection (GC). GC needs `spare_blocks` free and open blocks per die, and a
    /// few more.
    pub fn shape(&self, spare_blocks: u32) -> Result<FtlGeometry, GeometryError> {
        let fail = |what: String| Err(GeometryError(what));
        if let Some(name) = self.first_zero() {
            return fail(format!("{name} is zero"));
        }
        if self.page_bytes % UNIT != 0 {
            return fail(format!(
                "page_bytes is {}, not a multiple of {UNIT}",
                self.page_bytes
            ));
        }
        if !(0.0..1.0).contains(&self.reserved) {
            return fail(format!("reserved is {}, not in 0 to 1", self.reserved));
        }
        if self.capacity == 0 || self.capacity % u64::from(UNIT) != 0 {
            return fail(format!(
                "capacity is {} bytes, not a multiple of {UNIT}",
                self.capacity
            ));
        }
        let page_slots = u64::from(self.planes) * u64::from(self.page_bytes / UNIT);
        let block_slots = page_slots * u64::from(self.pages_per_block);
        if !self.holds_whole_indirection_units(page_slots) {
            return fail(format!(
                "the indirection unit is {} bytes: it must be a multiple of {UNIT}, and multi-plane page and capacity must \
                 be whole ones",
                self.indirection
            ));
        }
        if !self.holds_whole_stripes(page_slots) {
            return fail(format!(
                "stripe is {} bytes: it must be whole indirection units, and a multi-plane page whole stripes",
                self.stripe
            ));
        }
        let blocks = (f64::from(self.blocks_per_plane) * (1.0 - self.reserved)) as u64;
        let dies = u64::from(self.channels) * u64::from(self.dies_per_channel);
        let slots = dies * blocks * block_slots;
        let logical = self.capacity / u64::from(UNIT);
        if block_slots >= 0x8000 {
            return fail(format!(
                "a multi-plane block has {block_slots} units of 4 KiB; at most 32767 fit the valid counts"
            ));
        }
        // A quarter of the number range is reserved for slots of the write buffer.
        if slots >= 3 << 30 {
            return fail(format!(
                "{slots} units of 4 KiB cannot be numbered with 32 bits"
            ));
        }
        let needed = logical.div_ceil(dies) + u64::from(spare_blocks + 1) * block_slots;
        if needed > blocks * block_slots {
            return fail(format!(
                "{blocks} usable blocks of {block_slots} units per die leave no space for garbage collection: \
                 {needed} units are needed"
            ));
        }
        Ok(FtlGeometry {
            channels: self.channels,
            dies: dies as u32,
            page_slots: page_slots as u32,
            block_slots: block_slots as u32,
            blocks: blocks as u32,
            die_slots: (blocks * block_slots) as u32,
            logical: logical as u32,
            written: logical as u32,
            together: self.indirection / UNIT,
            stripe: self.stripe_bytes(page_slots) as u32 / UNIT,
        })
    }

    /// Returns the name of a count that is zero.
    fn first_zero(&self) -> Option<&'static str> {
        let counts = [
            ("channels", self.channels),
            ("dies_per_channel", self.dies_per_channel),
            ("planes", self.planes),
            ("blocks_per_plane", self.blocks_per_plane),
            ("pages_per_block", self.pages_per_block),
            ("page_bytes", self.page_bytes),
        ];
        let zero = counts.into_iter().find(|(_, value)| *value == 0);
        zero.map(|(name, _)| name)
    }

    fn holds_whole_indirection_units(&self, page_slots: u64) -> bool {
        let (unit, whole) = (u64::from(UNIT), u64::from(self.indirection));
        whole > 0
            && whole % unit == 0
            && page_slots * unit % whole == 0
            && self.capacity % whole == 0
    }

    fn stripe_bytes(&self, page_slots: u64) -> u64 {
        match self.stripe {
            0 => page_slots * u64::from(UNIT),
            stripe => stripe.into(),
        }
    }

    fn holds_whole_stripes(&self, page_slots: u64) -> bool {
        let stripe = self.stripe_bytes(page_slots);
        let page = page_slots * u64::from(UNIT);
        stripe % u64::from(self.indirection) == 0 && page % stripe == 0
    }

    /// Returns the bytes of the whole array, reserved blocks included.
    pub fn raw_bytes(&self) -> u64 {
        u64::from(self.channels)
            * u64::from(self.dies_per_channel)
            * u64::from(self.planes)
            * u64::from(self.blocks_per_plane)
            * u64::from(self.pages_per_block)
            * u64::from(self.page_bytes)
    }
}

impl FtlGeometry {
    /// Returns the shape with data in this share of the logical pages, 0 to 1, in whole indirection units; at least one
    /// unit.
    #[must_use]
    pub fn filled_to(self, share: f64) -> FtlGeometry {
        let units = self.logical / self.together;
        let written = libm::floor(f64::from(units) * share) as u32;
        FtlGeometry {
            written: written.clamp(1, units) * self.together,
            ..self
        }
    }

    /// Returns the usable slots of all dies.
    pub fn slots(&self) -> u32 {
        self.dies * self.die_slots
    }

    /// Returns the die of a block.
    #[inline]
    pub fn die_of_block(&self, block: Block) -> Die {
        Die(block.0 / self.blocks)
    }

    /// Returns all dies.
    pub fn every_die(&self) -> impl Iterator<Item = Die> + Clone + use<> {
        (0..self.dies).map(Die)
    }

    /// Returns the `nth` block of a die, counted from 0.
    #[inline]
    pub fn block(&self, die: Die, nth: u32) -> Block {
        Block(die.0 * self.blocks + nth)
    }

    /// Returns the numbers of a die's blocks.
    #[inline]
    pub fn blocks_of(&self, die: Die) -> Range<usize> {
        let first = self.block(die, 0).index();
        first..first + self.blocks as usize
    }

    /// Returns the first slot of a block.
    #[inline]
    pub fn first_slot(&self, block: Block) -> Slot {
        Slot(block.0 * self.block_slots)
    }
}
