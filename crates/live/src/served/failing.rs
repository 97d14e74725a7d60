//! Members whose stores the host can no longer open or write, when a pool is opened, or restarted after a power cut.
//!
//! A running tier drops a child that fails a write, and continues if the others are sufficient. During an opening, the
//! tiers write to all members that are present, so such a member would prevent the opening. It therefore counts as
//! missing, and the opening is repeated without it. A repetition is equivalent to a crash during the first attempt and
//! the removal of the member before the next. Like a missing member, it stays offline until the next start. A member
//! whose files are damaged also counts as missing; the files are not changed.
//!
//! Not here: a host without space for writes, which is not a fault of a member ([`super::room`]).

use std::fs::OpenOptions;
use std::io;
use std::path::Path;

use model::Time;
use model::data::{Bytes, Contents, DriveFault, Unreadable, Unwritable};
use rustix::io::Errno;
use text::problem::{Problem, Problems};
use tier::offline::Images;
use tier::{DriveConfig, Kind, Pool, PoolConfig, Target};

use super::disk::{MemberDisk, PoolDrive};
use super::opening::{IN_USE, OTHER_PROGRAM};
use crate::store::state_path;

/// Stores of a pool that is not running, each of which may fail.
pub(super) trait FallibleStores: Images {
    /// Makes members absent whose stores the host could not write since the last call; returns the host's errors.
    fn drop_failed(&mut self) -> Vec<String>;
}

/// The stores of a pool that is not running.
pub(super) struct OfflineStores<'a> {
    pub(super) disks: &'a mut [MemberDisk],
    pub(super) absent: Vec<bool>,
}

impl Images for OfflineStores<'_> {
    fn present(&self, member: u16) -> bool {
        !self.absent[usize::from(member)]
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        self.disks[usize::from(member)].read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.disks[usize::from(member)].write(at, data)
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.disks[usize::from(member)].sync()
    }
}

/// The stores of a pool that has just lost power: failed members are missing.
pub(super) struct PowerCutStores<'a>(pub(super) &'a mut Pool<PoolDrive, Bytes>);

impl Images for PowerCutStores<'_> {
    fn present(&self, member: u16) -> bool {
        !self.0.members()[usize::from(member)].is_dead()
    }
    fn read(&mut self, member: u16, at: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let member = &self.0.members()[usize::from(member)];
        member.contents().read(at, into)
    }
    fn write(&mut self, member: u16, at: u64, data: &[u8]) -> Result<(), Unwritable> {
        self.0
            .with_member(member, |it| it.contents_mut().write(at, data))
    }
    fn sync(&mut self, member: u16) -> Result<(), Unwritable> {
        self.0.with_member(member, |it| it.contents_mut().sync())
    }
}

impl FallibleStores for OfflineStores<'_> {
    fn drop_failed(&mut self) -> Vec<String> {
        let each = self.disks.iter_mut().zip(&mut self.absent);
        let present = each.filter(|(_, absent)| !**absent);
        let failed = present.filter_map(|(disk, absent)| {
            let error = disk.take_failed_write()?;
            *absent = true;
            Some(error.to_string())
        });
        failed.collect()
    }
}

impl FallibleStores for PowerCutStores<'_> {
    fn drop_failed(&mut self) -> Vec<String> {
        let members = 0..self.0.members().len() as u16;
        let present = members.filter(|&member| self.present(member));
        let present: Vec<u16> = present.collect();
        let failed = present.into_iter().filter_map(|member| {
            self.0.with_member(member, |it| {
                let error = it.contents_mut().take_failed_write()?;
                it.befall(Time::ZERO, DriveFault::Dies);
                Some(error.to_string())
            })
        });
        failed.collect()
    }
}

/// Attempts an opening, if necessary again without members whose stores the host could not write. `errors` gets the
/// host's errors.
///
/// # Errors
/// That of the first attempt: without the dropped members, the reason would be their absence.
pub(super) fn repeat_without_failed<S: FallibleStores, T, E>(
    stores: &mut S,
    errors: &mut Vec<String>,
    mut attempt: impl FnMut(&mut S, &[String]) -> Result<T, E>,
) -> Result<T, E> {
    let mut first = None;
    loop {
        let error = match attempt(stores, errors) {
            Ok(opened) => return Ok(opened),
            Err(error) => first.take().unwrap_or(error),
        };
        let failed = stores.drop_failed();
        if failed.is_empty() {
            return Err(error);
        }
        first = Some(error);
        errors.extend(failed);
    }
}

/// Tries to open the files of an existing member as the server does. Returns the host's error with the member's name, if
/// it is one that does not depend on their content: the file system is read-only, or the disk has an error.
pub(super) fn unusable(name: &str, image: &Path) -> Option<io::Error> {
    let image = image.to_owned();
    let opened = OpenOptions::new().read(true).write(true).open(&image);
    #[cfg(test)]
    let opened = super::disk::openable(name).and(opened);
    let read = opened.and_then(|_| std::fs::read(state_path(&image)));
    let error = read.err()?;
    let errno = Errno::from_io_error(&error)?;
    let of_host = [
        Errno::PERM,
        Errno::ACCESS,
        Errno::ROFS,
        Errno::IO,
        Errno::NXIO,
    ];
    let what = || io::Error::new(error.kind(), format!("{name} cannot be opened: {error}"));
    of_host.contains(&errno).then(what)
}

/// Returns the message on a member that has been dropped because of this error of the host, or this damage of its files.
pub(super) fn dropped(error: &str) -> String {
    format!("{error}. It counts as missing; the next start tries to open it again")
}

/// Returns the message on the next step for a member of this size whose files are damaged. The server does not change
/// them. `has_copies`: a mirror or array is directly above each slice of the member.
pub(super) fn way_to_rebuild(image: &Path, bytes: u64, has_copies: bool) -> String {
    let (data, state) = (image.display(), state_path(image));
    if !has_copies {
        return format!(
            "The server does not change the files of this member: restore {data} and {}",
            state.display()
        );
    }
    format!(
        "The server does not change the files of this member. Restore them, or rebuild the member from the others: end the server, remove {data} and {}, then `truncate -s {bytes} {data}`",
        state.display()
    )
}

/// Returns the reasons why the store of a member is refused, with the next step for a pool.
pub(super) fn of_member(problems: Problems) -> impl Iterator<Item = Problem> {
    problems.0.into_iter().map(|problem| Problem {
        help: match problem.help {
            Some(help) if help != IN_USE && help != OTHER_PROGRAM => {
                Some(String::from(RESTORE_OR_REMOVE))
            }
            help => help,
        },
        ..problem
    })
}

/// Next step for a member whose store belongs to another drive or position.
pub(super) const RESTORE_OR_REMOVE: &str = "restore the store of this member, or move its two files (.img and .img.state) out of the folder: a mirror or array continues without it, other pools lose its data";

/// Adds the host's errors to the reason why a pool cannot be opened.
pub(super) fn because(why: String, errors: &[String]) -> String {
    match errors {
        [] => why,
        errors => format!("{why} ({})", errors.join("; ")),
    }
}

/// Returns the children, each with its tier, that fail with this member, if all their tiers continue without them:
/// mirrors and arrays directly above it. `out`: the children that lack data already.
pub(super) fn without(
    config: &PoolConfig<DriveConfig>,
    out: &[(u16, u16)],
    member: u16,
) -> Option<Vec<(u16, u16)>> {
    let mut lost = Vec::new();
    for (number, tier) in (0..).zip(&config.tiers) {
        let is_it =
            |target: &Target| matches!(*target, Target::Slice { member: it, .. } if it == member);
        let spare = match &tier.kind {
            Kind::Mirror(_) => tier.children.len() - 1,
            Kind::Raid5(_) => 1,
            Kind::Raid6(_) => 2,
            _ => 0,
        };
        let children = (0..).zip(&tier.children);
        let own = children.filter(|(_, target)| is_it(target));
        let own: Vec<(u16, u16)> = own.map(|(child, _)| (number, child)).collect();
        let others = out.iter().filter(|it| it.0 == number && !own.contains(it));
        if !own.is_empty() && own.len() + others.count() > spare {
            return None;
        }
        lost.extend(own);
    }
    Some(lost)
}

/// Checks whether acknowledged data depends on a member. `out`: the children, each with its tier, that lack data.
pub(super) fn is_needed(config: &PoolConfig<DriveConfig>, out: &[(u16, u16)], member: u16) -> bool {
    let uses = |tier: u16| uses(config, out, tier, member);
    config.volumes.iter().any(|&tier| uses(tier))
}

fn uses(config: &PoolConfig<DriveConfig>, out: &[(u16, u16)], tier: u16, member: u16) -> bool {
    let children = &config.tiers[usize::from(tier)].children;
    (0..).zip(children).any(|(child, target)| {
        !out.contains(&(tier, child))
            && match *target {
                Target::Slice { member: it, .. } => it == member,
                Target::Tier(below) => uses(config, out, below, member),
            }
    })
}
