//! Durable contents of logs, to compare recordings of the same commands by different programs.

use crash::{Assumptions, Fork, Log, Lost, Walk};

const SSD: Assumptions = Assumptions {
    part: 4096,
    torn: true,
    volatile: true,
    flush_lies: false,
};

/// Returns the contents that the drive cannot lose, at each moment, without repetitions.
pub(crate) fn durable(log: &Log) -> Vec<Fork> {
    let mut walk = Walk::new(log, SSD);
    let mut contents: Vec<Fork> = Vec::new();
    while walk.advance().is_some() {
        let image = walk.image(&Lost::from_fn(walk.undecided().len(), |_| true));
        if contents.last().is_none_or(|last| !same(last, &image)) {
            contents.push(image);
        }
    }
    contents
}

/// Checks whether two images have the same bytes.
pub(crate) fn same(a: &Fork, b: &Fork) -> bool {
    let is_written = |it: &(u64, &[u8; 4096])| it.1.iter().any(|byte| *byte != 0);
    let (a, b) = (a.pages().filter(is_written), b.pages().filter(is_written));
    a.eq(b)
}
