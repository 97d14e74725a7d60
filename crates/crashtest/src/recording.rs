//! Recording of a program on a disk in memory.

use std::error::Error;
use std::fmt;
use std::fs;
use std::io;
use std::path::Path;

use crash::log::{Note, Writer};
use crash::needs::DriveProperties;
use crash::{Assumptions, Fork, Head, Image, Log};

use crate::device::Device;
use crate::drives::{WORST, WORST_LOSSES, losses};

/// Size of a disk if none is given.
const BYTES: u64 = 64 << 20;

/// Largest size of a disk.
const MOST: u64 = 1 << 50;

/// Reason why there is no result.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TestError(pub(crate) String);

impl fmt::Display for TestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for TestError {}

/// A disk in memory that behaves as a drive of the catalogue when power fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Disk {
    drive: String,
    bytes: u64,
    sectors: bool,
    whole: bool,
    flush_lies: bool,
}

impl Disk {
    /// Returns a disk that loses what this drive can lose: a name of the catalogue, the path of a TOML file, or
    /// `worst-ssd`. [`Disk::record`] checks the name.
    pub fn new(drive: &str) -> Disk {
        Disk {
            drive: drive.to_owned(),
            bytes: BYTES,
            sectors: false,
            whole: false,
            flush_lies: false,
        }
    }

    /// Returns a disk that loses what any flash drive can lose.
    pub fn worst_ssd() -> Disk {
        Disk::new(WORST)
    }

    /// Sets the size in bytes, a multiple of 512 [default: 64 MiB].
    #[must_use]
    pub fn size(self, bytes: u64) -> Disk {
        Disk { bytes, ..self }
    }

    /// Lets writes be torn at sectors of 512 B [default: at 4096 B, on hard disks at 512 B].
    #[must_use]
    pub fn torn_sectors(self) -> Disk {
        Disk {
            sectors: true,
            ..self
        }
    }

    /// Keeps or loses each write as a whole.
    #[must_use]
    pub fn whole_writes(self) -> Disk {
        Disk {
            whole: true,
            ..self
        }
    }

    /// Lets flushes and force unit access make nothing durable.
    #[must_use]
    pub fn lying_flushes(self) -> Disk {
        Disk {
            flush_lies: true,
            ..self
        }
    }

    /// Runs a program once on the empty disk, and records its commands. Threads that the program starts must have ended
    /// when it returns: later commands fail.
    ///
    /// # Errors
    /// The drive does not exist, the size is invalid, the program fails, or it writes nothing.
    pub fn record(
        &self,
        program: impl FnOnce(&Device, &Acks) -> Result<(), Box<dyn Error + Send + Sync>>,
    ) -> Result<Recording, TestError> {
        let (device, acks) = self.open()?;
        let ended = program(&device, &acks);
        let recording = self.finish(&device);
        ended.map_err(|error| TestError(format!("the program fails: {error}")))?;
        recording
    }

    /// Returns an empty disk and its acknowledgements, for programs that are not a function. [`Disk::finish`] ends the
    /// recording.
    ///
    /// # Errors
    /// The drive does not exist, or the size is invalid.
    pub fn open(&self) -> Result<(Device, Acks), TestError> {
        let losses = self.losses()?;
        if self.bytes == 0 || self.bytes % 512 != 0 || self.bytes > MOST {
            return Err(TestError(format!(
                "size {} B: must be a multiple of 512 B up to 1 PiB",
                self.bytes
            )));
        }
        let log = Writer::new(&Head {
            drive: self.drive.clone(),
            bytes: self.bytes,
            block: 512,
            part: losses.part,
            volatile: losses.volatile,
        });
        let device = Device::new(Fork::new(Image::default()), self.bytes, log);
        let acks = Acks(device.clone());
        Ok((device, acks))
    }

    /// Ends the recording of a disk from [`Disk::open`].
    ///
    /// # Errors
    /// Nothing was written.
    pub fn finish(&self, device: &Device) -> Result<Recording, TestError> {
        let losses = self.losses()?;
        let bytes = device.end();
        let sum = crc32c::crc32c(&bytes);
        let log = Log::read(bytes).map_err(|wrong| TestError(format!("the recording: {wrong}")))?;
        if !log.commands.iter().any(crash::log::Command::writes) {
            return Err(TestError("the program has written nothing".into()));
        }
        Ok(Recording {
            log,
            sum,
            how: self.assumptions(losses),
            disk: self.clone(),
        })
    }

    fn losses(&self) -> Result<DriveProperties, TestError> {
        if self.drive == WORST {
            return Ok(WORST_LOSSES);
        }
        let sheet = catalogue::drive(&self.drive);
        let sheet = sheet.map_err(|problems| TestError(problems.to_string().trim_end().into()))?;
        match sheet.pool.is_some() {
            false => Ok(losses(&sheet)),
            true => Err(TestError(format!(
                "{}: a pool: name a drive or {WORST}; `drivelab prove` tries pools",
                self.drive
            ))),
        }
    }

    fn assumptions(&self, losses: DriveProperties) -> Assumptions {
        Assumptions {
            part: if self.sectors { 512 } else { losses.part },
            torn: !self.whole,
            volatile: losses.volatile,
            flush_lies: self.flush_lies,
        }
    }
}

/// Accepts the acknowledgements of a program.
#[derive(Clone, Debug)]
pub struct Acks(Device);

impl Acks {
    /// Records that this token must survive a power cut from now on.
    pub fn ack(&self, token: impl fmt::Display) {
        self.0.note(Note::Ack, &line(&token));
    }

    /// Records that this token may survive a power cut from now on.
    pub fn begin(&self, token: impl fmt::Display) {
        self.0.note(Note::Try, &line(&token));
    }
}

/// Returns a token as one line: files of tokens have a line for each.
fn line(token: &impl fmt::Display) -> String {
    token.to_string().replace(['\n', '\r'], " ")
}

/// The tokens of an image: those before the power cut.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    pub(crate) acks: &'a [String],
    pub(crate) tries: &'a [String],
    pub(crate) name: &'a str,
}

impl<'a> Tokens<'a> {
    /// Returns the acknowledged tokens, in order.
    pub fn tokens(&self) -> &'a [String] {
        self.acks
    }

    /// Returns the acknowledged tokens that are numbers, in order.
    pub fn numbers(&self) -> impl Iterator<Item = u64> + use<'a> {
        self.acks.iter().filter_map(|token| token.parse().ok())
    }

    /// Checks whether this token was acknowledged.
    pub fn contains(&self, token: impl fmt::Display) -> bool {
        let token = line(&token);
        self.acks.contains(&token)
    }

    /// Returns the tokens that were begun, in order.
    pub fn begun(&self) -> &'a [String] {
        self.tries
    }

    /// Returns the name of the image.
    pub fn image(&self) -> &'a str {
        self.name
    }
}

/// The commands of a program, from which images are made.
#[derive(Clone, Debug)]
pub struct Recording {
    pub(crate) log: Log,
    /// Checksum of the log.
    pub(crate) sum: u32,
    pub(crate) how: Assumptions,
    pub(crate) disk: Disk,
}

impl Recording {
    /// Returns the same recording on another drive.
    ///
    /// # Errors
    /// The drive does not exist.
    pub fn with_drive(&self, drive: &str) -> Result<Recording, TestError> {
        let disk = Disk {
            drive: drive.to_owned(),
            ..self.disk.clone()
        };
        Ok(Recording {
            how: disk.assumptions(disk.losses()?),
            disk,
            ..self.clone()
        })
    }

    /// Returns the name of the drive whose losses are assumed.
    pub fn drive(&self) -> &str {
        &self.disk.drive
    }

    /// Returns the log.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// Writes the log to a file, for `drivelab crashtest --from`.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn save(&self, path: impl AsRef<Path>) -> io::Result<()> {
        fs::write(path, self.log.file())
    }
}
