//! Recordings of a served drive.
//!
//! [`Recording`]: commands and completions of the model, for comparison with a simulation. [`Recorder`]: commands that
//! change data, with their data, as a log of the crate `crash`, for crash-consistency tests. A submission is logged
//! before the drive receives it, a completion before its reply is sent, and a note before it is answered. So the log
//! is in causal order for every client that waits for replies. A completion of a single drive is logged when its data is
//! moved, so the order of completions is the order in which the store has changed. A write whose data the store did not
//! accept, or whose client was gone, is logged as failed. The log ends at events that it cannot represent: a power cut, a
//! FORMAT or sanitize, a deleted namespace, a write with metadata.

use std::fs::File;
use std::io::{self, Write};

use crash::log::{Note, Submission, Writer};
use crash::{EventKind, Head};
use model::{Command, Completion, Op, Time};
use tier::DriveConfig;

use super::{Machine, Outcome, Reply, ServedDevice};
use crate::setup::StoreChoice;
use crate::tokens::TokenPipe;

/// Number of waiting bytes above which the log is written to its file.
const WAITING: usize = 64 << 10;

/// Bytes of an existing store that are read at once.
const CHUNK: usize = 1 << 20;

/// Bytes of a page that is checked for being all zeroes.
const PAGE: usize = 4096;

/// Commands and completions of the model, for comparison with a simulation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Commands with their submission times.
    pub arrivals: Vec<(Time, Command)>,
    /// Completions in their order.
    pub completions: Vec<Completion>,
}

/// Data of a logged write that the store has accepted since the transfer of its reply began.
#[derive(Clone, Copy, Debug, Default)]
struct MovedData {
    bytes: u64,
    /// Whether the store has rejected data or metadata. A part of it may be in the store.
    failed: bool,
}

impl MovedData {
    /// Checks whether the store has accepted all `bytes` bytes of a write.
    fn is_all_of(self, bytes: u32) -> bool {
        !self.failed && self.bytes == u64::from(bytes)
    }

    /// Checks whether the store may have changed.
    fn is_any(self) -> bool {
        self.failed || self.bytes > 0
    }
}

/// Writes the log of a drive to a file.
#[derive(Debug)]
pub(super) struct Recorder {
    writer: Writer,
    file: File,
    /// Maximum bytes of the file.
    limit: u64,
    /// Bytes in the file.
    written: u64,
    /// Pipes with the tokens of the recorded program.
    pipes: Vec<TokenPipe>,
    ended: bool,
    /// Data of the reply that is being transferred.
    moved: MovedData,
}

impl Recorder {
    /// Writes the waiting bytes to the file.
    fn save(&mut self) -> io::Result<()> {
        let bytes = std::mem::take(&mut self.writer.bytes);
        self.file.write_all(&bytes)?;
        self.written += bytes.len() as u64;
        self.writer.bytes = bytes;
        self.writer.bytes.clear();
        Ok(())
    }
}

impl ServedDevice {
    /// Starts recording commands and completions of the model; the recording grows without bound.
    pub fn record(&mut self) {
        self.recording = Some(Box::default());
    }

    /// Ends recording and returns the recording.
    pub fn take_recording(&mut self) -> Option<Recording> {
        self.recording.take().map(|recording| *recording)
    }

    /// Starts logging commands that change data, with their data, to this empty file of at most `limit` bytes.
    ///
    /// # Errors
    /// Errors of the file, or of reading the existing data of the drive.
    pub fn record_to(&mut self, file: File, limit: u64) -> io::Result<()> {
        let part = match self.setup.sheet.config {
            DriveConfig::Hdd(_) => 512,
            _ => 4096,
        };
        let head = Head {
            drive: self.setup.sheet.id.clone(),
            bytes: self.bytes,
            block: self.block(),
            part,
            volatile: self.has_write_cache(),
        };
        let mut recorder = Recorder {
            writer: Writer::new(&head),
            file,
            limit,
            written: 0,
            pipes: Vec::new(),
            ended: false,
            moved: MovedData::default(),
        };
        if self.setup.store != StoreChoice::Memory {
            self.record_base(&mut recorder)?;
        }
        recorder.save()?;
        self.recorder = Some(Box::new(recorder));
        Ok(())
    }

    /// Logs the existing data of the drive, without pages of zeroes.
    fn record_base(&mut self, recorder: &mut Recorder) -> io::Result<()> {
        if matches!(self.machine, Machine::Pool(_)) {
            return Err(io::Error::other(
                "a log begins with the data of the store, and those of a pool are with its members: record a pool \
                 without --store",
            ));
        }
        let mut chunk = vec![0; CHUNK];
        let mut at = 0;
        while at < self.bytes {
            let limit = self.bytes.min(at + CHUNK as u64);
            let (end, is_data) = self.extent(at, limit);
            if is_data {
                let data = &mut chunk[..(end - at) as usize];
                let read = self.read(at, data);
                read.map_err(|_| io::Error::other("the store cannot be read"))?;
                for (start, bytes) in runs(data) {
                    recorder.writer.base(at + start as u64, bytes);
                }
            }
            if recorder.written + recorder.writer.bytes.len() as u64 > recorder.limit {
                return Err(io::Error::other(
                    "the data that the drive already stores is larger than --log-limit",
                ));
            }
            recorder.save()?;
            at = end;
        }
        Ok(())
    }

    /// Logs an acknowledgement, an attempt or a mark.
    ///
    /// # Errors
    /// Nothing is being recorded.
    pub fn note(&mut self, note: Note, text: &str) -> Result<(), String> {
        let now = self.now;
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) else {
            return Err(String::from(
                "no recording in progress: start with --record FILE",
            ));
        };
        recorder.writer.set_time(now.ns());
        recorder.writer.note(note, text);
        self.save_log(true);
        Ok(())
    }

    /// Logs the tokens of these pipes as well, in causal order with the commands of the program that writes them.
    pub fn record_tokens(&mut self, pipes: Vec<TokenPipe>) {
        if let Some(recorder) = &mut self.recorder {
            recorder.pipes = pipes;
        }
    }

    /// Logs the tokens that are in the pipes.
    pub(crate) fn log_tokens(&mut self) {
        let now = self.now;
        let Some(recorder) = &mut self.recorder else {
            return;
        };
        let Recorder {
            writer,
            pipes,
            ended,
            ..
        } = &mut **recorder;
        for pipe in pipes {
            let note = pipe.note;
            // Tokens are read even after the end of the log: a full pipe would block the program.
            pipe.read(&mut |token| {
                if !*ended {
                    writer.set_time(now.ns());
                    writer.note(note, token);
                }
            });
        }
    }

    /// Checks whether commands are logged.
    pub fn is_recorded(&self) -> bool {
        self.recorder.as_ref().is_some_and(|it| !it.ended)
    }

    /// Ends the log.
    pub fn end_log(&mut self, why: &str) {
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) else {
            return;
        };
        for pipe in &mut recorder.pipes {
            let (note, writer) = (pipe.note, &mut recorder.writer);
            pipe.read_last(&mut |token| writer.note(note, token));
        }
        recorder.writer.note(Note::End, why);
        recorder.ended = true;
        if let Err(error) = recorder.save() {
            self.news
                .push_back(format!("the recording has ended: {error}"));
        }
    }

    /// Ends the log early, and records the reason.
    #[cold]
    pub(super) fn break_off_log(&mut self, why: &str) {
        if self.is_recorded() {
            self.end_log(why);
            self.news
                .push_back(format!("the recording has ended: {why}"));
        }
    }

    /// Writes the waiting bytes to the file, if `now` is set or if there are many.
    pub(super) fn save_log(&mut self, now: bool) {
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) else {
            return;
        };
        let waiting = recorder.writer.bytes.len();
        if waiting == 0 || !(now || waiting > WAITING) {
            return;
        }
        let failed = recorder.save();
        let is_full = recorder.written > recorder.limit;
        match failed {
            Err(error) => {
                recorder.ended = true;
                self.news
                    .push_back(format!("the recording has ended: {error}"));
            }
            Ok(()) if is_full => self.break_off_log("the log has reached --log-limit"),
            Ok(()) => {}
        }
    }

    /// Logs a command that the drive is about to receive in this slot.
    #[cold]
    pub(super) fn log_submission(
        &mut self,
        now: Time,
        command: &Command,
        fill: &mut dyn FnMut(&mut [u8]) -> bool,
    ) {
        let kind = match command.op {
            Op::Read => return,
            Op::Write => EventKind::Write,
            Op::WriteZeroes => EventKind::Zeroes,
            Op::Deallocate => EventKind::Trim,
            Op::Flush => EventKind::Flush,
        };
        self.log_tokens();
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) else {
            return;
        };
        // A command without a length does not change data.
        if kind != EventKind::Flush && command.bytes == 0 {
            return;
        }
        recorder.writer.set_time(now.ns());
        let submission = Submission {
            kind,
            fua: command.fua && kind != EventKind::Flush,
            offset: command.offset,
            bytes: command.bytes,
        };
        let Some(number) = recorder.writer.submit(submission, fill) else {
            self.break_off_log("a write with metadata, or a copy within the drive");
            return;
        };
        self.slots[command.id as usize].logged = Some(number);
        self.save_log(false);
    }

    /// Begins the transfer of a logged reply. Tokens are logged now: front ends may publish the reply during the
    /// transfer, and a token that the reply causes must be after its completion in the log.
    #[cold]
    pub(super) fn log_reply_begins(&mut self) {
        self.log_tokens();
        if let Some(recorder) = &mut self.recorder {
            recorder.moved = MovedData::default();
        }
    }

    /// Counts bytes of the current reply that the store has accepted or rejected.
    #[cold]
    pub(super) fn log_moved_data(&mut self, accepted: bool, bytes: u64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.moved.failed |= !accepted;
            recorder.moved.bytes += bytes;
        }
    }

    /// Logs the completion of a command, as successful only if its data has reached the store. If the store may have a
    /// part of the data, the log ends: a failed write in the log has changed nothing.
    #[cold]
    pub(super) fn log_completion(&mut self, reply: &Reply) {
        let now = self.now;
        let by_member = self.is_by_member();
        let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) else {
            return;
        };
        if let Some(number) = reply.logged {
            // The members of a pool have the data before the completion.
            let has_moved =
                by_member || reply.op != Op::Write || recorder.moved.is_all_of(reply.bytes);
            if !has_moved && recorder.moved.is_any() {
                return self.break_off_log("the store may have a part of a write");
            }
            let success = reply.outcome == Outcome::Success && has_moved;
            recorder.writer.set_time(now.ns());
            recorder.writer.complete(number, success);
            self.save_log(reply.fua || reply.op == Op::Flush);
        }
    }

    /// Logs the completion of a command if its data has been moved: that of a pool.
    #[inline]
    pub(super) fn log_moved(&mut self, reply: &mut Reply) {
        if reply.logged.is_some() && self.is_by_member() {
            self.log_tokens();
            self.log_completion(reply);
            reply.logged = None;
        }
    }

    /// Logs that all acknowledged writes are durable, although no command has made them durable.
    pub(super) fn log_flush(&mut self) {
        if let Some(recorder) = self.recorder.as_mut().filter(|it| !it.ended) {
            let flush = Submission {
                kind: EventKind::Flush,
                fua: false,
                offset: 0,
                bytes: 0,
            };
            if let Some(number) = recorder.writer.submit(flush, &mut |_| true) {
                recorder.writer.complete(number, true);
            }
        }
    }
}

/// Returns the runs of pages that are not all zeroes, each with its offset.
fn runs(data: &[u8]) -> Vec<(usize, &[u8])> {
    let is_zero = |page: &[u8]| page.iter().all(|byte| *byte == 0);
    let mut runs: Vec<(usize, usize)> = Vec::new();
    for (number, page) in data.chunks(PAGE).enumerate() {
        let (start, end) = (number * PAGE, number * PAGE + page.len());
        match runs.last_mut() {
            _ if is_zero(page) => {}
            Some(last) if last.1 == start => last.1 = end,
            _ => runs.push((start, end)),
        }
    }
    let runs = runs.into_iter();
    runs.map(|(start, end)| (start, &data[start..end]))
        .collect()
}
