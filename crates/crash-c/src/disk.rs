//! A disk of C: first the recorded program, then the images of the search.

use std::ffi::{CStr, CString, c_int};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use crashtest::{Acks, Device, PendingWrite, Recording, Verdict, Violation};

/// Images if no number is given, as in the crate `crashtest`.
const IMAGES: u64 = 10_000;

/// Result of the search, or of one repeated image: the text, and whether no image failed.
type SearchResult = Result<(String, bool), String>;

/// A disk in memory.
#[derive(Debug)]
pub struct RecordedDisk {
    settings: crashtest::Disk,
    images: u64,
    device: Device,
    acks: Acks,
    pending: Vec<Option<PendingWrite>>,
    recording: Option<Recording>,
    search: Option<Search>,
    ending: Option<(CString, bool)>,
    error: CString,
}

/// The thread of the search.
#[derive(Debug)]
struct Search {
    images: Receiver<CallerImage>,
    thread: Option<JoinHandle<SearchResult>>,
    stop: Arc<AtomicBool>,
    present: Option<CallerImage>,
    /// Rule that the present image violates.
    violation: Option<Violation>,
}

/// An image that the search passes to the caller.
#[derive(Debug)]
struct CallerImage {
    device: Device,
    name: CString,
    acks: Vec<CString>,
    verdict: SyncSender<Option<Violation>>,
}

/// Returns a text for C, without zeroes.
fn c_text(text: &str) -> CString {
    CString::new(text.replace('\0', " ")).unwrap_or_default()
}

impl RecordedDisk {
    pub(crate) fn open(drive: &str, bytes: u64) -> Result<RecordedDisk, String> {
        let settings = crashtest::Disk::new(drive).size(bytes);
        let (device, acks) = settings.open().map_err(|error| error.to_string())?;
        Ok(RecordedDisk {
            settings,
            images: IMAGES,
            device,
            acks,
            pending: Vec::new(),
            recording: None,
            search: None,
            ending: None,
            error: CString::default(),
        })
    }

    /// Calls a function; keeps the text of its error.
    pub(crate) fn call(
        &mut self,
        what: impl FnOnce(&mut RecordedDisk) -> Result<c_int, String>,
    ) -> c_int {
        what(self).unwrap_or_else(|why| {
            self.error = c_text(&why);
            -1
        })
    }

    /// Returns the device that commands use: that of the present image, or that of the program.
    fn device(&self) -> Result<&Device, String> {
        match &self.search {
            None => Ok(&self.device),
            Some(search) => match &search.present {
                Some(image) => Ok(&image.device),
                None => Err(String::from("there is no image: the search has ended")),
            },
        }
    }

    pub(crate) fn read(&mut self, offset: u64, data: &mut [u8]) -> Result<c_int, String> {
        done(self.device()?.read_at(offset, data))
    }

    pub(crate) fn write(&mut self, offset: u64, data: &[u8], fua: bool) -> Result<c_int, String> {
        let device = self.device()?;
        done(match fua {
            true => device.write_fua_at(offset, data),
            false => device.write_at(offset, data),
        })
    }

    pub(crate) fn begin_write(&mut self, offset: u64, data: &[u8]) -> Result<c_int, String> {
        let write = self.device()?.begin_write(offset, data);
        let write = write.map_err(|error| error.to_string())?;
        let number = c_int::try_from(self.pending.len());
        let number = number.map_err(|_| String::from("more than 2^31 writes in flight"))?;
        self.pending.push(Some(write));
        Ok(number)
    }

    pub(crate) fn complete(&mut self, write: c_int) -> Result<c_int, String> {
        let index = usize::try_from(write).ok();
        let pending = index.and_then(|index| self.pending.get_mut(index));
        match pending.and_then(Option::take) {
            Some(pending) => done(pending.complete()),
            None => Err(format!("write {write} is not in flight")),
        }
    }

    pub(crate) fn flush(&mut self) -> Result<c_int, String> {
        done(self.device()?.flush())
    }

    pub(crate) fn trim(&mut self, offset: u64, bytes: u64) -> Result<c_int, String> {
        done(self.device()?.trim(offset, bytes))
    }

    fn check_recorded(&self) -> Result<(), String> {
        match self.recording {
            None => Ok(()),
            Some(_) => Err(String::from("the recording has ended")),
        }
    }

    pub(crate) fn ack(&mut self, token: Option<&str>) -> Result<c_int, String> {
        self.check_recorded()?;
        self.acks
            .ack(token.ok_or("token: must be a text in UTF-8")?);
        Ok(0)
    }

    pub(crate) fn begin(&mut self, token: Option<&str>) -> Result<c_int, String> {
        self.check_recorded()?;
        self.acks
            .begin(token.ok_or("token: must be a text in UTF-8")?);
        Ok(0)
    }

    pub(crate) fn limit(&mut self, images: u64) -> Result<c_int, String> {
        if self.search.is_some() || self.ending.is_some() || images == 0 {
            return Err(String::from(
                "limit: must be above 0, before the first image",
            ));
        }
        self.images = images;
        Ok(0)
    }

    fn recording(&mut self) -> Result<&Recording, String> {
        if self.recording.is_none() {
            let recording = self.settings.finish(&self.device);
            self.recording = Some(recording.map_err(|error| error.to_string())?);
        }
        self.recording.as_ref().ok_or_else(String::new)
    }

    pub(crate) fn save(&mut self, path: Option<&str>) -> Result<c_int, String> {
        let path = path.ok_or("path: must be a text in UTF-8")?;
        let saved = self.recording()?.save(path);
        done(saved).map_err(|error| format!("{path}: {error}"))
    }

    pub(crate) fn next_image(&mut self) -> Result<c_int, String> {
        if self.ending.is_some() {
            return Ok(0);
        }
        if self.search.is_none() {
            let (recording, images) = (self.recording()?.clone(), self.images);
            self.search = Some(Search::start(recording, images));
        }
        self.pending.clear();
        let Some(search) = &mut self.search else {
            return Ok(0);
        };
        if search.advance() {
            return Ok(1);
        }
        let (text, held) = search.end()?;
        self.ending = Some((c_text(&text), held));
        Ok(0)
    }

    fn present(&self) -> Option<&CallerImage> {
        self.search.as_ref()?.present.as_ref()
    }

    pub(crate) fn image_name(&self) -> Option<&CStr> {
        self.present().map(|it| &*it.name)
    }

    pub(crate) fn acks(&self) -> &[CString] {
        self.present().map_or(&[], |it| &it.acks)
    }

    pub(crate) fn fail(&mut self, why: Option<&str>) -> Result<c_int, String> {
        let why = why.ok_or("text: must be a text in UTF-8")?;
        match &mut self.search {
            Some(search) if search.present.is_some() => {
                search.violation = Some(Violation::from_text(why));
                Ok(0)
            }
            _ => Err(String::from("there is no image: call next_image before")),
        }
    }

    pub(crate) fn held(&self) -> Result<c_int, String> {
        match &self.ending {
            Some((_, held)) => Ok((*held).into()),
            None => Err(String::from(
                "the search has not ended: next_image must return 0",
            )),
        }
    }

    pub(crate) fn report(&self) -> Option<&CStr> {
        self.ending.as_ref().map(|(text, _)| &**text)
    }

    pub(crate) fn error(&self) -> &CStr {
        &self.error
    }
}

fn done(result: std::io::Result<()>) -> Result<c_int, String> {
    match result {
        Ok(()) => Ok(0),
        Err(error) => Err(error.to_string()),
    }
}

impl Search {
    fn start(recording: Recording, images: u64) -> Search {
        let (send, receive) = sync_channel(0);
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || searched(&recording, images, &send, stopped));
        Search {
            images: receive,
            thread: Some(thread),
            stop,
            present: None,
            violation: None,
        }
    }

    /// Passes the verdict on the present image, and waits for the next one. Returns whether there is one.
    fn advance(&mut self) -> bool {
        if let Some(image) = self.present.take() {
            // If the search has ended, the next image is missing.
            let _ = image.verdict.send(self.violation.take());
        }
        self.present = self.images.recv().ok();
        self.present.is_some()
    }

    fn end(&mut self) -> SearchResult {
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ending)) => ending,
            _ => Err(String::from("the search has failed")),
        }
    }
}

impl Drop for Search {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // The search waits for verdicts that nobody gives.
        while self.advance() {}
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Runs the search, or repeats the image of the variable `DRIVELAB_CRASH`.
fn searched(
    recording: &Recording,
    images: u64,
    send: &SyncSender<CallerImage>,
    stop: Arc<AtomicBool>,
) -> SearchResult {
    let check = recording.check(|device, tokens| {
        let (verdict, wait) = sync_channel(0);
        let image = CallerImage {
            device: device.clone(),
            name: c_text(tokens.image()),
            acks: tokens.tokens().iter().map(|it| c_text(it)).collect(),
            verdict,
        };
        let sent = send.send(image).is_ok();
        match wait.recv() {
            Ok(Some(violation)) if sent => Err(violation),
            _ => Ok(()),
        }
    });
    let check = check.images(images).one_at_a_time().stop_by(stop);
    if let Ok(named) = std::env::var(crashtest::VARIABLE) {
        return Ok(match check.replay(&named) {
            Ok(line) => (line, true),
            Err(error) => (error.to_string(), false),
        });
    }
    let verdict: Verdict = check.run().map_err(|error| error.to_string())?;
    Ok((format!("{verdict:#}"), verdict.held()))
}
