//! A block device in memory: commands change its content and are recorded.
//!
//! Logical blocks have 512 B. A write of other ranges is extended to whole blocks with the present content, as a page
//! cache does. Commands complete at once, except [`Device::begin_write`], which requires whole blocks, as zeroing does.
//! Not supported: errors of the medium.

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crash::log::{Note, Submission, Writer};
use crash::{EventKind, Fork};

/// Bytes of a logical block.
const BLOCK: u64 = 512;

/// Maximum bytes of one command.
const LONGEST: u64 = 1 << 30;

/// A block device. Clones are the same device.
#[derive(Clone, Debug)]
pub struct Device {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    content: Fork,
    bytes: u64,
    log: Writer,
    /// Whether the recording has ended: the device then accepts no commands.
    ended: bool,
}

/// A write that is in flight until [`PendingWrite::complete`]. If it is dropped, it stays in flight.
#[derive(Debug)]
#[must_use = "the write stays in flight until it is completed"]
pub struct PendingWrite {
    device: Device,
    number: u32,
    offset: u64,
    data: Vec<u8>,
}

impl PendingWrite {
    /// Completes the write: reads return its data from now on.
    ///
    /// # Errors
    /// The recording has ended.
    pub fn complete(self) -> io::Result<()> {
        let mut state = self.device.state()?;
        state.content.write(self.offset, &self.data);
        state.log.complete(self.number, true);
        Ok(())
    }
}

impl Device {
    /// Returns a device with this content; `log` records its commands.
    pub(crate) fn new(content: Fork, bytes: u64, log: Writer) -> Device {
        let state = State {
            content,
            bytes,
            log,
            ended: false,
        };
        Device {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Ends the recording and returns the bytes of the log. Other clones then fail.
    pub(crate) fn end(&self) -> Vec<u8> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.ended {
            state.log.note(Note::End, "the server ended");
        }
        state.ended = true;
        std::mem::take(&mut state.log.bytes)
    }

    pub(crate) fn note(&self, note: Note, text: &str) {
        if let Ok(mut state) = self.state() {
            state.log.note(note, text);
        }
    }

    fn state(&self) -> io::Result<MutexGuard<'_, State>> {
        // A program that panics elsewhere has not damaged the content.
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.ended {
            false => Ok(state),
            true => Err(io::Error::other("the crash test of this disk has ended")),
        }
    }

    /// Returns the size in bytes.
    pub fn bytes(&self) -> u64 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.bytes
    }

    /// Reads bytes.
    ///
    /// # Errors
    /// The range ends after the device, or the recording has ended.
    pub fn read_at(&self, offset: u64, data: &mut [u8]) -> io::Result<()> {
        let state = self.state()?;
        state.check(offset, data.len() as u64, io::ErrorKind::UnexpectedEof)?;
        state.content.read(offset, data);
        Ok(())
    }

    /// Writes data. A drive with a volatile cache can lose it until [`Device::flush`].
    ///
    /// # Errors
    /// The range ends after the device or has more than 1 GiB, or the recording has ended.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.state()?.write(offset, data, false)
    }

    /// Writes data with force unit access: it is durable when the call returns.
    ///
    /// # Errors
    /// As [`Device::write_at`].
    pub fn write_fua_at(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.state()?.write(offset, data, true)
    }

    /// Sends a write of whole blocks of 512 B that stays in flight. Until it completes, a power cut can keep or lose it on
    /// every drive. A write of part of a block is refused: on completion, the rest of the block would overwrite writes that
    /// completed in the meantime.
    ///
    /// # Errors
    /// As [`Device::write_at`], or there is no data, or the range is not in whole blocks.
    pub fn begin_write(&self, offset: u64, data: &[u8]) -> io::Result<PendingWrite> {
        let mut state = self.state()?;
        if data.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "a write of 0 B",
            ));
        }
        let bytes = data.len() as u64;
        state.check(offset, bytes, io::ErrorKind::StorageFull)?;
        in_whole_blocks(offset, bytes)?;
        let data = data.to_vec();
        let number = state.submit(EventKind::Write, false, offset, &data, bytes)?;
        drop(state);
        Ok(PendingWrite {
            device: self.clone(),
            number,
            offset,
            data,
        })
    }

    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// The recording has ended.
    pub fn flush(&self) -> io::Result<()> {
        let mut state = self.state()?;
        let number = state.submit(EventKind::Flush, false, 0, &[], 0)?;
        state.log.complete(number, true);
        Ok(())
    }

    /// Deallocates a range of whole blocks of 512 B: it then reads as zeroes.
    ///
    /// # Errors
    /// The range is not in whole blocks, ends after the device or has more than 1 GiB, or the recording has ended.
    pub fn trim(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.state()?.zero(EventKind::Trim, offset, bytes)
    }

    /// Writes zeroes to a range of whole blocks of 512 B.
    ///
    /// # Errors
    /// As [`Device::trim`].
    pub fn zero(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.state()?.zero(EventKind::Zeroes, offset, bytes)
    }

    /// Returns the device as a file with a position, as an opened block device is: its length does not change.
    pub fn file(&self) -> DiskFile {
        DiskFile {
            device: self.clone(),
            position: 0,
        }
    }
}

/// Checks that a range is in whole blocks.
fn in_whole_blocks(offset: u64, bytes: u64) -> io::Result<()> {
    if offset.is_multiple_of(BLOCK) && bytes.is_multiple_of(BLOCK) {
        return Ok(());
    }
    let what = format!("{bytes} B at {offset}: must be in whole blocks of {BLOCK} B");
    Err(io::Error::new(io::ErrorKind::InvalidInput, what))
}

impl State {
    fn check(&self, offset: u64, bytes: u64, kind: io::ErrorKind) -> io::Result<()> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(io::Error::new(
                kind,
                format!("{bytes} B at {offset}: the disk has {} B", self.bytes),
            )),
        }
    }

    /// Extends a write to whole blocks.
    fn whole_blocks(&self, offset: u64, data: &[u8]) -> io::Result<(u64, Vec<u8>)> {
        let length = data.len() as u64;
        self.check(offset, length, io::ErrorKind::StorageFull)?;
        let start = offset / BLOCK * BLOCK;
        let end = (offset + length).next_multiple_of(BLOCK);
        let mut whole = vec![0; (end - start) as usize];
        if end - start != length {
            self.content.read(start, &mut whole);
        }
        let from = (offset - start) as usize;
        whole[from..from + data.len()].copy_from_slice(data);
        Ok((start, whole))
    }

    fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> io::Result<()> {
        let (offset, data) = self.whole_blocks(offset, data)?;
        if data.is_empty() {
            return Ok(());
        }
        let number = self.submit(EventKind::Write, fua, offset, &data, data.len() as u64)?;
        self.content.write(offset, &data);
        self.log.complete(number, true);
        Ok(())
    }

    fn zero(&mut self, kind: EventKind, offset: u64, bytes: u64) -> io::Result<()> {
        self.check(offset, bytes, io::ErrorKind::InvalidInput)?;
        in_whole_blocks(offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let number = self.submit(kind, false, offset, &[], bytes)?;
        self.content.zero(offset, bytes);
        self.log.complete(number, true);
        Ok(())
    }

    fn submit(
        &mut self,
        kind: EventKind,
        fua: bool,
        offset: u64,
        data: &[u8],
        bytes: u64,
    ) -> io::Result<u32> {
        if bytes > LONGEST {
            let what = format!("{bytes} B in one command: at most {LONGEST} B");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        let submission = Submission {
            kind,
            fua,
            offset,
            bytes: bytes as u32,
        };
        let number = self.log.submit(submission, &mut |into| {
            into.copy_from_slice(data);
            true
        });
        number.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// A [`Device`] as a file with a position. As with `std::fs::File`, `flush` does nothing: [`DiskFile::sync_all`] makes
/// data durable.
#[derive(Clone, Debug)]
pub struct DiskFile {
    device: Device,
    position: u64,
}

impl DiskFile {
    /// Makes all completed writes durable.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn sync_all(&self) -> io::Result<()> {
        self.device.flush()
    }

    /// As [`DiskFile::sync_all`]: a block device has no metadata.
    ///
    /// # Errors
    /// As [`Device::flush`].
    pub fn sync_data(&self) -> io::Result<()> {
        self.device.flush()
    }

    /// Returns the device.
    pub fn device(&self) -> &Device {
        &self.device
    }
}

impl Read for DiskFile {
    fn read(&mut self, data: &mut [u8]) -> io::Result<usize> {
        let left = self.device.bytes().saturating_sub(self.position);
        let length = left.min(data.len() as u64) as usize;
        self.device.read_at(self.position, &mut data[..length])?;
        self.position += length as u64;
        Ok(length)
    }
}

impl Write for DiskFile {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        let left = self.device.bytes().saturating_sub(self.position);
        let length = left.min(data.len() as u64).min(LONGEST / 2) as usize;
        if length == 0 && !data.is_empty() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.device.write_at(self.position, &data[..length])?;
        self.position += length as u64;
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for DiskFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::Current(by) => self.position.checked_add_signed(by),
            SeekFrom::End(by) => self.device.bytes().checked_add_signed(by),
        };
        self.position = position.ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, "a position before the start")
        })?;
        Ok(self.position)
    }
}
