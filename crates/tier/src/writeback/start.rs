//! A buffer that is in use at the start. It contains units that are scattered over four times their size, in the order
//! of steps near the golden ratio.
//!
//! The index of a unit in the ring can be computed, and so can its map entry. The map stores a leaf only when one of
//! its units is written, moved or trimmed. A full buffer of any size therefore takes almost no time and memory.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use model::time::Time;

use super::WriteBack;
use super::ring::UNIT;
use crate::packed::{LEAF, PackedTable};

/// Maximum number of units over which units are scattered, 16 TiB: products of two smaller numbers fit into 64 bits.
const MOST_UNITS: u64 = u32::MAX as u64;

impl WriteBack {
    /// Puts the buffer into its initial state.
    pub(super) fn start(&mut self, units: u64) {
        let segments = libm::floor(self.config.start * self.ring.segments.len() as f64) as u64;
        let until = segments * u64::from(self.ring.per);
        let over = (4 * until).min(units).clamp(1, MOST_UNITS);
        let record = self.config.record / UNIT;
        let mut count = 0;
        while self.ring.head() < until && count < over {
            let room = self.ring.room().min(record);
            let segment = self.ring.segment(self.ring.head_slot());
            self.ring.begin(0, 0);
            let data = u64::from(room.saturating_sub(1)).min(over - count);
            self.ring.put(data as u32);
            self.ring.apply(self.ring.head());
            let full = &mut self.ring.segments[segment as usize];
            full.live += data as u32;
            let units = u64::from(full.live);
            count += data;
            // Full segments are all equal.
            if self.ring.is_at_border() {
                let left = (until - self.ring.head()) / u64::from(self.ring.per);
                let more = left.min((over - count) / units.max(1));
                count += units * self.ring.repeat(segment, more);
            }
        }
        if count > 0 {
            let filled = FullRing::new(self.ring.per, record);
            self.map.start = Some(InitialMap::new(over, count, filled));
            self.dirty = count * u64::from(UNIT);
        }
        self.counts = super::WriteBackCounts::default();
        self.flushed = self.applied();
        let at = self.next_round(Time::ZERO);
        self.destaging.begin_at(at);
    }
}

/// Map from a unit to the slot of its newest data.
#[derive(Clone, Debug)]
pub(super) struct Map {
    packed: PackedTable,
    /// Initial entries of leaves that have not changed.
    start: Option<InitialMap>,
}

impl Map {
    /// Creates a map for `units` units, none of which is in the buffer.
    pub(super) fn new(units: u64) -> Map {
        Map {
            packed: PackedTable::new(units),
            start: None,
        }
    }

    /// Returns the slot of a unit, if any.
    #[inline]
    pub(super) fn get(&self, unit: u64) -> Option<u32> {
        match &self.start {
            Some(start) if start.holds(unit) => start.slot(unit),
            _ => self.packed.get(unit),
        }
    }

    /// Sets the slot of a unit; returns its previous slot.
    #[inline]
    pub(super) fn set(&mut self, unit: u64, slot: u32) -> Option<u32> {
        self.change(unit);
        self.packed.set(unit, slot)
    }

    /// Removes the entry of a unit.
    #[inline]
    pub(super) fn clear(&mut self, unit: u64) {
        self.change(unit);
        self.packed.clear(unit);
    }

    /// An entry in a unit's leaf is about to change.
    #[inline]
    fn change(&mut self, unit: u64) {
        if let Some(start) = &mut self.start
            && start.holds(unit)
        {
            start.give(unit / LEAF, &mut self.packed);
            if start.left == 0 {
                self.start = None;
            }
        }
    }

    /// See [`PackedTable::skip`].
    pub(super) fn skip(&self, unit: u64) -> u64 {
        match &self.start {
            Some(start) if start.holds(unit) => unit + 1,
            _ => self.packed.skip(unit),
        }
    }

    /// Returns the share of its leaves that are stored, 0 to 1: the others are in their initial state.
    pub(super) fn kept(&self) -> f64 {
        let Some(start) = &self.start else {
            return 1.0;
        };
        1.0 - start.left as f64 / start.over.div_ceil(LEAF) as f64
    }

    /// Calls `what` for all units in the buffer, with their slots, in no particular order.
    pub(super) fn each(&self, what: impl FnMut(u64, u32)) {
        self.each_near(0..u32::MAX, what);
    }

    /// Calls `what` for at least the units whose slot is in this range; units that are elsewhere in the initial state,
    /// which is most of them, are skipped.
    pub(super) fn each_near(&self, slots: Range<u32>, mut what: impl FnMut(u64, u32)) {
        if let Some(start) = &self.start {
            start.each_near(slots, &mut what);
        }
        self.packed.each(what);
    }
}

/// Initial map entries, and the leaves to which they still apply.
#[derive(Clone, Debug)]
struct InitialMap {
    /// Number of units over which units are scattered, and number of units in the buffer.
    over: u64,
    count: u64,
    /// Distance from one unit in the ring to the next; and distance in the ring from one unit to the following unit.
    step: u64,
    back: u64,
    filled: FullRing,
    /// One bit per leaf to which it applies, and the number of these leaves.
    held: Vec<u64>,
    left: u64,
}

impl InitialMap {
    fn new(over: u64, count: u64, filled: FullRing) -> InitialMap {
        let leaves = over.div_ceil(LEAF);
        let mut held = vec![u64::MAX; leaves.div_ceil(64) as usize];
        if let (Some(last), 1..) = (held.last_mut(), leaves % 64) {
            *last = (1 << (leaves % 64)) - 1;
        }
        InitialMap {
            over,
            count,
            step: step(over),
            back: inverse(step(over), over),
            filled,
            held,
            left: leaves,
        }
    }

    /// Whether a unit's leaf is in its initial state.
    #[inline]
    fn holds(&self, unit: u64) -> bool {
        let leaf = unit / LEAF;
        let word = self.held.get((leaf / 64) as usize);
        word.is_some_and(|word| word >> (leaf % 64) & 1 != 0)
    }

    /// Returns the slot of a unit in the initial state. Numbers are below 2^32.
    #[inline]
    fn slot(&self, unit: u64) -> Option<u32> {
        if unit >= self.over {
            return None;
        }
        let index = unit * self.back % self.over;
        (index < self.count).then(|| self.filled.slot(index))
    }

    /// Moves a leaf into the map.
    fn give(&mut self, leaf: u64, packed: &mut PackedTable) {
        self.held[(leaf / 64) as usize] &= !(1 << (leaf % 64));
        self.left -= 1;
        let units = (leaf * LEAF).min(self.over)..((leaf + 1) * LEAF).min(self.over);
        // As in `slot`, incrementally from one unit to the next.
        let mut index = units.start * self.back % self.over;
        let slots = units.filter_map(|unit| {
            let is = index;
            index += self.back;
            index -= if index >= self.over { self.over } else { 0 };
            (is < self.count).then(|| (unit % LEAF, self.filled.slot(is)))
        });
        packed.set_leaf(leaf, slots);
    }

    /// Calls `what` for the units to which it applies in the segments of these slots, with their slots.
    fn each_near(&self, slots: Range<u32>, what: &mut impl FnMut(u64, u32)) {
        let from = u64::from(slots.start) / self.filled.per * self.filled.units;
        let until = u64::from(slots.end).div_ceil(self.filled.per) * self.filled.units;
        let mut unit = from % self.over * self.step % self.over;
        for index in from..until.min(self.count) {
            if self.holds(unit) {
                what(unit, self.filled.slot(index));
            }
            unit += self.step;
            unit -= if unit >= self.over { self.over } else { 0 };
        }
    }
}

/// Returns a step near the golden ratio that visits all `over` numbers before it repeats one.
fn step(over: u64) -> u64 {
    let mut step = (over as f64 * 0.618_033_988_75) as u64 | 1;
    while gcd(step, over) != 1 {
        step += 2;
    }
    step % over
}

/// Returns the number of steps that lead to 1, modulo `over`.
fn inverse(step: u64, over: u64) -> u64 {
    let (mut old, mut new) = ((over as i64, 0_i64), (step as i64, 1_i64));
    while new.0 != 0 {
        let times = old.0 / new.0;
        (old, new) = (new, (old.0 - times * new.0, old.1 - times * new.1));
    }
    old.1.rem_euclid(over as i64) as u64
}

fn gcd(a: u64, b: u64) -> u64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}

/// A ring of full records.
#[derive(Clone, Debug)]
struct FullRing {
    /// Slots and units per segment, and slots per record.
    per: u64,
    units: u64,
    record: u64,
}

impl FullRing {
    fn new(per: u32, record: u32) -> FullRing {
        let (mut left, mut units) = (per, 0);
        // A header alone carries no data.
        while left > 1 {
            units += left.min(record) - 1;
            left -= left.min(record);
        }
        FullRing {
            per: per.into(),
            units: units.into(),
            record: record.into(),
        }
    }

    /// Returns the slot of the unit with this index.
    #[inline]
    fn slot(&self, index: u64) -> u32 {
        let (index, units, data) = (index as u32, self.units as u32, self.record as u32 - 1);
        let (segment, within) = (index / units, index % units);
        let (record, unit) = (within / data, within % data);
        segment * self.per as u32 + record * (data + 1) + 1 + unit
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::TierSettings;
    use crate::writeback::WriteBackConfig;

    /// Equals a ring built unit by unit, with segments that end in a short record, in a header alone, and with more
    /// space than there are units.
    #[test]
    fn the_map_is_that_of_the_ring() {
        for (segment, record, behind) in [(64, 32, 64), (68, 32, 64), (32, 8, 1), (100, 16, 2)] {
            let config = WriteBackConfig {
                segment: segment << 10,
                record: record << 10,
                start: 0.4,
                ..WriteBackConfig::PLAIN
            };
            let tier = config.build(&[8 << 20, behind << 20]);
            let (per, most) = (u64::from(segment) / 4, u64::from(record) / 4);
            let segments = (0.4 * tier.ring.segments.len() as f64) as u64;
            let over = (4 * segments * per).min(tier.units);
            let mut map: Vec<Option<u32>> = vec![None; over as usize];
            let (mut slot, mut unit, mut count) = (0, 0, 0);
            while slot < segments * per && count < over {
                // A header alone stays unused, including before the end.
                slot += u64::from(slot % per == per - 1);
                let left = per - slot % per;
                for slot in slot + 1..slot + left.min(most) {
                    if count < over {
                        map[unit as usize] = Some(slot as u32);
                        unit = (unit + step(over)) % over;
                        count += 1;
                    }
                }
                slot += left.min(most);
            }
            for (unit, slot) in map.iter().enumerate() {
                assert_eq!(tier.map.get(unit as u64), *slot, "unit {unit} of {over}");
            }
            let live: Vec<u32> = tier.ring.segments.iter().map(|it| it.live).collect();
            let mut found = vec![0; live.len()];
            let in_use = map.iter().flatten();
            in_use.for_each(|&slot| found[tier.ring.segment(slot) as usize] += 1);
            assert_eq!(live, found);
            // A query for some slots returns all units that are there.
            for slots in [0..1, 17..300, 40..41, 500..9000] {
                let (mut near, mut told) = (Vec::new(), 0);
                tier.map.each_near(slots.clone(), |unit, slot| {
                    told += 1;
                    if slots.contains(&slot) {
                        near.push((unit, slot));
                    }
                });
                near.sort_unstable();
                let all = map.iter().enumerate();
                let all = all.filter_map(|(unit, slot)| Some((unit as u64, (*slot)?)));
                let there: Vec<(u64, u32)> = all.filter(|it| slots.contains(&it.1)).collect();
                assert_eq!(near, there, "{slots:?}");
                assert!(slots.end > 300 || told < count, "{slots:?}: {told}");
            }
            // Changing leaf by leaf does not affect others.
            let mut tier = tier;
            for unit in (0..over).step_by(700).chain([over - 1]) {
                let all = |tier: &WriteBack| {
                    let mut all = Vec::new();
                    tier.map.each(|unit, slot| all.push((unit, slot)));
                    all.sort_unstable();
                    all
                };
                let mut shadow = all(&tier);
                shadow.retain(|it| it.0 != unit);
                tier.map.clear(unit);
                assert_eq!(all(&tier), shadow);
                assert_eq!(tier.map.set(unit, 7), None);
                map[unit as usize] = Some(7);
                for (unit, slot) in map.iter().enumerate() {
                    assert_eq!(tier.map.get(unit as u64), *slot, "unit {unit} of {over}");
                }
            }
            assert!(tier.map.start.is_none());
            assert_eq!(tier.dirty, count * 4096);
        }
    }
}
