//! A NAND drive as a [`Medium`]: construction, and administrative settings and properties.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Nand, NandConfig, WarmState};
use crate::management::LbaFormat;
use crate::management::refusal::{Refusal, filled, percentage, provisioned, wear_factor};
use crate::media::{Medium, MediumDrive, Precondition, Seeds};
use crate::time::Span;

/// Minimum number of pages per block of a scaled-down drive.
const FEWEST_PAGES: u32 = 16;
/// Minimum number of usable blocks per die of a scaled-down drive.
const FEWEST_BLOCKS: u32 = 96;

impl Medium for NandConfig {
    type Drive = Nand;

    fn build(&self, state: Precondition, seeds: impl Into<Seeds>) -> Nand {
        Nand::new(self.clone(), state, seeds)
    }

    fn impossible(&self) -> Vec<String> {
        self.check().err().unwrap_or_default()
    }

    fn capacity_bytes(&self) -> u64 {
        self.geometry.capacity
    }

    /// Returns a drive of about `bytes` with equal garbage collection. First, blocks have fewer pages, and are erased
    /// in proportionally less time, so that erasing takes an equal share of a die's time. Then dies have fewer blocks,
    /// with equal utilisation of the blocks that are not kept free. Channels, dies, planes and the write buffer are
    /// unchanged, and so is the share of the map that fits into memory.
    ///
    /// In idle time, garbage collection erases an equal share of the spare blocks above the low watermark. With the
    /// number of the whole drive, a smaller one could never come to rest.
    ///
    /// Blocks keep at least [`FEWEST_PAGES`] pages and dies at least [`FEWEST_BLOCKS`] blocks, because with fewer,
    /// greedy collection would select different victims. The result may therefore be larger than `bytes`.
    fn shrunk(&self, bytes: u64) -> NandConfig {
        let mut shrunk = self.clone();
        let wanted = self.geometry.capacity as f64 / bytes.max(1) as f64;
        if wanted <= 1.0 {
            return shrunk;
        }
        let geometry = &mut shrunk.geometry;
        let pages = libm::ceil(f64::from(geometry.pages_per_block) / wanted) as u32;
        let pages = pages.max(FEWEST_PAGES).min(geometry.pages_per_block);
        let share = f64::from(pages) / f64::from(geometry.pages_per_block);
        geometry.pages_per_block = pages;
        shrunk.timing.erase = self.timing.erase.scale(share);
        let all = f64::from(geometry.blocks_per_plane) * (1.0 - geometry.reserved);
        let usable = libm::floor(all);
        let fewer = libm::ceil(usable / (wanted * share))
            .max(f64::from(FEWEST_BLOCKS))
            .min(usable);
        // The number of blocks kept free does not depend on their total, and two are open, each half written.
        let spare = f64::from(self.collection.watermark.low + 1);
        let data = (fewer - spare) / (usable - spare);
        if let Some(slc) = &mut shrunk.slc {
            // An equal share of the blocks.
            let blocks =
                f64::from(slc.blocks_per_die) * fewer / f64::from(geometry.blocks_per_plane);
            slc.blocks_per_die = (libm::round(blocks) as u32).max(1);
        }
        geometry.blocks_per_plane = fewer as u32;
        geometry.reserved = 0.0;
        // The size of the buffer is unchanged, and under writes its content is not on the medium.
        let buffered = self.buffer.bytes.min(self.geometry.capacity);
        let smaller = |bytes: f64| (bytes - buffered as f64).max(0.0) * share * data;
        let capacity = smaller(self.geometry.capacity as f64) as u64 + buffered;
        let unit = u64::from(geometry.indirection);
        geometry.capacity = (capacity / unit).max(1) * unit;
        if let Some(map) = &mut shrunk.map {
            // An equal share of the map.
            let all = self.geometry.capacity as f64;
            let bytes = map.bytes as f64 * geometry.capacity as f64 / all;
            map.bytes = (bytes as u64).max(4096);
        }
        if self.filled < 1.0 {
            let written = self.geometry.capacity as f64 * self.filled;
            let held = smaller(written) + written.min(buffered as f64);
            shrunk.filled = (held / geometry.capacity as f64).min(1.0);
        }
        shrunk.collection.background_free = self.background_free_of(&shrunk);
        shrunk
    }

    fn set_lba_format(&mut self, format: LbaFormat) {
        for ps in [
            &mut self.timing.channel_ps_per_byte,
            &mut self.controller.link_ps_per_byte,
        ] {
            *ps = format.longer(*ps);
        }
        self.block = format.data;
    }

    /// All dies erase their blocks at once.
    fn format_duration(&self) -> Span {
        self.timing.erase * u64::from(self.geometry.blocks_per_plane)
    }

    fn idle_watts(&self) -> f64 {
        self.power.idle
    }

    fn raw_bytes(&self) -> Option<u64> {
        Some(self.geometry.raw_bytes())
    }

    fn max_transfer(&self) -> Option<u32> {
        Some(self.controller.max_transfer)
    }

    fn volatile_bytes(&self) -> u64 {
        match self.buffer.protected {
            true => 0,
            false => self.buffer.bytes,
        }
    }

    fn percentage_used(&self) -> f64 {
        self.percentage_used_at_start
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        self.percentage_used_at_start = percentage(percent)?;
        Ok(())
    }

    fn set_wear_factor(&mut self, factor: f64) -> Result<(), Refusal> {
        self.wear_factor = wear_factor(factor)?;
        Ok(())
    }

    fn read_only_percent(&self) -> Option<f64> {
        self.read_only_at_percent
    }

    fn collects(&self) -> bool {
        true
    }

    fn set_overprovision(&mut self, share: f64) -> Result<(), Refusal> {
        let geometry = &mut self.geometry;
        let unit = u64::from(geometry.indirection);
        geometry.capacity = provisioned(geometry.capacity, share, unit)?;
        Ok(())
    }

    fn set_filled(&mut self, share: f64) -> Result<(), Refusal> {
        self.filled = filled(share)?;
        Ok(())
    }
}

impl MediumDrive for Nand {
    type Config = NandConfig;

    /// If it is the same drive and seed again, the changes of the last run are reverted, once the state is saved: from
    /// the second time.
    fn reset(self, config: &NandConfig, state: Precondition, seeds: impl Into<Seeds>) -> Nand {
        Nand::made_of(Some(self), config.clone(), state, seeds.into())
    }

    fn know(&mut self, states: &[Arc<WarmState>], again: bool) {
        self.start.know(states, again, &self.config, &self.shape);
    }

    fn warm_states(&self, tell: &mut dyn FnMut(&Arc<WarmState>)) {
        if let Some(state) = self.start.warm_state() {
            tell(state);
        }
    }

    fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let worn = percentage(percent)? - Nand::percentage_used(self);
        self.config.percentage_used_at_start += worn;
        Ok(())
    }

    fn prepare(&mut self) {
        self.warm();
    }

    fn scattered_tables(&mut self, tell: &mut dyn FnMut(core::ops::Range<*const u8>)) {
        self.shared.ftl.scattered_tables(tell);
    }
}

impl NandConfig {
    /// Returns the number of blocks per die without valid data if the drive is full, and its write buffer too.
    fn spare_blocks(&self) -> Option<f64> {
        let shape = self.check().ok()?;
        let unit = self.geometry.capacity as f64 / f64::from(shape.logical).max(1.0);
        let valid = f64::from(shape.logical) - self.buffer.bytes as f64 / unit;
        let per_block = f64::from(shape.block_slots) * f64::from(shape.dies);
        Some((f64::from(shape.slots()) - valid) / per_block)
    }

    /// Returns [`super::Collection::background_free`] for a scaled-down drive.
    fn background_free_of(&self, shrunk: &NandConfig) -> u32 {
        let whole = self.collection.background_free;
        let low = self.collection.watermark.low;
        let above = |config: &NandConfig| Some(config.spare_blocks()? - f64::from(low));
        let share = above(shrunk)
            .zip(above(self).filter(|blocks| *blocks > 0.0))
            .map(|(few, all)| (few / all).clamp(0.0, 1.0));
        let (Some(share), Some(ahead)) = (share, whole.checked_sub(low)) else {
            return whole;
        };
        low + libm::ceil(f64::from(ahead) * share) as u32
    }
}
