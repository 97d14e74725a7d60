//! Contents of a drive: a base, and forks of it that share its pages.
//!
//! A page that is all zeroes is absent. Each image has a sum over its pages of a hash of number and contents, which
//! identifies equal images. It has 128 bits, so two of a billion images collide with a probability below 1e-20, unless
//! they are constructed to collide.

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page.
pub const PAGE: usize = 4096;

/// Contents of a page.
pub type ImagePage = [u8; PAGE];

/// Contents of a whole drive.
#[derive(Clone, Debug, Default)]
pub struct Image {
    pages: BTreeMap<u64, (Arc<ImagePage>, u128)>,
    sum: u128,
}

impl Image {
    /// Writes data.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (number, within, from) in spans(offset, data.len()) {
            let mut page = self.page(number).copied().unwrap_or([0; PAGE]);
            let length = within.len();
            page[within].copy_from_slice(&data[from..from + length]);
            self.put(number, page);
        }
    }

    /// Writes zeroes.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        let touched = self.pages.range(pages_of(offset, bytes));
        let touched: Vec<u64> = touched.map(|(number, _)| *number).collect();
        for number in touched {
            let mut page = self.page(number).copied().unwrap_or([0; PAGE]);
            page[bytes_in_page(number, offset, bytes)].fill(0);
            self.put(number, page);
        }
    }

    fn put(&mut self, number: u64, page: ImagePage) {
        let hash = hash(number, &page);
        let before = if page == [0; PAGE] {
            self.pages.remove(&number)
        } else {
            self.sum = self.sum.wrapping_add(hash);
            self.pages.insert(number, (Arc::new(page), hash))
        };
        if let Some((_, before)) = before {
            self.sum = self.sum.wrapping_sub(before);
        }
    }

    fn page(&self, number: u64) -> Option<&ImagePage> {
        self.pages.get(&number).map(|(page, _)| &**page)
    }
}

/// An image that differs from its base in some pages. The base is shared and does not change.
#[derive(Clone, Debug)]
pub struct Fork {
    base: Arc<Image>,
    /// Changed pages; `None` is a page of zeroes.
    pages: BTreeMap<u64, Option<Box<ImagePage>>>,
}

impl Fork {
    /// Returns a fork that is equal to the base.
    pub fn new(base: impl Into<Arc<Image>>) -> Fork {
        Fork {
            base: base.into(),
            pages: BTreeMap::new(),
        }
    }

    /// Writes data.
    pub fn write(&mut self, offset: u64, data: &[u8]) {
        for (number, within, from) in spans(offset, data.len()) {
            let length = within.len();
            self.own(number)[within].copy_from_slice(&data[from..from + length]);
        }
    }

    /// Writes zeroes.
    pub fn zero(&mut self, offset: u64, bytes: u64) {
        let pages = pages_of(offset, bytes);
        let base = self
            .base
            .pages
            .range(pages.clone())
            .map(|(number, _)| *number);
        let own = self.pages.range(pages).map(|(number, _)| *number);
        let mut touched: Vec<u64> = base.chain(own).collect();
        touched.sort_unstable();
        touched.dedup();
        for number in touched {
            match bytes_in_page(number, offset, bytes) {
                whole if whole.len() == PAGE => {
                    self.pages.insert(number, None);
                }
                some => self.own(number)[some].fill(0),
            }
        }
    }

    /// Returns the same contents as an image of its own.
    pub fn flatten(self) -> Image {
        let mut image = Arc::unwrap_or_clone(self.base);
        for (number, page) in self.pages {
            image.put(number, page.map_or([0; PAGE], |page| *page));
        }
        image
    }

    fn own(&mut self, number: u64) -> &mut ImagePage {
        let page = self.pages.entry(number).or_insert_with(|| {
            let page = self.base.page(number).copied();
            Some(Box::new(page.unwrap_or([0; PAGE])))
        });
        page.get_or_insert_with(|| Box::new([0; PAGE]))
    }

    /// Returns the page with this number; `None` if it is all zeroes and was never written.
    pub fn page(&self, number: u64) -> Option<&ImagePage> {
        match self.pages.get(&number) {
            Some(page) => page.as_deref(),
            None => self.base.page(number),
        }
    }

    /// Returns the end of the last page that may not be all zeroes, in bytes.
    pub fn end(&self) -> u64 {
        let ends = [
            self.base.pages.keys().next_back(),
            self.pages.keys().next_back(),
        ];
        let last = ends.into_iter().flatten().max();
        last.map_or(0, |number| (number + 1) * PAGE as u64)
    }

    /// Reads data.
    pub fn read(&self, offset: u64, data: &mut [u8]) {
        for (number, within, from) in spans(offset, data.len()) {
            let into = &mut data[from..from + within.len()];
            match self.page(number) {
                Some(page) => into.copy_from_slice(&page[within]),
                None => into.fill(0),
            }
        }
    }

    /// Returns the pages that are not absent, in order.
    pub fn pages(&self) -> impl Iterator<Item = (u64, &ImagePage)> {
        let numbers = self.base.pages.keys().chain(self.pages.keys());
        let mut numbers: Vec<u64> = numbers.copied().collect();
        numbers.sort_unstable();
        numbers.dedup();
        let pages = numbers.into_iter();
        pages.filter_map(|number| Some((number, self.page(number)?)))
    }

    /// Returns the sum that identifies equal images.
    pub fn sum(&self) -> u128 {
        let mut sum = self.base.sum;
        for (number, page) in &self.pages {
            if let Some((_, before)) = self.base.pages.get(number) {
                sum = sum.wrapping_sub(*before);
            }
            let page = page.as_deref().filter(|page| **page != [0; PAGE]);
            sum = sum.wrapping_add(page.map_or(0, |page| hash(*number, page)));
        }
        sum
    }
}

/// Returns the pages that a range touches.
fn pages_of(offset: u64, bytes: u64) -> std::ops::Range<u64> {
    offset / PAGE as u64..(offset + bytes).div_ceil(PAGE as u64)
}

/// Returns the bytes of a page that are in this range.
fn bytes_in_page(number: u64, offset: u64, bytes: u64) -> std::ops::Range<usize> {
    let first = number * PAGE as u64;
    let start = offset.max(first) - first;
    let end = (offset + bytes).min(first + PAGE as u64) - first;
    start as usize..end as usize
}

/// Returns for each page its number, the bytes of it that a range touches, and their offset in the range.
fn spans(offset: u64, length: usize) -> impl Iterator<Item = (u64, std::ops::Range<usize>, usize)> {
    pages_of(offset, length as u64).map(move |number| {
        let within = bytes_in_page(number, offset, length as u64);
        let from = number * PAGE as u64 + within.start as u64 - offset;
        (number, within, from as usize)
    })
}

/// Returns the hash of a page and its number: two lanes of folded multiplications.
fn hash(number: u64, page: &ImagePage) -> u128 {
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        product as u64 ^ (product >> 64) as u64
    };
    let mut lanes = [
        number ^ 0x9e37_79b9_7f4a_7c15,
        number ^ 0xd1b5_4a32_d192_ed03,
    ];
    for words in page.chunks_exact(16) {
        let mut both = [0_u64; 2];
        for (word, bytes) in both.iter_mut().zip(words.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(bytes);
            *word = u64::from_le_bytes(eight);
        }
        let [a, b] = both;
        lanes[0] = fold(
            lanes[0] ^ a ^ 0xa076_1d64_78bd_642f,
            b ^ 0xe703_7ed1_a0b4_28db,
        );
        lanes[1] = fold(
            lanes[1] ^ b ^ 0x8ebc_6af0_9c88_c6e3,
            a ^ 0x5899_65cc_7537_4cc3,
        );
        // A factor of zero must not make a lane lose its previous state.
        lanes[0] = lanes[0].rotate_left(23) ^ a.wrapping_add(b.rotate_left(31));
        lanes[1] = lanes[1].rotate_left(41) ^ b.wrapping_add(a.rotate_left(17));
    }
    let last = |lane: u64| fold(lane ^ 0x2d35_8dcc_aa6c_78a5, 0x8bb8_4b93_962e_acc9);
    u128::from(last(lanes[0])) << 64 | u128::from(last(lanes[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Stream;

    #[test]
    fn a_fork_reads_and_sums_as_an_image_with_the_same_writes() {
        let mut stream = Stream::new(1, "image");
        for _ in 0..50 {
            let (mut base, mut flat) = (Image::default(), vec![0_u8; 8 * PAGE]);
            let mut writes = Vec::new();
            for _ in 0..8 {
                let offset = 512 * stream.uniform_below(60);
                let bytes = 512 * (1 + stream.uniform_below(64 - offset / 512));
                writes.push((offset, bytes, stream.uniform_below(3) as u8));
            }
            let (first, second) = writes.split_at(4);
            for &(offset, bytes, value) in first {
                match value {
                    0 => base.zero(offset, bytes),
                    _ => base.write(offset, &vec![value; bytes as usize]),
                }
                flat[offset as usize..(offset + bytes) as usize].fill(value);
            }
            let mut whole = base.clone();
            let mut fork = Fork::new(base);
            for &(offset, bytes, value) in second {
                match value {
                    0 => {
                        fork.zero(offset, bytes);
                        whole.zero(offset, bytes);
                    }
                    _ => {
                        let data = vec![value; bytes as usize];
                        fork.write(offset, &data);
                        whole.write(offset, &data);
                    }
                }
                flat[offset as usize..(offset + bytes) as usize].fill(value);
            }
            let mut read = vec![1; 8 * PAGE];
            fork.read(0, &mut read);
            assert_eq!(read, flat);
            assert_eq!(fork.sum(), whole.sum);
            assert_eq!(fork.clone().flatten().sum, whole.sum);
            assert_eq!(fork.sum(), Fork::new(whole).sum());
        }
    }

    #[test]
    fn sums_of_different_images_differ() {
        let mut seen = std::collections::BTreeSet::new();
        for (page, byte, value) in
            (0..4).flat_map(|p| (0..64).map(move |b| (p, b * 64, 1 << (b % 8))))
        {
            let mut image = Image::default();
            let mut data = [0; PAGE];
            data[byte] = value;
            image.write(page * PAGE as u64, &data);
            assert!(seen.insert(image.sum), "page {page}, byte {byte}");
        }
    }
}
