//! A pool whose members store the data: each is a drive with a store of its own, and can fail individually.
//!
//! Data moves to the members when the pool's tiers say so. The data of a write is taken when the write is submitted;
//! the data of a read waits in a buffer for the reply. Not supported: administrative changes of a whole drive (FORMAT,
//! sanitize, block formats).

mod waiting;

use std::io;

use model::data::{Buffers, Bytes, DataBackedDrive, DriveFault, READY};
use model::management::{Health, Lifetime, ManagedDrive, Refusal};
use model::{Command, Completion, Device, Gauges, Op, Payload, Time};
use tier::offline::{self, RecoveredTiers, RecoveryInput};
use tier::{Drive, DriveConfig, Pool, PoolConfig};

use super::disk::{MemberDisk, PoolDrive};
use super::failing::{self, PowerCutStores};
use super::findings;
use super::noted::Note;
use super::resync::{self, Resync, out_of_sync, unused_logs};
use super::room::{MOST, PoolSpace};
use crate::clock::Wall;
use crate::store::{SavedState, save};

/// Maximum number of a member's acknowledged writes in the cache before its drive is queried which of them are on the
/// medium.
const CROWD: usize = 2048;

/// Maximum number of bytes that are added to these writes before the drive is queried. The next flush moves them to the
/// store while a client waits for it.
const CROWD_BYTES: u64 = 64 << 20;

/// State of a member besides that of its drive.
#[derive(Debug)]
pub(super) struct MemberStore {
    /// Name of the member in the pool.
    pub(super) name: String,
    /// State as it was read; changes are filled in when it is saved.
    pub(super) state: SavedState,
    /// File in which it is saved, if any.
    pub(super) file: Option<std::path::PathBuf>,
    /// Whether the member is missing until the next start: its store was missing, or could not be opened or written.
    pub(super) absent: bool,
}

/// A pool whose members store the data.
#[derive(Debug)]
pub(super) struct ServedPool {
    config: PoolConfig<DriveConfig>,
    uuid: u128,
    pool: Pool<PoolDrive, Bytes>,
    bytes: Bytes,
    stores: Vec<MemberStore>,
    /// Members without power, each with the time at which it responds again.
    returning: Vec<(Time, u16)>,
    /// By member: maximum number of writes in the cache.
    crowds: Vec<usize>,
    flushes: bool,
    /// Range and data of the reply whose data is being transferred.
    current: Option<(u64, u32, Payload)>,
    commands: [u64; 2],
    failure: Option<String>,
    room: PoolSpace,
    resync: Resync,
    note: Note,
    /// Children, each with its tier, whose member failed while writes waited. Nothing may be acknowledged before their
    /// tiers know.
    leaving: Vec<(u16, u16)>,
}

impl ServedPool {
    /// Returns a pool of these drives and stores, with the recovered tiers.
    pub(super) fn new(
        (config, uuid): (PoolConfig<DriveConfig>, u128),
        (room, note): (PoolSpace, Note),
        (drives, disks, stores): (Vec<ManagedDrive<Drive>>, Vec<MemberDisk>, Vec<MemberStore>),
        tiers: RecoveredTiers,
    ) -> ServedPool {
        use model::media::Medium;
        let bytes = Bytes::default();
        let volatile = config
            .members
            .iter()
            .map(|it| it.drive.volatile_write_cache());
        let members = drives.into_iter().zip(disks).zip(volatile);
        let mut members: Vec<PoolDrive> = members
            .map(|((drive, disk), volatile)| {
                DataBackedDrive::new(drive, disk, bytes.clone(), volatile)
            })
            .collect();
        for (member, store) in members.iter_mut().zip(&stores) {
            if store.absent {
                member.befall(Time::ZERO, DriveFault::Dies);
            }
        }
        let tiers = tiers.tiers(&config);
        let pool = Pool::resume(&config, members, tiers, bytes.clone());
        let resync = Resync::from_tiers(&config, pool.tiers());
        ServedPool {
            flushes: config.needs_flushes(),
            crowds: vec![CROWD; stores.len()],
            config,
            uuid,
            pool,
            bytes,
            stores,
            returning: Vec::new(),
            current: None,
            commands: [0; 2],
            failure: None,
            room,
            resync,
            note,
            leaving: Vec::new(),
        }
    }

    /// Returns the names of the members.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.stores.iter().map(|it| &*it.name)
    }

    /// Checks whether acknowledged writes are durable only after a flush.
    pub(super) fn needs_flushes(&self) -> bool {
        self.flushes
    }

    /// Returns the buffer for the data of a command, filled from the client if it is a write; `None` if the client
    /// cannot supply the data.
    pub(super) fn payload(
        &mut self,
        op: Op,
        bytes: u32,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) -> Option<Payload> {
        if !op.transfers() {
            return Some(Payload::default());
        }
        let payload = self.bytes.take(bytes);
        if op == Op::Write && !self.bytes.with_mut(payload, bytes, fill) {
            self.bytes.release(payload);
            return None;
        }
        Some(payload)
    }

    /// Makes the data of this range available to reads and writes until [`ServedPool::take_back`].
    #[inline]
    pub(super) fn hand_over(&mut self, offset: u64, bytes: u32, payload: Payload) {
        self.current = Some((offset, bytes, payload));
    }

    /// Releases these data.
    #[inline]
    pub(super) fn take_back(&mut self, payload: Payload) {
        self.current = None;
        self.bytes.release(payload);
    }

    /// Returns the part of the current reply's data that corresponds to a range.
    fn part(&self, offset: u64, bytes: usize) -> Option<Payload> {
        let (first, length, payload) = self.current?;
        let skip = offset.checked_sub(first)?;
        (skip + bytes as u64 <= u64::from(length)).then(|| payload.skip(skip as u32))
    }

    /// Copies data of a completed read. Returns whether the range is part of the current reply.
    #[inline]
    pub(super) fn read(&self, offset: u64, into: &mut [u8]) -> bool {
        let part = self.part(offset, into.len());
        part.inspect(|&part| self.bytes.get(part, into)).is_some()
    }

    /// Checks whether these are data of the current reply, a write: the members have them.
    #[inline]
    pub(super) fn has_written(&self, offset: u64, bytes: usize) -> bool {
        self.part(offset, bytes).is_some()
    }

    pub(super) fn submit(&mut self, now: Time, command: Command) {
        match command.op {
            Op::Read => self.commands[0] += 1,
            Op::Write => self.commands[1] += 1,
            _ => {}
        }
        self.pool.submit(now, command);
        if self.flushes {
            self.thin_out();
        }
    }

    /// Moves to the store data that the drives of members with large caches now have on the medium.
    fn thin_out(&mut self) {
        for member in 0..self.stores.len() {
            let one = &self.pool.members()[member];
            if one.unflushed() > self.crowds[member] || one.unflushed_bytes() > CROWD_BYTES {
                self.pool.with_member(member as u16, PoolDrive::settle);
                let left = self.pool.members()[member].unflushed();
                self.crowds[member] = CROWD.max(2 * left);
            }
        }
    }

    #[inline]
    pub(super) fn next_event(&self) -> Time {
        let returning = self.returning.iter().map(|(at, _)| *at);
        let first = returning.min().unwrap_or(Time::NEVER);
        self.pool.next_event().min(first)
    }

    pub(super) fn advance(&mut self, now: Time, done: &mut Vec<Completion>) {
        if self.pool.next_event() == now {
            self.pool.advance(now, now, done);
            if self.note.is_old(self.pool.tiers()) {
                // Before any of these completions reaches a client.
                self.note
                    .update(&self.config, self.pool.tiers(), &self.room);
            }
        }
        if let Some(index) = self.returning.iter().position(|(at, _)| *at == now) {
            let (_, member) = self.returning.swap_remove(index);
            self.pool.befall(now, member, DriveFault::Returns);
        }
    }

    pub(super) fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.pool.inspect(now, gauges);
    }

    /// Calls a function with the drive of each member.
    pub(super) fn each_drive<R>(
        &mut self,
        mut what: impl FnMut(&mut ManagedDrive<Drive>) -> R,
    ) -> impl Iterator<Item = R> {
        let members = 0..self.stores.len() as u16;
        let done = members.map(|member| self.pool.with_member(member, |it| what(it.drive_mut())));
        done.collect::<Vec<R>>().into_iter()
    }

    /// Calls a function with the drive of one member.
    pub(super) fn with_drive<R>(
        &mut self,
        member: u16,
        what: impl FnOnce(&mut ManagedDrive<Drive>) -> R,
    ) -> R {
        self.pool.with_member(member, |it| what(it.drive_mut()))
    }

    /// Calls `what` with a member: its drive and its store.
    pub(super) fn with_kept<R>(
        &mut self,
        member: u16,
        what: impl FnOnce(&mut PoolDrive) -> R,
    ) -> R {
        self.pool.with_member(member, what)
    }

    /// Takes the number of a member's trigger that has been hit; each is returned once.
    pub(super) fn take_hit(&mut self) -> Option<u32> {
        let members = self.stores.len() as u16;
        (0..members).find_map(|member| self.pool.with_member(member, PoolDrive::take_hit))
    }

    /// Calls a function with the store of one member.
    pub(super) fn with_disk<R>(
        &mut self,
        member: u16,
        what: impl FnOnce(&mut MemberDisk) -> R,
    ) -> R {
        self.pool.with_member(member, |it| what(it.contents_mut()))
    }

    /// Returns the bytes that a member can address.
    pub(super) fn bytes_of(&self, member: u16) -> u64 {
        self.pool.members()[usize::from(member)].capacity().bytes
    }

    /// Injects a fault into a member.
    ///
    /// # Errors
    /// The reason why that is impossible.
    pub(super) fn befall(
        &mut self,
        now: Time,
        member: u16,
        trouble: DriveFault,
    ) -> Result<(), String> {
        self.could_befall(member, trouble)?;
        self.returning.retain(|(_, one)| *one != member);
        self.pool.befall(now, member, trouble);
        if trouble == DriveFault::LosesPower {
            self.returning.push((now + READY, member));
        }
        Ok(())
    }

    /// Checks whether a fault can be injected into a member.
    ///
    /// # Errors
    /// The reason why that is impossible.
    pub(super) fn could_befall(&self, member: u16, trouble: DriveFault) -> Result<(), String> {
        let store = &self.stores[usize::from(member)];
        match (trouble, store.absent) {
            (DriveFault::Returns | DriveFault::LosesPower, true) => Err(format!(
                "the store of {} was missing at the start, or could not be written: start the server again",
                store.name
            )),
            _ => Ok(()),
        }
    }

    /// Cuts power for the whole pool and restores it; the tiers are recovered from the members. Returns the lost bytes
    /// that had been acknowledged, and the findings.
    pub(super) fn power_cut(&mut self, now: Time) -> (Time, u64, Vec<String>) {
        let mut lost = Vec::new();
        let mut back = self.pool.power_cut(now, &mut lost);
        // Members that were without power are back with the others.
        for (_, member) in std::mem::take(&mut self.returning) {
            back = back.max(now + READY);
            self.pool.befall(back, member, DriveFault::Returns);
        }
        let start = RecoveryInput {
            pool: self.uuid,
            mark: 0,
            remembered: None,
            in_sync: self.note.in_sync(),
            bytes: None,
            accept_loss: false,
        };
        let members = self.pool.members().iter();
        let were_dead: Vec<bool> = members.map(DataBackedDrive::is_dead).collect();
        let (config, mut failed) = (&self.config, Vec::new());
        let mut stores = PowerCutStores(&mut self.pool);
        let opened = failing::repeat_without_failed(&mut stores, &mut failed, |stores, _| {
            offline::open(config, &start, stores)
        });
        let lines = match opened {
            Ok(recovered) => {
                let mut lines = findings::lines(&self.config, &recovered, false);
                lines.extend(failed.iter().map(|it| failing::dropped(it)));
                let dead = self.pool.members().iter().map(DataBackedDrive::is_dead);
                let each = self.stores.iter_mut().zip(dead).zip(were_dead);
                for ((store, dead), was_dead) in each {
                    store.absent |= dead && !was_dead;
                    if !dead {
                        store.state.opening = recovered.opening.map(|it| it.number);
                    }
                }
                self.leaving.clear();
                self.note.opened(&self.config, &recovered);
                self.note.write(&self.config, &self.room);
                self.pool.restart(back, recovered.tiers(&self.config));
                lines
            }
            Err((tier, damage)) => {
                let why = findings::damage(&self.config, &tier, damage);
                let why = failing::because(why, &failed);
                self.failure = Some(why.clone());
                vec![why]
            }
        };
        let lost = lost.iter().map(|range| range.bytes).sum();
        (back, lost, lines)
    }

    /// Returns what the resyncs and rebuilds in progress have done, as text.
    pub(super) fn rebuilds(&self) -> Option<String> {
        resync::rebuilds(&self.config, self.pool.tiers())
    }

    /// Starts no more parts of resyncs and rebuilds, at the end of service.
    pub(super) fn pause_rebuilds(&mut self) {
        self.pool.pause_rebuilds();
    }

    /// Returns a line on the progress of mirror members that are being resynced.
    pub(super) fn progress(&mut self, now: Wall) -> Option<String> {
        self.resync
            .next_message(now, &self.config, self.pool.tiers())
    }

    /// Checks whether the pool is unusable.
    pub(super) fn is_broken(&self) -> bool {
        self.failure.is_some() || self.room.overflowed()
    }

    /// Returns the reason why the pool is unusable, as text.
    pub(super) fn why_broken(&self) -> Option<String> {
        let full = || {
            let most = MOST >> 20;
            format!(
                "more than {most} MiB wait for space on the disk of its stores: free some space and start the server again"
            )
        };
        let overflowed = self.room.overflowed();
        self.failure.clone().or_else(|| overflowed.then(full))
    }

    /// Returns the names of the members that have failed.
    pub(super) fn dead(&self) -> impl Iterator<Item = &str> {
        let members = self.stores.iter().zip(self.pool.members());
        { members }.filter_map(|(store, member)| member.is_dead().then_some(&*store.name))
    }

    /// Returns the members that acknowledged data depends on and whose volatile cache has writes, with their bytes.
    pub(super) fn unflushed(&self) -> impl Iterator<Item = (&str, u64)> {
        let members = (0..).zip(self.stores.iter().zip(self.pool.members()));
        members.filter_map(|(number, (store, member))| {
            let mut writes = Vec::new();
            member.undecided(&mut writes);
            let acknowledged = writes.iter().filter(|it| !it.inside);
            let bytes = acknowledged.map(|it| it.bytes).sum();
            (bytes > 0 && self.is_needed(number)).then_some((&*store.name, bytes))
        })
    }

    /// Returns the children of mirrors and arrays that lack acknowledged data, each with the name of its tier.
    pub(super) fn out_of_sync(&self) -> impl Iterator<Item = (String, &str)> {
        let out = out_of_sync(&self.config, self.pool.tiers());
        out.map(|(tier, child)| {
            let tier = usize::from(tier);
            let name = &*self.config.tiers[tier].name;
            (findings::child(&self.config, tier, child), name)
        })
    }

    /// Checks whether acknowledged data depends on a member: no mirror or array above is without it.
    fn is_needed(&self, member: u16) -> bool {
        let out: Vec<(u16, u16)> = out_of_sync(&self.config, self.pool.tiers()).collect();
        failing::is_needed(&self.config, &out, member)
    }

    /// Returns the names of the tiers that reject writes because too few members can be written.
    pub(super) fn rejecting(&self) -> impl Iterator<Item = &str> {
        let tiers = self.config.tiers.iter().zip(self.pool.tiers());
        let rejecting = tiers.filter(|(_, it)| it.rejects_writes());
        rejecting.map(|(tier, _)| &*tier.name)
    }

    /// Checks whether clients use this tier directly.
    pub(super) fn is_volume(&self, name: &str) -> bool {
        let mut volumes = self.config.volumes.iter();
        volumes.any(|&tier| self.config.tiers[usize::from(tier)].name == name)
    }

    /// Returns the names of the log devices that are not used because they failed or were absent.
    pub(super) fn unused_logs(&self) -> impl Iterator<Item = String> {
        let unused = unused_logs(self.pool.tiers());
        unused.map(|(tier, log)| findings::child(&self.config, usize::from(tier), log))
    }

    /// Takes an error of the host for a member's store.
    pub(super) fn take_failure(&mut self) -> Option<io::Error> {
        if let Some(error) = self.note.take_failure() {
            return Some(error);
        }
        (0..self.stores.len())
            .find_map(|member| self.with_disk(member as u16, MemberDisk::take_failure))
    }

    /// Returns the worst health of the members; host commands are counted since the start.
    pub(super) fn health(&mut self, now: Time) -> Health {
        let of_members: Vec<Health> = self.each_drive(|drive| drive.health(now)).collect();
        let mut members = of_members.into_iter();
        let mut worst = members.next().unwrap_or_else(|| Health {
            warning: Default::default(),
            celsius: 0.0,
            available_spare: 100,
            spare_threshold: 10,
            watts: 0.0,
            lifetime: Lifetime::default(),
        });
        for member in members {
            let (all, one) = (&mut worst.warning, member.warning);
            all.spare |= one.spare;
            all.temperature |= one.temperature;
            all.reliability |= one.reliability;
            all.read_only |= one.read_only;
            all.backup |= one.backup;
            worst.celsius = worst.celsius.max(member.celsius);
            worst.available_spare = worst.available_spare.min(member.available_spare);
            worst.spare_threshold = worst.spare_threshold.max(member.spare_threshold);
            worst.watts += member.watts;
            let (all, one) = (&mut worst.lifetime, member.lifetime);
            all.percentage_used = all.percentage_used.max(one.percentage_used);
            all.busy = all.busy.max(one.busy);
            all.power_on = all.power_on.max(one.power_on);
            all.power_cycles = all.power_cycles.max(one.power_cycles);
            all.unsafe_shutdowns = all.unsafe_shutdowns.max(one.unsafe_shutdowns);
            all.warm = all.warm.max(one.warm);
            all.hot = all.hot.max(one.hot);
            all.media_errors += one.media_errors;
            all.error_log_entries += one.error_log_entries;
        }
        worst.warning.reliability |= self.pool.members().iter().any(DataBackedDrive::is_dead);
        let life = &mut worst.lifetime;
        [life.host_read_commands, life.host_write_commands] = self.commands;
        (life.host_bytes_read, life.host_bytes_written) = self.pool.client_bytes();
        worst
    }

    /// Saves the state of each member, if there is a file for it, also if that of another cannot be written.
    ///
    /// # Errors
    /// The first error of the file system for a member that acknowledged data depends on.
    pub(super) fn save(&self, now: Time, clean: bool) -> io::Result<()> {
        let mut result = Ok(());
        for (number, (store, member)) in (0..).zip(self.stores.iter().zip(self.pool.members())) {
            let Some(file) = &store.file else {
                continue;
            };
            let state = SavedState {
                clean,
                lifetime: member.drive().lifetime(now),
                unreadable: member.contents().unreadable(),
                ..store.state.clone()
            };
            let named = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", file.display()))
            };
            let saved = save(file, &state).map_err(named);
            // A member that its tier does not use is recovered at the next start anyway.
            if saved.is_err() && self.is_needed(number) && result.is_ok() {
                result = saved;
            }
        }
        result
    }

    /// Writes data to the host's disk.
    ///
    /// # Errors
    /// Errors of the file system.
    pub(super) fn sync(&mut self, now: Time, stage: &mut dyn FnMut(&str)) -> io::Result<()> {
        if self.room.is_full() && !self.room.stays() {
            self.write_waiting(now)?;
        }
        let mut result = Ok(());
        for member in 0..self.stores.len() {
            let (name, number) = (&self.stores[member].name, member + 1);
            let members = self.stores.len();
            stage(&format!(
                "{name} goes to the host's disk ({number} of {members})"
            ));
            let synced = self.with_disk(member as u16, MemberDisk::sync_to_host);
            // The data of a member that its tier does not use is resynced later.
            if synced.is_err() && self.is_needed(member as u16) && result.is_ok() {
                result = synced;
            }
        }
        result
    }

    /// Returns the limit of the first member's governor, if it has one.
    pub(super) fn power_limit(&self) -> Option<f64> {
        self.pool.members().first()?.drive().power_limit()
    }

    /// Sets the governor of each member.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) fn set_power_limit(&mut self, watts: f64) -> Result<(), Refusal> {
        let mut done = self.each_drive(|drive| drive.set_power_limit(watts));
        done.try_for_each(|it| it)
    }

    /// Sets the wear of each member.
    ///
    /// # Errors
    /// The first refusal.
    pub(super) fn set_percentage_used(&mut self, percent: f64) -> Result<(), Refusal> {
        let mut done = self.each_drive(|drive| drive.set_percentage_used(percent));
        done.try_for_each(|it| it)
    }
}
