//! Durability guarantee of a pool: when an acknowledged write is durable, and which failures lose it.
//!
//! A guarantee is data: it is displayed, the probability of data loss is computed from it, and the checker tests both
//! directions.

use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

/// When an acknowledged write survives a power cut of all machines and drives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, PartialOrd, Ord)]
pub enum DurabilityPoint {
    /// As soon as it is acknowledged.
    Acknowledged,
    /// After a flush has completed that was submitted after the acknowledgement, or if it was written with force unit
    /// access.
    Flushed,
    /// Some time later, regardless of flushes: a flush is acknowledged without effect.
    Later,
}

impl DurabilityPoint {
    /// Returns the guarantee as text: `acknowledged is durable`.
    pub const fn words(self) -> &'static str {
        match self {
            DurabilityPoint::Acknowledged => "acknowledged is durable",
            DurabilityPoint::Flushed => "flushed is durable",
            DurabilityPoint::Later => {
                "nothing is durable when it is acknowledged or flushed, only later"
            }
        }
    }
}

/// Failures that lose durable data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// Permanent failure of this member.
    Member(u16),
    /// Loss of the machine's memory: a power cut, or a crash.
    Ram,
    /// At least this number of these failures.
    AtLeast(u16, Vec<Loss>),
}

/// Durability guarantee of a tier or a pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Promise {
    /// When an acknowledged write is durable.
    pub durable: DurabilityPoint,
    /// Failures that lose durable data.
    pub loss: Loss,
}

impl Loss {
    /// Any of these failures.
    pub fn any(of: Vec<Loss>) -> Loss {
        Loss::out_of(1, of)
    }

    /// All of these failures together.
    pub fn all(of: Vec<Loss>) -> Loss {
        Loss::out_of(of.len() as u16, of)
    }

    /// At least `at_least` of these failures, simplified: a single failure needs no count, and if one is enough,
    /// duplicates are removed.
    pub fn out_of(at_least: u16, mut of: Vec<Loss>) -> Loss {
        if at_least == 1 {
            let mut known: Vec<Loss> = Vec::with_capacity(of.len());
            for one in of {
                if !known.contains(&one) {
                    known.push(one);
                }
            }
            of = known;
        }
        match of.len() {
            1 => of.swap_remove(0),
            _ => Loss::AtLeast(at_least, of),
        }
    }

    /// Returns the failures that lose data although the memory is never lost; `None` if there are none.
    pub fn without_ram(&self) -> Option<Loss> {
        match self {
            Loss::Member(_) => Some(self.clone()),
            Loss::Ram => None,
            Loss::AtLeast(least, of) => {
                let of: Vec<Loss> = of.iter().filter_map(Loss::without_ram).collect();
                (of.len() >= usize::from(*least)).then(|| Loss::out_of(*least, of))
            }
        }
    }

    /// Whether data is lost if these members and, if `ram` is set, the memory have failed.
    pub fn happens(&self, failed: &impl Fn(u16) -> bool, ram: bool) -> bool {
        match self {
            Loss::Member(member) => failed(*member),
            Loss::Ram => ram,
            Loss::AtLeast(least, of) => {
                let count = of.iter().filter(|loss| loss.happens(failed, ram)).count();
                count >= usize::from(*least)
            }
        }
    }

    /// Returns the minimal sets of failures that lose data, each with its members in order and whether the memory is
    /// included.
    pub fn cut_sets(&self) -> Vec<(Vec<u16>, bool)> {
        let mut sets = self.sets();
        sets.sort_by_key(|(members, ram)| {
            (members.len() + usize::from(*ram), members.clone(), *ram)
        });
        let mut least: Vec<(Vec<u16>, bool)> = Vec::new();
        for set in sets {
            let covered = |known: &(Vec<u16>, bool)| {
                (set.1 || !known.1) && known.0.iter().all(|member| set.0.contains(member))
            };
            if !least.iter().any(covered) {
                least.push(set);
            }
        }
        least
    }

    fn sets(&self) -> Vec<(Vec<u16>, bool)> {
        match self {
            Loss::Member(member) => vec![(vec![*member], false)],
            Loss::Ram => vec![(Vec::new(), true)],
            Loss::AtLeast(least, of) => {
                let each: Vec<_> = of.iter().map(Loss::sets).collect();
                let mut all = Vec::new();
                choose(&each, usize::from(*least), (Vec::new(), false), &mut all);
                all
            }
        }
    }

    /// Returns the failures as text, with the members' names: `nda.0 and nda.1`.
    pub fn words(&self, names: &[String]) -> String {
        match self {
            Loss::Member(member) => names[usize::from(*member)].clone(),
            Loss::Ram => "memory".to_string(),
            Loss::AtLeast(least, of) => {
                let count = usize::from(*least);
                let many = of.len() > 3;
                let words = match (many, run_of_names(of, names)) {
                    (true, Some(run)) => run,
                    _ => {
                        let word = if count == of.len() { " and " } else { " or " };
                        let inner = |loss: &Loss| match loss {
                            Loss::AtLeast(..) => alloc::format!("({})", loss.words(names)),
                            _ => loss.words(names),
                        };
                        of.iter().map(inner).collect::<Vec<_>>().join(word)
                    }
                };
                match (count, many) {
                    (1, true) => alloc::format!("any of {words}"),
                    (1, false) => words,
                    _ if count < of.len() => alloc::format!("any {count} of {words}"),
                    (_, true) => alloc::format!("all of {words}"),
                    _ => words,
                }
            }
        }
    }
}

/// Adds all combinations of `have` with this number of elements of `each`.
fn choose(
    each: &[Vec<(Vec<u16>, bool)>],
    more: usize,
    have: (Vec<u16>, bool),
    all: &mut Vec<(Vec<u16>, bool)>,
) {
    if more == 0 {
        all.push(have);
        return;
    }
    for (index, sets) in each.iter().enumerate() {
        for (members, ram) in sets {
            let mut joined = have.clone();
            joined.0.extend(members);
            joined.0.sort_unstable();
            joined.0.dedup();
            joined.1 |= ram;
            choose(&each[index + 1..], more - 1, joined, all);
        }
    }
}

/// Returns `sas.0 to sas.9`, if all are consecutive members.
fn run_of_names(of: &[Loss], names: &[String]) -> Option<String> {
    let member = |loss: &Loss| match loss {
        Loss::Member(member) => Some(*member),
        _ => None,
    };
    let members: Vec<u16> = of.iter().map(member).collect::<Option<_>>()?;
    let follows = members.windows(2).all(|two| two[1] == two[0] + 1);
    let (first, last) = (members.first()?, members.last()?);
    follows.then(|| {
        alloc::format!(
            "{} to {}",
            names[usize::from(*first)],
            names[usize::from(*last)]
        )
    })
}

impl Promise {
    /// Returns the guarantee of one drive; `volatile`: whether its cache loses unflushed data.
    pub fn of_member(member: u16, volatile: bool) -> Promise {
        Promise {
            durable: match volatile {
                true => DurabilityPoint::Flushed,
                false => DurabilityPoint::Acknowledged,
            },
            loss: Loss::Member(member),
        }
    }

    /// Returns the guarantee of data that is on all of these children, or needs all of them: as durable as the least
    /// durable, and lost when `at_least` of them have lost theirs.
    pub fn joined(children: &[Promise], at_least: u16) -> Promise {
        let durable = children.iter().map(|child| child.durable).max();
        Promise {
            durable: durable.unwrap_or(DurabilityPoint::Flushed),
            loss: Loss::out_of(
                at_least,
                children.iter().map(|child| child.loss.clone()).collect(),
            ),
        }
    }

    /// Returns the guarantee as text: `acknowledged is durable, lost if nda.0 and nda.1`.
    pub fn words(&self, names: &[String]) -> String {
        alloc::format!(
            "{}, lost if {}",
            self.durable.words(),
            self.loss.words(names)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<String> {
        (0..count)
            .map(|index| alloc::format!("d.{index}"))
            .collect()
    }

    fn members(range: core::ops::Range<u16>) -> Vec<Loss> {
        range.map(Loss::Member).collect()
    }

    #[test]
    fn words_say_what_loses_data() {
        let words = |loss: Loss| loss.words(&names(10));
        assert_eq!(words(Loss::Member(3)), "d.3");
        assert_eq!(words(Loss::all(members(0..2))), "d.0 and d.1");
        assert_eq!(words(Loss::any(members(0..2))), "d.0 or d.1");
        let both = || Loss::all(members(0..2));
        assert_eq!(words(Loss::any(vec![both(), both()])), "d.0 and d.1");
        assert_eq!(words(Loss::any(members(0..10))), "any of d.0 to d.9");
        assert_eq!(
            words(Loss::out_of(3, members(0..10))),
            "any 3 of d.0 to d.9"
        );
        let mirrors = vec![Loss::all(members(0..2)), Loss::all(members(2..4))];
        assert_eq!(words(Loss::any(mirrors)), "(d.0 and d.1) or (d.2 and d.3)");
        assert_eq!(
            words(Loss::all(vec![Loss::Member(1), Loss::Ram])),
            "d.1 and memory"
        );
    }

    #[test]
    fn cut_sets_are_the_smallest() {
        let pairs = Loss::any(vec![Loss::all(members(0..2)), Loss::all(members(1..3))]);
        assert_eq!(pairs.cut_sets(), [(vec![0, 1], false), (vec![1, 2], false)]);
        // A mirror on two slices of one member has no redundancy.
        let same = Loss::all(vec![Loss::Member(4), Loss::Member(4)]);
        assert_eq!(same.cut_sets(), [(vec![4], false)]);
        assert_eq!(Loss::out_of(3, members(0..10)).cut_sets().len(), 120);
        let covered = Loss::any(vec![
            Loss::Member(0),
            Loss::all(vec![Loss::Member(0), Loss::Ram]),
        ]);
        assert_eq!(covered.cut_sets(), [(vec![0], false)]);
    }

    #[test]
    fn a_cut_set_is_what_makes_it_happen() {
        let loss = Loss::out_of(2, members(0..5));
        for (set, ram) in loss.cut_sets() {
            assert!(loss.happens(&|member| set.contains(&member), ram));
            assert!(!loss.happens(&|member| member == set[0], ram));
        }
    }
}
