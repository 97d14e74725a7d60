//! Tiers: devices composed of drives.
//!
//! A *tier* (mirror, stripe, cache, log) is a state machine without children, clock or data of its own. A [`Pool`] owns
//! the drives, which are its *members*, and the tiers above them. It passes commands between them and is the only
//! [`Device`](model::device::Device). Two tiers can therefore use slices of one member, and all commands to a member
//! pass through one component.
//!
//! To add a tier: a file or folder here that implements [`Tier`] and [`TierSettings`], and its line in `tiers!` below.
//!
//! [`raid0`] is older: a RAID-0 inside one drive (the P3608's two controllers), which has members of its own.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod below;
mod bits;
mod children;
mod cluster;
mod concat;
pub mod config;
mod copies;
mod drive;
mod gather;
mod label;
mod labels;
#[cfg(test)]
mod laws;
mod legs;
mod log;
mod loss;
mod members;
pub mod mirror;
pub mod offline;
pub mod openings;
mod packed;
mod parity;
pub mod planted;
mod pool;
pub mod raid0;
mod raidz;
mod read_errors;
mod readcache;
mod rebuild;
pub mod record;
#[cfg(test)]
mod rig;
#[cfg(test)]
mod shelf;
mod streams;
mod stripe;
mod striping;
mod structured;
mod table;
pub mod trial;
mod writeback;

pub use cluster::{Cluster, ClusterConfig, Network, NodeConfig};
pub use concat::{Concat, ConcatConfig};
pub use config::{Member, PoolConfig, PoolVolume, Target, TierConfig};
pub use copies::Reads;
pub use drive::{Drive, DriveConfig};
pub use gather::Gather;
pub use log::{Autotrim, IntentLog, IntentLogConfig, LogCpu, LogScale, Logbias, SyncPolicy};
pub use loss::{DurabilityPoint, Loss, Promise};
pub use mirror::{MOST_LEGS, Mirror, MirrorConfig};
pub use parity::{ParityArray, ParityArrayConfig};
pub use pool::{ChildCommand, Pool};
pub use raidz::{Raidz, RaidzConfig};
pub use read_errors::READ_ERRORS;
pub use readcache::{Feed, Policy, ReadCache, ReadCacheConfig, Writes};
pub use rebuild::{RebuildProgress, SyncState};
pub use stripe::{Stripe, StripeConfig};
pub use structured::{LogStructured, LogStructuredConfig, StructuredNodes};
pub use writeback::{
    BypassPolicy, Cleaning, CommitPolicy, Congestion, Destage, Durability, IdleCleaning,
    RateControl, WriteBack, WriteBackConfig,
};

use alloc::boxed::Box;
use alloc::vec::Vec;

use model::anatomy::Anatomy;
use model::command::{Command, CommandId, Completion, Status};
use model::data::{Buffers, Unreadable, Unwritable};
use model::device::{Gauges, Range};
use model::time::Time;

use self::offline::{ChildImages, Damage};

/// Index of a tier's child, counted from 0.
pub type Child = u16;

/// The part of a range of a tier's addresses that is on one child.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildRange {
    /// Index of the child.
    pub child: Child,
    /// First byte on the child.
    pub at: u64,
    /// Position in the range.
    pub part: core::ops::Range<usize>,
}

/// Operations that a tier can call while it is being called. All take effect at the time of the call.
pub trait TierContext {
    /// Buffers for the tier's own data, of the same type as those of the pool's commands.
    type Buffers: Buffers;

    /// Returns the buffers of the pool.
    fn buffers(&mut self) -> &mut Self::Buffers;

    /// Sends a command to a child. Its completion is passed to [`Tier::completed`] with `token`, during this call of
    /// the tier or a later one, but never before `send` returns. The command's own id is ignored.
    fn send(&mut self, child: Child, token: u32, command: Command);

    /// Completes the tier's command with this id, now. The parts of the anatomy must sum to the time since its
    /// submission.
    fn finish(&mut self, id: CommandId, status: Status, anatomy: Anatomy);
}

/// A tier: the layer above submits commands to it, and it sends commands to its children.
pub trait Tier {
    /// Accepts a command. Its range is within [`TierSettings::capacity`] and not empty unless it is a flush; its id is
    /// not reused before it is finished.
    fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W);

    /// A command that the tier sent has completed.
    fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W);

    /// Returns when the tier must be called even if no command completes.
    fn due(&self) -> Time {
        Time::NEVER
    }

    /// Called at the time of [`Tier::due`].
    fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
        let _ = (now, way);
    }

    /// Appends the ranges of its own addresses that a power cut now would lose, derived from those of each child.
    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>);

    /// A member below `child` responds again.
    fn returned<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        let _ = (now, child, way);
    }

    /// The member that is `child` was replaced: it responds, and lacks all data.
    fn replaced<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
        self.returned(now, child, way);
    }

    /// For a tier that only distributes its addresses over its children: returns the parts of a range, each on one
    /// child. `None` for others.
    fn pieces(&self, at: u64, bytes: usize) -> Option<Vec<ChildRange>> {
        let _ = (at, bytes);
        None
    }

    /// Reads offline.
    ///
    /// # Errors
    /// If no child can return these bytes.
    fn read_offline(
        &self,
        at: u64,
        into: &mut [u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unreadable> {
        let pieces = self.pieces(at, into.len()).ok_or(Unreadable)?;
        let mut pieces = pieces.into_iter();
        pieces.try_for_each(|it| below.read(it.child, it.at, &mut into[it.part]))
    }

    /// Writes offline.
    ///
    /// # Errors
    /// If a child cannot store the data.
    fn write_offline(
        &mut self,
        at: u64,
        data: &[u8],
        below: &mut dyn ChildImages,
    ) -> Result<(), Unwritable> {
        let pieces = self.pieces(at, data.len()).ok_or(Unwritable)?;
        let mut pieces = pieces.into_iter();
        pieces.try_for_each(|it| below.write(it.child, it.at, &data[it.part]))
    }

    /// Makes data that was written offline durable.
    ///
    /// # Errors
    /// If that fails.
    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        let _ = below;
        Err(Unwritable)
    }

    /// A child that could not be opened was formatted again, offline: it lacks all its data.
    ///
    /// # Errors
    /// If the tier cannot accept it.
    fn renewed(&mut self, child: Child, below: &mut dyn ChildImages) -> Result<(), Damage> {
        let _ = (child, below);
        Err(Damage::Unsupported)
    }

    /// The pool's recovery has ended. The state after its writes must equal that after an orderly shutdown: marks of
    /// these writes are cleared, so that the first writes of clients find the same state as in a new pool.
    ///
    /// # Errors
    /// If a child cannot be written.
    fn settle(&mut self, below: &mut dyn ChildImages) -> Result<(), Damage> {
        let _ = below;
        Ok(())
    }

    /// Informs the tier that only these ranges of its addresses are used by the tiers above.
    fn used(&mut self, ranges: &[Range]) {
        let _ = ranges;
    }

    /// Whether the tier's data of a range, read offline, depends on which copy below it is read.
    fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
        let pieces = self.pieces(at, bytes as usize).unwrap_or_default();
        let mut pieces = pieces.into_iter();
        pieces.any(|it| below.is_ambiguous(it.child, it.at, it.part.len() as u32))
    }

    /// Power cut: releases the buffers of data in memory.
    fn release_buffers<B: Buffers>(&mut self, buffers: &mut B) {
        let _ = buffers;
    }

    /// Power was cut, and is restored at `now`: state that is only in memory is lost, and no command that it sent or
    /// received completes.
    fn power_cut(&mut self, now: Time);

    /// Reports gauges as of `now`. Bytes, energy and time are reported only if no member reports them.
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        let _ = (now, gauges);
    }
}

/// Settings of a tier.
pub trait TierSettings {
    /// The type of tier that these settings create.
    type Tier: Tier;

    /// Creates the tier over children of these sizes in bytes.
    fn build(&self, children: &[u64]) -> Self::Tier;

    /// Returns the addressable bytes over children of these sizes.
    fn capacity(&self, children: &[u64]) -> u64;

    /// Returns the durability guarantee, derived from those of its children.
    fn promise(&self, children: &[Promise]) -> Promise;

    /// Formats the tier on its children: writes the metadata that [`TierSettings::recover`] needs. Without an
    /// implementation of its own, the tier has no metadata.
    ///
    /// # Errors
    /// Why it cannot be formatted.
    fn format(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<(), Damage> {
        let _ = pool;
        match self.recovers() {
            true => offline::all_present(children, below),
            false => Err(Damage::Unsupported),
        }
    }

    /// Recovers the tier from its children after a crash or an orderly shutdown, and repairs it; deviations are
    /// reported.
    ///
    /// # Errors
    /// Why it cannot be opened.
    fn recover(
        &self,
        children: &[u64],
        pool: u128,
        below: &mut dyn ChildImages,
    ) -> Result<Self::Tier, Damage> {
        let _ = pool;
        match self.recovers() {
            true => offline::all_present(children, below).map(|()| self.build(children)),
            false => Err(Damage::Unsupported),
        }
    }

    /// Whether [`TierSettings::format`] and [`TierSettings::recover`] support this kind.
    fn recovers(&self) -> bool {
        false
    }

    /// Whether the tier can be opened without this child, or with an old copy of it, in which case
    /// [`TierSettings::recover`] handles that.
    fn does_without(&self, child: Child) -> bool {
        let _ = child;
        false
    }

    /// Whether a child that cannot be opened may be formatted again, because other children have its data.
    fn renews(&self) -> bool {
        false
    }

    /// Returns the used ranges of each child, if only these ranges of the tier's addresses are used.
    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let _ = ranges;
        let all = |&bytes: &u64| alloc::vec![Range { offset: 0, bytes }];
        children.iter().map(all).collect()
    }

    /// Returns the reasons why the tier is invalid over children of these sizes; empty if it is valid.
    fn problems(&self, children: &[u64]) -> Vec<alloc::string::String>;

    /// Whether its blocks must never be changed in place: it can be used only below a tier for which
    /// [`TierSettings::writes_whole_blocks`] is true.
    fn needs_whole_blocks(&self) -> bool {
        false
    }

    /// Whether the tier never changes blocks of its children in place.
    fn writes_whole_blocks(&self) -> bool {
        false
    }

    /// Whether the tier can be scaled down: times in seconds and disk revolutions do not shrink with capacity.
    fn shrinks(&self) -> bool {
        true
    }

    /// Scales its own sizes by `factor`, as its children's: limits and counting units.
    fn shrink(&mut self, factor: f64) {
        let _ = factor;
    }

    /// Returns its idle power in watts, without its children.
    fn idle_watts(&self) -> f64 {
        0.0
    }

    /// Returns the maximum bytes of data that it keeps in the memory of its machine, if there is data.
    fn data_in_memory(&self) -> u64 {
        0
    }
}

/// Defines the enums of all tiers, and forwards calls to the respective tier.
macro_rules! tiers {
    ($($(#[$doc:meta])* $name:ident = $word:literal: $config:ty => $tier:ty,)*) => {
        /// Kind of a tier, with its settings.
        #[derive(Clone, PartialEq, Debug)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Kind {
            $($(#[$doc])* $name($config),)*
        }

        /// Any tier, dispatched without a virtual call; large ones are boxed.
        #[derive(Clone, Debug)]
        pub enum AnyTier {
            $($(#[$doc])* $name($tier),)*
        }

        impl Kind {
            /// The words of all kinds, as in files and expressions.
            pub const WORDS: &[&str] = &[$($word,)*];

            /// Returns the word for the kind.
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
                below: &mut dyn ChildImages,
            ) -> Result<(), Damage> {
                match self { $(Kind::$name(config) => config.format(children, pool, below),)* }
            }
            fn recover(
                &self,
                children: &[u64],
                pool: u128,
                below: &mut dyn ChildImages,
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
            fn submit<W: TierContext>(&mut self, now: Time, command: &Command, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.submit(now, command, way),)* }
            }
            #[inline]
            fn completed<W: TierContext>(&mut self, now: Time, token: u32, done: &Completion, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.completed(now, token, done, way),)* }
            }
            #[inline]
            fn due(&self) -> Time {
                match self { $(AnyTier::$name(tier) => tier.due(),)* }
            }
            fn tick<W: TierContext>(&mut self, now: Time, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.tick(now, way),)* }
            }
            fn returned<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.returned(now, child, way),)* }
            }
            fn replaced<W: TierContext>(&mut self, now: Time, child: Child, way: &mut W) {
                match self { $(AnyTier::$name(tier) => tier.replaced(now, child, way),)* }
            }
            fn read_offline(
                &self,
                at: u64,
                into: &mut [u8],
                below: &mut dyn ChildImages,
            ) -> Result<(), Unreadable> {
                match self { $(AnyTier::$name(tier) => tier.read_offline(at, into, below),)* }
            }
            fn write_offline(
                &mut self,
                at: u64,
                data: &[u8],
                below: &mut dyn ChildImages,
            ) -> Result<(), Unwritable> {
                match self { $(AnyTier::$name(tier) => tier.write_offline(at, data, below),)* }
            }
            fn renewed(&mut self, child: Child, below: &mut dyn ChildImages) -> Result<(), Damage> {
                match self { $(AnyTier::$name(tier) => tier.renewed(child, below),)* }
            }
            fn settle(&mut self, below: &mut dyn ChildImages) -> Result<(), Damage> {
                match self { $(AnyTier::$name(tier) => tier.settle(below),)* }
            }
            fn used(&mut self, ranges: &[Range]) {
                match self { $(AnyTier::$name(tier) => tier.used(ranges),)* }
            }
            fn is_ambiguous_offline(&self, at: u64, bytes: u32, below: &mut dyn ChildImages) -> bool {
                match self {
                    $(AnyTier::$name(tier) => tier.is_ambiguous_offline(at, bytes, below),)*
                }
            }
            fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
                match self { $(AnyTier::$name(tier) => tier.sync_offline(below),)* }
            }
            fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
                match self { $(AnyTier::$name(tier) => tier.at_risk(children, ranges),)* }
            }
            fn release_buffers<B: Buffers>(&mut self, buffers: &mut B) {
                match self { $(AnyTier::$name(tier) => tier.release_buffers(buffers),)* }
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
    /// Equal data on each child.
    Mirror = "mirror": MirrorConfig => Box<Mirror>,
    /// Addresses distributed over the children in turn, one chunk each.
    Stripe = "stripe": StripeConfig => Stripe,
    /// The children in sequence.
    Concat = "concat": ConcatConfig => Concat,
    /// Blocks over all children, each with parity.
    Raidz = "raidz": RaidzConfig => Box<Raidz>,
    /// Chunks over all children, with one parity chunk in each stripe.
    Raid5 = "raid5": ParityArrayConfig<1> => Box<ParityArray>,
    /// Chunks over all children, with two parity chunks in each stripe.
    Raid6 = "raid6": ParityArrayConfig<2> => Box<ParityArray>,
    /// Writes in memory and in a log until they are on the main pool.
    IntentLog = "intent-log": IntentLogConfig => Box<IntentLog>,
    /// The first child caches data read from the second.
    ReadCache = "read-cache": ReadCacheConfig => Box<ReadCache>,
    /// A fast drive that buffers writes to slower ones.
    WriteBack = "write-back-cache": WriteBackConfig => Box<WriteBack>,
    /// Writes in a log until they are in full stripes on the capacity.
    LogStructured = "log-structured": LogStructuredConfig => Box<LogStructured>,
    /// Groups of drives in nodes, with a network between them.
    Cluster = "cluster": ClusterConfig => Box<Cluster>,
}

impl Kind {
    /// Checks whether the tier has the data of each child also on others, or can compute it from them.
    pub fn has_copies(&self) -> bool {
        matches!(
            self,
            Kind::Mirror(_) | Kind::Raid5(_) | Kind::Raid6(_) | Kind::Raidz(_)
        )
    }
}

impl AnyTier {
    /// Returns the children that have all acknowledged data, one bit each; all bits if the tier does not track that.
    #[inline]
    pub fn in_sync(&self) -> u32 {
        match self {
            AnyTier::Mirror(mirror) => mirror.in_sync(),
            AnyTier::Raid5(array) | AnyTier::Raid6(array) => array.in_sync(),
            _ => u32::MAX,
        }
    }
}
