//! What a drive remembers beside its data: whose data it is, how large, and how worn the drive is.
//!
//! A short text beside the data file: a first line with the version, a `key value` line for each figure, and a last
//! line with the CRC-32C of all before it. It is replaced as a whole, so a crash leaves the old one or the new one.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// First line. The number changes when an older program could misread what follows.
const HEAD: &str = "drivelab-store 1";

/// What a drive remembers.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct State {
    /// Catalogue name of the drive.
    pub drive: String,
    /// Its serial number.
    pub serial: String,
    /// Bytes of the namespace.
    pub bytes: u64,
    /// Bytes of data in a logical block.
    pub block: u32,
    /// Bytes of metadata beside each block.
    pub metadata: u16,
    /// Whether the server ended in order.
    pub clean: bool,
    /// Times the drive was switched on.
    pub power_cycles: u64,
    /// Times it lost power without notice.
    pub unsafe_shutdowns: u64,
    /// Seconds it has been on, by its own time.
    pub seconds_on: u64,
    /// Read commands completed.
    pub reads: u64,
    /// Write commands completed.
    pub writes: u64,
    /// Bytes read by hosts.
    pub bytes_read: u64,
    /// Bytes written by hosts.
    pub bytes_written: u64,
    /// Bytes written to the medium.
    pub medium_bytes_written: u64,
    /// Commands that ended with a media error.
    pub media_errors: u64,
    /// Percentage of rated endurance used.
    pub percentage_used: f64,
}

impl State {
    /// The text of the file.
    pub fn emit(&self) -> String {
        let mut text = format!("{HEAD}\n");
        let lines: [(&str, String); 16] = [
            ("drive", self.drive.clone()),
            ("serial", self.serial.clone()),
            ("bytes", self.bytes.to_string()),
            ("block", self.block.to_string()),
            ("metadata", self.metadata.to_string()),
            ("clean", self.clean.to_string()),
            ("power_cycles", self.power_cycles.to_string()),
            ("unsafe_shutdowns", self.unsafe_shutdowns.to_string()),
            ("seconds_on", self.seconds_on.to_string()),
            ("reads", self.reads.to_string()),
            ("writes", self.writes.to_string()),
            ("bytes_read", self.bytes_read.to_string()),
            ("bytes_written", self.bytes_written.to_string()),
            (
                "medium_bytes_written",
                self.medium_bytes_written.to_string(),
            ),
            ("media_errors", self.media_errors.to_string()),
            ("percentage_used", self.percentage_used.to_string()),
        ];
        for (key, value) in lines {
            text.push_str(&format!("{key} {value}\n"));
        }
        let sum = crc32c::crc32c(text.as_bytes());
        text.push_str(&format!("crc32c {sum:08x}\n"));
        text
    }

    /// The state in this text.
    ///
    /// # Errors
    /// What is wrong with it, in a user's words.
    pub fn parse(text: &str) -> Result<State, String> {
        let head = text.lines().next().unwrap_or_default();
        if head != HEAD {
            return Err(if head.starts_with("drivelab-store ") {
                format!("it is of another version (`{head}`, this program knows `{HEAD}`)")
            } else {
                String::from("it is not the state of a drivelab store")
            });
        }
        let tail = text.rfind("crc32c ").ok_or("its end is missing")?;
        let sum = crc32c::crc32c(&text.as_bytes()[..tail]);
        if text[tail..] != format!("crc32c {sum:08x}\n") {
            return Err(String::from("it is damaged: its checksum is wrong"));
        }
        let mut state = State::default();
        let mut seen = 0;
        for line in text[..tail].lines().skip(1) {
            let (key, value) = line.split_once(' ').ok_or(format!("line `{line}`"))?;
            state.set(key, value)?;
            seen += 1;
        }
        if seen == 16 {
            Ok(state)
        } else {
            Err(format!("it has {seen} lines, not 16"))
        }
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        fn number<T: std::str::FromStr>(key: &str, value: &str) -> Result<T, String> {
            value
                .parse()
                .map_err(|_| format!("{key}: `{value}` is not a value of it"))
        }
        match key {
            "drive" => self.drive = value.to_owned(),
            "serial" => self.serial = value.to_owned(),
            "bytes" => self.bytes = number(key, value)?,
            "block" => self.block = number(key, value)?,
            "metadata" => self.metadata = number(key, value)?,
            "clean" => self.clean = number(key, value)?,
            "power_cycles" => self.power_cycles = number(key, value)?,
            "unsafe_shutdowns" => self.unsafe_shutdowns = number(key, value)?,
            "seconds_on" => self.seconds_on = number(key, value)?,
            "reads" => self.reads = number(key, value)?,
            "writes" => self.writes = number(key, value)?,
            "bytes_read" => self.bytes_read = number(key, value)?,
            "bytes_written" => self.bytes_written = number(key, value)?,
            "medium_bytes_written" => self.medium_bytes_written = number(key, value)?,
            "media_errors" => self.media_errors = number(key, value)?,
            "percentage_used" => self.percentage_used = number(key, value)?,
            _ => return Err(format!("key `{key}` is not known")),
        }
        Ok(())
    }
}

/// Where the state of the data in `data` is kept.
pub fn state_path(data: &Path) -> PathBuf {
    let mut path = data.as_os_str().to_owned();
    path.push(".state");
    path.into()
}

/// Replaces the state file at `path`.
///
/// # Errors
/// Those of the file system; the old file is then still there.
pub fn save(path: &Path, state: &State) -> io::Result<()> {
    let mut new = path.as_os_str().to_owned();
    new.push(".new");
    let new = PathBuf::from(new);
    let mut file = File::create(&new)?;
    file.write_all(state.emit().as_bytes())?;
    file.sync_data()?;
    drop(file);
    fs::rename(&new, path)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn state() -> State {
        State {
            drive: "p4800x-375".into(),
            serial: "DL0001".into(),
            bytes: 8 << 30,
            block: 512,
            percentage_used: 104.25,
            ..State::default()
        }
    }

    #[test]
    fn what_is_saved_is_read_again() {
        assert_eq!(State::parse(&state().emit()), Ok(state()));
    }

    #[test]
    fn other_versions_and_other_files_are_told_apart() {
        let newer = state().emit().replace("store 1", "store 2");
        assert!(State::parse(&newer).unwrap_err().contains("version"));
        assert!(State::parse("#!/bin/sh\n").unwrap_err().contains("is not"));
    }

    proptest! {
        #[test]
        fn a_changed_byte_is_noticed(at in 0usize..400, to in 0u8..128) {
            let mut bytes = state().emit().into_bytes();
            let at = at % bytes.len();
            prop_assume!(bytes[at] != to);
            bytes[at] = to;
            let text = String::from_utf8(bytes).expect("ASCII");
            prop_assert!(State::parse(&text).is_err());
        }
    }
}
