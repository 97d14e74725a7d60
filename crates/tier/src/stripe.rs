//! Stripe: addresses distributed over the children in turn, as in RAID-0.
//!
//! A command is split at the borders of chunks. Its pieces are sent to their children at once, and it completes with
//! the last of them. Commands without data transfer (deallocate, write zeroes) become one range on each child, and a
//! flush goes to all children. Not modelled: the cost of striping itself, which belongs to the host path.

use alloc::string::String;
use alloc::vec::Vec;

use model::command::{Command, Completion, Op};
use model::data::Unwritable;
use model::device::Range;
use model::time::Time;

use super::offline::ChildImages;
use super::planted::{self, Bug};
use super::striping::Striping;
use super::{Child, ChildRange, Gather, Promise, Tier, TierContext, TierSettings};

/// Settings of a stripe.
#[derive(Clone, PartialEq, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StripeConfig {
    /// Bytes on one child before the next child follows: a multiple of 4096, not zero.
    pub chunk: u32,
}

/// A stripe over its children.
#[derive(Clone, Debug)]
pub struct Stripe {
    striping: Striping,
    requests: Gather,
}

impl TierSettings for StripeConfig {
    type Tier = Stripe;

    fn build(&self, children: &[u64]) -> Stripe {
        Stripe {
            striping: Striping {
                count: children.len() as u64,
                chunk: u64::from(self.chunk),
            },
            requests: Gather::default(),
        }
    }

    fn capacity(&self, children: &[u64]) -> u64 {
        Striping::capacity(children.iter().copied(), u64::from(self.chunk.max(1)))
    }

    fn promise(&self, children: &[Promise]) -> Promise {
        Promise::joined(children, 1)
    }

    fn recovers(&self) -> bool {
        true
    }

    fn used_below(&self, children: &[u64], ranges: &[Range]) -> Vec<Vec<Range>> {
        let striping = self.build(children).striping;
        let of = |child: usize| {
            let run = |it: &Range| striping.run(child, it.offset, it.offset + it.bytes);
            ranges.iter().filter_map(run).collect()
        };
        (0..children.len()).map(of).collect()
    }

    fn problems(&self, children: &[u64]) -> Vec<String> {
        let mut problems = Vec::new();
        if self.chunk == 0 || !self.chunk.is_multiple_of(4096) {
            problems.push(String::from("its chunk must be a multiple of 4 KiB"));
        }
        if children.len() < 2 {
            problems.push(String::from("a stripe requires at least two members"));
        } else if self.capacity(children) == 0 {
            problems.push(String::from("its chunk is larger than its members"));
        }
        problems
    }
}

impl Tier for Stripe {
    fn submit<W: TierContext>(&mut self, _now: Time, command: &Command, way: &mut W) {
        let token = self.requests.begin(command.id);
        let children = 0..self.striping.count as u16;
        let requests = &mut self.requests;
        let mut send = |child: u16, piece: Command| {
            requests.expect(token);
            way.send(child, token, piece);
        };
        if command.op == Op::Flush {
            let all = !planted::has(Bug::StripeFlushesOneChild);
            let to = children.filter(|child| all || *child == 0);
            to.for_each(|child| send(child, *command));
        } else if command.op.transfers() {
            let (mut at, end) = (command.offset, command.end());
            while at < end {
                let until = self.striping.border(at).min(end);
                let (child, offset) = self.striping.place(at);
                let piece = Command {
                    offset,
                    bytes: (until - at) as u32,
                    payload: match planted::has(Bug::StripeRepeatsData) {
                        true => command.payload,
                        false => command.payload.skip((at - command.offset) as u32),
                    },
                    ..*command
                };
                send(child as u16, piece);
                at = until;
            }
        } else {
            for child in children {
                let run = self
                    .striping
                    .run(usize::from(child), command.offset, command.end());
                let run = run.filter(|_| child == 0 || !planted::has(Bug::StripeTrimsOneChild));
                if let Some(run) = run {
                    let piece = Command {
                        offset: run.offset,
                        bytes: run.bytes as u32,
                        ..*command
                    };
                    send(child, piece);
                }
            }
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
        let mut pieces = Vec::new();
        let mut next = at;
        while next < end {
            let until = self.striping.border(next).min(end);
            let (child, offset) = self.striping.place(next);
            pieces.push(ChildRange {
                child: child as Child,
                at: offset,
                part: (next - at) as usize..(until - at) as usize,
            });
            next = until;
        }
        Some(pieces)
    }

    fn sync_offline(&self, below: &mut dyn ChildImages) -> Result<(), Unwritable> {
        (0..self.striping.count as Child).try_for_each(|child| below.sync(child))
    }

    fn at_risk(&self, children: &[Vec<Range>], ranges: &mut Vec<Range>) {
        for (index, lost) in children.iter().enumerate() {
            self.striping.whole(index, lost, ranges);
        }
    }

    fn power_cut(&mut self, _now: Time) {
        self.requests.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stripe_of_one_or_of_half_sectors_is_refused() {
        let problems = |chunk, children: &[u64]| StripeConfig { chunk }.problems(children).len();
        assert_eq!(problems(4096, &[1 << 20, 1 << 20]), 0);
        assert_eq!(problems(4096, &[1 << 20]), 1);
        assert_eq!(problems(512, &[1 << 20; 2]), 1);
        assert_eq!(problems(1 << 21, &[1 << 20, 1 << 20]), 1);
    }
}
