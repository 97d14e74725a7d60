//! The small pool that is tested instead of a large one: the same tiers on the same kinds of drives, with one MiB of
//! each.
//!
//! Slices are limited to [`SLICE`], chunks of stripes to 16 KiB, regions of mirrors to [`REGION`], rings of records
//! to [`RING`], and records of intent logs to a tenth of [`DIRTY`]. A short program therefore crosses every border,
//! and recovery is fast. Drives are as small as possible without a change of behaviour. Not covered: effects that
//! need large addresses.

use model::data::{Bytes, Contents, DataBackedDrive, Image, Unreadable, Unwritable};
use model::media::{Medium, Precondition};
use tier::offline::{
    self, Damage, Images, Opening, RecoveredTiers, RecoveryFinding, RecoveryInput,
};
use tier::openings;
use tier::trial::TrialStores;
use tier::{
    Drive, DriveConfig, IntentLogConfig, Kind, ParityArrayConfig, Pool, PoolConfig, Target,
    TierConfig, WriteBackConfig,
};

/// Bytes of each slice.
const SLICE: u64 = (1 << 20) + (64 << 10);
/// Number of consecutive read errors that a mirror or array tolerates.
const READ_ERRORS: u16 = 2;
/// Bytes of a mirror's region.
const REGION: u64 = 16 << 10;
/// Bytes that a mirror copies at once: less than a region, so that a region takes several copies.
const COPIED: u32 = 8 << 10;
/// Maximum bytes of a stripe's chunk.
const CHUNK: u32 = 16 << 10;
/// Maximum bytes of a write-back cache's segment; [`RING`] and [`RECORD`] are those of its ring and of a record.
const SEGMENT: u32 = 32 << 10;
/// See [`SEGMENT`].
const RING: u64 = 4 * SEGMENT as u64;
/// See [`SEGMENT`].
const RECORD: u32 = 16 << 10;
/// Maximum log block in bytes: small enough that one flush fills several.
const BLOCK: u32 = 12 << 10;
/// Bits of a level of an intent log's tables: with records of 16 KiB several nodes on each of the two lower levels.
const LEVEL_BITS: u32 = 2;
/// Bytes of log blocks that a recovery keeps in memory: the third has to be read again.
const KEPT: u32 = 2 * BLOCK;
/// Bytes of an intent log's volume. The next constants are the maximum dirty bytes in it, and the sizes of slices of
/// the main pool and of logs, which wrap around in a long program.
const VOLUME: u64 = 512 << 10;
/// See [`VOLUME`].
const DIRTY: u64 = 160 << 10;
/// See [`VOLUME`].
const MAIN: u64 = 1792 << 10;
/// See [`VOLUME`].
const LOG: u64 = 96 << 10;
/// Id of the pool.
const POOL: u128 = 0x0d81_7e1a_b000;

/// A running pool with data.
pub(super) type Live = Pool<DataBackedDrive<Drive, Image>, Bytes>;

/// The tested pool.
#[derive(Clone, Debug)]
pub(super) struct TestPool {
    pub(super) config: PoolConfig<DriveConfig>,
    pub(super) names: Vec<String>,
    /// By member: whether it may lose unflushed writes.
    volatile: Vec<bool>,
    /// Media of the newly created pool.
    new: Vec<Image>,
}

/// A ring of a write-back cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct CacheRing {
    pub(super) tier: u16,
    /// Member with the ring, its offset there, and its maximum bytes.
    pub(super) member: u16,
    pub(super) base: u64,
    pub(super) bytes: u64,
}

/// Media of a pool that is not running.
#[derive(Clone, Debug)]
pub(super) struct Disks {
    pub(super) images: Vec<Image>,
    pub(super) absent: Vec<u16>,
    /// The last opening, as a server records it in addition to the members.
    pub(super) remembered: Option<Opening>,
    /// By tier: the children in sync, as a server records them in addition to the members. Empty if that is unknown.
    pub(super) in_sync: Vec<u32>,
    /// Writes since the beginning of the log, for [`Disks::log`].
    pub(super) log: Option<Vec<RecoveryStep>>,
    /// Members whose media failed a write, in the current attempt of a recovery.
    pub(super) failed: Vec<u16>,
    /// Whether each recovery is tried first, and whether a trial has had another result.
    pub(super) with_trial: bool,
    pub(super) trial_differs: bool,
}

/// A step of a recovery.
#[derive(Clone, Debug)]
pub(super) enum RecoveryStep {
    Write(u16, u64, Vec<u8>),
    Sync(u16),
}

impl Disks {
    pub(super) fn new(images: Vec<Image>, absent: Vec<u16>) -> Disks {
        Disks {
            images,
            absent,
            remembered: None,
            in_sync: Vec::new(),
            log: None,
            failed: Vec::new(),
            with_trial: false,
            trial_differs: false,
        }
    }

    /// Notes a member whose medium failed a write.
    fn noted(&mut self, member: u16, done: Result<(), Unwritable>) -> Result<(), Unwritable> {
        if done.is_err() && self.present(member) && !self.failed.contains(&member) {
            self.failed.push(member);
        }
        done
    }
}

impl Images for Disks {
    fn present(&self, member: u16) -> bool {
        !self.absent.contains(&member)
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.images[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        if let Some(log) = &mut self.log {
            log.push(RecoveryStep::Write(member, at, data.to_vec()));
        }
        let written = self.images[usize::from(member)].write(at, data);
        self.noted(member, written)
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        if let Some(log) = &mut self.log {
            log.push(RecoveryStep::Sync(member));
        }
        let synced = self.images[usize::from(member)].sync();
        self.noted(member, synced)
    }
}

/// Reduces a ring so that a program of twenty writes wraps around, with an empty ring.
fn shrink_ring(cache: &mut WriteBackConfig) {
    cache.segment = SEGMENT;
    cache.buffer_limit = RING;
    cache.record = cache.record.min(RECORD);
    cache.chunk = cache.chunk.min(CHUNK);
    cache.destage.round = 2 * SEGMENT;
    cache.destage.merge = cache.destage.merge.min(RECORD);
    cache.start = 0.0;
}

/// Reduces an array to several stripes per region, and several regions per slice.
fn shrink_array<const PARITY: u16>(array: &mut ParityArrayConfig<PARITY>) {
    array.chunk = array.chunk.min(CHUNK / 2);
    array.region = REGION;
    array.read_errors = READ_ERRORS;
}

/// Reduces an intent log to transaction groups of a few writes.
fn shrink_log(log: &mut IntentLogConfig) {
    log.record = (log.record).min(DIRTY as u32 / 10);
    log.run = 4 * log.record;
    log.ram = 10 * DIRTY;
    log.block = BLOCK;
    log.size = VOLUME;
}

/// Returns the bytes of the slices of each tier.
fn slices(tiers: &[TierConfig]) -> Vec<u64> {
    let mut slices = vec![SLICE; tiers.len()];
    // From the topmost tier down.
    for (index, tier) in tiers.iter().enumerate().rev() {
        let own = slices[index];
        for (child, target) in tier.children.iter().enumerate() {
            if let Target::Tier(below) = target {
                slices[usize::from(*below)] = match tier.kind {
                    Kind::IntentLog(_) => slice_of_log(child),
                    _ => own,
                };
            }
        }
    }
    slices
}

fn slice_of_log(child: usize) -> u64 {
    if child == 0 { MAIN } else { LOG }
}

fn small(config: &PoolConfig<DriveConfig>) -> PoolConfig<DriveConfig> {
    let mut small = config.clone();
    // Just enough for the labels that identify an old copy of a member.
    small.label_bytes = openings::LEAST;
    let mut ends = vec![0; small.members.len()];
    let slices = slices(&small.tiers);
    for (tier, slice) in small.tiers.iter_mut().zip(slices) {
        let is_log = matches!(tier.kind, Kind::IntentLog(_));
        match &mut tier.kind {
            Kind::Mirror(mirror) => {
                (mirror.region, mirror.copied) = (REGION, COPIED);
                mirror.read_errors = READ_ERRORS;
            }
            Kind::Raid5(array) => shrink_array(array),
            Kind::Raid6(array) => shrink_array(array),
            Kind::Stripe(stripe) => stripe.chunk = stripe.chunk.min(CHUNK),
            Kind::WriteBack(cache) => shrink_ring(cache),
            Kind::IntentLog(log) => {
                shrink_log(log);
                // Without a log device, log blocks take slots of main, which more nodes would use up.
                if tier.children.len() > 1 {
                    (log.scale.level_bits, log.scale.kept) = (LEVEL_BITS, KEPT);
                }
            }
            _ => {}
        }
        for (child, target) in tier.children.iter_mut().enumerate() {
            let slice = if is_log { slice_of_log(child) } else { slice };
            let slice = slice + small.label_bytes;
            if let Target::Slice {
                member,
                base,
                bytes,
            } = target
            {
                let end: &mut u64 = &mut ends[usize::from(*member)];
                (*base, *bytes) = (*end, slice);
                *end += slice;
            }
        }
    }
    for (member, end) in small.members.iter_mut().zip(ends) {
        member.drive = member.drive.shrunk(end);
    }
    small
}

impl TestPool {
    /// Checks whether a log of an intent log is missing. A server does not start then unless the user accepts the loss.
    pub(super) fn lacks_log(&self, tiers: &RecoveredTiers) -> bool {
        tiers.found.iter().any(|&(tier, found)| {
            let kind = &self.config.tiers[usize::from(tier)].kind;
            matches!(kind, Kind::IntentLog(_)) && matches!(found, RecoveryFinding::Absent(_))
        })
    }

    /// Checks whether a log of an intent log is an old copy.
    pub(super) fn has_old_log(&self, tiers: &RecoveredTiers) -> bool {
        tiers.found.iter().any(|&(tier, found)| {
            let kind = &self.config.tiers[usize::from(tier)].kind;
            matches!(kind, Kind::IntentLog(_)) && matches!(found, RecoveryFinding::Behind(..))
        })
    }

    /// Returns the size of blocks that a trim may leave unchanged if it covers them partly, as the standard allows.
    pub(super) fn trimmed_unit(&self) -> u64 {
        let of = |tier: &TierConfig| match &tier.kind {
            // Arrays with parity ignore trims.
            Kind::Raid5(_) | Kind::Raid6(_) => 1 << 40,
            Kind::WriteBack(_) => 4096,
            Kind::IntentLog(log) => u64::from(log.record),
            _ => 512,
        };
        self.config.tiers.iter().map(of).max().unwrap_or(512)
    }

    /// Returns rings of write-back caches that are slices of a member.
    pub(super) fn caches(&self) -> impl Iterator<Item = CacheRing> + '_ {
        self.config.tiers.iter().zip(0..).filter_map(|(it, tier)| {
            let (Kind::WriteBack(cache), Some(&Target::Slice { member, base, .. })) =
                (&it.kind, it.children.first())
            else {
                return None;
            };
            let bytes = cache.buffer_limit + u64::from(SEGMENT);
            Some(CacheRing {
                tier,
                member,
                base,
                bytes,
            })
        })
    }

    /// Checks whether a tier, or a tier above it, was created again.
    pub(super) fn is_renewed(&self, mut tier: u16, found: &[(u16, RecoveryFinding)]) -> bool {
        let all = &self.config.tiers;
        loop {
            let place = (0..).zip(all).find_map(|(above, it)| {
                let is_it = |child: &Target| *child == Target::Tier(tier);
                Some((above, it.children.iter().position(is_it)?))
            });
            let Some((above, child)) = place else {
                return false;
            };
            let renewed = |(of, what): &(u16, RecoveryFinding)| {
                let of_child = |it: u16| usize::from(it) == child;
                *of == above && matches!(what, RecoveryFinding::Renewed(it, _) if of_child(*it))
            };
            if found.iter().any(renewed) {
                return true;
            }
            tier = above;
        }
    }

    /// Returns the small pool of a large one.
    ///
    /// # Errors
    /// Its data cannot be recovered after a crash: the tier, and why.
    pub(super) fn new(config: &PoolConfig<DriveConfig>) -> Result<TestPool, String> {
        let mut tiers = config.tiers.iter();
        if tiers.any(|tier| matches!(tier.kind, Kind::Cluster(_))) {
            return Err(String::from(
                "a cluster is not found again after a crash, so there is nothing to try",
            ));
        }
        let mut tiers = config.tiers.iter();
        if tiers.any(|tier| matches!(tier.kind, Kind::LogStructured(_))) {
            return Err(String::from(
                "log-structured storage is modelled without data, so there is nothing to find after a crash",
            ));
        }
        if config.labels_on_a_log() {
            return Err(String::from(
                "an intent log accepts writes only while it runs, but the tier above it writes labels before that: there is nothing to test",
            ));
        }
        let config = small(config);
        let problems = config.problems();
        if let Some(problem) = problems.first() {
            return Err(problem.clone());
        }
        let members = config.members.iter();
        let mut disks = Disks::new(vec![Image::default(); config.members.len()], Vec::new());
        let made = offline::format(&config, POOL, &mut disks);
        made.map_err(|(tier, damage)| format!("{tier}: {damage}"))?;
        Ok(TestPool {
            names: members.clone().map(|it| it.name.clone()).collect(),
            volatile: members.map(|it| it.drive.volatile_write_cache()).collect(),
            new: disks.images,
            config,
        })
    }

    pub(super) fn new_disks(&self) -> Disks {
        Disks::new(self.new.clone(), Vec::new())
    }

    pub(super) fn recover(&self, disks: &mut Disks) -> Result<RecoveredTiers, (String, Damage)> {
        let noted = core::mem::take(&mut disks.in_sync);
        let start = RecoveryInput {
            pool: POOL,
            mark: 0,
            remembered: disks.remembered,
            in_sync: &noted,
            bytes: None,
            accept_loss: false,
        };
        let mut first = None;
        // As a server does, without members that cannot be written.
        let opened = loop {
            disks.failed.clear();
            let tried = disks.with_trial.then(|| self.trial(disks, &start));
            let opened = offline::open(&self.config, &start, disks);
            if let Some(tried) = tried.filter(|_| disks.failed.is_empty()) {
                let images = opened.is_ok().then_some(&disks.images);
                disks.trial_differs |= tried.as_ref() != images;
            }
            let error = match opened {
                Ok(opened) => break Ok(opened),
                Err(error) => first.take().unwrap_or(error),
            };
            if disks.failed.is_empty() {
                break Err(error);
            }
            disks.absent.append(&mut disks.failed);
            first = Some(error);
        };
        disks.in_sync = match &opened {
            Ok(opened) => opened.in_sync.clone(),
            Err(_) => noted,
        };
        opened
    }

    /// Recovers a copy of the media as a server does: first as a trial, whose writes are then carried out. Returns the
    /// media if the pool opens.
    fn trial(&self, disks: &Disks, start: &RecoveryInput<'_>) -> Option<Vec<Image>> {
        let mut copy = Disks::new(disks.images.clone(), disks.absent.clone());
        let mut stores = TrialStores::new(&mut copy);
        let opens = offline::open(&self.config, start, &mut stores).is_ok();
        (opens && stores.apply()).then_some(copy.images)
    }

    /// Returns the bytes that can be addressed.
    pub(super) fn bytes(&self) -> u64 {
        self.config.bytes()
    }

    fn drives(&self, seed: u64) -> impl Iterator<Item = Drive> {
        let members = self.config.members.iter().enumerate();
        members.map(move |(index, member)| {
            let seed = seed.wrapping_add(index as u64);
            member.drive.build(Precondition::Fresh, seed)
        })
    }

    /// Starts the pool on its media.
    pub(super) fn start(&self, disks: &Disks, tiers: RecoveredTiers, seed: u64) -> (Live, Bytes) {
        let bytes = Bytes::default();
        let drives = self.drives(seed).zip(&disks.images).zip(&self.volatile);
        let members = drives.map(|((drive, image), &volatile)| {
            DataBackedDrive::new(drive, image.clone(), bytes.clone(), volatile)
        });
        let tiers = tiers.tiers(&self.config);
        let pool = Pool::resume(&self.config, members.collect(), tiers, bytes.clone());
        (pool, bytes)
    }

    /// Starts the pool without data. The tiers have their recovered state, because their next writes depend on the
    /// number of openings.
    pub(super) fn start_without_data(&self, tiers: RecoveredTiers, seed: u64) -> Pool<Drive> {
        let tiers = tiers.tiers(&self.config);
        Pool::resume(&self.config, self.drives(seed).collect(), tiers, ())
    }

    /// Returns the parts of a range of the pool's addresses in its volumes: volume, offset in it, offset in the range,
    /// bytes.
    fn volumes(&self, at: u64, bytes: u64) -> Vec<(u16, u64, usize, usize)> {
        let volumes = self.config.volumes();
        let each = self.config.volumes.iter().zip(&volumes);
        let parts = each.filter_map(|(&tier, volume)| {
            let from = at.max(volume.offset);
            let until = (at + bytes).min(volume.offset + volume.bytes);
            (from < until).then(|| {
                let (into, length) = ((from - at) as usize, (until - from) as usize);
                (tier, from - volume.offset, into, length)
            })
        });
        parts.collect()
    }

    /// Reads the pool's content.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn read(
        &self,
        tiers: &RecoveredTiers,
        disks: &mut Disks,
        at: u64,
        into: &mut [u8],
    ) -> Result<(), Unreadable> {
        let parts = self.volumes(at, into.len() as u64);
        parts.into_iter().try_for_each(|(tier, at, from, length)| {
            tiers.read(
                &self.config,
                disks,
                tier,
                at,
                &mut into[from..from + length],
            )
        })
    }

    /// Checks whether the pool's content depends on the member that it reads.
    pub(super) fn is_ambiguous(
        &self,
        tiers: &RecoveredTiers,
        disks: &mut Disks,
        at: u64,
        bytes: u32,
    ) -> bool {
        let parts = self.volumes(at, bytes.into());
        parts.into_iter().any(|(tier, at, _, length)| {
            tiers.is_ambiguous(&self.config, disks, tier, at, length as u32)
        })
    }
}
