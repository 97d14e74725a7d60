//! Saved state of a drive, besides its data: the drive that the data belongs to, its size, and its wear.
//!
//! It is a short text next to the data file: a first line with the version, a `key value` line for each figure, and a
//! last line with the CRC-32C of all before it. The file is replaced atomically, so a crash leaves the old version or
//! the new one.

use std::fmt::Display;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::OWN_FILE;
use model::Span;
use model::management::Lifetime;
use model::media::Precondition;

/// First line. The number changes when an older program could misread the rest.
const HEAD: &str = "drivelab-store 2";
/// First line of the previous version, which has no FTL state.
const HEAD_1: &str = "drivelab-store 1";

/// Saved state of a drive.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct SavedState {
    /// Catalogue name of the drive.
    pub drive: String,
    /// Serial number of the drive.
    pub serial: String,
    /// Bytes of the namespace.
    pub bytes: u64,
    /// Whether the server was shut down in order.
    pub clean: bool,
    /// Protection information of the format in use, in the representation of the front end that set it.
    pub protection: u8,
    /// History of the drive, including its wear.
    pub lifetime: Lifetime,
    /// State of the FTL's map at its creation: as configured for the server, or fresh after a format.
    pub ftl: Precondition,
    /// Total bytes that hosts had written at that time.
    pub ftl_since_bytes: u64,
    /// Byte ranges (start, end) that cannot be read until they are written.
    pub unreadable: Vec<(u64, u64)>,
    /// Division into namespaces by hosts; `None` if the whole drive is one namespace.
    pub shares: Option<Vec<Share>>,
    /// For a pool's member: number of the last opening of the pool in which it took part.
    pub opening: Option<u64>,
}

/// A part of a drive that is a namespace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    /// Namespace identifier.
    pub nsid: u32,
    /// First byte of the part.
    pub first: u64,
    /// Length in bytes.
    pub bytes: u64,
    /// Value that makes its identifiers unique.
    pub salt: u64,
    /// Whether it is attached to controllers that connect.
    pub attached: bool,
}

/// Number of lines with one figure each, without those of namespaces and of unreadable ranges.
const LINES: usize = 22;
/// Number of the last of these lines, which version 1 did not have.
const LINES_OF_FTL: usize = 2;

/// State of the map with its name.
const FTL: [(Precondition, &str); 3] = [
    (Precondition::Fresh, "fresh"),
    (Precondition::Filled, "filled"),
    (Precondition::Steady, "steady"),
];

impl SavedState {
    /// Returns the text of the file.
    pub fn emit(&self) -> String {
        let life = &self.lifetime;
        let ftl = FTL.iter().find(|(state, _)| *state == self.ftl);
        let ftl = ftl.map_or("steady", |(_, name)| name);
        let lines: [(&str, &dyn Display); LINES] = [
            ("drive", &self.drive),
            ("serial", &self.serial),
            ("bytes", &self.bytes),
            ("clean", &self.clean),
            ("lba_format", &life.lba_format),
            ("protection", &self.protection),
            ("power_cycles", &life.power_cycles),
            ("unsafe_shutdowns", &life.unsafe_shutdowns),
            ("power_on_ns", &life.power_on.ns()),
            ("busy_ns", &life.busy.ns()),
            ("host_read_commands", &life.host_read_commands),
            ("host_write_commands", &life.host_write_commands),
            ("host_bytes_read", &life.host_bytes_read),
            ("host_bytes_written", &life.host_bytes_written),
            ("media_errors", &life.media_errors),
            ("error_log_entries", &life.error_log_entries),
            ("percentage_used", &life.percentage_used),
            ("warm_ns", &life.warm.ns()),
            ("hot_ns", &life.hot.ns()),
            ("sanitized", &life.sanitized),
            ("ftl", &ftl),
            ("ftl_since_bytes", &self.ftl_since_bytes),
        ];
        let mut text = format!("{HEAD}\n");
        for (key, value) in lines {
            text.push_str(&format!("{key} {value}\n"));
        }
        for (start, end) in &self.unreadable {
            text.push_str(&format!("unreadable {start} {end}\n"));
        }
        if let Some(opening) = self.opening {
            text.push_str(&format!("opening {opening}\n"));
        }
        if let Some(shares) = &self.shares {
            text.push_str("namespaces divided\n");
            for it in shares {
                text.push_str(&format!(
                    "namespace {} {} {} {} {}\n",
                    it.nsid, it.first, it.bytes, it.salt, it.attached
                ));
            }
        }
        let sum = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc32c {sum:08x}\n"));
        text
    }

    /// Checks whether another version of this program has written the text, which is then not damaged.
    pub fn is_of_other_program(text: &str) -> bool {
        SavedState::is_of_other_version(text) || SavedState::is_intact(text)
    }

    /// Checks whether the text has the first line of another version.
    fn is_of_other_version(text: &str) -> bool {
        let head = text.lines().next().unwrap_or_default();
        head.starts_with("drivelab-store ") && head != HEAD && head != HEAD_1
    }

    /// Checks whether the text has a valid checksum: lines that this program does not know are then not damage.
    fn is_intact(text: &str) -> bool {
        text.rfind("crc32c ").is_some_and(|tail| {
            let sum = crc32c::crc32c(&text.as_bytes()[..tail]);
            text[tail..] == format!("crc32c {sum:08x}\n")
        })
    }

    /// Parses the text of the file.
    ///
    /// # Errors
    /// The problem, as a message for the user.
    pub fn parse(text: &str) -> Result<SavedState, String> {
        let head = text.lines().next().unwrap_or_default();
        let lines = match head {
            HEAD_1 => LINES - LINES_OF_FTL,
            _ => LINES,
        };
        if head != HEAD && head != HEAD_1 {
            return Err(if SavedState::is_of_other_version(text) {
                format!("it is of another version (`{head}`, this program knows `{HEAD}`)")
            } else {
                String::from("it is not the state of a drivelab store")
            });
        }
        let tail = text.rfind("crc32c ").ok_or("its end is missing")?;
        if !SavedState::is_intact(text) {
            return Err(String::from("it is damaged: its checksum is wrong"));
        }
        let mut state = SavedState::default();
        let mut seen: Vec<&str> = Vec::with_capacity(lines);
        // Not `lines`, which treats `\r\n` as `\n`: the text read would differ from the text written.
        for line in text[..tail].split_terminator('\n').skip(1) {
            let (key, value) = line.split_once(' ').ok_or(format!("line `{line}`"))?;
            if line.contains(char::is_control) {
                return Err(format!("line `{}`", line.escape_debug()));
            }
            if key == "unreadable" {
                let (start, end) = value.split_once(' ').ok_or(format!("line `{line}`"))?;
                let range = (number(key, start)?, number(key, end)?);
                state.unreadable.push(range);
            } else if key == "opening" {
                state.opening = Some(number(key, value)?);
            } else if key == "namespaces" {
                state.shares.get_or_insert_default();
            } else if key == "namespace" {
                let share = share(value, state.bytes)?;
                state.shares.get_or_insert_default().push(share);
            } else if seen.contains(&key) {
                return Err(format!("`{key}` is in it twice"));
            } else {
                state.set(key, value)?;
                seen.push(key);
            }
        }
        if seen.len() == lines {
            Ok(state)
        } else {
            Err(format!("it has {} lines, not {lines}", seen.len()))
        }
    }

    /// Returns the present state of the FTL's map, in a drive of this capacity: filled after one capacity has been
    /// written, and in steady state after two more. Intermediate states are not saved.
    pub fn ftl_by_now(&self, capacity: u64) -> Precondition {
        let written = self
            .lifetime
            .host_bytes_written
            .saturating_sub(self.ftl_since_bytes);
        match self.ftl {
            _ if written / 3 >= capacity => Precondition::Steady,
            Precondition::Fresh if written >= capacity => Precondition::Filled,
            ftl => ftl,
        }
    }

    /// Begins to serve a drive with this saved state. Returns its initial state, from `said` or from the present
    /// state, for a drive of this capacity.
    pub(crate) fn begin(&mut self, said: Option<Precondition>, capacity: u64) -> Precondition {
        if !self.clean && self.lifetime.power_cycles > 0 {
            self.lifetime.unsafe_shutdowns += 1;
        }
        match said {
            Some(said) => {
                (self.ftl, self.ftl_since_bytes) = (said, self.lifetime.host_bytes_written);
                said
            }
            None => self.ftl_by_now(capacity),
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let life = &mut self.lifetime;
        let span = || number(key, value).map(Span::from_ns);
        match key {
            "drive" => self.drive = value.to_owned(),
            "serial" => self.serial = value.to_owned(),
            "bytes" => self.bytes = number(key, value)?,
            "clean" => self.clean = number(key, value)?,
            "protection" => self.protection = number(key, value)?,
            "lba_format" => life.lba_format = number(key, value)?,
            "power_cycles" => life.power_cycles = number(key, value)?,
            "unsafe_shutdowns" => life.unsafe_shutdowns = number(key, value)?,
            "power_on_ns" => life.power_on = span()?,
            "busy_ns" => life.busy = span()?,
            "host_read_commands" => life.host_read_commands = number(key, value)?,
            "host_write_commands" => life.host_write_commands = number(key, value)?,
            "host_bytes_read" => life.host_bytes_read = number(key, value)?,
            "host_bytes_written" => life.host_bytes_written = number(key, value)?,
            "media_errors" => life.media_errors = number(key, value)?,
            "error_log_entries" => life.error_log_entries = number(key, value)?,
            "percentage_used" => {
                let used: f64 = number(key, value)?;
                if !used.is_finite() {
                    return Err(format!("{key}: invalid value `{value}`"));
                }
                life.percentage_used = used;
            }
            "warm_ns" => life.warm = span()?,
            "hot_ns" => life.hot = span()?,
            "sanitized" => life.sanitized = number(key, value)?,
            "ftl" => {
                let found = FTL.iter().find(|(_, name)| *name == value);
                let (ftl, _) = found.ok_or(format!("ftl: `{value}` is not a value of it"))?;
                self.ftl = *ftl;
            }
            "ftl_since_bytes" => self.ftl_since_bytes = number(key, value)?,
            _ => return Err(format!("key `{key}` is not known")),
        }
        Ok(())
    }
}

/// Parses a namespace of a drive of this capacity.
fn share(text: &str, capacity: u64) -> Result<Share, String> {
    let key = "namespace";
    let words: Vec<&str> = text.split(' ').collect();
    let &[nsid, first, bytes, salt, attached] = &words[..] else {
        return Err(format!("{key}: `{text}` has not five values"));
    };
    let share = Share {
        nsid: number(key, nsid)?,
        first: number(key, first)?,
        bytes: number(key, bytes)?,
        salt: number(key, salt)?,
        attached: number(key, attached)?,
    };
    let end = share.first.checked_add(share.bytes);
    if share.first % 4096 != 0 || share.bytes == 0 || end.is_none_or(|end| end > capacity) {
        return Err(format!("{key}: `{text}` is not within the drive"));
    }
    Ok(share)
}

fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
    value
        .parse()
        .map_err(|_| format!("{key}: invalid value `{value}`"))
}

/// Returns the path of the state for the data in `data`.
pub fn state_path(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".state");
    path.into()
}

/// Replaces the state file at `path`.
///
/// # Errors
/// Errors of the file system; the old file is then kept.
pub fn save(path: &Path, state: &SavedState) -> io::Result<()> {
    replace(path, &state.emit())
}

/// Replaces the file at `path` by this text.
///
/// # Errors
/// Errors of the file system; the old file is then kept.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut own = OpenOptions::new();
    own.write(true).create(true).truncate(true).mode(OWN_FILE);
    let written = own.open(&new).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_data()
    });
    let replaced = written.and_then(|()| fs::rename(&new, path));
    if replaced.is_err() {
        // An incomplete file is useless and uses space.
        let _ = fs::remove_file(&new);
    }
    replaced
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state() -> SavedState {
        SavedState {
            drive: "p4800x-375".into(),
            serial: "DL0001".into(),
            bytes: 8 << 30,
            lifetime: Lifetime {
                percentage_used: 104.25,
                busy: Span::from_us(7),
                ..Lifetime::default()
            },
            unreadable: vec![(4096, 8192)],
            ..SavedState::default()
        }
    }

    #[test]
    fn what_is_saved_is_read_again() {
        assert_eq!(SavedState::parse(&state().emit()), Ok(state()));
    }

    #[test]
    fn namespaces_are_remembered_and_stay_within_the_drive() {
        let mut divided = state();
        divided.shares = Some(Vec::new());
        assert_eq!(SavedState::parse(&divided.emit()), Ok(divided.clone()));
        let share = Share {
            nsid: 3,
            first: 4096,
            bytes: 512,
            salt: 9,
            attached: true,
        };
        divided.shares = Some(vec![share]);
        assert_eq!(SavedState::parse(&divided.emit()), Ok(divided.clone()));
        for wrong in [
            Share {
                first: 512,
                ..share
            },
            Share {
                bytes: 8 << 30,
                ..share
            },
            Share { bytes: 0, ..share },
        ] {
            divided.shares = Some(vec![wrong]);
            let why = SavedState::parse(&divided.emit()).unwrap_err();
            assert!(why.contains("not within the drive"), "{why}");
        }
    }

    #[test]
    fn other_versions_and_other_files_are_told_apart() {
        let newer = state().emit().replace("store 2", "store 3");
        assert!(SavedState::parse(&newer).unwrap_err().contains("version"));
        assert!(
            SavedState::parse("#!/bin/sh\n")
                .unwrap_err()
                .contains("is not")
        );
        // A line of another program is no damage; a changed byte is.
        let text = state().emit();
        let sealed = |text: &str| format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()));
        let lines = &text[..text.rfind("crc32c ").expect("its end")];
        let other = sealed(&format!("{lines}future 7\n"));
        assert!(SavedState::parse(&other).unwrap_err().contains("future"));
        assert!(SavedState::is_intact(&other));
        assert!(!SavedState::is_intact(
            &other.replace("future 7", "future 8")
        ));
        assert!(!SavedState::is_intact(&other[..other.len() - 4]));
    }

    #[test]
    fn the_version_before_is_read() {
        let now = state().emit();
        let without = now
            .lines()
            .filter(|line| !line.starts_with("ftl") && !line.starts_with("crc32c"))
            .map(|line| line.replace("store 2", "store 1") + "\n");
        let text: String = without.collect();
        let sum = crc32c::crc32c(text.as_bytes());
        let old = format!("{text}crc32c {sum:08x}\n");
        assert_eq!(SavedState::parse(&old), Ok(state()));
        // It cannot contain figures that this version did not have.
        let sum = crc32c::crc32c(text.replace("store 1", "store 2").as_bytes());
        let short = text.replace("store 1", "store 2") + &format!("crc32c {sum:08x}\n");
        assert!(SavedState::parse(&short).unwrap_err().contains("20 lines"));
    }

    fn signed(text: &str) -> String {
        format!("{text}crc32c {:08x}\n", crc32c::crc32c(text.as_bytes()))
    }

    #[test]
    fn what_no_server_writes_is_refused() {
        let good = state().emit();
        let (good, _) = good.split_at(good.rfind("crc32c ").unwrap());
        assert!(SavedState::parse(&signed(good)).is_ok());
        for (old, new, told) in [
            ("DL0001\n", "DL0001\r\n", r"serial DL0001\r"),
            ("DL0001\n", "DL0001\r\r\n", r"serial DL0001\r\r"),
            ("protection 0\n", "clean true\n", "`clean` is in it twice"),
            ("104.25", "NaN", "percentage_used"),
            ("104.25", "-inf", "percentage_used"),
        ] {
            let why = SavedState::parse(&signed(&good.replacen(old, new, 1))).unwrap_err();
            assert!(why.contains(told), "{new:?}: {why}");
        }
    }

    #[test]
    fn the_map_ages_as_it_is_written() {
        let after = |ftl, written: u64| {
            let mut state = state();
            (state.ftl, state.ftl_since_bytes) = (ftl, 500);
            state.lifetime.host_bytes_written = 500 + written;
            state.ftl_by_now(1000)
        };
        assert_eq!(after(Precondition::Fresh, 999), Precondition::Fresh);
        assert_eq!(after(Precondition::Fresh, 1000), Precondition::Filled);
        assert_eq!(after(Precondition::Filled, 2999), Precondition::Filled);
        assert_eq!(after(Precondition::Fresh, 3000), Precondition::Steady);
        assert_eq!(after(Precondition::Steady, 0), Precondition::Steady);
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at in 0usize..600, to in 0u8..128) {
            let mut bytes = state().emit().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            let text = String::from_utf8(bytes).expect("ASCII");
            prop_assert!(SavedState::parse(&text).is_err());
        }
    }
}
