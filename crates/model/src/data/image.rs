//! Content of a medium in memory: sparse, and cheap to copy, because the checker tries thousands of possible results of
//! a power cut, each on its own copy. Copies share pages until one of them is written.

use alloc::collections::BTreeSet;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::contents::{Contents, Unreadable, Unwritable};
use super::drive_fault::LastingErrors;
use super::is_zero;

/// Bytes per page, the unit of sharing and copying.
const PAGE: u64 = 4096;
/// Bytes of the smallest unreadable unit.
const SECTOR: u64 = 512;

type Page = [u8; PAGE as usize];

/// Content of a medium; it grows as it is written. Equal images return equal data; images that return equal data need not
/// be equal, because a page of zeroes differs from one that was never written: see [`Image::same`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Image {
    pages: Vec<Option<Arc<Page>>>,
    unreadable: BTreeSet<u64>,
    errors: Option<LastingErrors>,
}

/// Splits a range into parts of one page each: page, first byte in it, first byte in the range, bytes.
fn pages(at: u64, bytes: u64) -> impl Iterator<Item = (usize, usize, usize, usize)> {
    let end = at + bytes;
    let mut next = at;
    core::iter::from_fn(move || {
        (next < end).then(|| {
            let until = end.min((next / PAGE + 1) * PAGE);
            let part = (
                (next / PAGE) as usize,
                (next % PAGE) as usize,
                (next - at) as usize,
                (until - next) as usize,
            );
            next = until;
            part
        })
    })
}

impl Image {
    fn place(&mut self, index: usize) -> &mut Option<Arc<Page>> {
        if self.pages.len() <= index {
            self.pages.resize(index + 1, None);
        }
        &mut self.pages[index]
    }

    fn page(&mut self, index: usize) -> &mut Page {
        let page = self.place(index);
        Arc::make_mut(page.get_or_insert_with(|| Arc::new([0; PAGE as usize])))
    }

    fn readable_again(&mut self, at: u64, bytes: u64) {
        if !self.unreadable.is_empty() {
            for sector in at / SECTOR..(at + bytes).div_ceil(SECTOR) {
                self.unreadable.remove(&sector);
            }
        }
    }

    /// Ends errors that last until a power cut.
    pub fn power_cut(&mut self) {
        self.errors
            .take_if(|errors| *errors == LastingErrors::AllUntilPowerCut);
    }

    /// Whether writes succeed.
    fn accepts(&self) -> Result<(), Unwritable> {
        match self.errors {
            None | Some(LastingErrors::Reads) => Ok(()),
            Some(_) => Err(Unwritable),
        }
    }

    /// Whether both images have equal data in a range (for unreadable sectors, the data below counts).
    pub fn same(&self, other: &Image, at: u64, bytes: u64) -> bool {
        pages(at, bytes).all(|(index, first, _, length)| {
            fn page_range(page: &Page, first: usize, length: usize) -> &[u8] {
                &page[first..first + length]
            }
            let part = |page| page_range(page, first, length);
            match (self.shared(index), other.shared(index)) {
                (None, None) => true,
                (Some(one), Some(two)) => Arc::ptr_eq(one, two) || part(one) == part(two),
                (Some(page), None) | (None, Some(page)) => is_zero(part(page)),
            }
        })
    }

    fn shared(&self, index: usize) -> Option<&Arc<Page>> {
        self.pages.get(index)?.as_ref()
    }
}

impl Contents for Image {
    fn read(&self, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let bytes = into.len() as u64;
        let sectors = at / SECTOR..(at + bytes).div_ceil(SECTOR);
        if self.errors.is_some() || self.unreadable.range(sectors).next().is_some() {
            return Err(Unreadable);
        }
        for (index, first, from, length) in pages(at, bytes) {
            let into = &mut into[from..from + length];
            match self.pages.get(index) {
                Some(Some(page)) => into.copy_from_slice(&page[first..first + length]),
                _ => into.fill(0),
            }
        }
        Ok(())
    }

    fn write(&mut self, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.accepts()?;
        self.readable_again(at, data.len() as u64);
        for (index, first, from, length) in pages(at, data.len() as u64) {
            let data = &data[from..from + length];
            match Page::try_from(data) {
                // The previous content is neither copied nor zeroed first.
                Ok(whole) => *self.place(index) = Some(Arc::new(whole)),
                Err(_) => self.page(index)[first..first + length].copy_from_slice(data),
            }
        }
        Ok(())
    }

    fn zero(&mut self, at: u64, bytes: u64) -> Result<(), Unwritable> {
        self.accepts()?;
        self.readable_again(at, bytes);
        for (index, first, _, length) in pages(at, bytes) {
            if length as u64 == PAGE {
                if let Some(page) = self.pages.get_mut(index) {
                    *page = None;
                }
            } else if self.pages.get(index).is_some_and(Option::is_some) {
                self.page(index)[first..first + length].fill(0);
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<(), Unwritable> {
        self.accepts()
    }

    fn fail(&mut self, errors: LastingErrors) {
        self.errors = Some(errors);
    }

    fn spoil(&mut self, at: u64, bytes: u64) {
        self.unreadable
            .extend(at / SECTOR..(at + bytes).div_ceil(SECTOR));
    }
}
