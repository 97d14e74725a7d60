//! Commands that a tier has split: each completes with the last of its pieces.

use model::command::{CommandId, Completion, Status};
use model::engine::Slab;

/// A command whose pieces are outstanding at the children.
#[derive(Clone, Copy, Debug)]
struct GatheredRequest {
    id: CommandId,
    left: u32,
    status: Status,
}

/// Commands of a tier whose pieces are all sent when the command arrives: the anatomy of the last piece is then that of
/// the command.
#[derive(Clone, Debug, Default)]
pub struct Gather(Slab<GatheredRequest>);

impl Gather {
    /// Adds a command without pieces; returns the token for its pieces.
    #[inline]
    pub fn begin(&mut self, id: CommandId) -> u32 {
        self.0.insert(GatheredRequest {
            id,
            left: 0,
            status: Status::Success,
        })
    }

    /// Counts one more piece that has been sent.
    #[inline]
    pub fn expect(&mut self, token: u32) {
        self.0[token].left += 1;
    }

    /// A piece has completed. With the last piece, returns the command, and the status of the first piece that failed.
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

    /// Removes all commands.
    pub fn clear(&mut self) {
        self.0 = Slab::default();
    }
}
