//! Scheduled events of a cluster: cores or ports have finished a command or a piece of one.

use model::engine::EventPayload;

/// A scheduled event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ClusterEvent {
    /// The client's node has worked for this request.
    Request(u32),
    /// This piece continues.
    Piece(u32),
}

/// Set in the payload of a request's event.
const REQUEST: u32 = 1 << 31;

impl EventPayload for ClusterEvent {
    fn pack(self) -> u32 {
        let (kind, number) = match self {
            ClusterEvent::Request(request) => (REQUEST, request),
            ClusterEvent::Piece(piece) => (0, piece),
        };
        debug_assert!(number < REQUEST);
        kind | number
    }

    fn unpack(packed: u32) -> ClusterEvent {
        match packed & REQUEST {
            0 => ClusterEvent::Piece(packed),
            _ => ClusterEvent::Request(packed & !REQUEST),
        }
    }
}
