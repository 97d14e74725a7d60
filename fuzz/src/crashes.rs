//! Logs of recorded drives, and images of file systems.

use crash::ext4::Ext4;
use crash::search::{Case, Judgement, Limits, search};
use crash::xfs::Structures;
use crash::{Assumptions, Fork, Head, Image, Log, log_writes};

/// A log is read or refused with a place in it; what is read has images at every moment, and becomes a dm-log-writes log that is
/// read again.
pub fn log(bytes: &[u8]) {
    let head = Head {
        drive: "fuzz".into(),
        bytes: 1 << 30,
        block: 512,
        part: 4096,
        volatile: true,
    };
    if let Ok(log) = log_writes::read(bytes, &head, &[]) {
        tried(&log);
    }
    match Log::read(bytes.to_vec()) {
        Err(wrong) => assert!(wrong.offset <= bytes.len() as u64 && !wrong.what.is_empty()),
        Ok(log) => tried(&log),
    }
}

fn tried(log: &Log) {
    // A command of a few bytes of log may fill a drive with zeroes.
    let zeroes = log.commands.iter().filter(|it| log.data(it).is_empty());
    if log.commands.len() > 200 || zeroes.map(|it| it.bytes).sum::<u64>() > 64 << 20 {
        return;
    }
    let how = Assumptions {
        part: 4096,
        torn: true,
        volatile: log.head.volatile,
        flush_lies: false,
    };
    let limits = Limits {
        images: 300,
        ..Limits::default()
    };
    let mut check = |case: &Case<'_>| {
        assert!(!case.name.is_empty());
        Judgement::Sound
    };
    let report = search(log, how, limits, &mut check).expect("all is sound");
    assert!(report.failures.is_empty() && report.counts.moments > 0);
    let again = log_writes::write(log);
    log_writes::read(&again, &log.head, &[]).expect("what was written is read");
}

/// Bytes of a line of an image in an input.
const LINE: usize = 16;

/// Bytes of the images.
const DRIVE: u64 = 16 << 20;

/// Returns the image of an input: records of a line's number (four bytes), a number of lines (one byte) and the lines. All
/// other lines are zeroes.
fn image(mut bytes: &[u8]) -> Image {
    let mut image = Image::default();
    while let Some((head, rest)) = bytes.split_first_chunk::<5>() {
        let [a, b, c, d, count] = *head;
        let line = u64::from(u32::from_le_bytes([a, b, c, d]));
        let length = (usize::from(count) * LINE).min(rest.len());
        let (data, rest) = rest.split_at(length);
        image.write(line * LINE as u64 % DRIVE, data);
        bytes = rest;
    }
    image
}

/// Any image has owners for all of its blocks. The time and the memory of the readers are limited by the size of the image.
pub fn file_system(bytes: &[u8]) {
    let after = Fork::new(image(bytes));
    let before = Fork::new(Image::default());
    if let Some(files) = Ext4::read(&after) {
        let ends = [(0, 2 << 20), (DRIVE - 4096, DRIVE + 4096), (1 << 40, (1 << 40) + 512)];
        for (start, end) in ends {
            let places = files.places(&before, start, end);
            let mut at = start;
            for place in &places {
                assert!(place.start == at && place.end > at, "{place:?}");
                assert!(!place.owner.to_string().is_empty());
                at = place.end;
            }
            assert_eq!(at, end);
        }
    }
    if let Some(structures) = Structures::read(&after) {
        for at in [0, 512, 1 << 20, 1 << 40, u64::MAX] {
            structures.owner(at);
        }
    }
}
