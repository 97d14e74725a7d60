//! Tiers: drives made of drives.
//!
//! A *tier* (mirror, stripe, cache, log) is a state machine that owns nothing: no children, no clock, no bytes. A [`Pool`]
//! owns the drives, which are its *members*, and the tiers above them, carries commands between them and is the only
//! [`Device`](crate::device::Device). So two tiers can have slices of one member, and everything that a member is asked
//! goes through one place.
//!
//! To add a tier: a file or folder here that implements [`Tier`] and [`TierSettings`], and its line in `tiers!` below.
//!
//! [`raid0`] is older: a RAID-0 inside one drive (the P3608's two controllers), which has members of its own.

pub mod below;
mod bits;
mod children;
mod cluster;
mod concat;
pub mod config;
mod copies;
mod gather;
mod label;
mod labels;
#[cfg(test)]
mod laws;
mod legs;
mod log;
mod loss;
pub mod mirror;
pub mod offline;
pub mod openings;
mod packed;
mod parity;
pub mod planted;
mod pool;
pub mod raid0;
mod raidz;
mod readcache;
pub mod record;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod shelf;
mod streams;
mod stripe;
mod striping;
mod table;
mod writeback;

pub use cluster::{Cluster, ClusterConfig, Network, Node};
pub use concat::{Concat, ConcatConfig};
pub use config::{Member, PoolConfig, Target, TierConfig, Volume};
pub use copies::Reads;
pub use gather::Gather;
pub use log::{IntentLog, IntentLogConfig, LogCpu, Logbias, SyncPolicy};
pub use loss::{Durable, Loss, Promise};
pub use mirror::{MOST_LEGS, Mirror, MirrorConfig};
pub use parity::{Array, ArrayConfig};
pub use pool::{ChildCommand, Pool};
pub use raidz::{Raidz, RaidzConfig};
pub use readcache::{Feed, Policy, ReadCache, ReadCacheConfig, Writes};
pub use stripe::{Stripe, StripeConfig};
pub use writeback::{
    Cleaning, Commit, Congestion, Destage, Durability, Idle, Passing, Rate, WriteBack,
    WriteBackConfig,
};

use alloc::boxed::Box;
use alloc::vec::Vec;

use self::offline::{Below, Damage};
use crate::anatomy::Anatomy;
use crate::command::{Command, CommandId, Completion, Status};
use crate::data::{Buffers, Unreadable, Unwritable};
use crate::device::{Gauges, Range};
use crate::time::Time;

/// A tier's own number of what it stands on: its first child is 0.
pub type Child = u16;

/// A part of a range of a tier's addresses that one child has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Piece {
    /// Which child.
    pub child: Child,
    /// First byte on it.
    pub at: u64,
    /// Where it is in the range.
    pub part: core::ops::Range<usize>,
}

/// What a tier may ask for while it is called. Everything happens at the time of the call.
pub trait Way {
    /// Buffers for the tier's own data, of the kind that the pool's commands have theirs in.
    type Buffers: Buffers;

    /// The buffers.
    fn buffers(&mut self) -> &mut Self::Buffers;

    /// Sends a command to a child. What it completes with comes to [`Tier::completed`] with `token`, in this call or a
    /// later one, never before this returns. The command's own id means nothing.
    fn send(&mut self, child: Child, token: u32, command: Command);

    /// Completes the command that the tier was given under this id, now. The parts of the anatomy must sum to the time
    /// since it was submitted.
    fn finish(&mut self, id: CommandId, status: Status, anatomy: Anatomy);
}

/// A tier: what is above it submits commands to it, it sends others to its children.
pub trait Tier {
    /// Takes a command, whose range lies within [`TierSettings::capacity`] and is not empty unless it is a flush; its id is
    /// not used again before it is finished.
    fn submit<W: Way>(&mut self, now: Time, command: &Command, way: &mut W);

    /// A command that it sent has completed.
    fn completed<W: Way>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W);

    /// When it wants to be called without anything having completed.
    fn due(&self) -> Time {
        Time::NEVER
    }

    /// It is [`Tier::due`].
    fn tick<W: Way>(&mut self, now: Time, way: &mut W) {
        let _ = (now, way);
    }

    /// What would be lost if power went now, of its own addresses: from what each child would lose of its own.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>);

    /// A member that this stands on through `child` answers again.
    fn returned<W: Way>(&mut self, now: Time, child: Child, way: &mut W) {
        let _ = (now, child, way);
    }

    /// Of a tier that only deals its addresses to its children: the parts of a range, each on one child. Nothing of others.
    fn pieces(&self, at: u64, bytes: usize) -> Option<Vec<Piece>> {
        let _ = (at, bytes);
        None
    }

    /// Reads while nothing runs.
    ///
    /// # Errors
    /// If nothing below can give these bytes.
    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn Below,
    ) -> Result<(), Unreadable> {
        let pieces = self.pieces(at, into.len()).ok_or(Unreadable)?;
        let mut pieces = pieces.into_iter();
        pieces.try_for_each(|it| below.read(it.child, it.at, &mut into[it.part]))
    }

    /// Writes while nothing runs.
    ///
    /// # Errors
    /// If what is below does not keep it.
    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn Below,
    ) -> Result<(), Unwritable> {
        let pieces = self.pieces(at, data.len()).ok_or(Unwritable)?;
        let mut pieces = pieces.into_iter();
        pieces.try_for_each(|it| below.write(it.child, it.at, &data[it.part]))
    }

    /// What was written while nothing runs is durable.
    ///
    /// # Errors
    /// If it is not.
    fn sync_offline(&self, below: &mut dyn Below) -> Result<(), Unwritable> {
        let _ = below;
        Err(Unwritable)
    }

    /// A child was made anew while nothing runs, because it was not to be had: it has nothing of what it should have.
    ///
    /// # Errors
    /// If it cannot be taken.
    fn renewed(&mut self, child: Child, below: &mut dyn Below) -> Result<(), Damage> {
        let _ = (child, below);
        Err(Damage::Unsupported)
    }

    /// The pool's recovery has ended, and what was written for it has to be as after a rest: marks of it go, lest the first writes of
    /// clients find another pool than one that was made just now.
    ///
    /// # Errors
    /// If a child does not take it.
    fn settle(&mut self, below: &mut dyn Below) -> Result<(), Damage> {
        let _ = below;
        Ok(())
    }

    /// Only these ranges of its addresses are used by what is above it.
    fn used(&mut self, ranges: &[Range]) {
        let _ = ranges;
    }

    /// Whether what it gives for a range while nothing runs depends on where below it is read from.
    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn Below) -> bool {
        let pieces = self.pieces(at, bytes as usize).unwrap_or_default();
        let mut pieces = pieces.into_iter();
        pieces.any(|it| below.is_ambiguous(it.child, it.at, it.part.len() as u32))
    }

    /// Power goes: what data are in that it has in memory is not needed any more.
    fn give_back<B: Buffers>(&mut self, buffers: &mut B) {
        let _ = buffers;
    }

    /// Power went, and is back at `now`: what it knows only in memory is gone, and no command that it sent or was given
    /// completes.
    fn power_cut(&mut self, now: Time);

    /// Reports figures about itself as of `now`: of bytes, energy and time only what no member reports.
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        let _ = (now, gauges);
    }
}

/// What a tier is made of.
pub trait TierSettings {
    /// The tier it makes.
    type Tier: Tier;

    /// The tier over children of these sizes in bytes.
    fn build(&self, children: &[u64]) -> Self::Tier;

    /// Bytes that can be addressed over children of these sizes.
    fn capacity(&self, children: &[u64]) -> u64;

    /// When what it acknowledges is durable, and what loses it, from what holds for its children.
    fn promise(&self, children: &[Promise]) -> Promise;

    /// Makes the tier new on its children: writes what [`TierSettings::recover`] needs.
    ///
    /// # Errors
    /// Why it cannot be made.
    fn format(&self, children: &[u64], pool: u128, below: &mut dyn Below) -> Result<(), Damage> {
        let _ = (children, pool, below);
        Err(Damage::Unsupported)
    }

    /// Finds the tier on its children after a crash or an orderly end, and makes it whole; it tells what was not in order.
    ///
    /// # Errors
    /// Why it is not to be had.
    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn Below,
    ) -> Result<Self::Tier, Damage> {
        let _ = (children, pool, below);
        Err(Damage::Unsupported)
    }

    /// Whether [`TierSettings::format`] and [`TierSettings::recover`] know it.
    fn recovers(&self) -> bool {
        false
    }

    /// Whether it may be had without this child, or with an old copy of it: then [`TierSettings::recover`] looks after that.
    fn does_without(&self, child: Child) -> bool {
        let _ = child;
        false
    }

    /// Whether a child that is not to be had may be made anew, because others have what it should have.
    fn renews(&self) -> bool {
        false
    }

    /// What is used of each child where only these ranges of the tier's addresses are used.
    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let _ = ranges;
        let all = |&bytes: &u64| alloc::vec![Range { offset: 0, bytes }];
        children.iter().map(all).collect()
    }

    /// Why there is no such tier over children of these sizes; nothing if there is.
    fn problems(&self, children: &[u64]) -> Vec<alloc::string::String>;

    /// Whether it may only be given blocks that are never changed in place: it serves only below a tier that says
    /// [`TierSettings::writes_whole_blocks`].
    fn needs_whole_blocks(&self) -> bool {
        false
    }

    /// Whether what it sends to its children keeps to that.
    fn writes_whole_blocks(&self) -> bool {
        false
    }

    /// Whether it is still itself on a smaller scale: seconds and the turns of a disk do not shrink with bytes.
    fn shrinks(&self) -> bool {
        true
    }

    /// Its own sizes become so much smaller, as its children's do: limits, and what they are counted in.
    fn shrink(&mut self, factor: f64) {
        let _ = factor;
    }

    /// Watts that it takes without work, besides its children.
    fn idle_watts(&self) -> f64 {
        0.0
    }

    /// Most bytes of data that it keeps in the memory of the machine it runs on, where there are data.
    fn data_in_memory(&self) -> u64 {
        0
    }
}

/// Makes the enums of all tiers, and passes on what is asked of them to whichever it is.
macro_rules! tiers {
    ($($(#[$doc:meta])* $name:ident = $word:literal: $config:ty => $tier:ty,)*) => {
        /// What kind of tier it is, and its settings.
        #[derive(Clone, PartialEq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Kind {
            $($(#[$doc])* $name($config),)*
        }

        /// Any tier, dispatched without a virtual call; what is large is in a box.
        #[derive(Clone, Debug)]
        pub enum AnyTier {
            $($(#[$doc])* $name($tier),)*
        }

        impl Kind {
            /// The words of all kinds, as files and expressions write them.
            pub const WORDS: &[&str] = &[$($word,)*];

            /// The word for it.
            pub const fn word(&self) -> &'static str {
                match self { $(Kind::$name(_) => $word,)* }
            }
        }

        impl TierSettings for Kind {
            type Tier = AnyTier;

            fn build(&self, children: &[u64]) -> AnyTier {
                match self { $(Kind::$name(config) => AnyTier::$name(config.build(children).into()),)* }
            }
            fn capacity(&self, children: &[u64]) -> u64 {
                match self { $(Kind::$name(config) => config.capacity(children),)* }
            }
            fn promise(&self, children: &[Promise]) -> Promise {
                match self { $(Kind::$name(config) => config.promise(children),)* }
            }
            fn format(
                &self,
                children: &[u64],
                pool: u128,
                below: &mut dyn Below,
            ) -> Result<(), Damage> {
                match self { $(Kind::$name(config) => config.format(children, pool, below),)* }
            }
            fn recover(
                &self,
                children: &[u64],
                pool: u128,
                below: &mut dyn Below,
            ) -> Result<AnyTier, Damage> {
                Ok(match self {
                    $(Kind::$name(it) => AnyTier::$name(it.recover(children, pool, below)?.into()),)*
                })
            }
            fn recovers(&self) -> bool {
                match self { $(Kind::$name(config) => config.recovers(),)* }
            }
            fn does_without(&self, child: Child) -> bool {
                match self { $(Kind::$name(config) => config.does_without(child),)* }
            }
            fn renews(&self) -> bool {
                match self { $(Kind::$name(config) => config.renews(),)* }
            }
            fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
                match self { $(Kind::$name(config) => config.used_below(children, ranges),)* }
            }
            fn problems(&self, children: &[u64]) -> Vec<alloc::string::String> {
                match self { $(Kind::$name(config) => config.problems(children),)* }
            }
            fn data_in_memory(&self) -> u64 {
                match self { $(Kind::$name(config) => config.data_in_memory(),)* }
            }
            fn needs_whole_blocks(&self) -> bool {
                match self { $(Kind::$name(config) => config.needs_whole_blocks(),)* }
            }
            fn writes_whole_blocks(&self) -> bool {
                match self { $(Kind::$name(config) => config.writes_whole_blocks(),)* }
            }
            fn shrinks(&self) -> bool {
                match self { $(Kind::$name(config) => config.shrinks(),)* }
            }
            fn shrink(&mut self, factor: f64) {
                match self { $(Kind::$name(config) => config.shrink(factor),)* }
            }
            fn idle_watts(&self) -> f64 {
                match self { $(Kind::$name(config) => config.idle_watts(),)* }
            }
        }

        impl Tier for AnyTier {
            #[inline]
            fn submit<W: Way>(&mut self, now: Time, command: &Command, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.submit(now, command, way),)* }
            }
            #[inline]
            fn completed<W: Way>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.completed(now, token, done, way),)* }
            }
            #[inline]
            fn due(&self) -> Time {
                match self { $(AnyTier::$name(tier) => tier.due(),)* }
            }
            fn tick<W: Way>(&mut self, now: Time, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.tick(now, way),)* }
            }
            fn returned<W: Way>(&mut self, now: Time, child: Child, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.returned(now, child, way),)* }
            }
            fn read_offline(
                &self,
                at: u64,
                into: &mut [u8],
                below: &mut dyn Below,
            ) -> Result<(), Unreadable> {
                match self { $(AnyTier::$name(tier) => tier.read_offline(at, into, below),)* }
            }
            fn write_offline(
                &mut self,
                at: u64,
                data: &[u8],
                below: &mut dyn Below,
            ) -> Result<(), Unwritable> {
                match self { $(AnyTier::$name(tier) => tier.write_offline(at, data, below),)* }
            }
            fn renewed(&mut self, child: Child, below: &mut dyn Below) -> Result<(), Damage> {
                match self { $(AnyTier::$name(tier) => tier.renewed(child, below),)* }
            }
            fn settle(&mut self, below: &mut dyn Below) -> Result<(), Damage> {
                match self { $(AnyTier::$name(tier) => tier.settle(below),)* }
            }
            fn used(&mut self, ranges: &[Range]) {
                match self { $(AnyTier::$name(tier) => tier.used(ranges),)* }
            }
            fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn Below) -> bool {
                match self {
                    $(AnyTier::$name(tier) => tier.is_ambiguous_offline(at, bytes, below),)*
                }
            }
            fn sync_offline(&self, below: &mut dyn Below) -> Result<(), Unwritable> {
                match self { $(AnyTier::$name(tier) => tier.sync_offline(below),)* }
            }
            fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
                match self { $(AnyTier::$name(tier) => tier.at_risk(children, ranges),)* }
            }
            fn give_back<B: Buffers>(&mut self, buffers: &mut B) {
                match self { $(AnyTier::$name(tier) => tier.give_back(buffers),)* }
            }
            fn power_cut(&mut self, now: Time) {
                match self { $(AnyTier::$name(tier) => tier.power_cut(now),)* }
            }
            fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
                match self { $(AnyTier::$name(tier) => tier.inspect(now, gauges),)* }
            }
        }
    };
}

tiers! {
    /// The same data on each child.
    Mirror = "mirror": MirrorConfig => Box<Mirror>,
    /// Addresses dealt to the children in turn, a chunk each.
    Stripe = "stripe": StripeConfig => Stripe,
    /// One child after the other.
    Concat = "concat": ConcatConfig => Concat,
    /// Blocks over all children, each with parity.
    Raidz = "raidz": RaidzConfig => Raidz,
    /// Chunks over all children, with one of parity in each stripe.
    Raid5 = "raid5": ArrayConfig<1> => Box<Array>,
    /// The same with two.
    Raid6 = "raid6": ArrayConfig<2> => Box<Array>,
    /// Writes in memory and in a log until they are on main.
    IntentLog = "intent-log": IntentLogConfig => Box<IntentLog>,
    /// What is read from the second child is kept on the first.
    ReadCache = "read-cache": ReadCacheConfig => Box<ReadCache>,
    /// A fast drive that takes writes before slower ones.
    WriteBack = "write-back-cache": WriteBackConfig => Box<WriteBack>,
    /// Groups of drives in nodes, with a network between them.
    Cluster = "cluster": ClusterConfig => Box<Cluster>,
}
