//! ARC: lines used once and lines used again in two lists, and two more lists of lines that were evicted from them; an
//! evicted line that returns moves the border between the first two.
//!
//! Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003, figure 4, with whole steps of
//! the border. In addition: a slot in use is skipped, and if its list has no other, the other list supplies one; a
//! dropped line is not remembered.

use alloc::vec;
use alloc::vec::Vec;

use super::SlotOrder;
use super::links::Links;
use crate::table::SparseTable;

/// Lists: used once, used again, and evicted from either.
const RECENT: u32 = 0;
const FREQUENT: u32 = 1;
const GONE_RECENT: u32 = 2;
const GONE_FREQUENT: u32 = 3;

#[derive(Clone, Debug)]
pub(in crate::readcache) struct AdaptiveReplacement {
    /// Positions: the slots, followed by one more than as many positions for evicted lines.
    links: Links,
    slots: u32,
    /// By position: its list.
    list: Vec<u8>,
    sizes: [u32; 4],
    /// By position of an evicted line: the line.
    gone: Vec<u32>,
    /// By line: its position among evicted lines.
    known: SparseTable,
    free: Vec<u32>,
    /// Target number of slots for lines that were used once.
    border: u32,
    /// The list of the wanted line, if it was evicted.
    wanted: Option<u32>,
}

/// A position in no list.
const NOWHERE: u8 = 4;

impl AdaptiveReplacement {
    fn put(&mut self, place: u32, list: u32) {
        self.take_out(place);
        self.links.put(place, list);
        self.list[place as usize] = list as u8;
        self.sizes[list as usize] += 1;
    }

    fn take_out(&mut self, place: u32) {
        let list = core::mem::replace(&mut self.list[place as usize], NOWHERE);
        if list != NOWHERE {
            self.links.unlink(place);
            self.sizes[usize::from(list)] -= 1;
        }
    }

    /// Removes an evicted line.
    fn unknow(&mut self, place: u32) {
        self.take_out(place);
        self.known
            .clear(self.gone[(place - self.slots) as usize].into());
        self.free.push(place);
    }

    fn unknow_oldest(&mut self, list: u32) {
        let oldest = self.links.oldest_first(list).next();
        if let Some(place) = oldest {
            self.unknow(place);
        }
    }
}

impl SlotOrder for AdaptiveReplacement {
    fn new(slots: u32, lines: u64) -> AdaptiveReplacement {
        let places = 2 * slots + 1;
        AdaptiveReplacement {
            links: Links::new(places, 4),
            slots,
            list: vec![NOWHERE; places as usize],
            sizes: [0; 4],
            gone: vec![0; (places - slots) as usize],
            known: SparseTable::new(lines),
            free: (slots..places).rev().collect(),
            border: 0,
            wanted: None,
        }
    }

    #[inline]
    fn used(&mut self, slot: u32) {
        self.put(slot, FREQUENT);
    }

    fn wanted(&mut self, line: u64) {
        self.wanted = None;
        let Some(place) = self.known.get(line) else {
            return;
        };
        let list = u32::from(self.list[place as usize]);
        let [.., recent, frequent] = self.sizes;
        self.border = match list {
            GONE_RECENT => self.slots.min(self.border + (frequent / recent).max(1)),
            _ => self.border.saturating_sub((recent / frequent).max(1)),
        };
        self.unknow(place);
        self.wanted = Some(list);
    }

    fn victim(
        &mut self,
        in_use: impl Fn(u32) -> bool,
        line_of: impl Fn(u32) -> u64,
    ) -> Option<u32> {
        let recent = self.sizes[RECENT as usize];
        let at_border = self.wanted == Some(GONE_FREQUENT) && recent == self.border;
        let lists = match recent > 0 && (at_border || recent > self.border) {
            true => [RECENT, FREQUENT],
            false => [FREQUENT, RECENT],
        };
        let free = |slot: u32| !in_use(slot);
        let mut found = lists.into_iter();
        let (list, slot) = found.find_map(|list| Some((list, self.links.oldest(list, free)?)))?;
        self.take_out(slot);
        if let Some(place) = self.free.pop() {
            let line = line_of(slot);
            self.gone[(place - self.slots) as usize] = line as u32;
            self.known.set(line, place);
            self.put(place, list + GONE_RECENT);
        }
        Some(slot)
    }

    fn filled(&mut self, slot: u32) {
        if self.wanted.take().is_some() {
            return self.put(slot, FREQUENT);
        }
        let all = |sizes: &[u32; 4]| sizes.iter().sum::<u32>();
        let size = |arc: &AdaptiveReplacement, list: u32| arc.sizes[list as usize];
        self.take_out(slot);
        if size(self, RECENT) + size(self, GONE_RECENT) >= self.slots {
            self.unknow_oldest(GONE_RECENT);
        } else if all(&self.sizes) >= 2 * self.slots {
            self.unknow_oldest(GONE_FREQUENT);
        }
        self.put(slot, RECENT);
    }

    fn forget(&mut self, slot: u32) {
        self.take_out(slot);
    }

    fn power_cut(&mut self) {
        for list in [GONE_RECENT, GONE_FREQUENT] {
            while self.sizes[list as usize] > 0 {
                self.unknow_oldest(list);
            }
        }
        (self.border, self.wanted) = (0, None);
    }

    /// Lines used again come first, in the order of ZFS's feeder.
    fn oldest_first(&self, most: usize, mut each: impl FnMut(u32)) {
        for list in [FREQUENT, RECENT] {
            self.links.oldest_first(list).take(most).for_each(&mut each);
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use model::random::Stream;

    use super::*;

    /// Figure 4 of the paper, literally, on lists of lines whose newest is at the back.
    #[derive(Default)]
    struct Paper {
        size: usize,
        border: usize,
        t1: VecDeque<u64>,
        t2: VecDeque<u64>,
        b1: VecDeque<u64>,
        b2: VecDeque<u64>,
    }

    fn removed(list: &mut VecDeque<u64>, line: u64) -> bool {
        let at = list.iter().position(|&it| it == line);
        at.is_some_and(|at| list.remove(at).is_some())
    }

    impl Paper {
        fn replace(&mut self, in_b2: bool) {
            let t1 = self.t1.len();
            if t1 >= 1 && ((in_b2 && t1 == self.border) || t1 > self.border) {
                self.b1.extend(self.t1.pop_front());
            } else {
                self.b2.extend(self.t2.pop_front());
            }
        }

        /// Returns whether it was a hit.
        fn read(&mut self, line: u64) -> bool {
            if removed(&mut self.t1, line) || removed(&mut self.t2, line) {
                self.t2.push_back(line);
                return true;
            }
            let (b1, b2) = (self.b1.len(), self.b2.len());
            if self.b1.contains(&line) {
                self.border = self.size.min(self.border + (b2 / b1).max(1));
                self.replace(false);
                removed(&mut self.b1, line);
                self.t2.push_back(line);
                return false;
            }
            if self.b2.contains(&line) {
                self.border = self.border.saturating_sub((b1 / b2).max(1));
                self.replace(true);
                removed(&mut self.b2, line);
                self.t2.push_back(line);
                return false;
            }
            let (l1, all) = (self.t1.len() + b1, self.t1.len() + self.t2.len() + b1 + b2);
            if l1 == self.size {
                if self.t1.len() < self.size {
                    self.b1.pop_front();
                    self.replace(false);
                } else {
                    self.t1.pop_front();
                }
            } else if all >= self.size {
                if all == 2 * self.size {
                    self.b2.pop_front();
                }
                self.replace(false);
            }
            self.t1.push_back(line);
            false
        }
    }

    /// A cache of this number of lines, and its hits.
    struct Cache {
        arc: AdaptiveReplacement,
        lines: Vec<u64>,
    }

    impl Cache {
        fn read(&mut self, line: u64) -> bool {
            if let Some(slot) = self.lines.iter().position(|&it| it == line) {
                self.arc.used(slot as u32);
                return true;
            }
            self.arc.wanted(line);
            let slot = match self.lines.len() < self.arc.slots as usize {
                true => {
                    self.lines.push(line);
                    self.lines.len() as u32 - 1
                }
                false => {
                    let lines = &self.lines;
                    let slot = self.arc.victim(|_| false, |slot| lines[slot as usize]);
                    let slot = slot.expect("nothing is in use");
                    self.lines[slot as usize] = line;
                    slot
                }
            };
            self.arc.filled(slot);
            false
        }
    }

    #[test]
    fn each_read_hits_or_misses_as_in_the_paper() {
        for seed in 0..40 {
            let mut stream = Stream::new(seed, "reads");
            let size = 1 + stream.uniform_below(24) as usize;
            let mut paper = Paper {
                size,
                ..Paper::default()
            };
            let mut cache = Cache {
                arc: AdaptiveReplacement::new(size as u32, 400),
                lines: Vec::new(),
            };
            let (mut hits, mut scan) = (0, 0);
            for step in 0..6000 {
                // A few frequent lines, more rare ones, and occasionally all in sequence.
                let line = match (step / 500 + stream.uniform_below(4)) % 4 {
                    0 => stream.uniform_below(8),
                    1 => stream.uniform_below(40),
                    2 => stream.uniform_below(300),
                    _ => {
                        scan += 1;
                        300 + scan % 100
                    }
                };
                let hit = cache.read(line);
                assert_eq!(hit, paper.read(line), "seed {seed}, step {step}");
                hits += u32::from(hit);
                assert_eq!(cache.arc.border as usize, paper.border);
                let lists = [&paper.t1, &paper.t2, &paper.b1, &paper.b2];
                assert_eq!(cache.arc.sizes, lists.map(|it| it.len() as u32));
            }
            assert!(hits > 20, "{hits} hits of a cache of {size}");
        }
    }

    #[test]
    fn slots_in_use_are_passed_over_and_dropped_lines_leave_no_trace() {
        let mut cache = Cache {
            arc: AdaptiveReplacement::new(3, 100),
            lines: Vec::new(),
        };
        for line in [1, 2, 3, 1] {
            cache.read(line);
        }
        let arc = &mut cache.arc;
        arc.wanted(9);
        // 2 and 3 were used once, 1 again.
        assert_eq!(arc.clone().victim(|_| false, u64::from), Some(1));
        assert_eq!(arc.clone().victim(|slot| slot == 1, u64::from), Some(2));
        assert_eq!(arc.clone().victim(|slot| slot > 0, u64::from), Some(0));
        assert_eq!(arc.clone().victim(|_| true, u64::from), None);
        arc.forget(1);
        assert_eq!(arc.sizes, [1, 1, 0, 0]);
        arc.victim(|_| false, u64::from);
        assert_eq!(arc.sizes, [0, 1, 1, 0]);
        arc.power_cut();
        assert_eq!(arc.sizes, [0, 1, 0, 0]);
    }
}
