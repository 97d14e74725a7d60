//! Functions that a page calls, as plain WebAssembly functions: they create an engine, reserve space for a question,
//! and return the answer.
//!
//! There is one thread, and only the page that created an engine uses it.

// Addresses are passed from and to the page, so types do not protect this boundary.
#![allow(unsafe_code)]
// Visible to the page, not to other crates.
#![allow(unreachable_pub)]

use crate::Engine;

/// An engine with its question and its answer.
#[derive(Debug, Default)]
pub struct EngineInstance {
    engine: Engine,
    question: Vec<u8>,
    answer: String,
}

/// Creates an engine, which exists as long as the page's worker.
#[unsafe(no_mangle)]
pub extern "C" fn new_engine() -> *mut EngineInstance {
    Box::into_raw(Box::default())
}

/// Returns where to write a question of this number of bytes.
///
/// # Safety
/// `seat` was returned by [`new_engine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn room(seat: *mut EngineInstance, bytes: usize) -> *mut u8 {
    // SAFETY: see above; there is one thread, so no other reference exists.
    let seat = unsafe { &mut *seat };
    seat.question = vec![0; bytes];
    seat.question.as_mut_ptr()
}

/// Answers the question that was written, and returns the bytes of the answer.
///
/// # Safety
/// `seat` was returned by [`new_engine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(seat: *mut EngineInstance) -> usize {
    // SAFETY: see above; there is one thread, so no other reference exists.
    let seat = unsafe { &mut *seat };
    seat.answer = seat.engine.answer(&seat.question);
    seat.answer.len()
}

/// Returns the address of the answer, valid until the next question.
///
/// # Safety
/// `seat` was returned by [`new_engine`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(seat: *const EngineInstance) -> *const u8 {
    // SAFETY: see above; there is one thread, so no other reference exists.
    unsafe { (*seat).answer.as_ptr() }
}
