//! Logs of recorded drives.

use crash::search::{Case, Judgement, Limits, search};
use crash::{Assumptions, Head, Log, log_writes};

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
