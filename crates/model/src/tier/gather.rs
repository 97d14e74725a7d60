//! Commands that a tier has cut into pieces: each completes with the last of its pieces.

use crate::command::{CommandId, Completion, Status};
use crate::engine::Slab;

/// A command while pieces of it are with the children.
#[derive(Clone, Copy, Debug)]
struct Request {
    id: CommandId,
    left: u32,
    status: Status,
}

/// The commands of a tier whose pieces all leave when the command comes: then the anatomy of the last piece is that of the
/// command.
#[derive(Clone, Debug, Default)]
pub struct Gather(Slab<Request>);

impl Gather {
    /// A command of which no piece has been sent yet; the token of its pieces.
    #[inline]
    pub fn begin(&mut self, id: CommandId) -> u32 {
        self.0.insert(Request {
            id,
            left: 0,
            status: Status::Success,
        })
    }

    /// One more piece of it has been sent.
    #[inline]
    pub fn expect(&mut self, token: u32) {
        self.0[token].left += 1;
    }

    /// A piece has completed. With the last one: the command, and the status of the first piece that failed.
    #[inline]
    pub fn done(&mut self, token: u32, piece: &Completion) -> Option<(CommandId, Status)> {
        let request = &mut self.0[token];
        request.left -= 1;
        if request.status == Status::Success {
            request.status = piece.status;
        }
        if request.left > 0 {
            return None;
        }
        let ended = (request.id, request.status);
        self.0.release(token);
        Some(ended)
    }

    /// All of them are gone.
    pub fn clear(&mut self) {
        self.0 = Slab::default();
    }
}
