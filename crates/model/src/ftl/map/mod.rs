//! The page map, from logical to physical pages: 4 bytes per entry. An entry of zero means "at its location in the
//! initial layout".
//!
//! With 64-bit addresses, the map is stored in lines, which is the fastest form. With 32-bit addresses (WebAssembly in
//! a web page), only the entries that were set are stored, in little memory. A test checks that both give equal
//! results.

#[cfg(any(test, target_pointer_width = "64"))]
mod lines;
#[cfg(any(test, not(target_pointer_width = "64")))]
mod sparse;

#[cfg(target_pointer_width = "64")]
pub(super) use lines::{Lines as Map, Saved as SavedMap};
#[cfg(not(target_pointer_width = "64"))]
pub(super) use sparse::{Saved as SavedMap, Sparse as Map};

/// Value of an entry that has not been set.
pub(super) const INITIAL: u32 = 0;

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::lines::Lines;
    use super::sparse::Sparse;
    use crate::ftl::numbers::Page;
    use crate::random::Stream;

    const PAGES: u32 = 70_000;

    /// Sets entries of both maps to equal values.
    fn change(lines: &mut Lines, sparse: &mut Sparse, random: &mut Stream, changes: u32) {
        for _ in 0..changes {
            let (page, value) = (
                random.uniform_below(PAGES.into()),
                1 + random.uniform_below(1 << 30),
            );
            for entry in [
                lines.entry(Page(page as u32)),
                sparse.entry(Page(page as u32)),
            ] {
                *entry = value as u32;
            }
        }
    }

    fn all(get: impl Fn(Page) -> u32) -> Vec<u32> {
        (0..PAGES).map(|page| get(Page(page))).collect()
    }

    #[test]
    fn few_entries_say_what_lines_say() {
        let (mut lines, mut sparse) = (Lines::new(PAGES), Sparse::new(PAGES));
        assert!(lines.is_of(PAGES) && sparse.is_of(PAGES) && !sparse.is_of(PAGES + 1));
        assert!(!lines.clear() && !sparse.clear());
        sparse.touch((0..9).map(Page));
        let mut random = Stream::new(3, "maps");
        for begins in [100, 20_000, 1] {
            change(&mut lines, &mut sparse, &mut random, begins);
            let saved = (lines.save(), sparse.save());
            lines.watch();
            sparse.watch();
            let then = all(|page| lines.get(page));
            assert_eq!(then, all(|page| sparse.get(page)));
            for further in [1, 0, 5000, 60_000] {
                change(&mut lines, &mut sparse, &mut random, further);
                let now = all(|page| lines.get(page));
                assert_eq!(now, all(|page| sparse.get(page)));
                lines.put_back(&saved.0);
                sparse.put_back(&saved.1);
                assert_eq!(then, all(|page| lines.get(page)));
                assert_eq!(then, all(|page| sparse.get(page)));
            }
            assert!(lines.clear() && sparse.clear());
            assert_eq!(all(|page| lines.get(page)), all(|page| sparse.get(page)));
            lines.restore(&saved.0);
            sparse.restore(&saved.1);
            assert_eq!(then, all(|page| lines.get(page)));
            assert_eq!(then, all(|page| sparse.get(page)));
        }
    }
}
