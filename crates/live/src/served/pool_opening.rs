//! Opening of a served pool: a store for each member, and the tiers with their state on the members.
//!
//! A folder contains `NAME.img` and `NAME.img.state` for each member, and `pool.state`, which is written last when the
//! pool is created. The following are rejected without any change: a folder of a pool with another structure, a store
//! of another pool or position, and mirror members that contradict each other. Recovery runs here, before clients are
//! admitted. A member with damaged files counts as missing, and its files stay as they are. An empty data file without a
//! state is a new member. Not supported: creating that file for a missing member.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::BuildHasher;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use model::management::{Lifetime, ManagedDrive};
use model::media::{Medium, Seeds};
use text::problem::{Place, Problem, Problems};
use tier::below::Opening;
use tier::offline::{self, Damage, RecoveredTiers, RecoveryInput};
use tier::trial::TrialStores;
use tier::{DriveConfig, Kind, PoolConfig, Target};

use super::ServedDevice;
use super::data::DriveData;
use super::disk::MemberDisk;
use super::failing::{self, OfflineStores};
use super::findings;
use super::machine::Machine;
use super::member_stores::{OpenedMembers, member_image};
use super::noted::{self, Note};
use super::opening::{cannot, in_memory, open_file, refused};
use super::pooled::{MemberStore, ServedPool};
use super::room::PoolSpace;
use crate::setup::{Setup, StoreChoice};
use crate::store::{OWN_FOLDER, PoolState, SavedState, no_room, pool_state_path};

/// Id of a pool in memory.
const IN_MEMORY: u128 = 1;

/// A pool's folder, existing or to be created.
struct Folder {
    state: PoolState,
    /// Path of the folder; `None` in memory.
    path: Option<PathBuf>,
    is_new: bool,
}

impl Setup {
    /// Returns the pool, if its tiers can be recovered from its members: then the members store the data.
    pub(super) fn kept_by_member(&self) -> Option<PoolConfig<DriveConfig>> {
        self.sheet.pool_config().filter(|it| it.recovers()).cloned()
    }

    /// Returns the names of the members that may fail individually; empty if data is not stored by member.
    pub fn members(&self) -> Vec<String> {
        let config = self.sheet.pool_config().filter(|it| it.recovers());
        let members = config.iter().flat_map(|it| &it.members);
        members.map(|it| it.name.clone()).collect()
    }

    /// Returns the size of an existing store of this pool.
    pub(super) fn remembered_of_pool(&self, path: &Path) -> Option<u64> {
        let text = fs::read_to_string(pool_state_path(path)).ok()?;
        let state = PoolState::parse(&text).ok()?;
        (state.bytes <= self.sheet.capacity).then_some(state.bytes)
    }

    pub(super) fn open_pool(
        self,
        config: PoolConfig<DriveConfig>,
    ) -> Result<ServedDevice, Problems> {
        if let Some(format) = self.lba_format.filter(|&format| format != 0) {
            let formats = &self.sheet.management.lba_formats;
            return Err(Problems::whole(
                "--lba-format",
                format!(
                    "{}: data by member are kept in {} only, not in {}",
                    self.sheet.id, formats[0], formats[format]
                ),
            ));
        }
        let bytes = self.bytes()?;
        let folder = self.folder(&config, bytes)?;
        let mut made = Vec::new();
        let opened = self.open_members(&config, &folder, &mut made);
        let served = opened.and_then(|opened| self.assemble(config, &folder, opened));
        match served {
            Ok(served) => Setup::remembering(served, made),
            Err(problems) => {
                for path in made {
                    // The file has just been created and is useless alone.
                    let _ = fs::remove_file(path);
                }
                Err(problems)
            }
        }
    }

    /// Reads the folder, if it exists, and checks that it belongs to this pool.
    fn folder(&self, config: &PoolConfig<DriveConfig>, bytes: u64) -> Result<Folder, Problems> {
        let topology = topology(config);
        let StoreChoice::File(path) = &self.store else {
            let state = self.new_state(config, IN_MEMORY, bytes, topology);
            return Ok(Folder {
                state,
                path: None,
                is_new: true,
            });
        };
        let file = pool_state_path(path);
        let is_empty = || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        if !path.exists() || (path.is_dir() && is_empty()) {
            let uuid = [0_u64, 1].map(|half| RandomState::new().hash_one(half));
            let uuid = u128::from(uuid[0]) << 64 | u128::from(uuid[1]);
            return Ok(Folder {
                state: self.new_state(config, uuid, bytes, topology),
                path: Some(path.clone()),
                is_new: true,
            });
        }
        if !path.is_dir() {
            return Err(refused(
                path,
                "it is a file, but this pool stores its data in a folder, by member".into(),
                "name a folder, or one that does not exist yet",
            ));
        }
        if !file.exists() {
            let what = "the folder contains no pool.state";
            let is_kept = |name: &str| member_image(path, name).exists();
            return Err(match config.members.iter().any(|it| is_kept(&it.name)) {
                true => refused(
                    path,
                    format!("{what}, although it contains stores of this pool's members"),
                    &format!(
                        "{}. If a first start was interrupted while it created this pool, remove the folder",
                        findings::without_state(config)
                    ),
                ),
                false => refused(
                    path,
                    String::from(what),
                    "name an empty folder, or one that does not exist yet, to create a new store",
                ),
            });
        }
        let text = fs::read_to_string(&file).map_err(|error| cannot(&file, "read", &error))?;
        let copy = || findings::without_state(config);
        let state = PoolState::parse(&text).map_err(|what| refused(&file, what, &copy()))?;
        self.is_ours(&file, config, &state, &topology, bytes)?;
        Ok(Folder {
            state,
            path: Some(path.clone()),
            is_new: false,
        })
    }

    fn new_state(
        &self,
        config: &PoolConfig<DriveConfig>,
        uuid: u128,
        bytes: u64,
        topology: Vec<String>,
    ) -> PoolState {
        let sheets = self.sheet.named_members();
        let first = u64::from(crc32c::crc32c(&uuid.to_le_bytes()));
        let each = (first..).zip(config.members.iter().zip(&sheets));
        let members = each.map(|(number, (member, (_, sheet)))| {
            let serial = sheet.nvme.serial(number & 0xffff_ffff);
            (serial, member.name.clone())
        });
        PoolState {
            uuid,
            serial: self.serial.clone(),
            bytes,
            topology,
            members: members.collect(),
            opening: Opening::default(),
            behind: Vec::new(),
        }
    }

    /// Checks whether a folder belongs to this pool.
    fn is_ours(
        &self,
        file: &Path,
        config: &PoolConfig<DriveConfig>,
        state: &PoolState,
        topology: &[String],
        bytes: u64,
    ) -> Result<(), Problems> {
        let names = |all: &mut dyn Iterator<Item = &str>| all.collect::<Vec<_>>().join(", ");
        let were = names(&mut state.members.iter().map(|(_, name)| &**name));
        let are = names(&mut config.members.iter().map(|it| &*it.name));
        let mut what = None;
        if were != are {
            what = Some(format!("it is of a pool of {were}, not of {are}"));
        } else if state.topology != topology {
            let longest = state.topology.len().max(topology.len());
            let line = |all: &[String], at: usize| all.get(at).cloned().unwrap_or_default();
            let differs = (0..longest).find(|&at| line(&state.topology, at) != line(topology, at));
            let at = differs.unwrap_or(0);
            what = Some(format!(
                "it belongs to a pool with another structure: `{}`, not `{}`",
                line(&state.topology, at),
                line(topology, at)
            ));
        } else if state.bytes != bytes {
            what = Some(format!("it serves {} bytes, not {bytes}", state.bytes));
        }
        match what {
            None => Ok(()),
            Some(what) => Err(refused(
                file,
                what,
                "serve that pool with that --size, or name another --store",
            )),
        }
    }

    /// Opens the store of each member of a pool. `made`: files that were created.
    fn open_members(
        &self,
        config: &PoolConfig<DriveConfig>,
        folder: &Folder,
        made: &mut Vec<PathBuf>,
    ) -> Result<OpenedMembers, Problems> {
        let sheets = self.sheet.named_members();
        let mut opened = OpenedMembers {
            accept_loss: self.accept_loss,
            ..OpenedMembers::default()
        };
        let mut problems = Problems::default();
        let members = config.members.iter().enumerate().zip(&sheets);
        for (((index, member), (_, sheet)), (serial, name)) in members.zip(&folder.state.members) {
            let fresh = SavedState {
                drive: sheet.id.clone(),
                serial: serial.clone(),
                bytes: member.drive.capacity_bytes(),
                lifetime: Lifetime::of_new(&member.drive),
                ..SavedState::default()
            };
            let Some(path) = &folder.path else {
                opened.stores.push(Some(in_memory(fresh)?));
                continue;
            };
            if folder.is_new && !path.exists() {
                let folder = fs::DirBuilder::new().mode(OWN_FOLDER).create(path);
                folder.map_err(|error| cannot(path, "created", &error))?;
            }
            let image = member_image(path, name);
            let one = match folder.is_new {
                true => open_file(&image, fresh, &sheet.management).map(Some),
                false => {
                    let member_is = (name.as_str(), has_copies(config, index));
                    opened.existing(&image, member_is, fresh, &sheet.management)
                }
            };
            match one {
                Ok(one) => {
                    made.extend(one.iter().filter_map(|it| it.made.clone()));
                    opened.stores.push(one);
                }
                Err(all) => problems.0.extend(failing::of_member(all)),
            }
        }
        problems.or(opened)
    }

    /// Returns the pool of these stores: created on them, or recovered from them.
    fn assemble(
        mut self,
        config: PoolConfig<DriveConfig>,
        folder: &Folder,
        opened: OpenedMembers,
    ) -> Result<ServedDevice, Problems> {
        let sheets = self.sheet.named_members();
        let (mut disks, mut stores, mut drives) = (Vec::new(), Vec::new(), Vec::new());
        let mut said = self.precondition;
        let rings = config.rings();
        let room = PoolSpace::default();
        for (index, ((member, (_, sheet)), one)) in config
            .members
            .iter()
            .zip(&sheets)
            .zip(opened.stores)
            .enumerate()
        {
            let absent = one.is_none();
            let one = match one {
                Some(one) => one,
                None => in_memory(SavedState {
                    drive: sheet.id.clone(),
                    bytes: member.drive.capacity_bytes(),
                    ..SavedState::default()
                })?,
            };
            let mut state = one.state;
            let precondition = state.begin(self.precondition, state.bytes);
            said.get_or_insert(precondition);
            let precondition = precondition.of_member(rings[index]);
            let drive = ManagedDrive::new(
                &member.drive,
                &sheet.management,
                precondition,
                Seeds::from(self.seed).of_member(index).run,
                state.lifetime.clone(),
            );
            drives.push(drive.map_err(|why| Problems::whole(&member.name, why.to_string()))?);
            let mut data = DriveData::new(one.store, one.file, state.bytes, None);
            for &(start, end) in &state.unreadable {
                data.spoil(start, end - start);
            }
            disks.push(MemberDisk::new(&member.name, data, room.clone()));
            stores.push(MemberStore {
                name: member.name.clone(),
                state,
                file: one.state_file.filter(|_| !absent),
                absent,
            });
        }
        let members = (&mut *disks, &mut *stores);
        let (found, mut lines) = self.found(&config, folder, members, &room, opened.failed)?;
        lines.extend(opened.advice);
        lines.extend(findings::lines(&config, &found, self.accept_loss));
        lines.extend(begin_openings(&mut stores, &found, folder.is_new));
        let serial = folder.state.serial.clone();
        self.precondition = said;
        let uuid = folder.state.uuid;
        let recorded = folder.path.as_ref().filter(|_| !room.is_full());
        let state = || noted::opened(&config, &folder.state, &found);
        let file = recorded.map(|path| (pool_state_path(path), state()));
        let note = Note::new(&config, file, &found);
        let all = (drives, disks, stores);
        let pool = ServedPool::new((config, uuid), (room.clone(), note), all, found);
        let machine = Machine::Pool(Box::new(pool));
        let mut served = ServedDevice::new(self, machine, folder.state.bytes, serial);
        served.findings = lines;
        if room.is_full() {
            // Changes by the recovery are in memory only.
            served.make_read_only();
        }
        Ok(served)
    }

    /// Returns the tiers: created on their members, or recovered and repaired. Also returns messages on members whose
    /// stores cannot be opened (`failed`) or written; they become absent.
    fn found(
        &self,
        config: &PoolConfig<DriveConfig>,
        folder: &Folder,
        (disks, stores): (&mut [MemberDisk], &mut [MemberStore]),
        room: &PoolSpace,
        mut failed: Vec<String>,
    ) -> Result<(RecoveredTiers, Vec<String>), Problems> {
        let uuid = folder.state.uuid;
        let mut images = OfflineStores {
            disks,
            absent: stores.iter().map(|it| it.absent).collect(),
        };
        let remembered = (!self.accept_loss).then_some(folder.state.opening);
        let in_sync = match self.accept_loss {
            true => Vec::new(),
            false => noted::in_sync(config, &folder.state),
        };
        let start = RecoveryInput {
            pool: uuid,
            mark: RandomState::new().hash_one(uuid) | 1,
            remembered,
            in_sync: &in_sync,
            bytes: Some(folder.state.bytes),
            accept_loss: self.accept_loss,
        };
        let opened = if folder.is_new {
            let made = offline::format(config, uuid, &mut images);
            made.and_then(|()| offline::open(config, &start, &mut images))
        } else {
            let opened =
                failing::repeat_without_failed(&mut images, &mut failed, |images, failed| {
                    // If one tier cannot be recovered, no tier is changed.
                    let mut stores = TrialStores::new(images);
                    match offline::open(config, &start, &mut stores) {
                        Ok(trial) => match self.has_logs(config, folder, &trial, failed) {
                            Ok(()) if stores.apply() => Ok(Ok(trial)),
                            // Too large for a trial, or a store was not written.
                            Ok(()) => offline::open(config, &start, images).map(Ok),
                            Err(refused) => Ok(Err(refused)),
                        },
                        Err(_) if stores.is_incomplete() => {
                            offline::open(config, &start, images).map(Ok)
                        }
                        Err(damage) => Err(damage),
                    }
                });
            match opened {
                Ok(found) => Ok(found?),
                Err(damage) => Err(damage),
            }
        };
        for (store, absent) in stores.iter_mut().zip(&images.absent) {
            if *absent && !store.absent {
                (store.absent, store.file) = (true, None);
            }
        }
        let found = opened.map_err(|(tier, damage)| {
            failed.extend(
                images
                    .disks
                    .iter_mut()
                    .filter_map(|it| Some(it.take_failure()?.to_string())),
            );
            self.cannot_open(
                config,
                folder,
                room,
                (&tier, damage),
                (&images.absent, &failed),
            )
        })?;
        self.note_opening(config, folder, room, &found)?;
        Ok((
            found,
            failed.iter().map(|it| failing::dropped(it)).collect(),
        ))
    }

    /// Checks that no log device is missing, unless the loss is accepted.
    fn has_logs(
        &self,
        config: &PoolConfig<DriveConfig>,
        folder: &Folder,
        found: &RecoveredTiers,
        failed: &[String],
    ) -> Result<(), Problems> {
        let (false, Some(path)) = (self.accept_loss, &folder.path) else {
            return Ok(());
        };
        let lost = findings::absent_logs(config, found);
        match lost.is_empty() {
            true => Ok(()),
            false => Err(refused(
                path,
                failing::because(lost.join("; "), failed),
                "restore its store, or continue without it with --accept-loss",
            )),
        }
    }

    /// Returns the problem of a pool that cannot be opened. `absent`: by member. `failed`: errors of the host, and
    /// damage of files.
    fn cannot_open(
        &self,
        config: &PoolConfig<DriveConfig>,
        folder: &Folder,
        room: &PoolSpace,
        (tier, damage): (&str, Damage),
        (absent, failed): (&[bool], &[String]),
    ) -> Problems {
        let path = folder.path.as_ref();
        let origin = path.map_or(self.name.clone(), |path| path.display().to_string());
        if room.overflowed() {
            return without_room(origin, &room.error());
        }
        let what = match damage {
            Damage::Unlabelled => findings::without_label(config, tier, absent),
            damage => findings::damage(config, tier, damage),
        };
        let what = failing::because(what, failed);
        match (path, findings::way_on(damage)) {
            (Some(path), Some(help)) => refused(path, what, help),
            _ => Problems::whole(origin, what),
        }
    }

    /// Records an opening in the folder.
    fn note_opening(
        &self,
        config: &PoolConfig<DriveConfig>,
        folder: &Folder,
        room: &PoolSpace,
        found: &RecoveredTiers,
    ) -> Result<(), Problems> {
        if room.is_full() {
            // This opening is not recorded in the members' stores, so it must not be recorded in the folder either.
            return match (&folder.path, folder.is_new) {
                (Some(path), true) => {
                    let origin = path.display().to_string();
                    Err(without_room(origin, &room.error()))
                }
                _ => Ok(()),
            };
        }
        if let Some(path) = &folder.path {
            let file = pool_state_path(path);
            match noted::opened(config, &folder.state, found).save(&file) {
                // The folder is then one opening behind, as after a crash at this point. It may lack a member that is
                // behind now, so the pool must not be written before the next start.
                Err(error) if no_room(&error) && !folder.is_new => room.fill(noted::NAME, &error),
                saved => saved.map_err(|error| cannot(&file, "written", &error))?,
            }
        }
        Ok(())
    }
}

/// Returns the problem of a pool whose stores have no space for writes that are needed before it can be served.
fn without_room(origin: String, error: &io::Error) -> Problems {
    Problems(vec![Problem {
        origin,
        place: Place::Whole,
        what: error.to_string(),
        help: Some("free some space on that disk, and start again: no data is lost".into()),
    }])
}

fn array_words(kind: &str, chunk: u32, region: u64) -> String {
    format!("{kind} of chunks of {chunk} bytes and regions of {region} bytes")
}

/// Numbers the opening in each member's state, and returns a line for each whose state is older than its data.
fn begin_openings(stores: &mut [MemberStore], found: &RecoveredTiers, is_new: bool) -> Vec<String> {
    let mut lines = Vec::new();
    for (store, before) in stores.iter_mut().zip(&found.before) {
        if !is_new && store.state.opening < *before {
            lines.push(format!(
                "{}: its .state is older than its data: its wear is that of the earlier time",
                store.name
            ));
        }
        store.state.opening = found.opening.map(|it| it.number);
    }
    lines
}

/// Returns the properties that determine the placement of a pool's data, one line for each tier.
fn topology(config: &PoolConfig<DriveConfig>) -> Vec<String> {
    let target = |target: &Target| match *target {
        Target::Slice {
            member,
            base,
            bytes,
        } => {
            let name = &config.members[usize::from(member)].name;
            format!("{name} {base}+{bytes}")
        }
        Target::Tier(tier) => config.tiers[usize::from(tier)].name.clone(),
    };
    let mut lines = vec![format!("labels of {} bytes", config.label_bytes)];
    for tier in &config.tiers {
        let kind = match &tier.kind {
            Kind::Mirror(mirror) => format!("mirror of regions of {} bytes", mirror.region),
            Kind::Raid5(array) => array_words("raid5", array.chunk, array.region),
            Kind::Raid6(array) => array_words("raid6", array.chunk, array.region),
            Kind::Stripe(stripe) => format!("stripe of chunks of {} bytes", stripe.chunk),
            kind => String::from(kind.word()),
        };
        let over: Vec<String> = tier.children.iter().map(target).collect();
        lines.push(format!(
            "{} is a {kind} over {}",
            tier.name,
            over.join(", ")
        ));
    }
    let volumes = config.volumes.iter();
    let volumes: Vec<&str> = volumes
        .map(|&tier| &*config.tiers[usize::from(tier)].name)
        .collect();
    lines.push(format!("served is {}", volumes.join(", ")));
    lines
}

/// Checks whether a mirror or array is directly above each slice of a member.
fn has_copies(config: &PoolConfig<DriveConfig>, member: usize) -> bool {
    let is_it =
        |it: &Target| matches!(it, Target::Slice { member: of, .. } if usize::from(*of) == member);
    let mut above = { config.tiers.iter() }.filter(|tier| tier.children.iter().any(is_it));
    above.all(|tier| tier.kind.has_copies())
}
