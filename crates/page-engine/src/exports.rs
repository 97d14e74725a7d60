//! What a page calls, through WebAssembly's plain function calls: an engine, room for a question, the answer to it.
//!
//! There is one thread, and the page that made an engine is the only one to use it.

// Addresses come from the page and go to it: a boundary that types do not cross.
#![allow(unsafe_code)]
// Seen by the page, not by other crates.
#![allow(unreachable_pub)]

use crate::Engine;

/// An engine with its question and its answer.
#[derive(Debug, Default)]
pub struct Seat {
    engine: Engine,
    question: Vec<u8>,
    answer: String,
}

/// Makes an engine; it lasts as long as the page's worker.
#[unsafe(no_mangle)]
pub extern "C" fn new_engine() -> *mut Seat {
    Box::into_raw(Box::default())
}

/// Where to write a question of so many bytes.
///
/// # Safety
/// `seat` is what [`new_engine`] gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn room(seat: *mut Seat, bytes: usize) -> *mut u8 {
    // SAFETY: see above; nobody else has it, as there is one thread.
    let seat = unsafe { &mut *seat };
    seat.question = vec![0; bytes];
    seat.question.as_mut_ptr()
}

/// Answers the question that was written there; gives the bytes of the answer.
///
/// # Safety
/// `seat` is what [`new_engine`] gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ask(seat: *mut Seat) -> usize {
    // SAFETY: see above; nobody else has it, as there is one thread.
    let seat = unsafe { &mut *seat };
    seat.answer = seat.engine.answer(&seat.question);
    seat.answer.len()
}

/// Where the answer is, until the next question.
///
/// # Safety
/// `seat` is what [`new_engine`] gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn answer(seat: *const Seat) -> *const u8 {
    // SAFETY: see above; nobody else has it, as there is one thread.
    unsafe { (*seat).answer.as_ptr() }
}
