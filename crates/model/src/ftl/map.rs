//! The page map: 4 bytes an entry, logical to physical, in lines that exist only once one of their pages has moved.
//!
//! An entry of zero means "where the initial layout put it", so a preconditioned drive of any size costs nothing until
//! it is written: 0.25 bytes a logical page for the index of lines (and the operating system hands that out only when
//! touched), then 4 bytes a page for each line of 16 pages that has been written. Reads of pages that never moved touch
//! no table but the index.

/// Pages of one line: 64 bytes, a cache line.
const LINE: u32 = 16;

/// The value of an entry that nobody has set.
pub(super) const INITIAL: u32 = 0;

/// The forward map.
#[derive(Clone, Debug)]
pub(super) struct Map {
    /// By line: zero, or one more than its place in `lines`.
    index: Vec<u32>,
    lines: Vec<[u32; LINE as usize]>,
}

impl Map {
    pub(super) fn new(pages: u32) -> Map {
        Map {
            index: vec![0; pages.div_ceil(LINE) as usize],
            lines: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn get(&self, page: u32) -> u32 {
        match self.index[(page / LINE) as usize] {
            0 => INITIAL,
            line => self.lines[line as usize - 1][(page % LINE) as usize],
        }
    }

    /// The entry, to be read and changed. Memory grows when a line is written for the first time.
    #[inline]
    pub(super) fn entry(&mut self, page: u32) -> &mut u32 {
        let line = &mut self.index[(page / LINE) as usize];
        if *line == 0 {
            self.lines.push([INITIAL; LINE as usize]);
            *line = self.lines.len() as u32;
        }
        &mut self.lines[*line as usize - 1][(page % LINE) as usize]
    }

    /// Bytes in use.
    pub(super) fn bytes(&self) -> usize {
        self.index.len() * 4 + self.lines.len() * LINE as usize * 4
    }
}
