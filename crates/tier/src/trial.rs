//! Trial recovery of a pool: reads are real, writes stay in memory, so that a pool that cannot be recovered is not
//! changed.
//!
//! A tier reads what recovery has written below it: a rebuilt member counts as complete at once. If writes were
//! discarded, the tier would read that member's old data, and a pool whose data is complete would be refused.
//! If the recovery succeeds, its writes are carried out on the stores in their order, so that the stores are read only
//! once. A crash meanwhile is a crash during the recovery.
//!
//! Up to [`LIMIT`] bytes are kept. If recovery writes more, such as a member that is copied whole, later reads of the
//! rest return old data. A failure then proves nothing ([`TrialStores::is_incomplete`]).

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use model::data::{Unreadable, Unwritable};

use super::offline::Images;
use super::planted::{self, Bug};

/// Bytes of a page.
const PAGE: usize = 4096;
/// Maximum number of bytes that are kept.
const LIMIT: usize = 256 << 20;

/// Stores of a pool whose recovery is tried.
#[derive(Debug)]
pub struct TrialStores<'a, I> {
    below: &'a mut I,
    /// Pages that were written, by member and number.
    pages: BTreeMap<(u16, u64), Box<[u8; PAGE]>>,
    /// Writes and syncs in their order, and the bytes of the writes.
    steps: Vec<TrialStep>,
    bytes: usize,
    limit: usize,
    is_incomplete: bool,
    /// Whether there are too many steps to carry them out from memory; reads are right nevertheless.
    is_too_long: bool,
}

/// A step of a recovery.
#[derive(Debug)]
enum TrialStep {
    Write(u16, u64, Box<[u8]>),
    Sync(u16),
}

impl<'a, I: Images> TrialStores<'a, I> {
    /// Begins a trial.
    pub fn new(below: &'a mut I) -> TrialStores<'a, I> {
        TrialStores {
            below,
            pages: BTreeMap::new(),
            steps: Vec::new(),
            bytes: 0,
            limit: LIMIT / PAGE,
            is_incomplete: false,
            is_too_long: false,
        }
    }

    /// Whether a write was discarded, so that a failure may be due to its absence.
    pub fn is_incomplete(&self) -> bool {
        self.is_incomplete
    }

    /// Carries out the writes on the stores. Returns whether all of them were kept and the stores accepted them; otherwise
    /// the recovery must be repeated on the stores.
    pub fn apply(self) -> bool {
        !self.is_incomplete
            && !self.is_too_long
            && self.steps.into_iter().all(|step| match step {
                TrialStep::Write(member, at, data) => self.below.write(member, at, &data).is_ok(),
                TrialStep::Sync(member) => self.below.sync(member).is_ok(),
            })
    }

    /// Returns the page to be written, with its content before the write; `None` if it cannot be kept.
    fn page(&mut self, member: u16, number: u64, is_whole: bool) -> Option<&mut [u8; PAGE]> {
        let key = (member, number);
        if !self.pages.contains_key(&key) {
            let mut page = Box::new([0; PAGE]);
            let at = number * PAGE as u64;
            let is_known = is_whole || self.below.read(member, at, &mut page[..]).is_ok();
            if !is_known || self.pages.len() == self.limit {
                self.is_incomplete = true;
                return None;
            }
            self.pages.insert(key, page);
        }
        self.pages.get_mut(&key).map(|page| &mut **page)
    }
}

/// Returns the pages of a range: for each its number, the first byte in it, and the bytes in the range.
fn pages(at: u64, bytes: usize) -> impl Iterator<Item = (u64, usize, core::ops::Range<usize>)> {
    let mut next = 0;
    core::iter::from_fn(move || {
        let from = (next < bytes).then_some(next)?;
        let start = (at + from as u64) % PAGE as u64;
        next = bytes.min(from + PAGE - start as usize);
        Some(((at + from as u64) / PAGE as u64, start as usize, from..next))
    })
}

impl<I: Images> Images for TrialStores<'_, I> {
    fn present(&self, member: u16) -> bool {
        self.below.present(member)
    }

    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        for (number, start, part) in pages(at, into.len()) {
            let into = &mut into[part.clone()];
            match self.pages.get(&(member, number)) {
                Some(page) => into.copy_from_slice(&page[start..start + part.len()]),
                None => self.below.read(member, at + part.start as u64, into)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        if planted::has(Bug::TrialDiscardsWrites) {
            return Ok(());
        }
        self.bytes += data.len();
        if self.bytes > self.limit * PAGE {
            self.is_too_long = true;
            self.steps = Vec::new();
        } else {
            self.steps.push(TrialStep::Write(member, at, data.into()));
        }
        for (number, start, part) in pages(at, data.len()) {
            if let Some(page) = self.page(member, number, part.len() == PAGE) {
                page[start..start + part.len()].copy_from_slice(&data[part]);
            }
        }
        Ok(())
    }

    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.steps.push(TrialStep::Sync(member));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// A member of ones, the first page of which cannot be read.
    struct Ones;

    impl Images for Ones {
        fn present(&self, _: u16) -> bool {
            true
        }
        fn read(&mut self, _: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            into.fill(1);
            if at < PAGE as u64 {
                Err(Unreadable)
            } else {
                Ok(())
            }
        }
        fn write(&mut self, _: u16, _: u64, _: &[u8]) -> Result<(), Unwritable> {
            panic!("a trial does not write")
        }
        fn sync(&mut self, _: u16) -> Result<(), Unwritable> {
            panic!("a trial does not write")
        }
    }

    #[test]
    fn reads_return_what_the_trial_has_written() {
        let mut member = Ones;
        let mut trial = TrialStores::new(&mut member);
        let at = 2 * PAGE as u64 - 512;
        trial.write(0, at, &[7; 2 * PAGE]).expect("memory");
        let mut read = vec![0; 4 * PAGE];
        trial.read(0, PAGE as u64, &mut read).expect("readable");
        let until = PAGE - 512;
        assert!(read[..until].iter().all(|&it| it == 1));
        assert!(read[until..until + 2 * PAGE].iter().all(|&it| it == 7));
        assert!(read[until + 2 * PAGE..].iter().all(|&it| it == 1));
        trial.read(1, PAGE as u64, &mut read).expect("readable");
        assert!(read.iter().all(|&it| it == 1), "another member");
        assert!(!trial.is_incomplete());
    }

    #[test]
    fn what_is_not_kept_is_known() {
        let mut member = Ones;
        let mut trial = TrialStores::new(&mut member);
        trial.limit = 1;
        trial.write(0, 0, &[7; PAGE]).expect("memory");
        assert!(!trial.is_incomplete());
        trial.write(0, 0, &[8; PAGE]).expect("the same page");
        assert!(!trial.is_incomplete());
        trial.write(0, PAGE as u64, &[7; PAGE]).expect("discarded");
        assert!(trial.is_incomplete());
        assert!(!trial.apply(), "the store is not written");
        let mut member = Ones;
        let mut unknown = TrialStores::new(&mut member);
        unknown.write(0, 512, &[7; 512]).expect("discarded");
        assert!(
            unknown.is_incomplete(),
            "the rest of the page cannot be read"
        );
    }

    /// Records writes and syncs, and reads zeroes.
    struct Recorder(Vec<(u16, Option<(u64, u8)>)>);

    impl Images for Recorder {
        fn present(&self, _: u16) -> bool {
            true
        }
        fn read(&mut self, _: u16, _: u64, into: &mut [u8]) -> Result<(), Unreadable> {
            into.fill(0);
            Ok(())
        }
        fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
            self.0.push((member, Some((at, data[0]))));
            Ok(())
        }
        fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
            self.0.push((member, None));
            Ok(())
        }
    }

    #[test]
    fn the_stores_get_the_writes_of_the_trial_in_their_order() {
        let mut stores = Recorder(Vec::new());
        let mut trial = TrialStores::new(&mut stores);
        trial.write(1, 512, &[7; 512]).expect("memory");
        trial.sync(1).expect("memory");
        trial.write(0, 0, &[8; PAGE]).expect("memory");
        trial.write(1, 512, &[9; 512]).expect("memory");
        assert!(trial.apply());
        let expected = [
            (1, Some((512, 7))),
            (1, None),
            (0, Some((0, 8))),
            (1, Some((512, 9))),
        ];
        assert_eq!(stores.0, expected);
    }
}
