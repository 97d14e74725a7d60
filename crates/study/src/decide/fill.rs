//! How long writes stay fast: bytes and seconds until a drive falls off, the rate after it, and how long it has to be idle to be fast
//! again, at several shares of the drive in use.
//!
//! The drive begins filled in order up to that share, the rest trimmed. Writes in order begin where that ends and go on from the drive's
//! first block when they reach its last; random ones go anywhere. They come in pieces of a quarter percent of the capacity, each with as many in flight. To be quick
//! the drive is a smaller one that behaves alike (`Medium::shrunk`, docs/what-if.md), whose bytes and seconds are told as those of the
//! whole drive. Left out: heat, pools, and all that a model's family leaves out of its cache.

use catalogue::{DriveSheet, HostSheet};
use lab::{Bench, Lab, Machine, Work};
use model::media::{DriveConfig, Medium, Precondition};
use model::{Span, Time};
use serde::Serialize;
use text::problem::Problems;
use workload::job::{BlockSizes, Extent, Job, Mix};

use super::spread;
use crate::ledger::support;
use crate::review::results::rounded;

/// Bytes of the smaller drive.
const SMALL: u64 = 16 << 30;
/// Pieces of a drive's capacity.
const PIECES: u64 = 400;
/// Pieces that are written at most: as much as one capacity.
const MOST: usize = 400;
/// Pieces whose median is the rate at the beginning.
const FIRST: usize = 4;
/// Pieces over which a rate is taken.
const WINDOW: usize = 8;
/// Pieces that are written once it has fallen off; the first tenth of them is on the way.
const AFTER: usize = 40;
/// It has fallen off where a window has less than this share of the rate at the beginning.
const KEPT: f64 = 0.75;
/// It is as before where the cache takes at least this share of what it takes after the longest idle time.
const AS_BEFORE: f64 = 0.9;
/// Idle times that are tried, in seconds.
const IDLE: [f64; 9] = [1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0];

/// What is asked.
#[derive(Clone, Debug)]
pub struct Request {
    /// Whether writes are random; else they are in order.
    pub random: bool,
    /// Bytes of a write.
    pub block: u32,
    /// Writes in flight.
    pub depth: u32,
    /// Percent of the drive in use.
    pub used: Vec<u32>,
    /// The host.
    pub host: HostSheet,
    /// The first seed.
    pub seed: u64,
    /// How many seeds; at least 1.
    pub seeds: u32,
}

/// What was found of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Answer {
    /// The drive.
    pub drive: String,
    /// How well its model is known.
    pub model: &'static str,
    /// The rows behind that.
    pub model_text: String,
    /// By share in use, in the order that was asked for.
    pub at: Vec<Filled>,
}

/// One share in use. Figures of several seeds are mean, least and greatest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Filled {
    /// Percent of the drive in use at the start.
    pub used_percent: u32,
    /// 10^6 bytes a second at the beginning.
    pub fast_mb_s: [f64; 3],
    /// Where it falls off; null if some seed does not within one capacity of writes.
    pub falls_off: Option<FallsOff>,
    /// 10^9 bytes written at most.
    pub written_gb: f64,
    /// Rate over bytes written, of the first seed.
    pub curve: Vec<Piece>,
}

/// Where writes become slow.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FallsOff {
    /// 10^9 bytes written until then.
    pub gb: [f64; 3],
    /// Seconds until then.
    pub seconds: [f64; 3],
    /// 10^6 bytes a second after it.
    pub slow_mb_s: [f64; 3],
    /// Idle seconds after which it takes nine tenths of what it takes after an hour, of the first seed; null if it takes next to nothing
    /// even then.
    pub recovers_seconds: Option<f64>,
    /// 10^9 bytes that it takes fast after an hour, of the first seed.
    pub recovered_gb: f64,
}

/// A piece of the curve.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Piece {
    /// 10^9 bytes written at its end.
    pub gb: f64,
    /// Seconds at its end.
    pub seconds: f64,
    /// 10^6 bytes a second in it.
    pub mb_s: f64,
}

/// One drive in one state, on a bench.
struct Writing<'a> {
    bench: Bench<'a>,
    request: &'a Request,
    seed: u64,
    /// Range of the writes.
    range: (u64, u64),
    /// Where the first write went.
    begins: u64,
    next: u64,
    piece: u64,
    runs: u64,
}

/// What was written: bytes and seconds of each piece.
type Written = Vec<(f64, f64)>;

impl Writing<'_> {
    /// Writes a piece after so much idle time; its bytes and seconds.
    fn write(&mut self, idle: Span) -> Result<(f64, f64), Problems> {
        let (from, to) = self.range;
        let block = u64::from(self.request.block);
        if self.next + block > to {
            self.next = from;
        }
        let (offset, size) = match self.request.random {
            true => (from, to - from),
            false => (self.next, self.piece.min(to - self.next)),
        };
        let bytes = self.piece.min(size) / block * block;
        let job = Job {
            mix: Mix::Write,
            random: self.request.random,
            norandommap: true,
            block_sizes: std::array::from_fn(|_| BlockSizes::Fixed(self.request.block)),
            iodepth: self.request.depth,
            offset: Extent::Bytes(offset),
            size: Some(Extent::Bytes(size / block * block)),
            number_ios: Some(bytes / block),
            startdelay: idle,
            ..Job::default()
        };
        self.next += bytes;
        self.runs += 1;
        let seed = self.seed.wrapping_mul(1 << 20).wrapping_add(self.runs);
        let outcome = self.bench.run(Work::Jobs(vec![job]), seed, Span::ZERO)?;
        let took = outcome.end.since(Time::ZERO).seconds() - idle.seconds();
        Ok((bytes as f64, took.max(1e-9)))
    }

    /// Writes until it falls off and a while longer, or `most` pieces; where it fell off.
    fn write_on(
        &mut self,
        idle: Span,
        most: usize,
        after: usize,
    ) -> Result<(Written, Option<usize>), Problems> {
        let mut written: Written = Vec::new();
        let mut idle = idle;
        let mut at = None;
        while written.len() < most && at.is_none_or(|at| written.len() < at + after) {
            written.push(self.write(idle)?);
            idle = Span::ZERO;
            at = at.or_else(|| falls_off(&written));
        }
        Ok((written, at))
    }
}

fn rate(some: &[(f64, f64)]) -> f64 {
    let bytes: f64 = some.iter().map(|piece| piece.0).sum();
    let seconds: f64 = some.iter().map(|piece| piece.1).sum();
    bytes / seconds
}

/// The rate at the beginning.
fn first_rate(written: &[(f64, f64)]) -> f64 {
    let mut first: Vec<f64> = written
        .iter()
        .take(FIRST)
        .map(|piece| piece.0 / piece.1)
        .collect();
    first.sort_by(f64::total_cmp);
    first[first.len() / 2]
}

/// The piece with which the last window began, if that is slow.
fn falls_off(written: &[(f64, f64)]) -> Option<usize> {
    let from = written.len().checked_sub(WINDOW)?;
    (rate(&written[from..]) < KEPT * first_rate(written)).then(|| {
        // Not the whole window was slow.
        let bound = KEPT * first_rate(written);
        let slow = written[from..]
            .iter()
            .position(|piece| piece.0 / piece.1 < bound);
        from + slow.unwrap_or(0)
    })
}

/// Everything wrong with what is asked of a drive.
///
/// # Errors
/// All of it at once.
pub fn check(request: &Request, drive: &DriveSheet) -> Result<(), Problems> {
    if drive.pool_config().is_some() {
        return Err(Problems::whole(
            "command line",
            format!(
                "{}: `fill` is of single drives; `drivelab size` and `drivelab run --over-time` show a pool's buffers",
                drive.id
            ),
        ));
    }
    let least = drive.config.capacity_bytes() / PIECES;
    match u64::from(request.block) <= least {
        true => Ok(()),
        false => Err(Problems::whole(
            "--bs",
            format!(
                "{}: writes of {} bytes are larger than a piece of it",
                drive.id, request.block
            ),
        )),
    }
}

/// What a drive does at each share in use.
///
/// # Errors
/// The load does not fit the drive.
pub fn measure(
    request: &Request,
    drive: &DriveSheet,
    lab: &Lab,
    tell: &dyn Fn(String),
) -> Result<Answer, Problems> {
    let small = match &drive.config {
        DriveConfig::Nand(_) | DriveConfig::Raid0(_) => drive.config.shrunk(SMALL),
        config => config.clone(),
    };
    let known = support::statement(drive);
    let mut at = Vec::new();
    for &used in &request.used {
        tell(format!("{used} % in use"));
        at.push(filled(request, drive, &small, lab, used)?);
    }
    Ok(Answer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        at,
    })
}

fn filled(
    request: &Request,
    drive: &DriveSheet,
    small: &DriveConfig,
    lab: &Lab,
    used: u32,
) -> Result<Filled, Problems> {
    let mut config = small.clone();
    let share = f64::from(used) / 100.0;
    if used > 0 && used < 100 && has_flash(&config) {
        let refused = |refusal: model::management::refusal::Refusal| {
            Problems::whole("--used", format!("{}: {refusal}", drive.id))
        };
        config.set_filled(share).map_err(refused)?;
    }
    let state = match used {
        0 => Precondition::Fresh,
        _ => Precondition::Filled,
    };
    let capacity = config.capacity_bytes();
    // Bytes and seconds of the whole drive for each of the small one.
    let scale = drive.config.capacity_bytes() as f64 / capacity as f64;
    let machine = Machine::new(drive, &request.host).with_drive(config);
    let block = u64::from(request.block);
    let piece = (capacity / PIECES).max(block) / block * block;
    let begins = match request.random || used == 100 {
        true => 0,
        false => (capacity as f64 * share) as u64 / block * block,
    };
    let most = match has_flash(small) {
        true => MOST,
        // Nothing in the models of other media makes them fall off.
        false => AFTER,
    };
    let writing = |seed: u64| Writing {
        bench: Bench::new(lab, &machine, state, seed),
        request,
        seed,
        range: (0, capacity),
        begins,
        next: begins,
        piece,
        runs: 0,
    };
    let mut all = Vec::new();
    for seed in request.seed..request.seed + u64::from(request.seeds) {
        let mut on = writing(seed);
        let (written, at) = on.write_on(Span::ZERO, most, AFTER)?;
        let recovery = match (at, seed == request.seed) {
            (Some(at), true) => Some(recovers(&mut on, &written[..at], scale, small)?),
            _ => None,
        };
        all.push(Run {
            written,
            at,
            recovery,
        });
    }
    Ok(figures(used, &all, scale))
}

/// What one seed wrote, where it fell off, and how it recovered.
struct Run {
    written: Written,
    at: Option<usize>,
    recovery: Option<(Option<f64>, f64)>,
}

/// The figures of all seeds, in bytes and seconds of the whole drive.
fn figures(used: u32, all: &[Run], scale: f64) -> Filled {
    let sum =
        |some: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| some.iter().map(of).sum::<f64>() * scale;
    let figure = |of: &dyn Fn(&Written, usize) -> f64| {
        let each: Vec<f64> = all
            .iter()
            .map(|run| of(&run.written, run.at.unwrap_or(0)))
            .collect();
        spread(each.into_iter())
    };
    let fell = all.iter().all(|run| run.at.is_some());
    let recovery = all.iter().find_map(|run| run.recovery);
    let falls_off = fell.then(|| FallsOff {
        gb: figure(&|written, at| sum(&written[..at], |piece| piece.0) * 1e-9),
        seconds: figure(&|written, at| sum(&written[..at], |piece| piece.1)),
        slow_mb_s: figure(&|written, at| {
            rate(&written[(at + AFTER / 10).min(written.len() - 1)..]) * 1e-6
        }),
        recovers_seconds: recovery.and_then(|it| it.0),
        recovered_gb: rounded(recovery.map_or(0.0, |it| it.1) * scale * 1e-9),
    });
    let most = all.iter().map(|run| sum(&run.written, |piece| piece.0));
    Filled {
        used_percent: used,
        fast_mb_s: figure(&|written, _| first_rate(written) * 1e-6),
        falls_off,
        written_gb: rounded(most.fold(0.0, f64::max) * 1e-9),
        curve: curve(&all[0].written, scale),
    }
}

fn has_flash(config: &DriveConfig) -> bool {
    matches!(config, DriveConfig::Nand(_) | DriveConfig::Raid0(_))
}

/// So much idle time of the whole drive, in the small one: what the drive waits for before it notices is as long in both.
fn idle_time(seconds: f64, scale: f64, config: &DriveConfig) -> Span {
    let notices = match config {
        DriveConfig::Nand(nand) => nand.collection.idle_after.seconds(),
        _ => 0.0,
    };
    let waits = seconds.min(notices);
    Span::from_seconds(waits + (seconds - waits) / scale)
}

/// The shortest of the idle times after which the drive takes nearly as much as after the longest, and what that is in bytes of the small
/// drive. Each burst goes on until it falls off, so each finds the cache full, and stays where the first writes went if they did not reach the drive's end.
fn recovers(
    on: &mut Writing<'_>,
    first: &[(f64, f64)],
    scale: f64,
    config: &DriveConfig,
) -> Result<(Option<f64>, f64), Problems> {
    let fast = first_rate(first);
    let takes: f64 = first.iter().map(|piece| piece.0).sum();
    let written = takes as u64 + on.piece;
    if !on.request.random && on.begins + written <= on.range.1 {
        on.range = (on.begins, on.begins + written);
        on.next = on.begins;
    }
    let mut bursts = Vec::new();
    for seconds in IDLE {
        let mut bytes = 0.0;
        let mut idle = idle_time(seconds, scale, config);
        loop {
            let (piece, took) = on.write(idle)?;
            idle = Span::ZERO;
            if piece / took < KEPT * fast || bytes > 1.5 * takes {
                break;
            }
            bytes += piece;
        }
        bursts.push((seconds, bytes));
    }
    let most = bursts.last().map_or(0.0, |burst| burst.1);
    // A piece or two are the write buffer.
    if most < takes * 0.1 {
        return Ok((None, most));
    }
    let enough = bursts.iter().find(|(_, bytes)| *bytes >= AS_BEFORE * most);
    Ok((enough.map(|burst| burst.0), most))
}

/// The pieces as one line, in the whole drive's bytes and seconds.
fn curve(written: &[(f64, f64)], scale: f64) -> Vec<Piece> {
    let mut so_far = (0.0, 0.0);
    let pieces = written.iter().map(|&(bytes, seconds)| {
        so_far = (so_far.0 + bytes * scale, so_far.1 + seconds * scale);
        Piece {
            gb: rounded(so_far.0 * 1e-9),
            seconds: rounded(so_far.1),
            mb_s: rounded(bytes / seconds * 1e-6),
        }
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_slow_piece_is_where_it_falls_off() {
        let mut written: Written = Vec::new();
        let mut found = None;
        for piece in 0..60 {
            written.push((100.0, if piece < 33 { 1.0 } else { 5.0 }));
            found = found.or_else(|| falls_off(&written));
        }
        assert_eq!(found, Some(33));
        let steady: Written = vec![(100.0, 1.0); 60];
        assert_eq!(falls_off(&steady), None);
        // One slow piece is none.
        let mut once = steady;
        once[59].1 = 2.0;
        assert_eq!(falls_off(&once), None);
    }

    #[test]
    fn the_line_is_in_bytes_and_seconds_of_the_whole_drive() {
        let line = curve(&[(1e9, 0.5), (1e9, 1.0)], 10.0);
        assert_eq!(
            (line[1].gb, line[1].seconds, line[1].mb_s),
            (20.0, 15.0, 1000.0)
        );
    }
}
