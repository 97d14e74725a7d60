//! A piece of a command, for one replica: its path from the client's node to the replica's group and back.

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Op, Payload, Status};
use model::time::{Span, Time};

use super::Cluster;
use super::events::ClusterEvent;
use super::placement::Site;
use crate::TierContext;

/// A part of a component.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ComponentPart {
    /// Number of the component.
    pub(super) unit: u64,
    /// Position in it at which the part begins.
    pub(super) within: u64,
    pub(super) bytes: u32,
}

/// Next step of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum PieceStep {
    /// Out of the client's node.
    Leaves,
    /// Into the replica's node.
    Arrives,
    /// To the cores of the replica's node.
    Stores,
    /// To the group of the replica.
    Group,
    /// Out of the replica's node.
    Returns,
    /// Into the client's node.
    Back,
    /// To the cores of the client's node.
    Ends,
    Done,
}

/// A part of a command, for one replica.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReplicaPiece {
    request: u32,
    part: ComponentPart,
    payload: Payload,
    pub(super) site: Site,
    step: PieceStep,
    /// Status from the group.
    pub(super) status: Status,
    /// Replicas that failed to read it.
    tried: u32,
    pub(super) anatomy: Anatomy,
}

impl Cluster {
    pub(super) fn send<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        part: ComponentPart,
        payload: Payload,
        site: Site,
        way: &mut W,
    ) {
        self.requests[request].left += 1;
        let piece = self.pieces.insert(ReplicaPiece {
            request,
            part,
            payload,
            site,
            step: PieceStep::Leaves,
            status: Status::Success,
            tried: 0,
            anatomy: Anatomy::ZERO,
        });
        self.advance_piece(now, piece, way);
    }

    /// Advances a piece, up to the next step at which it must wait.
    pub(super) fn advance_piece<W: TierContext>(&mut self, now: Time, index: u32, way: &mut W) {
        loop {
            let piece = self.pieces[index];
            let (until, part, next) = match piece.step {
                PieceStep::Group => return self.ask_group(index, way),
                PieceStep::Done if !self.asks_again(index) => return self.ended(now, index, way),
                PieceStep::Done => continue,
                _ => self.book(now, &piece),
            };
            let piece = &mut self.pieces[index];
            piece.step = next;
            piece.anatomy.add(part, until.since(now));
            if until > now {
                return self.events.push(until, ClusterEvent::Piece(index));
            }
        }
    }

    /// Joins the queue of the next server. Returns when that step ends, the part to which its time is attributed, and
    /// the following step.
    fn book(&mut self, now: Time, piece: &ReplicaPiece) -> (Time, Part, PieceStep) {
        let Site { node, remote, .. } = piece.site;
        let asked = &self.requests[piece.request];
        let (client, node) = (usize::from(asked.client), usize::from(node));
        let bytes = u64::from(piece.part.bytes);
        let (there, back) = match asked.command.op {
            Op::Write => (bytes, 0),
            Op::Read => (0, bytes),
            _ => (0, 0),
        };
        let network = &self.config.network;
        let message = match remote {
            true => network.message,
            false => Span::ZERO,
        };
        let ports = (&mut self.leaving, &mut self.arriving);
        match piece.step {
            PieceStep::Leaves | PieceStep::Arrives if !remote => {
                (now, Part::Network, PieceStep::Stores)
            }
            PieceStep::Returns | PieceStep::Back if !remote => {
                (now, Part::Network, PieceStep::Ends)
            }
            PieceStep::Leaves => {
                let first = ports.0[client].first_byte(now, network, there);
                (first, Part::Network, PieceStep::Arrives)
            }
            PieceStep::Arrives => {
                let last = ports.1[node].last_byte(now, network, there);
                (last, Part::Network, PieceStep::Stores)
            }
            PieceStep::Returns => {
                let first = ports.0[node].first_byte(now, network, back);
                (first, Part::Network, PieceStep::Back)
            }
            PieceStep::Back => {
                let last = ports.1[client].last_byte(now, network, back);
                (last, Part::Network, PieceStep::Ends)
            }
            PieceStep::Stores => {
                let work = self.config.node.store + message;
                (
                    self.cores[node].book(now, work),
                    Part::Tier,
                    PieceStep::Group,
                )
            }
            PieceStep::Ends | PieceStep::Group | PieceStep::Done => {
                let work = self.config.node.data(back) + message;
                (
                    self.cores[client].book(now, work),
                    Part::Tier,
                    PieceStep::Done,
                )
            }
        }
    }

    fn ask_group<W: TierContext>(&mut self, index: u32, way: &mut W) {
        let piece = &mut self.pieces[index];
        piece.step = PieceStep::Returns;
        let command = Command {
            offset: piece.site.base + piece.part.within,
            bytes: piece.part.bytes,
            payload: piece.payload,
            ..self.requests[piece.request].command
        };
        let group = piece.site.group;
        self.copies.sent(usize::from(group));
        way.send(group, index, command);
    }

    /// Restarts a failed read with another replica, if there is one.
    fn asks_again(&mut self, index: u32) -> bool {
        let piece = &mut self.pieces[index];
        let reads = self.requests[piece.request].command.op == Op::Read;
        if piece.status == Status::Success || !reads {
            return false;
        }
        piece.tried |= 1 << piece.site.replica;
        let (part, tried) = (piece.part, piece.tried);
        let Some(replica) = self.replica_to_read(part, tried) else {
            return false;
        };
        let piece = &mut self.pieces[index];
        piece.site = self.placement.site(part.unit, replica);
        piece.step = PieceStep::Leaves;
        piece.status = Status::Success;
        true
    }

    /// A piece has ended. All pieces of a command were sent at one time, so the anatomy of the last is that of the
    /// command.
    fn ended<W: TierContext>(&mut self, now: Time, index: u32, way: &mut W) {
        let piece = self.pieces[index];
        self.pieces.release(index);
        let group = piece.site.group;
        let reads = self.requests[piece.request].command.op == Op::Read;
        if piece.status != Status::Success
            && (reads || !(self.out[usize::from(group)] || self.leave(group)))
        {
            self.requests[piece.request].status = piece.status;
        }
        let asked = &mut self.requests[piece.request];
        asked.left -= 1;
        if asked.left == 0 {
            asked.anatomy.append(&piece.anatomy);
            self.finish(now, piece.request, way);
        }
    }
}
