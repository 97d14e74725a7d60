//! From what a user asks for to a drive that can be served: catalogue, size, store and what the drive remembers.
//!
//! A store on disk is refused when it belongs to another drive, has another size, is damaged, or is in use; nothing of
//! it is changed then.

use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};

use model::media::{Drive, Precondition};
use rustix::fs::{FlockOperation, flock};
use study::catalogue::DriveSheet;
use study::problem::{Place, Problem, Problems};

use crate::served::Served;
use crate::store::{FileStore, MemoryStore, State, Store, save, state_path};

/// Where the data of a drive shall be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StoreChoice {
    /// In memory.
    Memory,
    /// In this file, with the state beside it.
    File(PathBuf),
}

/// A drive as it was asked for.
#[derive(Clone, Debug)]
pub struct Setup {
    /// From the catalogue.
    pub sheet: DriveSheet,
    /// Name under which it is exported.
    pub name: String,
    /// Serial number.
    pub serial: String,
    /// Bytes of the namespace, if not the whole drive.
    pub size: Option<u64>,
    /// Where the data shall be.
    pub store: StoreChoice,
    /// State of the drive at the start.
    pub precondition: Precondition,
    /// Feeds its random streams.
    pub seed: u64,
}

impl Setup {
    /// Opens the store and builds the drive.
    ///
    /// # Errors
    /// Why it cannot be served.
    pub fn open(self) -> Result<Served, Problems> {
        let bytes = self.bytes()?;
        let block = self
            .sheet
            .management
            .lba_formats
            .first()
            .map_or(512, |it| it.data);
        let fresh = State {
            drive: self.sheet.id.clone(),
            serial: self.serial.clone(),
            bytes,
            block,
            ..State::default()
        };
        let (store, mut state, path) = match &self.store {
            StoreChoice::Memory => {
                let store = MemoryStore::new(bytes).map_err(|error| {
                    Problems::whole("--size", format!("{bytes} bytes of memory: {error}"))
                })?;
                (Store::Memory(store), fresh, None)
            }
            StoreChoice::File(path) => {
                let (file, state) = open_file(path, fresh)?;
                let path = Some(state_path(path));
                (Store::File(FileStore::new(file)), state, path)
            }
        };
        state.power_cycles += 1;
        if !state.clean && state.power_cycles > 1 {
            state.unsafe_shutdowns += 1;
        }
        state.clean = false;
        if let Some(path) = &path {
            save(path, &state).map_err(|error| cannot(path, "written", &error))?;
        }
        let drive = Drive::new(&self.sheet.config, self.precondition, self.seed);
        Ok(Served::new(self, drive, store, state, path))
    }

    fn bytes(&self) -> Result<u64, Problems> {
        let whole = self.sheet.capacity;
        match self.size {
            None => Ok(whole),
            Some(size) if size > whole || size == 0 || size % 4096 != 0 => Err(Problems::whole(
                "--size",
                format!(
                    "{size} bytes: must be a multiple of 4096, and {} has {whole} bytes",
                    self.sheet.id
                ),
            )),
            Some(size) => Ok(size),
        }
    }
}

fn cannot(path: &Path, be: &str, error: &dyn std::fmt::Display) -> Problems {
    Problems::whole(
        path.display().to_string(),
        format!("cannot be {be}: {error}"),
    )
}

/// The data file and its state: those that are there, or new ones if neither is.
fn open_file(path: &Path, fresh: State) -> Result<(File, State), Problems> {
    let beside = state_path(path);
    match (path.exists(), beside.exists()) {
        (false, false) => {
            let file = OpenOptions::new()
                .read(true)
                .write(true)
                .create_new(true)
                .open(path)
                .map_err(|error| cannot(path, "created", &error))?;
            lock(path, &file)?;
            file.set_len(fresh.bytes)
                .map_err(|error| cannot(path, "made so large", &error))?;
            Ok((file, fresh))
        }
        (true, true) => open_existing(path, &beside, &fresh),
        (true, false) => Err(refused(
            path,
            format!("there is no {} beside it", beside.display()),
            "name a file that does not exist yet, and a new store is made",
        )),
        (false, true) => Err(refused(
            path,
            format!("{} is there, but the data is not", beside.display()),
            "bring the data back, or remove the state file to begin anew",
        )),
    }
}

fn open_existing(path: &Path, beside: &Path, fresh: &State) -> Result<(File, State), Problems> {
    let text = std::fs::read_to_string(beside).map_err(|error| cannot(beside, "read", &error))?;
    let state = State::parse(&text).map_err(|what| {
        refused(
            beside,
            what,
            "bring back an undamaged copy, or name another --store",
        )
    })?;
    let of = |state: &State| format!("{} with {} bytes", state.drive, state.bytes);
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
    let length = file.metadata().map_or(0, |metadata| metadata.len());
    if length != state.bytes {
        return Err(refused(
            path,
            format!("it has {length} bytes, its state says {}", state.bytes),
            "bring back an undamaged copy, or name another --store",
        ));
    }
    Ok((file, state))
}

fn lock(path: &Path, file: &File) -> Result<(), Problems> {
    flock(file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
        refused(
            path,
            String::from("it is in use by another program"),
            "each server needs a store of its own",
        )
    })
}

fn refused(path: &Path, what: String, help: &str) -> Problems {
    Problems(vec![Problem {
        origin: path.display().to_string(),
        place: Place::Whole,
        what,
        help: Some(help.to_owned()),
    }])
}
