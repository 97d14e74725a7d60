//! A buffer that is in use at the start: filled by units that are scattered over four times their size, in the order in which
//! a step near the golden ratio meets them.
//!
//! The ring is put together record by record; the map is filled in the order of its units, since that is many times as
//! fast: which of the units in a ring is a given one is arithmetic.

use super::WriteBack;
use super::ring::UNIT;
use crate::time::Time;

impl WriteBack {
    /// The buffer as it is at the start.
    pub(super) fn start(&mut self, units: u32) {
        let segments = libm::floor(self.config.start * self.ring.segments.len() as f64) as u64;
        let until = segments * u64::from(self.ring.per);
        let over = (4 * until).min(units.into()).max(1);
        let record = self.config.record / UNIT;
        let mut count = 0;
        while self.ring.head() < until && count < over {
            let room = self.ring.room().min(record);
            self.ring.begin(0, 0);
            let data = u64::from(room.saturating_sub(1)).min(over - count);
            self.ring.put(data as u32);
            self.ring.apply(self.ring.head());
            count += data;
        }
        if count > 0 {
            let (back, filled) = (
                inverse(step(over), over),
                Filled::new(self.ring.per, record),
            );
            let mut index = 0;
            for unit in 0..over {
                if index < count {
                    self.map(unit as u32, filled.slot(index));
                }
                index += back;
                index -= if index >= over { over } else { 0 };
            }
        }
        self.counts = super::Counts::default();
        self.flushed = self.applied();
        let at = self.next_round(Time::ZERO);
        self.destaging.begin_at(at);
    }
}

/// A step near the golden ratio that meets all of so many before it meets one again.
fn step(over: u64) -> u64 {
    let mut step = (over as f64 * 0.618_033_988_75) as u64 | 1;
    while gcd(step, over) != 1 {
        step += 2;
    }
    step % over
}

/// Which number of steps leads to 1, of so many.
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
struct Filled {
    /// Slots and units of a segment, and slots of a record.
    per: u64,
    units: u64,
    record: u64,
}

impl Filled {
    fn new(per: u32, record: u32) -> Filled {
        let (mut left, mut units) = (per, 0);
        // A header alone carries nothing.
        while left > 1 {
            units += left.min(record) - 1;
            left -= left.min(record);
        }
        Filled {
            per: per.into(),
            units: units.into(),
            record: record.into(),
        }
    }

    /// The slot of the unit of this number.
    #[inline]
    fn slot(&self, index: u64) -> u32 {
        let (segment, within) = (index / self.units, index % self.units);
        let (record, unit) = (within / (self.record - 1), within % (self.record - 1));
        (segment * self.per + record * self.record + 1 + unit) as u32
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;
    use crate::tier::TierSettings;
    use crate::tier::writeback::WriteBackConfig;

    /// As when it is put together unit by unit, with segments that end in a short record, in a header alone, and with more
    /// room than there are units.
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
            let over = (4 * segments * per).min(u64::from(tier.units as u32));
            let mut map: Vec<Option<u32>> = vec![None; over as usize];
            let (mut slot, mut unit, mut count) = (0, 0, 0);
            while slot < segments * per && count < over {
                // A header alone stays unused, also before the end.
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
            assert_eq!(tier.dirty, count * 4096);
        }
    }
}
