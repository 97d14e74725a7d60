//! Trips: work that goes from the node of the owner to a child and back.
//!
//! A trip crosses the network, takes CPU time at the node with the drives, is a command or several to a child, and
//! returns. All nodes together are one set of cores and one port for each direction: a node's link carries what it
//! sends as owner and what it returns as the node with the drives.

use alloc::vec::Vec;

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Status};
use model::time::{Span, Time};

use super::{LogStructured, StructuredEvent};
use crate::{Child, TierContext};

/// Purpose of a trip.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum TripPurpose {
    /// Writes of these requests, or metadata, into a log, which begin at this position of all logs.
    Record { from: u64, requests: Vec<u32> },
    /// A stripe, in this entry of the stripes in memory.
    Stripe(u32),
    /// A part of a client's read, or the rest of a block that it writes partly.
    Part(u32),
    /// A stripe whose live blocks move.
    Clean(u32),
}

/// Next step of a trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum TripStep {
    Leaves,
    Arrives,
    Stores,
    Child,
    Returns,
    Back,
    Ends,
    Done,
}

/// A trip to a child.
#[derive(Clone, Debug)]
pub(super) struct ChildTrip {
    pub(super) what: TripPurpose,
    pub(super) child: Child,
    op: Op,
    pub(super) offset: u64,
    pub(super) bytes: u64,
    /// Bytes on the network, in each direction, and the number of nodes that store or look up.
    there: u64,
    back: u64,
    stores: f64,
    step: TripStep,
    left: u32,
    pub(super) status: Status,
    pub(super) anatomy: Anatomy,
}

impl LogStructured {
    /// Starts a trip with a command for `bytes` bytes; `crossings` is how often each byte of a write crosses the
    /// network, on the way to as many nodes.
    pub(super) fn travel<W: TierContext>(
        &mut self,
        now: Time,
        what: TripPurpose,
        (child, op): (Child, Op),
        (offset, bytes): (u64, u64),
        crossings: f64,
        way: &mut W,
    ) {
        let (there, back) = match op {
            Op::Write => ((bytes as f64 * crossings) as u64, 0),
            _ => (0, bytes),
        };
        let trip = self.trips.insert(ChildTrip {
            what,
            child,
            op,
            offset,
            bytes,
            there,
            back,
            stores: crossings.max(1.0),
            step: TripStep::Leaves,
            left: 0,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        });
        self.advance_trip(now, trip, way);
    }

    /// Advances a trip, up to the next step at which it must wait.
    pub(super) fn advance_trip<W: TierContext>(&mut self, now: Time, index: u32, way: &mut W) {
        loop {
            let (until, part, next) = match self.trips[index].step {
                TripStep::Child => return self.ask_child(index, way),
                TripStep::Done => return self.ended(now, index, way),
                _ => self.book(now, index),
            };
            let trip = &mut self.trips[index];
            trip.step = next;
            trip.anatomy.add(part, until.since(now));
            if until > now {
                return self.events.push(until, StructuredEvent::Trip(index));
            }
        }
    }

    /// Joins the queue of the next server. Returns when that step ends, the part to which its time is attributed, and
    /// the following step.
    fn book(&mut self, now: Time, index: u32) -> (Time, Part, TripStep) {
        let trip = &self.trips[index];
        let remote = self.config.nodes.count > 1;
        let node = &self.config.nodes.node;
        let network = &self.network;
        let message = match remote {
            true => network.message,
            false => Span::ZERO,
        };
        let local = |next| (now, Part::Network, next);
        match trip.step {
            TripStep::Leaves | TripStep::Arrives if !remote => local(TripStep::Stores),
            TripStep::Returns | TripStep::Back if !remote => local(TripStep::Ends),
            TripStep::Leaves => {
                let first = self.leaving.first_byte(now, network, trip.there);
                (first, Part::Network, TripStep::Arrives)
            }
            TripStep::Arrives => {
                let last = self.arriving.last_byte(now, network, trip.there);
                (last, Part::Network, TripStep::Stores)
            }
            TripStep::Returns => {
                let first = self.leaving.first_byte(now, network, trip.back);
                (first, Part::Network, TripStep::Back)
            }
            TripStep::Back => {
                let last = self.arriving.last_byte(now, network, trip.back);
                (last, Part::Network, TripStep::Ends)
            }
            TripStep::Stores => {
                // Nodes store in parallel: the trip waits for one of them, the others use their cores.
                let work = node.store + message;
                let others = work.scale(trip.stores - 1.0);
                let done = self.cores.book(now, work);
                self.cores.book(now, others);
                (done, Part::Tier, TripStep::Child)
            }
            _ => {
                let work = message + node.data(trip.back);
                (self.cores.book(now, work), Part::Tier, TripStep::Done)
            }
        }
    }

    fn ask_child<W: TierContext>(&mut self, index: u32, way: &mut W) {
        let trip = &mut self.trips[index];
        trip.step = TripStep::Returns;
        let (child, op, offset, bytes) = (trip.child, trip.op, trip.offset, trip.bytes);
        let most = match trip.what {
            TripPurpose::Record { .. } => u64::from(self.config.record),
            _ => bytes,
        };
        trip.left = bytes.div_ceil(most.max(1)) as u32;
        let mut at = 0;
        while at < bytes {
            let part = most.min(bytes - at);
            let command = Command {
                fua: op == Op::Write,
                ..Command::new(0, op, offset + at, part as u32)
            };
            way.send(child, index, command);
            at += part;
        }
    }

    /// A command of a trip has completed.
    pub(super) fn returns<W: TierContext>(
        &mut self,
        now: Time,
        index: u32,
        done: &Completion,
        way: &mut W,
    ) {
        let trip = &mut self.trips[index];
        trip.left -= 1;
        if trip.status == Status::Success {
            trip.status = done.status;
        }
        if trip.left == 0 {
            trip.anatomy.append(&done.anatomy);
            self.advance_trip(now, index, way);
        }
    }
}
