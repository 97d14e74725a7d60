//! The log of a crash test, and the assumptions on the drive.

use std::fs;
use std::path::Path;
use std::time::Duration;

use ::crashtest::drives::{WORST, WORST_LOSSES, losses};
use crash::log::LogError;
use crash::needs::DriveProperties;
use crash::{Assumptions, Head, Log, log_writes};

use super::guest::{FileSystem, Mount};
use super::{Args, Flush, Fs, Torn, bad};
use crate::failure::Failure;
use crate::output::remark;

/// Beginning of the mark that says how a guest mounted the recorded drive, as JSON.
pub(super) const GUEST: &str = "guest ";

/// A log with its assumptions.
pub(super) struct Source {
    pub(super) log: Log,
    pub(super) how: Assumptions,
    /// Name of the drive whose losses are assumed.
    pub(super) drive: String,
    /// How guests mount the images; `None` if checkers get the image itself.
    pub(super) mount: Option<Mount>,
    /// Arguments that name the log and the assumptions, for repeating them.
    pub(super) arguments: String,
    /// Arguments for the assumptions alone.
    pub(super) assumed: String,
}

impl Source {
    /// Reads the log: the one just recorded, or the one that the arguments name.
    pub(super) fn read(args: &Args, recorded: Option<&Path>) -> Result<Source, Failure> {
        let own_log = recorded.or(args.from.as_deref());
        let (log, from) = match (own_log, &args.from_log_writes) {
            (Some(path), _) => (own(path)?, format!("--from {}", quoted_path(path))),
            (None, Some(path)) => {
                let base = args.base.as_deref();
                let of_base =
                    base.map_or(String::new(), |it| format!(" --base {}", quoted_path(it)));
                let named = format!("--from-log-writes {}{of_base}", quoted_path(path));
                (foreign(path, base)?, named)
            }
            (None, None) => return Err(bad("no log", "add --from LOG, or DRIVE -- PROGRAM")),
        };
        let (drive, facts) = facts(args, &log)?;
        if facts.volatile && !log.head.volatile {
            remark(
                "note",
                &format!(
                    "recorded on {}, which has no volatile cache: clients may have sent no flushes to it",
                    log.head.drive
                ),
            );
        }
        let how = Assumptions {
            part: match args.torn {
                Torn::Sector => 512,
                Torn::Part | Torn::No => facts.part,
            },
            torn: args.torn != Torn::No,
            volatile: facts.volatile,
            flush_lies: args.flush == Flush::Lies,
        };
        let mut assumed = String::new();
        if let Some(drive) = &args.drive {
            assumed.push_str(&format!(" --drive {drive}"));
        }
        match args.torn {
            Torn::Part => {}
            Torn::Sector => assumed.push_str(" --torn 512"),
            Torn::No => assumed.push_str(" --torn no"),
        }
        if how.flush_lies {
            assumed.push_str(" --flush lies");
        }
        let mount = mount(args, &log)?;
        if let Some(fs) = args.fs.filter(|_| recorded.is_none()) {
            assumed.push_str(match fs {
                Fs::Ext4 => " --fs ext4",
                Fs::Xfs => " --fs xfs",
                Fs::None => " --fs none",
            });
        }
        Ok(Source {
            log,
            how,
            mount,
            drive,
            arguments: format!("{from}{assumed}"),
            assumed,
        })
    }
}

/// Returns how guests mount the images: as the arguments say, or as the recording did.
fn mount(args: &Args, log: &Log) -> Result<Option<Mount>, Failure> {
    let mark = log.marks.iter().find_map(|it| it.strip_prefix(GUEST));
    let recorded: Option<Mount> = match mark {
        Some(text) => Some(serde_json::from_str(text).map_err(|error| {
            let what = format!("the mark of the recording's guest: {error}");
            bad(what, "name the file system with --fs")
        })?),
        None => None,
    };
    let plain = |file_system| Mount {
        file_system,
        options: String::new(),
        user: None,
    };
    let named = |file_system| match &recorded {
        Some(mount) if mount.file_system == file_system => mount.clone(),
        _ => plain(file_system),
    };
    Ok(match args.fs {
        Some(Fs::None) => None,
        Some(Fs::Ext4) => Some(named(FileSystem::Ext4)),
        Some(Fs::Xfs) => Some(named(FileSystem::Xfs)),
        None => recorded,
    })
}

/// Returns a path quoted for a shell.
pub(super) fn quoted_path(path: &Path) -> String {
    quoted(&path.display().to_string())
}

/// Returns a time as an option takes it.
pub(super) fn seconds(time: Duration) -> String {
    format!("{}s", time.as_secs_f64())
}

/// Returns a word quoted for a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+%@".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn bytes_of(option: &str, path: &Path) -> Result<Vec<u8>, Failure> {
    let bytes = fs::read(path);
    bytes.map_err(|error| {
        bad(
            format!("{option} {}: {error}", path.display()),
            "name a file that can be read",
        )
    })
}

fn malformed(option: &str, path: &Path, wrong: &LogError) -> Failure {
    bad(
        format!("{option} {}: {wrong}", path.display()),
        "name a log that `drivelab serve --record` or dm-log-writes has written",
    )
}

pub(super) fn own(path: &Path) -> Result<Log, Failure> {
    let log = Log::read(bytes_of("--from", path)?);
    let log = log.map_err(|wrong| malformed("--from", path, &wrong))?;
    match &log.ending {
        None => remark(
            "note",
            &format!(
                "{}: the recording did not end in order: the log is used up to its last whole frame",
                path.display()
            ),
        ),
        Some(why) if why != "the server ended" => {
            remark(
                "note",
                &format!("{}: the recording ended early: {why}", path.display()),
            );
        }
        Some(_) => {}
    }
    Ok(log)
}

fn foreign(path: &Path, base: Option<&Path>) -> Result<Log, Failure> {
    let bytes = bytes_of("--from-log-writes", path)?;
    let before = match base {
        Some(base) => bytes_of("--base", base)?,
        None => Vec::new(),
    };
    if before.len() % 512 != 0 {
        return Err(bad(
            format!("--base: {} bytes", before.len()),
            "an image is a multiple of 512 bytes",
        ));
    }
    let mut head = Head {
        drive: WORST.into(),
        bytes: 1 << 46,
        block: 512,
        part: 4096,
        volatile: true,
    };
    // Pages of zeroes need no frame.
    let pages = (0..).step_by(4096).zip(before.chunks(4096));
    let pages: Vec<(u64, &[u8])> = pages.filter(|it| it.1.iter().any(|it| *it != 0)).collect();
    let read = |head: &Head| log_writes::read(&bytes, head, &pages);
    let wrong = |wrong| malformed("--from-log-writes", path, &wrong);
    let log = read(&head).map_err(wrong)?;
    // The format does not contain the size of the device.
    let ends = log.commands.iter().map(|it| it.offset + it.bytes);
    let reached = ends
        .max()
        .unwrap_or_default()
        .next_multiple_of(4096)
        .max(4096);
    head.bytes = match base {
        Some(_) => before.len() as u64,
        None => reached,
    };
    read(&head).map_err(wrong)
}

/// Returns the drive whose losses are assumed.
fn facts(args: &Args, log: &Log) -> Result<(String, DriveProperties), Failure> {
    match args.drive.as_deref() {
        Some(WORST) => Ok((WORST.into(), WORST_LOSSES)),
        Some(name) => {
            let sheet = crate::drive::load(name, &catalogue::Settings::default())?;
            let facts = losses(&sheet);
            match sheet.pool.is_some() {
                false => Ok((sheet.id, facts)),
                true => Err(bad(
                    format!("--drive {name}: a pool"),
                    "name a drive or worst-ssd; `drivelab prove` tries pools",
                )),
            }
        }
        None => {
            let recorded = DriveProperties {
                volatile: log.head.volatile,
                part: log.head.part,
            };
            Ok((log.head.drive.clone(), recorded))
        }
    }
}
