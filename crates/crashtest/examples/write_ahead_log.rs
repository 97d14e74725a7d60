//! A key-value store with a write-ahead log, and its crash test on three drives.
//!
//! `cargo run -p drivelab-crashtest --example write_ahead_log` prints the verdicts. With `--careless`, the store
//! acknowledges records before it flushes them.

use std::collections::BTreeMap;
use std::io;

use drivelab_crashtest::{Device, Disk, Recording, TestError, Verdict, Violation};

/// A store of numbers: a log of records, each with a checksum. It fits any device with these five functions.
struct Store {
    disk: Device,
    end: u64,
    values: BTreeMap<u64, u64>,
    careless: bool,
}

/// Bytes of a record: number of the record, key, value, checksum.
const RECORD: usize = 32;

fn checksum(words: &[u8]) -> u64 {
    let fold = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    words.iter().fold(0xcbf2_9ce4_8422_2325, fold)
}

fn word(record: &[u8; RECORD], index: usize) -> u64 {
    let mut eight = [0; 8];
    eight.copy_from_slice(&record[8 * index..8 * index + 8]);
    u64::from_le_bytes(eight)
}

impl Store {
    /// Opens the store: reads records up to the first that is not complete.
    fn open(disk: &Device, careless: bool) -> io::Result<Store> {
        let mut store = Store {
            disk: disk.clone(),
            end: 0,
            values: BTreeMap::new(),
            careless,
        };
        while store.end + RECORD as u64 <= disk.bytes() {
            let mut record = [0; RECORD];
            disk.read_at(store.end, &mut record)?;
            let number = store.end / RECORD as u64 + 1;
            if word(&record, 0) != number || word(&record, 3) != checksum(&record[..24]) {
                break;
            }
            store.values.insert(word(&record, 1), word(&record, 2));
            store.end += RECORD as u64;
        }
        Ok(store)
    }

    fn put(&mut self, key: u64, value: u64) -> io::Result<()> {
        let mut record = [0; RECORD];
        let number = self.end / RECORD as u64 + 1;
        for (at, word) in [number, key, value].into_iter().enumerate() {
            record[8 * at..8 * at + 8].copy_from_slice(&word.to_le_bytes());
        }
        let sum = checksum(&record[..24]);
        record[24..].copy_from_slice(&sum.to_le_bytes());
        self.disk.write_at(self.end, &record)?;
        if !self.careless {
            self.disk.flush()?;
        }
        self.end += RECORD as u64;
        self.values.insert(key, value);
        Ok(())
    }
}

/// Records a program that stores 200 numbers.
fn recorded(drive: &str, careless: bool) -> Result<Recording, TestError> {
    Disk::new(drive).size(1 << 20).record(|disk, acks| {
        let mut store = Store::open(disk, careless)?;
        for key in 1..=200 {
            store.put(key, key * key)?;
            acks.ack(key);
        }
        disk.flush()?;
        Ok(())
    })
}

/// Opens the store on each image, and looks up all acknowledged numbers.
fn verdict(recording: &Recording) -> Result<Verdict, TestError> {
    let checks = recording.check(|disk, acks| {
        let store = Store::open(disk, false)?;
        for key in acks.numbers() {
            match store.values.get(&key) {
                Some(value) if *value == key * key => {}
                Some(value) => return Err(Violation::corrupt(format!("{key} is {value}"))),
                None => return Err(Violation::lost(key)),
            }
        }
        Ok(())
    });
    checks.run()
}

fn main() -> Result<(), TestError> {
    let careless = std::env::args().any(|it| it == "--careless");
    for drive in ["950pro-256", "pm9a3-960", "wd6001fzwx"] {
        println!("{}\n", verdict(&recorded(drive, careless)?)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The test of a user: it panics with the smallest failure.
    #[test]
    fn survives_power_cuts() {
        for drive in ["950pro-256", "pm9a3-960", "wd6001fzwx"] {
            let verdict = verdict(&recorded(drive, false).expect("a recording"));
            let verdict = verdict.expect("a verdict");
            assert!(verdict.held(), "{verdict}");
            assert!(verdict.report().counts.tried > 200);
        }
    }

    #[test]
    fn finds_the_missing_flush() {
        let recording = recorded("950pro-256", true).expect("a recording");
        let text = verdict(&recording).expect("a verdict").to_string();
        assert!(text.contains("FAILED     lost "), "{text}");
        assert!(text.contains("needs      volatile cache"), "{text}");
        // The cache of this drive is protected.
        let held = verdict(&recording.with_drive("pm9a3-960").expect("a drive"));
        assert!(held.expect("a verdict").held());
    }
}
