//! Concatenation: the children in sequence, each truncated to whole MiB if there are several.
//!
//! It also concatenates the volumes of a pool. A command across a border is split there.

use alloc::string::String;
use alloc::vec::Vec;

use model::command::{Command, Completion, Op};
use model::data::Unwritable;
use model::device::Range;
use model::time::Time;

use super::offline::ChildImages;
use super::planted::{self, Bug};
use super::{Child, ChildRange, Gather, Promise, Tier, TierContext, TierSettings};

/// Settings of a concatenation: it has none except its children.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcatConfig {}

/// A concatenation of its children.
#[derive(Clone, Debug)]
pub struct Concat {
    /// Where each child ends, in the concatenation's addresses.
    ends: Vec<u64>,
    requests: Gather,
}

/// Unit of truncation, so that each child begins at a round address.
const WHOLE: u64 = 1 << 20;

impl Concat {
    /// Returns the bytes that are used of each child.
    pub(super) fn sizes(children: &[u64]) -> Vec<u64> {
        let whole = |&size: &u64| match children.len() {
            1 => size,
            _ => size / WHOLE * WHOLE,
        };
        children.iter().map(whole).collect()
    }

    /// Returns where a child begins.
    fn begin(&self, child: usize) -> u64 {
        match child {
            0 => 0,
            _ => self.ends[child - 1],
        }
    }
}

impl TierSettings for ConcatConfig {
    type Tier = Concat;

    fn build(&self, children: &[u64]) -> Concat {
        let mut end = 0;
        let add = |size| {
            end += size;
            end
        };
        Concat {
            ends: Concat::sizes(children).into_iter().map(add).collect(),
            requests: Gather::default(),
        }
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        Concat::sizes(children).iter().sum()
    }

    fn promise(&self, children: &[Promise]) -> Promise {
        Promise::joined(children, 1)
    }

    fn recovers(&self) -> bool {
        true
    }

    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let concat = self.build(children);
        let of = |child: usize| {
            let begin = concat.begin(child);
            let part = |it: &Range| {
                let from = it.offset.max(begin);
                let until = (it.offset + it.bytes).min(concat.ends[child]);
                (from < until).then(|| Range {
                    offset: from - begin,
                    bytes: until - from,
                })
            };
            ranges.iter().filter_map(part).collect()
        };
        (0..children.len()).map(of).collect()
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if Concat::sizes(children).contains(&0) {
            problems.push(String::from(
                "each of its children must have at least 1 MiB",
            ));
        }
        if children.is_empty() {
            problems.push(String::from("it requires at least one child"));
        }
        problems
    }
}

impl Tier for Concat {
    fn submit<W: TierContext>(&mut self, _now: Time, command: &Command, way: &mut W) {
        let token = self.requests.begin(command.id);
        if command.op == Op::Flush {
            let all = !planted::has(Bug::ConcatFlushesOneChild);
            for child in (0..self.ends.len()).filter(|child| all || *child == 0) {
                self.requests.expect(token);
                way.send(child as Child, token, *command);
            }
            return;
        }
        let (mut at, end) = (command.offset, command.end());
        let mut child = self.ends.partition_point(|&end| end <= at);
        while at < end {
            let until = end.min(self.ends[child]);
            let piece = Command {
                offset: at - self.begin(child),
                bytes: (until - at) as u32,
                payload: match planted::has(Bug::ConcatRepeatsData) {
                    true => command.payload,
                    false => command.payload.skip((at - command.offset) as u32),
                },
                ..*command
            };
            self.requests.expect(token);
            way.send(child as Child, token, piece);
            at = until;
            child += 1;
        }
    }

    fn completed<W: TierContext>(
        &mut self,
        _now: Time,
        token: u32,
        done: &Completion,
        way: &mut W,
    ) {
        if let Some((id, status)) = self.requests.done(token, done) {
            way.finish(id, status, done.anatomy);
        }
    }

    fn pieces(&self, at: u64, bytes: usize) -> Option<Vec<ChildRange>> {
        let end = at + bytes as u64;
        let piece = |child: usize| {
            let begin = self.begin(child);
            let (from, until) = (at.max(begin), end.min(self.ends[child]));
            (from < until).then(|| ChildRange {
                child: child as Child,
                at: from - begin,
                part: (from - at) as usize..(until - at) as usize,
            })
        };
        Some((0..self.ends.len()).filter_map(piece).collect())
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        (0..self.ends.len() as Child).try_for_each(|child| below.sync(child))
    }

    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        for (child, lost) in children.iter().enumerate() {
            let begin = self.begin(child);
            // Data beyond the whole MiB belongs to no address.
            let inside = lost
                .iter()
                .filter(|range| begin + range.offset < self.ends[child]);
            ranges.extend(inside.map(|range| Range {
                offset: begin + range.offset,
                bytes: range.bytes.min(self.ends[child] - begin - range.offset),
            }));
        }
    }

    fn power_cut(&mut self, _now: Time) {
        self.requests.clear();
    }
}
