//! Images of an offline pool's members, for tests.

use alloc::vec;
use alloc::vec::Vec;

use model::data::{Contents, Image, Unreadable, Unwritable};

use super::offline::Images;

/// Images of the members; some may be missing.
#[derive(Clone, Default)]
pub(super) struct Shelf {
    pub(super) images: Vec<Image>,
    pub(super) absent: Vec<u16>,
}

impl Images for Shelf {
    fn present(&self, member: u16) -> bool {
        !self.absent.contains(&member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.images[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.images[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, _member: u16) -> Result<(), Unwritable> {
        Ok(())
    }
}

impl Shelf {
    /// Creates `members` empty images.
    pub(super) fn new(members: usize) -> Shelf {
        Shelf {
            images: vec![Image::default(); members],
            absent: Vec::new(),
        }
    }
}
