//! Cluster: groups of drives in nodes; data is stored on several nodes, which are connected by a network.
//!
//! Addresses are divided into components; each has replicas on groups of different nodes ([`placement`]). A client's
//! command begins on its component's client node, whose cores work for it (as client, and as owner, which keeps the
//! order). A write goes to all replicas and completes with the last of them; a read goes to one replica, a flush to all
//! groups. Data for another node crosses two ports and the network between them, and costs the receiving node a
//! message; so does the reply. On the replica's node, cores work for the piece before its group does ([`piece`],
//! [`servers`]). Overlapping writes are serialised, as in a mirror.
//!
//! A group that fails a write or a flush is out permanently, as long as the number of nodes with such a group is lower
//! than the number of replicas. Data that one replica cannot read is read from another.
//!
//! *Fold*: fewer nodes are simulated, each of which represents several equal ones; load and capacity are reduced
//! accordingly. If a replica's location is the simulated node itself, although it represents another node, the message
//! still crosses the network.
//!
//! The path of a command and its costs follow vSAN's original storage architecture (client, owner, component manager);
//! see `docs/decisions/0085-cluster.md` for published and assumed values. Not modelled: rebuilding groups that are out,
//! the witness, on-disk metadata of the cluster itself (so it cannot be recovered after a crash), and a link that loses
//! messages.

mod config;
mod events;
mod piece;
mod placement;
pub(super) mod servers;
#[cfg(test)]
mod tests;

use alloc::vec;
use alloc::vec::Vec;

pub use config::{ClusterConfig, Network, NodeConfig};

use model::anatomy::{Anatomy, Part};
use model::command::{Command, Completion, Op, Status};
use model::data::{Unreadable, Unwritable};
use model::device::{Gauge, Gauges, Range};
use model::engine::{Slab, TypedEventQueue};
use model::time::{Span, Time};

use self::events::ClusterEvent;
use self::piece::{ComponentPart, ReplicaPiece};
use self::placement::{Placement, Site};
use self::servers::{NodeCores, Port};
use super::copies::Copies;
use super::offline::ChildImages;
use super::{Child, Tier, TierContext};

/// An outstanding command.
#[derive(Clone, Copy, Debug)]
struct ClusterRequest {
    command: Command,
    /// Node on which it begins.
    client: u16,
    began: Time,
    /// Number of pieces in progress.
    left: u32,
    status: Status,
    /// Latency breakdown until the pieces were sent.
    anatomy: Anatomy,
}

/// A range that is being written: meanwhile no other write to it is sent.
#[derive(Clone, Copy, Debug)]
struct WriteRange {
    at: u64,
    end: u64,
    request: u32,
}

/// A cluster over its groups.
#[derive(Clone, Debug)]
pub struct Cluster {
    config: ClusterConfig,
    placement: Placement,
    /// Cores by simulated node.
    cores: Vec<NodeCores>,
    leaving: Vec<Port>,
    arriving: Vec<Port>,
    requests: Slab<ClusterRequest>,
    pieces: Slab<ReplicaPiece>,
    events: TypedEventQueue<ClusterEvent>,
    /// Ranges that are being written.
    extents: Vec<WriteRange>,
    /// Writes that may not be sent yet, in order.
    waiting: Vec<u32>,
    /// Selects the replica for a read; its locations are groups.
    copies: Copies,
    /// By group: whether it is out.
    out: Vec<bool>,
}

impl Cluster {
    fn new(config: &ClusterConfig, children: &[u64]) -> Cluster {
        let nodes = usize::from(config.simulated());
        Cluster {
            placement: Placement::new(config, children),
            cores: vec![NodeCores::new(config.node.cores); nodes],
            leaving: vec![Port::default(); nodes],
            arriving: vec![Port::default(); nodes],
            requests: Slab::default(),
            pieces: Slab::default(),
            events: TypedEventQueue::default(),
            extents: Vec::new(),
            waiting: Vec::new(),
            copies: Copies::new(config.reads, children.len()),
            out: vec![false; children.len()],
            config: config.clone(),
        }
    }

    /// Returns the replica for a read.
    fn replica_to_read(&mut self, part: ComponentPart, tried: u32) -> Option<u16> {
        let of = |replica: usize| {
            let site = self.placement.site(part.unit, replica as u16);
            let group = usize::from(site.group);
            let readable = tried & (1 << replica) == 0 && !self.out[group];
            readable.then_some((group, site.base + part.within))
        };
        let count = usize::from(self.config.replicas);
        let replica = self.copies.choose(count, part.within, part.bytes, of)?;
        Some(replica as u16)
    }

    /// Returns the CPU time of the client's node for a command before its pieces are sent: as client and as owner, and
    /// for the checksum of written data.
    fn client_work(&self, command: &Command) -> Span {
        let node = &self.config.node;
        let data = match command.op {
            Op::Write => node.data(command.bytes.into()),
            _ => Span::ZERO,
        };
        node.client + node.owner + data
    }

    /// The client's node has worked for the command: sends its pieces, unless an earlier write conflicts.
    fn dispatch<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        match self.requests[request].command.op {
            Op::Read | Op::Flush => self.send_pieces(now, request, way),
            Op::Write | Op::WriteZeroes | Op::Deallocate => {
                if !self.write(now, request, way) {
                    self.waiting.push(request);
                }
            }
        }
    }

    fn write<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) -> bool {
        let command = self.requests[request].command;
        let (at, end) = (command.offset, command.end());
        if self.extents.iter().any(|it| it.at < end && at < it.end) {
            return false;
        }
        self.extents.push(WriteRange { at, end, request });
        self.send_pieces(now, request, way);
        true
    }

    /// Sends pieces that waited for a write that has ended.
    fn send_waiting<W: TierContext>(&mut self, now: Time, way: &mut W) {
        if !self.waiting.is_empty() {
            let mut waiting = core::mem::take(&mut self.waiting);
            waiting.retain(|&request| !self.write(now, request, way));
            self.waiting = waiting;
        }
    }

    fn send_pieces<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let asked = &mut self.requests[request];
        let rest = now.since(asked.began) - asked.anatomy.total();
        asked.anatomy.add(Part::Tier, rest);
        let (command, client) = (asked.command, asked.client);
        if command.op == Op::Flush {
            for group in 0..self.out.len() as Child {
                if !self.out[usize::from(group)] {
                    let site = self.placement.whole_group(group, client);
                    self.send(
                        now,
                        request,
                        ComponentPart::default(),
                        command.payload,
                        site,
                        way,
                    );
                }
            }
        } else {
            self.send_parts(now, request, &command, way);
        }
        if self.requests[request].left == 0 {
            self.finish(now, request, way);
        }
    }

    fn send_parts<W: TierContext>(
        &mut self,
        now: Time,
        request: u32,
        command: &Command,
        way: &mut W,
    ) {
        let component = self.config.component;
        let mut at = command.offset;
        while at < command.end() {
            let (unit, within) = (at / component, at % component);
            let until = ((unit + 1) * component).min(command.end());
            let part = ComponentPart {
                unit,
                within,
                bytes: (until - at) as u32,
            };
            let payload = command.payload.skip((at - command.offset) as u32);
            let replicas = match command.op {
                Op::Read => match self.replica_to_read(part, 0) {
                    Some(replica) => replica..replica + 1,
                    None => {
                        self.requests[request].status = Status::Gone;
                        0..0
                    }
                },
                _ => 0..self.config.replicas,
            };
            for replica in replicas {
                let site = self.placement.site(unit, replica);
                if !self.out[usize::from(site.group)] {
                    self.send(now, request, part, payload, site, way);
                }
            }
            at = until;
        }
    }

    /// Marks a group as out that failed a write or a flush, if the data is safe without it; returns whether it is.
    fn leave(&mut self, group: Child) -> bool {
        let groups = self.placement.groups();
        let node = usize::from(group) / groups;
        let nodes = self.out.chunks(groups).enumerate();
        let others = nodes.filter(|(it, out)| *it != node && out.contains(&true));
        let enough = others.count() + 1 < usize::from(self.config.replicas);
        self.out[usize::from(group)] |= enough;
        enough
    }

    fn finish<W: TierContext>(&mut self, now: Time, request: u32, way: &mut W) {
        let asked = self.requests[request];
        self.requests.release(request);
        way.finish(asked.command.id, asked.status, asked.anatomy);
        if let Some(index) = self.extents.iter().position(|it| it.request == request) {
            self.extents.swap_remove(index);
            self.send_waiting(now, way);
        }
    }
}

impl Tier for Cluster {
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
        let client = self
            .placement
            .client(command.offset / self.config.component);
        let request = self.requests.insert(ClusterRequest {
            command: *command,
            client,
            began: now,
            left: 0,
            status: Status::Success,
            anatomy: Anatomy::ZERO,
        });
        let work = self.client_work(command);
        let until = self.cores[usize::from(client)].book(now, work);
        match until > now {
            true => self.events.push(until, ClusterEvent::Request(request)),
            false => self.dispatch(now, request, way),
        }
    }

    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
        let piece = &mut self.pieces[token];
        self.copies.done(usize::from(piece.site.group));
        piece.anatomy.append(&done.anatomy);
        piece.status = done.status;
        self.advance_piece(now, token, way);
    }

    fn due(&self) -> Time {
        self.events.next()
    }

    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        while let Some(event) = self.events.pop_due(now) {
            match event {
                ClusterEvent::Piece(piece) => self.advance_piece(now, piece, way),
                ClusterEvent::Request(request) => self.dispatch(now, request, way),
            }
        }
    }

    /// The ranges that the first replica loses that is not out: this replica is read if replicas differ.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        for (group, lost) in children.iter().enumerate() {
            for range in lost {
                self.placement
                    .components(group, *range, |unit, replica, range| {
                        let group = |it| usize::from(self.placement.site(unit, it).group);
                        let first = (0..self.config.replicas).find(|&it| !self.out[group(it)]);
                        if first == Some(replica) {
                            ranges.push(range);
                        }
                    });
            }
        }
    }

    fn power_cut(&mut self, now: Time) {
        self.requests = Slab::default();
        self.pieces = Slab::default();
        self.events = TypedEventQueue::default();
        self.extents.clear();
        self.waiting.clear();
        self.copies.forget();
        self.cores.iter_mut().for_each(|it| it.clear(now));
        let ports = self.leaving.iter_mut().chain(&mut self.arriving);
        ports.for_each(|it| it.clear(now));
    }

    /// Power of its nodes without their drives, and CPU time of their cores.
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        let busy = self.cores.iter().map(|it| it.busy(now).seconds());
        let busy: f64 = busy.sum();
        let node = &self.config.node;
        let idle = node.idle_watts * f64::from(self.config.simulated());
        let joules = idle * now.seconds() + node.core_watts * busy;
        gauges.gauge(Gauge::EnergyJoules, joules);
        gauges.gauge(Gauge::HostCpuSeconds, busy);
    }

    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        for piece in self.parts(at, into.len()) {
            let part = &mut into[piece.part.clone()];
            let mut sites = self.sites(piece.unit);
            let mut read = |site: Site| below.read(site.group, site.base + piece.within, part);
            if !sites.any(|site| read(site).is_ok()) {
                return Err(Unreadable);
            }
        }
        Ok(())
    }

    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        for piece in self.parts(at, data.len()) {
            for site in self.sites(piece.unit) {
                let at = site.base + piece.within;
                below.write(site.group, at, &data[piece.part.clone()])?;
            }
        }
        Ok(())
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        let mut groups = (0..self.out.len() as Child).filter(|&it| !self.out[usize::from(it)]);
        groups.try_for_each(|group| below.sync(group))
    }

    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        self.parts(at, bytes as usize).any(|piece| {
            let mut seen: Option<Vec<u8>> = None;
            self.sites(piece.unit).any(|site| {
                let at = site.base + piece.within;
                let mut data = vec![0; piece.part.len()];
                if below.read(site.group, at, &mut data).is_err() {
                    return false;
                }
                let differs = seen.as_ref().is_some_and(|first| *first != data);
                seen.get_or_insert(data);
                differs || below.is_ambiguous(site.group, at, piece.part.len() as u32)
            })
        })
    }
}

/// The part of a range that is in one component.
struct Offline {
    unit: u64,
    within: u64,
    /// Position in the range.
    part: core::ops::Range<usize>,
}

impl Cluster {
    fn parts(&self, at: u64, bytes: usize) -> impl Iterator<Item = Offline> + use<> {
        let component = self.config.component;
        let end = at + bytes as u64;
        (at / component..end.div_ceil(component)).map(move |unit| {
            let (from, until) = (at.max(unit * component), end.min((unit + 1) * component));
            Offline {
                unit,
                within: from - unit * component,
                part: (from - at) as usize..(until - at) as usize,
            }
        })
    }

    /// Returns the replicas of a component that are not out.
    fn sites(&self, unit: u64) -> impl Iterator<Item = Site> {
        let sites = (0..self.config.replicas).map(move |it| self.placement.site(unit, it));
        sites.filter(|site| !self.out[usize::from(site.group)])
    }
}
