//! Recovery of an array from its children after a crash ([`legs`]).
//!
//! In marked regions, parity is recomputed from data. If data there would have to be computed from parity, because a
//! child is out or cannot read it, and writes were in progress, the result may be wrong (the write hole). The array is
//! then rejected, unless a second parity confirms the data or the loss is accepted. Children that are present and have
//! missed writes are rebuilt.

use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use model::data::{Unreadable, Unwritable, field};

use super::ParityArray;
use super::shape::PAGE;
use crate::Child;
use crate::legs::{self, Legs, unwritable};
use crate::offline::{ChildImages, Damage, RecoveryFinding};
use crate::planted::{self, Bug};

const BYTES: usize = PAGE as usize;

/// A page of each column of a stripe.
type Row = Vec<[u8; BYTES]>;

pub(super) fn recover(
    mut array: ParityArray,
    pool: u128,
    below: &mut dyn ChildImages,
) -> Result<ParityArray, Damage> {
    let bytes = array.labels_at();
    let legs = Legs::find(&array.labels, bytes, pool, below)?;
    legs.resume(&mut array.labels, below);
    array.labels.written.in_sync = legs.in_sync;
    let doubts = legs.newest.state.busy && !below.accepts_loss();
    if doubts
        && !planted::has(Bug::OpensOverTheHole)
        && let Some(child) = in_doubt(&array, below)
    {
        return Err(Damage::Hole(child));
    }
    if !planted::has(Bug::LeavesParity) {
        let took = compute_parity(&array, legs.in_sync, below);
        if took.count_ones() < array.labels.needed {
            let failed = legs.in_sync & !took;
            return Err(Damage::Unwritable(failed.trailing_zeros() as Child));
        }
        (array.labels.known.in_sync, array.labels.written.in_sync) = (took, took);
    }
    let mut now_in_sync = array.labels.known.in_sync;
    for child in legs.stale(&array.labels) {
        let known = legs.resync_marks(child);
        match known {
            Some(own) => array.labels.known.dirty.add(&own.dirty),
            // An incomplete copy must not look like an old one.
            None if legs::strip(bytes, child, below).is_err() => {
                array.rebuilding.barred |= 1 << child;
                continue;
            }
            None => {}
        }
        let copied = bring_up(&array, child, known.is_some(), below).unwrap_or_default();
        below.found(RecoveryFinding::Stale(child, copied));
        match copied {
            Some(_) => now_in_sync |= 1 << child,
            // It may lack more than marked regions.
            None => array.rebuilding.barred |= 1 << child,
        }
    }
    legs.conclude(&mut array.labels, bytes, now_in_sync, below)?;
    array.recovered = true;
    Ok(array)
}

impl ParityArray {
    /// Reads a page of each column at these rows, from complete children; missing data is computed. Returns which
    /// columns were read.
    fn row(&self, rows: u64, below: &mut dyn ChildImages) -> Result<(Row, u32), Unreadable> {
        let stripe = rows / self.shape.chunk;
        let (data, count) = (self.shape.data() as usize, self.shape.children as usize);
        let mut row = vec![[0; BYTES]; count];
        let mut read = 0;
        for (column, page) in row.iter_mut().enumerate() {
            let child = self.shape.child(stripe, column as u64);
            let counts = self.labels.readable() & (1 << child) != 0;
            if counts && below.read(child, rows, page).is_ok() {
                read |= 1 << column;
            }
        }
        let missing: Vec<usize> = (0..data).filter(|it| read & (1 << it) == 0).collect();
        let parities: Vec<usize> = (data..count).filter(|it| read & (1 << it) != 0).collect();
        if missing.len() > parities.len() {
            return Err(Unreadable);
        }
        compute(&mut row, data, &missing, &parities[..missing.len()]);
        Ok((row, read))
    }
}

/// Computes missing pages of data, from the same number of parity pages.
fn compute(row: &mut Row, data: usize, missing: &[usize], parities: &[usize]) {
    let mut left: Vec<[u8; BYTES]> = parities.iter().map(|&it| row[it]).collect();
    for (left, parity) in left.iter_mut().zip(parities) {
        for column in (0..data).filter(|it| !missing.contains(it)) {
            field::fold(
                &row[column],
                left,
                field::coefficient(parity - data, column),
            );
        }
    }
    match (missing, parities) {
        (&[column], &[parity]) => {
            row[column].fill(0);
            let factor = field::inverse(field::coefficient(parity - data, column));
            field::fold(&left[0], &mut row[column], factor);
        }
        (&[one, two], &[first, second]) => {
            let factors = field::two_missing([first - data, second - data], [one, two]);
            for (column, factors) in [one, two].into_iter().zip(factors) {
                row[column].fill(0);
                field::fold(&left[0], &mut row[column], factors[0]);
                field::fold(&left[1], &mut row[column], factors[1]);
            }
        }
        _ => {}
    }
}

/// Returns the parity of `data` pages of data.
fn parity_of(row: &Row, data: usize, column: usize) -> [u8; BYTES] {
    let mut sum = [0; BYTES];
    for (index, page) in row[..data].iter().enumerate() {
        field::fold(page, &mut sum, field::coefficient(column - data, index));
    }
    sum
}

/// Returns the rows of all marked regions.
fn marked(array: &ParityArray) -> impl Iterator<Item = u64> + '_ {
    let region = array.labels.region;
    let dirty = &array.labels.known.dirty;
    let regions = core::iter::successors(dirty.next(0), |&last| dirty.next(last + 1));
    regions.flat_map(move |index| {
        let first = index as u64 * region;
        (first..(first + region).min(array.labels_at())).step_by(BYTES)
    })
}

/// Writes a page if it differs.
fn set(
    child: Child,
    at: u64,
    page: &[u8; BYTES],
    below: &mut dyn ChildImages,
) -> Result<(), Damage> {
    let mut own = [0; BYTES];
    if below.read(child, at, &mut own).is_ok() && own == *page {
        return Ok(());
    }
    below.write(child, at, page).map_err(unwritable(child))
}

/// Returns a child whose data in a marked row must be computed without confirmation that the result is correct: writes
/// were in progress, so parity may be older than the data of other children. An additional parity (of a RAID 6 with one
/// child out) that matches is a confirmation.
fn in_doubt(array: &ParityArray, below: &mut dyn ChildImages) -> Option<Child> {
    let data = array.shape.data() as usize;
    for rows in marked(array) {
        // If too much is missing, reads fail, and nothing is computed.
        let Ok((row, read)) = array.row(rows, below) else {
            continue;
        };
        let mut missing = (0..data).filter(|it| read & (1 << it) == 0);
        let Some(first) = missing.next() else {
            continue;
        };
        let parities = (data..array.shape.children as usize).filter(|it| read & (1 << it) != 0);
        let mut left_over = parities.skip(1 + missing.count()).peekable();
        let none = left_over.peek().is_none();
        if none || left_over.any(|parity| row[parity] != parity_of(&row, data, parity)) {
            let stripe = rows / array.shape.chunk;
            return Some(array.shape.child(stripe, first as u64));
        }
    }
    None
}

/// Recomputes parity from data in marked regions. If data cannot be read, nothing is changed. Returns those of the
/// children in sync that could be written.
fn compute_parity(array: &ParityArray, in_sync: u32, below: &mut dyn ChildImages) -> u32 {
    let data = array.shape.data() as usize;
    let mut took = in_sync;
    for rows in marked(array) {
        let Ok((row, _)) = array.row(rows, below) else {
            continue;
        };
        for column in data..array.shape.children as usize {
            let child = array.shape.child(rows / array.shape.chunk, column as u64);
            let counts = in_sync & (1 << child) != 0;
            if counts && set(child, rows, &parity_of(&row, data, column), below).is_err() {
                took &= !(1 << child);
            }
        }
    }
    for child in array.children().filter(|it| in_sync & (1 << it) != 0) {
        if below.sync(child).is_err() {
            took &= !(1 << child);
        }
    }
    took
}

/// Returns the rows of the used data of each stripe.
fn used(array: &ParityArray, below: &dyn ChildImages) -> Vec<Range<u64>> {
    match below.used() {
        Some(used) => used.iter().map(|it| array.rows_of(it)).collect(),
        None => core::iter::once(0..array.labels_at()).collect(),
    }
}

/// Rebuilds a child: marked regions if it is `known` that only these are missing, or everything that is used. Returns
/// the number of regions; `None` if some of its data can no longer be computed, because then the child must not be
/// used.
fn bring_up(
    array: &ParityArray,
    child: Child,
    known: bool,
    below: &mut dyn ChildImages,
) -> Result<Option<u32>, Damage> {
    let data = array.shape.data() as usize;
    let used = used(array, below);
    let mut whole = true;
    let mut copy = |rows: u64| -> Result<(), Damage> {
        let stripe = rows / array.shape.chunk;
        if planted::has(Bug::SkipsStripes) && stripe % 4 == 3 {
            return Ok(());
        }
        let Ok((row, _)) = array.row(rows, below) else {
            whole = false;
            return Ok(());
        };
        let column = array.shape.column(stripe, child) as usize;
        match column < data {
            true => set(child, rows, &row[column], below),
            false => set(child, rows, &parity_of(&row, data, column), below),
        }
    };
    let regions = match known {
        true => {
            marked(array).try_for_each(&mut copy)?;
            array.labels.known.dirty.count()
        }
        false => {
            let regions = |it: &Range<u64>| array.labels.regions(it.start, it.end - it.start);
            let count: usize = used.iter().map(|it| regions(it).len()).sum();
            let mut rows = used.into_iter().flat_map(|it| it.step_by(BYTES));
            rows.try_for_each(&mut copy)?;
            count as u32
        }
    };
    below.sync(child).map_err(unwritable(child))?;
    Ok(whole.then_some(regions))
}

impl ParityArray {
    /// Returns the pages of a range: for each its rows, its column, and its position in the page and in the range.
    fn pages(
        &self,
        at: u64,
        bytes: usize,
    ) -> impl Iterator<Item = (u64, usize, usize, Range<usize>)> {
        let (shape, end) = (self.shape, at + bytes as u64);
        let mut next = at;
        core::iter::from_fn(move || {
            if next == end {
                return None;
            }
            let from = next;
            next = end.min((from / PAGE + 1) * PAGE);
            let rows = from / shape.stripe() * shape.chunk + from % shape.chunk / PAGE * PAGE;
            let column = (from % shape.stripe() / shape.chunk) as usize;
            let part = (from - at) as usize..(next - at) as usize;
            Some((rows, column, (from % PAGE) as usize, part))
        })
    }
}

/// Reads offline.
pub(super) fn read(
    array: &ParityArray,
    at: u64,
    into: &mut [u8],
    below: &mut dyn ChildImages,
) -> Result<(), Unreadable> {
    for (rows, column, within, part) in array.pages(at, into.len()) {
        let child = array.shape.child(rows / array.shape.chunk, column as u64);
        let into = &mut into[part];
        let readable = array.labels.readable() & (1 << child) != 0;
        if readable && below.read(child, rows + within as u64, into).is_ok() {
            continue;
        }
        let (row, _) = array.row(rows, below)?;
        into.copy_from_slice(&row[column][within..within + into.len()]);
    }
    Ok(())
}

/// Writes offline.
pub(super) fn write(
    array: &ParityArray,
    at: u64,
    data: &[u8],
    below: &mut dyn ChildImages,
) -> Result<(), Unwritable> {
    let count = array.shape.data() as usize;
    for (rows, column, within, part) in array.pages(at, data.len()) {
        let stripe = rows / array.shape.chunk;
        let (mut row, _) = array.row(rows, below).map_err(|Unreadable| Unwritable)?;
        let part = &data[part];
        row[column][within..within + part.len()].copy_from_slice(part);
        for changed in [column]
            .into_iter()
            .chain(count..array.shape.children as usize)
        {
            let child = array.shape.child(stripe, changed as u64);
            if array.labels.known.in_sync & (1 << child) == 0 {
                continue;
            }
            match changed < count {
                true => below.write(child, rows, &row[changed])?,
                false => below.write(child, rows, &parity_of(&row, count, changed))?,
            }
        }
    }
    Ok(())
}

/// Whether parity does not match the data: the result of a read then depends on which children are read.
pub(super) fn is_ambiguous(
    array: &ParityArray,
    at: u64,
    bytes: u32,
    below: &mut dyn ChildImages,
) -> bool {
    let data = array.shape.data() as usize;
    let mut pages = array.pages(at, bytes as usize);
    pages.any(|(rows, ..)| {
        let Ok((row, read)) = array.row(rows, below) else {
            return false;
        };
        let stripe = rows / array.shape.chunk;
        let mut columns = 0..array.shape.children as usize;
        columns.any(|column| {
            let child = array.shape.child(stripe, column as u64);
            let was_read = read & (1 << column) != 0;
            let differs =
                was_read && column >= data && row[column] != parity_of(&row, data, column);
            differs || (was_read && below.is_ambiguous(child, rows, PAGE as u32))
        })
    })
}
