//! Opening of a served drive: size, store, and saved state.
//!
//! A store on disk is rejected, without any change to it, if it belongs to another drive, has another size, is
//! damaged, or is in use.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::management::{Lifetime, ManagedDrive, Management};
use model::media::Medium;
use rustix::fs::{FlockOperation, flock};
use text::problem::{Place, Problem, Problems};

use super::ServedDevice;
use super::data::DriveData;
use super::machine::{Machine, Plain};
use crate::setup::{Setup, StoreChoice};
use crate::store::{FileStore, MemoryStore, OWN_FILE, SavedState, Store, no_room, state_path};

impl Setup {
    /// Opens the store and builds the drive.
    ///
    /// # Errors
    /// The reason why it cannot be served.
    pub fn open(self) -> Result<ServedDevice, Problems> {
        if let Some(config) = self.kept_by_member() {
            return self.open_pool(config);
        }
        let bytes = self.bytes()?;
        let opened = self.open_store(bytes)?;
        let (served, made) = self.of_drive(opened)?;
        Setup::remembering(served, made)
    }

    /// Returns the store of a single drive.
    fn open_store(&self, bytes: u64) -> Result<OpenedStore, Problems> {
        let fresh = SavedState {
            drive: self.sheet.id.clone(),
            serial: self.serial.clone(),
            bytes,
            lifetime: Lifetime {
                lba_format: self.lba_format.unwrap_or(0),
                ..Lifetime::of_new(&self.sheet.config)
            },
            ..SavedState::default()
        };
        let opened = match &self.store {
            StoreChoice::Memory => in_memory(fresh)?,
            StoreChoice::File(path) => open_file(path, fresh, &self.sheet.management)?,
        };
        if let (Some(wanted), StoreChoice::File(path)) = (self.lba_format, &self.store) {
            self.is_in(wanted, opened.state.lifetime.lba_format, path)?;
        }
        Ok(opened)
    }

    /// Returns the drive with its store, and the file of the store if it has just been created.
    fn of_drive(
        mut self,
        mut opened: OpenedStore,
    ) -> Result<(ServedDevice, Vec<PathBuf>), Problems> {
        let state = &mut opened.state;
        let precondition = state.begin(self.precondition, self.sheet.capacity);
        self.precondition = Some(precondition);
        let drive = ManagedDrive::new(
            &self.sheet.config,
            &self.sheet.management,
            precondition,
            self.seed,
            state.lifetime.clone(),
        );
        let origin = self.name.clone();
        let mut drive = drive.map_err(|refusal| Problems::whole(&origin, refusal.to_string()))?;
        drive.set_power_transitions(self.power_transitions.clone());
        let made = opened.made.clone();
        let problem = |error: io::Error| Problems::whole(origin, error.to_string());
        let cache = self.sheet.config.volatile_bytes();
        let cache = (cache > 0).then_some(cache);
        let mut data = DriveData::new(opened.store, opened.file, opened.state.bytes, cache);
        let state = opened.state;
        for &(start, end) in &state.unreadable {
            data.spoil(start, end - start);
        }
        let format = drive.lba_format();
        let blocks = state.bytes / u64::from(format.data);
        let metadata = blocks * u64::from(format.metadata);
        data.set_metadata(metadata, false).map_err(problem)?;
        let machine = Machine::Drive(Box::new(Plain { drive, data }));
        let mut served = ServedDevice::new(self, machine, state.bytes, state.serial);
        served.state_file = opened.state_file;
        served.protection = state.protection;
        served.shares = state.shares;
        served.ftl = (state.ftl, state.ftl_since_bytes);
        Ok((served, made.into_iter().collect()))
    }

    /// Saves that the drive is served. If there is no space for that, an existing store is served read-only. `made`:
    /// files that have just been created.
    pub(super) fn remembering(
        mut served: ServedDevice,
        made: Vec<PathBuf>,
    ) -> Result<ServedDevice, Problems> {
        match served.save(false) {
            Ok(()) => Ok(served),
            // The existing data can be read, and served again when there is space.
            Err(error) if made.is_empty() && no_room(&error) => {
                served.make_read_only();
                Ok(served)
            }
            Err(error) => {
                for path in made {
                    // The file has just been created and is useless without its state.
                    let _ = std::fs::remove_file(path);
                }
                Err(Problems::whole(served.name(), error.to_string()))
            }
        }
    }

    /// Checks that the format of a store is the requested one.
    fn is_in(&self, wanted: usize, format: usize, path: &Path) -> Result<(), Problems> {
        let named = |number: usize| {
            let format = self.sheet.management.lba_formats.get(number);
            format.map_or(format!("number {number}"), ToString::to_string)
        };
        if wanted == format {
            return Ok(());
        }
        let (is, should) = (named(format), named(wanted));
        Err(refused(
            path,
            format!("it is in LBA format {is}, not {should}"),
            "format it from a host (`nvme format`), or name another --store",
        ))
    }

    /// Returns the size of an existing store of this drive. Problems of the store are reported when it is opened.
    fn remembered(&self) -> Option<u64> {
        let StoreChoice::File(path) = &self.store else {
            return None;
        };
        if self.kept_by_member().is_some() {
            return self.remembered_of_pool(path);
        }
        let text = std::fs::read_to_string(state_path(path)).ok()?;
        let state = SavedState::parse(&text).ok()?;
        (state.drive == self.sheet.id && state.bytes <= self.sheet.capacity).then_some(state.bytes)
    }

    pub(super) fn bytes(&self) -> Result<u64, Problems> {
        let whole = self.sheet.capacity;
        match self.size {
            None => Ok(self.remembered().unwrap_or(whole)),
            Some(size) if size > whole => Err(Problems::whole(
                "--size",
                format!(
                    "{size} bytes: larger than {}, which has {whole} bytes",
                    self.sheet.id
                ),
            )),
            Some(size) if size == 0 || size % 4096 != 0 => Err(Problems::whole(
                "--size",
                format!(
                    "{size} bytes: must be a multiple of 4096, such as {}",
                    whole.min((size / 4096 + 1) * 4096)
                ),
            )),
            Some(size) => Ok(size),
        }
    }
}

/// An open store, and the saved state of the drive.
pub(super) struct OpenedStore {
    pub(super) store: Store,
    pub(super) file: Option<File>,
    pub(super) state: SavedState,
    pub(super) state_file: Option<PathBuf>,
    /// File of the data, if it has just been created.
    pub(super) made: Option<PathBuf>,
}

/// Returns a new store in memory.
pub(super) fn in_memory(state: SavedState) -> Result<OpenedStore, Problems> {
    let bytes = state.bytes;
    let store = MemoryStore::new(bytes)
        .map_err(|error| Problems::whole("--size", format!("{bytes} bytes of memory: {error}")))?;
    Ok(OpenedStore {
        store: Store::Memory(store),
        file: None,
        state,
        state_file: None,
        made: None,
    })
}

pub(super) fn cannot(path: &Path, be: &str, error: &dyn std::fmt::Display) -> Problems {
    Problems::whole(
        path.display().to_string(),
        format!("cannot be {be}: {error}"),
    )
}

/// Opens the data file and its state, or creates both if neither exists.
pub(super) fn open_file(
    path: &Path,
    fresh: SavedState,
    management: &Management,
) -> Result<OpenedStore, Problems> {
    let beside = state_path(path);
    match (path.exists(), beside.exists()) {
        (false, false) => {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .mode(OWN_FILE)
                .open(path)
                .map_err(|error| cannot(path, "created", &error))?;
            lock(path, &file)?;
            let made = Some(path.to_owned());
            let sized = file.set_len(fresh.bytes);
            if sized.is_err() {
                // The file is useless, and would block the next attempt.
                let _ = std::fs::remove_file(path);
            }
            sized.map_err(|error| cannot(path, "made so large", &error))?;
            opened(path, file, fresh).map(|opened| OpenedStore { made, ..opened })
        }
        (true, true) => open_existing(path, &beside, &fresh, management),
        (true, false) => Err(refused(
            path,
            format!("its state file {} is missing", beside.display()),
            "name a file that does not exist yet to create a new store",
        )),
        (false, true) => Err(refused(
            path,
            format!(
                "the state file {} exists, but the data file does not",
                beside.display()
            ),
            "restore the data file, or remove the state file to create a new store",
        )),
    }
}

fn opened(path: &Path, file: File, state: SavedState) -> Result<OpenedStore, Problems> {
    let store = file
        .try_clone()
        .map_err(|error| cannot(path, "opened twice", &error))?;
    Ok(OpenedStore {
        store: Store::File(FileStore::new(store, 0, state.bytes)),
        file: Some(file),
        state,
        state_file: Some(state_path(path)),
        made: None,
    })
}

fn open_existing(
    path: &Path,
    beside: &Path,
    fresh: &SavedState,
    management: &Management,
) -> Result<OpenedStore, Problems> {
    let text = std::fs::read_to_string(beside).map_err(|error| cannot(beside, "read", &error))?;
    let state = SavedState::parse(&text).map_err(|what| {
        let help = match SavedState::is_of_other_program(&text) {
            true => OTHER_PROGRAM,
            false => "restore an undamaged copy, or name another --store",
        };
        refused(beside, what, help)
    })?;
    let of = |state: &SavedState| format!("{} with {} bytes", state.drive, state.bytes);
    if state.drive != fresh.drive || state.bytes != fresh.bytes {
        return Err(refused(
            path,
            format!("it belongs to {}, not to {}", of(&state), of(fresh)),
            "serve that drive with that --size, or name another --store",
        ));
    }
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .map_err(|error| cannot(path, "opened", &error))?;
    lock(path, &file)?;
    match wrong_length(&file, &state, management) {
        None => opened(path, file, state),
        Some(what) => Err(refused(
            path,
            what,
            "restore an undamaged copy, or name another --store",
        )),
    }
}

/// Returns the message on a data file whose length its state does not allow.
fn wrong_length(file: &File, state: &SavedState, management: &Management) -> Option<String> {
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    let format = management.lba_formats.get(state.lifetime.lba_format);
    let whole = format.map(|format| {
        let blocks = state.bytes / u64::from(format.data);
        state.bytes + blocks * u64::from(format.metadata)
    });
    // After a crash during a FORMAT, the metadata may be missing: it is created again, as zeroes.
    let is_wrong = whole.is_none_or(|whole| length != whole && length != state.bytes);
    is_wrong.then(|| {
        format!(
            "it has {length} bytes, its state says {} of LBA format {}",
            state.bytes, state.lifetime.lba_format
        )
    })
}

/// Returns what is damaged in the two files of an existing store of this drive: one of them is missing, the state cannot
/// be read, or the data file has another length. `None` for a store that is whole, and for one that is refused for
/// another reason, such as the store of another drive or of a newer program.
pub(super) fn store_damage(
    path: &Path,
    expected: &SavedState,
    management: &Management,
) -> Option<String> {
    let beside = state_path(path);
    match (path.exists(), beside.exists()) {
        (false, false) => return None,
        (true, false) => return Some(format!("its state file {} is missing", beside.display())),
        (false, true) => return Some(format!("its data file {} is missing", path.display())),
        (true, true) => (),
    }
    let text = std::fs::read(&beside).ok()?;
    let text = String::from_utf8_lossy(&text);
    let state = match SavedState::parse(&text) {
        Ok(state) => state,
        Err(_) if SavedState::is_of_other_program(&text) => return None,
        Err(what) => return Some(format!("{}: {what}", beside.display())),
    };
    let of = |state: &SavedState| (state.drive.clone(), state.serial.clone(), state.bytes);
    if of(&state) != of(expected) {
        return None;
    }
    let what = wrong_length(&File::open(path).ok()?, &state, management)?;
    Some(format!("{}: {what}", path.display()))
}

/// Opens an empty data file without a state as the store of a new drive; `None` if it is not such a file.
pub(super) fn open_blank(path: &Path, fresh: &SavedState) -> Option<Result<OpenedStore, Problems>> {
    if state_path(path).exists() {
        return None;
    }
    let mut own = OpenOptions::new();
    let file = own.read(true).write(true).open(path).ok()?;
    let is_blank = file.metadata().is_ok_and(|it| it.len() == fresh.bytes);
    if !is_blank {
        return None;
    }
    if let Err(in_use) = lock(path, &file) {
        return Some(Err(in_use));
    }
    let opened = opened(path, file, fresh.clone());
    let has_no_data = |it: &OpenedStore| it.store.extent(0, fresh.bytes) == (fresh.bytes, false);
    match &opened {
        Ok(store) if !has_no_data(store) => None,
        _ => Some(opened),
    }
}

/// Next step for a store that another program uses.
pub(super) const IN_USE: &str = "each server needs a store of its own";

/// Next step for a store that another version of this program has written.
pub(super) const OTHER_PROGRAM: &str =
    "serve it with the version of this program that wrote it, or name another --store";

fn lock(path: &Path, file: &File) -> Result<(), Problems> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        refused(
            path,
            String::from("it is in use by another program"),
            IN_USE,
        )
    })
}

pub(super) fn refused(path: &Path, what: String, help: &str) -> Problems {
    Problems(vec![Problem {
        origin: path.display().to_string(),
        place: Place::Whole,
        what,
        help: Some(help.to_owned()),
    }])
}
