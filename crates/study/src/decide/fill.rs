//! How long writes stay fast, at several shares of the drive in use. Reports the bytes and seconds until the rate of
//! a drive drops, the rate after that, and the idle time after which it is fast again.
//!
//! At the start, the drive is filled sequentially up to that share, and the rest is trimmed. Sequential writes begin
//! where the fill ends and continue at the drive's first block when they reach its last; random writes cover the whole
//! drive. They are written in pieces of a quarter percent of the capacity, each at the same queue depth. For speed, a
//! smaller drive with the same behaviour is simulated (`Medium::shrunk`, docs/what-if.md); its bytes and seconds are
//! converted to those of the whole drive. Not modelled: heat, pools, and details of the cache that a model's family
//! omits.

use catalogue::{DriveSheet, HostSheet, Settings};
use lab::{Bench, Lab, Machine, Work};
use model::media::{Medium, Precondition};
use model::{Span, Time};
use serde::Serialize;
use text::problem::{Place, Problem, Problems};
use tier::DriveConfig;
use workload::job::{BlockSizes, Extent, Job, Mix};

use super::load::{Height, Pattern};
use super::spread;
use crate::ledger::support;
use crate::review::results::rounded;

/// Default percentages of the drive in use.
pub const USED: [u32; 3] = [50, 90, 98];
/// Bytes of the smaller drive.
pub(super) const SMALL: u64 = 16 << 30;
/// Number of pieces of a drive's capacity.
const PIECES: u64 = 400;
/// Maximum number of written pieces: one capacity.
const MOST: usize = 400;
/// Maximum number of pieces of random writes, which reach the steady state of a drive with much spare area late: four
/// capacities.
const MOST_RANDOM: usize = 4 * MOST;
/// Random writes are steady when two successive windows of this many pieces differ by less than this share. At least
/// the third number of pieces is written: until then, much of the drive is still as the fill left it.
const STEADY: (usize, f64, usize) = (100, 0.02, 3 * MOST);
/// Number of pieces whose median is the initial rate.
const FIRST: usize = 4;
/// Number of pieces over which a rate is computed.
const WINDOW: usize = 8;
/// Number of pieces written after the drop; the first tenth of them is the transition.
const AFTER: usize = 40;
/// The rate has dropped when a window has less than this share of the initial rate.
const KEPT: f64 = 0.75;
/// The drive has recovered when the cache accepts at least this share of what it accepts after the longest idle time.
const AS_BEFORE: f64 = 0.9;
/// Idle times that are tried, in seconds.
const IDLE: [f64; 9] = [1.0, 3.0, 10.0, 30.0, 60.0, 180.0, 600.0, 1800.0, 3600.0];

/// Input of a measurement.
#[derive(Clone, Debug)]
pub struct FillRequest {
    /// Whether writes are random (false: sequential).
    pub random: bool,
    /// Bytes of a write.
    pub block: u32,
    /// Writes in flight.
    pub depth: u32,
    /// Percent of the drive in use.
    pub used: Vec<u32>,
    /// Host of the drive.
    pub host: HostSheet,
    /// First seed.
    pub seed: u64,
    /// Number of seeds; at least 1.
    pub seeds: u32,
}

/// Results of one drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FillAnswer {
    /// Name of the drive.
    pub drive: String,
    /// Support level of its model.
    pub model: &'static str,
    /// The supporting rows.
    pub model_text: String,
    /// Results by share in use, in the requested order.
    pub at: Vec<FillResult>,
}

/// Results at one share in use. Figures of several seeds are mean, least and greatest.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FillResult {
    /// Percent of the drive in use at the start.
    pub used_percent: u32,
    /// Initial rate in 10^6 bytes per second.
    pub fast_mb_s: [f64; 3],
    /// The drop of the rate; null if some seed has none within one capacity of sequential writes, or until random
    /// writes are steady (at most four capacities).
    pub falls_off: Option<FallsOff>,
    /// Maximum 10^9 bytes written.
    pub written_gb: f64,
    /// Rate of the last pieces in 10^6 bytes per second.
    pub last_mb_s: [f64; 3],
    /// Rate by bytes written, for the first seed.
    pub curve: Vec<CurvePiece>,
}

/// A drop of the write rate.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FallsOff {
    /// 10^9 bytes written until then.
    pub gb: [f64; 3],
    /// Seconds until then.
    pub seconds: [f64; 3],
    /// 10^6 bytes per second after the drop; of random writes, in steady state.
    pub slow_mb_s: [f64; 3],
    /// Idle seconds after which it accepts nine tenths of what it accepts after an hour, for the first seed; null if
    /// it accepts almost nothing even then.
    pub recovers_seconds: Option<f64>,
    /// 10^9 bytes that it accepts at the fast rate after an hour, for the first seed.
    pub recovered_gb: f64,
}

/// A piece of the curve.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct CurvePiece {
    /// 10^9 bytes written at its end.
    pub gb: f64,
    /// Seconds at its end.
    pub seconds: f64,
    /// 10^6 bytes per second in the piece.
    pub mb_s: f64,
}

/// One drive in one state, on a bench.
struct PieceWriter<'a> {
    bench: Bench<'a>,
    request: &'a FillRequest,
    seed: u64,
    /// Range of the writes.
    range: (u64, u64),
    /// Address of the first write.
    begins: u64,
    next: u64,
    piece: u64,
    runs: u64,
}

/// Bytes and seconds of each written piece.
type WrittenPieces = Vec<(f64, f64)>;

impl PieceWriter<'_> {
    /// Writes a piece after this idle time, and returns its bytes and seconds.
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

    /// Writes whole pieces until this number of bytes is written; they are not counted.
    fn fill_buffer(&mut self, buffer: u64) -> Result<(), Problems> {
        let mut written = 0.0;
        while written < buffer as f64 {
            written += self.write(Span::ZERO)?.0;
        }
        self.begins = self.next;
        Ok(())
    }

    /// Writes until the rate drops and for a while longer, or `most` pieces; random writes until they are steady, because
    /// their rate falls for a long time after a drop. Returns where it dropped.
    fn write_on(
        &mut self,
        idle: Span,
        most: usize,
        after: usize,
    ) -> Result<(WrittenPieces, Option<usize>), Problems> {
        let mut written: WrittenPieces = Vec::new();
        let mut idle = idle;
        let mut at = None;
        let random = self.request.random;
        let is_done = |written: &WrittenPieces, at: Option<usize>| match (random, at) {
            (true, at) => is_steady(written) && at.is_none_or(|at| written.len() >= at + after),
            (false, Some(at)) => written.len() >= at + after,
            (false, None) => false,
        };
        while written.len() < most && !is_done(&written, at) {
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

/// Returns the initial rate.
fn first_rate(written: &[(f64, f64)]) -> f64 {
    let mut first: Vec<f64> = written
        .iter()
        .take(FIRST)
        .map(|piece| piece.0 / piece.1)
        .collect();
    first.sort_by(f64::total_cmp);
    first[first.len() / 2]
}

/// Checks whether the rate no longer changes.
fn is_steady(written: &[(f64, f64)]) -> bool {
    let (pieces, share, least) = STEADY;
    if written.len() < least {
        return false;
    }
    let (earlier, last) = written[written.len() - 2 * pieces..].split_at(pieces);
    (rate(earlier) / rate(last) - 1.0).abs() < share
}

/// Returns the first piece of the last window, if that window is slow.
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

/// Returns the bytes of a write and the writes in flight that a user asks for, in fio's notation; by default 1 MiB and 8,
/// random 4 KiB and 32.
///
/// # Errors
/// It is no block size that can be written so.
pub fn writes(
    random: bool,
    block: Option<&str>,
    depth: Option<u32>,
) -> Result<(u32, u32), Problems> {
    let (usual, usual_depth) = match random {
        true => ("4k", 32),
        false => ("1m", 8),
    };
    let written = block.unwrap_or(usual);
    let pattern = Pattern {
        rw: String::from("write"),
        read_percent: 0,
        options: vec![(String::from("bs"), written.to_owned())],
        threads: 1,
    };
    let jobs = pattern.jobs(Height::InFlight(1), Span::ZERO, Span::from_ms(1))?;
    match jobs[0].block_sizes[1] {
        BlockSizes::Fixed(bytes) if bytes % 4096 == 0 && bytes <= 16 << 20 => {
            Ok((bytes, depth.unwrap_or(usual_depth)))
        }
        _ => Err(Problems::whole(
            "command line",
            format!("--bs {written}: write a multiple of 4k, at most 16m"),
        )),
    }
}

/// Returns why a drive with these settings cannot be asked about: its share in use is set.
pub fn problem_of(settings: &Settings) -> Option<Problem> {
    let set = settings.fill.is_some() || settings.figures.iter().any(|(key, _)| key == "fill");
    set.then(|| Problem {
        origin: String::from("command line"),
        place: Place::Whole,
        what: String::from("--fill: `fill` tries several shares in use; write --used 50,90"),
        help: None,
    })
}

/// Checks the request for a drive.
///
/// # Errors
/// All problems at once.
pub fn check(request: &FillRequest, drive: &DriveSheet) -> Result<(), Problems> {
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

/// Measures a drive at each share in use.
///
/// # Errors
/// The load does not fit the drive.
pub fn measure(
    request: &FillRequest,
    drive: &DriveSheet,
    lab: &Lab,
    tell: &dyn Fn(String),
) -> Result<FillAnswer, Problems> {
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
    Ok(FillAnswer {
        drive: drive.id.clone(),
        model: known.grade.name(),
        model_text: known.text,
        at,
    })
}

fn filled(
    request: &FillRequest,
    drive: &DriveSheet,
    small: &DriveConfig,
    lab: &Lab,
    used: u32,
) -> Result<FillResult, Problems> {
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
        true if request.random => MOST_RANDOM,
        true => MOST,
        // In the models of other media, nothing reduces the rate.
        false => AFTER,
    };
    let buffer = match scale > 1.0 {
        true => until_buffer_is_full(small, piece),
        false => 0,
    };
    let writing = |seed: u64| PieceWriter {
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
        on.fill_buffer(buffer)?;
        let (written, at) = on.write_on(Span::ZERO, most, AFTER)?;
        let recovery = match (at, seed == request.seed) {
            (Some(at), true) => Some(recovers(&mut on, &written[..at], scale, small)?),
            _ => None,
        };
        all.push(FillRun {
            written,
            at,
            recovery,
        });
    }
    Ok(figures(used, &all, scale, request.random))
}

/// Results of one seed: the written pieces, the drop, and the recovery.
struct FillRun {
    written: WrittenPieces,
    at: Option<usize>,
    recovery: Option<(Option<f64>, f64)>,
}

/// Returns the figures of all seeds, in bytes and seconds of the whole drive.
fn figures(used: u32, all: &[FillRun], scale: f64, random: bool) -> FillResult {
    let sum =
        |some: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| some.iter().map(of).sum::<f64>() * scale;
    let figure = |of: &dyn Fn(&WrittenPieces, usize) -> f64| {
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
            let after = (at + AFTER / 10).min(written.len() - 1);
            let last = written.len().saturating_sub(STEADY.0);
            rate(&written[if random { last.max(after) } else { after }..]) * 1e-6
        }),
        recovers_seconds: recovery.and_then(|it| it.0),
        recovered_gb: rounded(recovery.map_or(0.0, |it| it.1) * scale * 1e-9),
    });
    let most = all.iter().map(|run| sum(&run.written, |piece| piece.0));
    FillResult {
        used_percent: used,
        fast_mb_s: figure(&|written, _| first_rate(written) * 1e-6),
        falls_off,
        written_gb: rounded(most.fold(0.0, f64::max) * 1e-9),
        last_mb_s: figure(&|written, _| {
            rate(&written[written.len().saturating_sub(STEADY.0)..]) * 1e-6
        }),
        curve: curve(&all[0].written, scale),
    }
}

/// Returns the bytes after which the write buffer is full. The smaller drive has the buffer of the whole one, so its
/// first pieces would be those of a drive with a far larger buffer.
///
/// A buffer that empties at three quarters ([`KEPT`]) of the rate at which it fills is full after four times its size;
/// one that empties faster makes no drop. If that is within one piece, the initial rate is right without it, because it
/// is a median. An SLC cache takes what the buffer passes on nearly as fast as the host writes.
fn until_buffer_is_full(config: &DriveConfig, piece: u64) -> u64 {
    let full = (buffer_without_cache(config) as f64 / (1.0 - KEPT)) as u64;
    match full > piece {
        true => full,
        false => 0,
    }
}

/// Returns the bytes of write buffers that empty into flash without an SLC cache.
fn buffer_without_cache(config: &DriveConfig) -> u64 {
    match config {
        DriveConfig::Nand(nand) if nand.slc.is_none() => nand.buffer.bytes,
        DriveConfig::Raid0(raid) => raid.members.iter().map(buffer_without_cache).sum(),
        _ => 0,
    }
}

fn has_flash(config: &DriveConfig) -> bool {
    matches!(config, DriveConfig::Nand(_) | DriveConfig::Raid0(_))
}

/// Converts an idle time of the whole drive to the small one: the delay before the drive detects idleness is equal in
/// both.
fn idle_time(seconds: f64, scale: f64, config: &DriveConfig) -> Span {
    let notices = match config {
        DriveConfig::Nand(nand) => nand.collection.idle_after.seconds(),
        _ => 0.0,
    };
    let waits = seconds.min(notices);
    Span::from_seconds(waits + (seconds - waits) / scale)
}

/// Returns the shortest idle time after which the drive accepts nearly as much as after the longest, and that amount
/// in bytes of the small drive. Each burst continues until the rate drops, so each begins with a full cache. If the
/// first writes did not reach the drive's end, bursts stay in the same range.
fn recovers(
    on: &mut PieceWriter<'_>,
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
    // One or two pieces are the write buffer.
    if most < takes * 0.1 {
        return Ok((None, most));
    }
    let enough = bursts.iter().find(|(_, bytes)| *bytes >= AS_BEFORE * most);
    Ok((enough.map(|burst| burst.0), most))
}

/// Returns the pieces as one line, in the whole drive's bytes and seconds.
fn curve(written: &[(f64, f64)], scale: f64) -> Vec<CurvePiece> {
    let mut so_far = (0.0, 0.0);
    let pieces = written.iter().map(|&(bytes, seconds)| {
        so_far = (so_far.0 + bytes * scale, so_far.1 + seconds * scale);
        CurvePiece {
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
        let mut written: WrittenPieces = Vec::new();
        let mut found = None;
        for piece in 0..60 {
            written.push((100.0, if piece < 33 { 1.0 } else { 5.0 }));
            found = found.or_else(|| falls_off(&written));
        }
        assert_eq!(found, Some(33));
        let steady: WrittenPieces = vec![(100.0, 1.0); 60];
        assert_eq!(falls_off(&steady), None);
        // A single slow piece is not a drop.
        let mut once = steady;
        once[59].1 = 2.0;
        assert_eq!(falls_off(&once), None);
    }

    #[test]
    fn random_writes_are_steady_when_their_rate_no_longer_changes() {
        let slower = |piece: usize| (100.0, 1.0 + piece as f64 * 1e-3);
        let falling: WrittenPieces = (0..3 * MOST).map(slower).collect();
        assert!(!is_steady(&falling));
        let mut flat = falling;
        flat.extend([(100.0, 1.4); 200]);
        assert!(is_steady(&flat));
        assert!(!is_steady(&flat[MOST..]), "less than three capacities");
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
