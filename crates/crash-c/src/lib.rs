//! Crash-consistency tests for C: the functions of `include/drivelab_crash.h`, over the crate `crashtest`.
//!
//! The search calls a check for each image; C asks for the next image. So the search runs in a thread of its own, and its
//! check passes each image to the caller and waits for the verdict. Not offered: second cuts, other drives for the same
//! recording.
#![allow(unsafe_code, reason = "functions for C get pointers")]

mod disk;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::slice;

use disk::RecordedDisk;

/// Returns the disk of a pointer.
///
/// # Safety
/// The pointer is NULL, or from [`drivelab_crash_open`] and not closed.
unsafe fn disk<'a>(disk: *mut RecordedDisk) -> Option<&'a mut RecordedDisk> {
    // SAFETY: the caller's promise.
    unsafe { disk.as_mut() }
}

/// Returns a text of C; `None` if it is NULL or not UTF-8.
///
/// # Safety
/// The pointer is NULL or a text with a final zero.
unsafe fn text<'a>(text: *const c_char) -> Option<&'a str> {
    if text.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().ok()
}

/// Calls a function of the disk; -1 and a text if it fails.
///
/// # Safety
/// As [`fn@disk`].
unsafe fn call(
    pointer: *mut RecordedDisk,
    what: impl FnOnce(&mut RecordedDisk) -> Result<c_int, String>,
) -> c_int {
    // SAFETY: the caller's promise.
    match unsafe { disk(pointer) } {
        Some(disk) => disk.call(what),
        None => -1,
    }
}

/// Opens an empty disk.
///
/// # Safety
/// As the header says: `drive` is a text, `error` is NULL or has `error_bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_open(
    drive: *const c_char,
    bytes: u64,
    error: *mut c_char,
    error_bytes: usize,
) -> *mut RecordedDisk {
    // SAFETY: the caller's promise.
    let drive = unsafe { text(drive) };
    let opened = match drive {
        Some(drive) => RecordedDisk::open(drive, bytes),
        None => Err(String::from("drive: must be a text in UTF-8")),
    };
    match opened {
        Ok(disk) => Box::into_raw(Box::new(disk)),
        Err(why) => {
            if !error.is_null() && error_bytes > 0 {
                let length = why.len().min(error_bytes - 1);
                // SAFETY: the caller's promise; the text and its final zero have at most `error_bytes` bytes.
                unsafe {
                    ptr::copy_nonoverlapping(why.as_ptr().cast(), error, length);
                    *error.add(length) = 0;
                }
            }
            ptr::null_mut()
        }
    }
}

/// Frees the disk.
///
/// # Safety
/// `disk` is NULL, or from [`drivelab_crash_open`] and not closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_close(disk: *mut RecordedDisk) {
    if !disk.is_null() {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(disk) });
    }
}

/// Reads bytes.
///
/// # Safety
/// `disk` is open; `data` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_pread(
    disk: *mut RecordedDisk,
    data: *mut c_void,
    bytes: usize,
    offset: u64,
) -> c_int {
    let read = |disk: &mut RecordedDisk| {
        let data: &mut [u8] = match bytes {
            0 => &mut [],
            // SAFETY: the caller's promise.
            _ if !data.is_null() => unsafe { slice::from_raw_parts_mut(data.cast(), bytes) },
            _ => return Err(String::from("data is NULL")),
        };
        disk.read(offset, data)
    };
    // SAFETY: the caller's promise.
    unsafe { call(disk, read) }
}

/// Returns the bytes of a write.
///
/// # Safety
/// `data` is NULL or has `bytes` bytes.
unsafe fn given<'a>(data: *const c_void, bytes: usize) -> Result<&'a [u8], String> {
    match bytes {
        0 => Ok(&[]),
        // SAFETY: the caller's promise.
        _ if !data.is_null() => Ok(unsafe { slice::from_raw_parts(data.cast(), bytes) }),
        _ => Err(String::from("data is NULL")),
    }
}

/// Writes bytes.
///
/// # Safety
/// `disk` is open; `data` has `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_pwrite(
    disk: *mut RecordedDisk,
    data: *const c_void,
    bytes: usize,
    offset: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.write(offset, given(data, bytes)?, false)) }
}

/// Writes bytes with force unit access.
///
/// # Safety
/// As [`drivelab_crash_pwrite`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_pwrite_fua(
    disk: *mut RecordedDisk,
    data: *const c_void,
    bytes: usize,
    offset: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.write(offset, given(data, bytes)?, true)) }
}

/// Sends a write of whole blocks of 512 B that stays in flight.
///
/// # Safety
/// As [`drivelab_crash_pwrite`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_begin_pwrite(
    disk: *mut RecordedDisk,
    data: *const c_void,
    bytes: usize,
    offset: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.begin_write(offset, given(data, bytes)?)) }
}

/// Completes a write.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_complete(disk: *mut RecordedDisk, write: c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.complete(write)) }
}

/// Makes completed writes durable.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_flush(disk: *mut RecordedDisk) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, RecordedDisk::flush) }
}

/// Deallocates a range.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_trim(
    disk: *mut RecordedDisk,
    offset: u64,
    bytes: u64,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.trim(offset, bytes)) }
}

/// Records an acknowledgement.
///
/// # Safety
/// `disk` is open; `token` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_ack(
    disk: *mut RecordedDisk,
    token: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.ack(text(token))) }
}

/// Records that a token may survive.
///
/// # Safety
/// As [`drivelab_crash_ack`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_begin(
    disk: *mut RecordedDisk,
    token: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.begin(text(token))) }
}

/// Sets the maximum number of images.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_limit(disk: *mut RecordedDisk, images: u64) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.limit(images)) }
}

/// Writes the recording to a file.
///
/// # Safety
/// `disk` is open; `path` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_save(
    disk: *mut RecordedDisk,
    path: *const c_char,
) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.save(text(path))) }
}

/// Advances to the next image.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_next_image(disk: *mut RecordedDisk) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, RecordedDisk::next_image) }
}

/// Returns the name of the present image.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_image(pointer: *mut RecordedDisk) -> *const c_char {
    // SAFETY: the caller's promise.
    let disk = unsafe { disk(pointer) };
    disk.and_then(|it| it.image_name())
        .map_or(ptr::null(), CStr::as_ptr)
}

/// Returns the number of acknowledged tokens of the present image.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_acks(pointer: *mut RecordedDisk) -> usize {
    // SAFETY: the caller's promise.
    let disk = unsafe { disk(pointer) };
    disk.map_or(0, |it| it.acks().len())
}

/// Returns an acknowledged token of the present image.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_acked(
    pointer: *mut RecordedDisk,
    index: usize,
) -> *const c_char {
    // SAFETY: the caller's promise.
    let disk = unsafe { disk(pointer) };
    let token = disk.and_then(|it| it.acks().get(index));
    token.map_or(ptr::null(), |it| it.as_ptr())
}

/// Rejects the present image.
///
/// # Safety
/// `disk` is open; `why` is a text.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_fail(disk: *mut RecordedDisk, why: *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.fail(text(why))) }
}

/// Returns whether no image was rejected.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_held(disk: *mut RecordedDisk) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { call(disk, |disk| disk.held()) }
}

/// Returns the report.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_report(pointer: *mut RecordedDisk) -> *const c_char {
    // SAFETY: the caller's promise.
    let disk = unsafe { disk(pointer) };
    disk.and_then(|it| it.report())
        .map_or(ptr::null(), CStr::as_ptr)
}

/// Returns the text of the last error.
///
/// # Safety
/// `disk` is open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn drivelab_crash_error(pointer: *mut RecordedDisk) -> *const c_char {
    // SAFETY: the caller's promise.
    let disk = unsafe { disk(pointer) };
    disk.map_or(c"disk is NULL".as_ptr(), |it| it.error().as_ptr())
}
