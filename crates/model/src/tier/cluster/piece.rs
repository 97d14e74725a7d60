//! A piece of a command, for one replica: its path from the client's node to the replica's group and back.

use super::Cluster;
use super::events::Event;
use super::placement::Site;
use crate::anatomy::{Anatomy, Part};
use crate::command::{Command, Op, Payload, Status};
use crate::tier::Way;
use crate::time::{Span, Time};

/// A part of a component.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Stretch {
    /// Number of the component.
    pub(super) unit: u64,
    /// Position in it at which the part begins.
    pub(super) within: u64,
    pub(super) bytes: u32,
}

/// Next step of a piece.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
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
pub(super) struct Piece {
    request: u32,
    part: Stretch,
    payload: Payload,
    pub(super) site: Site,
    step: Step,
    /// Status from the group.
    pub(super) status: Status,
    /// Replicas that failed to read it.
    tried: u32,
    pub(super) anatomy: Anatomy,
}

impl Cluster {
    pub(super) fn send<W: Way>(
        &mut self,
        now: Time,
        request: u32,
        part: Stretch,
        payload: Payload,
        site: Site,
        way: &mut W,
    ) {
        self.requests[request].left += 1;
        let piece = self.pieces.insert(Piece {
            request,
            part,
            payload,
            site,
            step: Step::Leaves,
            status: Status::Success,
            tried: 0,
            anatomy: Anatomy::ZERO,
        });
        self.go_on(now, piece, way);
    }

    /// Advances a piece, up to the next step at which it must wait.
    pub(super) fn go_on<W: Way>(&mut self, now: Time, index: u32, way: &mut W) {
        loop {
            let piece = self.pieces[index];
            let (until, part, next) = match piece.step {
                Step::Group => return self.ask_group(index, way),
                Step::Done if !self.asks_again(index) => return self.ended(now, index, way),
                Step::Done => continue,
                _ => self.book(now, &piece),
            };
            let piece = &mut self.pieces[index];
            piece.step = next;
            piece.anatomy.add(part, until.since(now));
            if until > now {
                return self.events.push(until, Event::Piece(index));
            }
        }
    }

    /// Joins the queue of the next server. Returns when that step ends, the part to which its time is attributed, and
    /// the following step.
    fn book(&mut self, now: Time, piece: &Piece) -> (Time, Part, Step) {
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
            Step::Leaves | Step::Arrives if !remote => (now, Part::Network, Step::Stores),
            Step::Returns | Step::Back if !remote => (now, Part::Network, Step::Ends),
            Step::Leaves => {
                let first = ports.0[client].first_byte(now, network, there);
                (first, Part::Network, Step::Arrives)
            }
            Step::Arrives => {
                let last = ports.1[node].last_byte(now, network, there);
                (last, Part::Network, Step::Stores)
            }
            Step::Returns => {
                let first = ports.0[node].first_byte(now, network, back);
                (first, Part::Network, Step::Back)
            }
            Step::Back => {
                let last = ports.1[client].last_byte(now, network, back);
                (last, Part::Network, Step::Ends)
            }
            Step::Stores => {
                let work = self.config.node.store + message;
                (self.cores[node].book(now, work), Part::Tier, Step::Group)
            }
            Step::Ends | Step::Group | Step::Done => {
                let work = self.config.node.data(back) + message;
                (self.cores[client].book(now, work), Part::Tier, Step::Done)
            }
        }
    }

    fn ask_group<W: Way>(&mut self, index: u32, way: &mut W) {
        let piece = &mut self.pieces[index];
        piece.step = Step::Returns;
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
        piece.step = Step::Leaves;
        piece.status = Status::Success;
        true
    }

    /// A piece has ended. All pieces of a command were sent at one time, so the anatomy of the last is that of the
    /// command.
    fn ended<W: Way>(&mut self, now: Time, index: u32, way: &mut W) {
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
