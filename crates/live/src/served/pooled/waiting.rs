//! Writes of a pool's members that wait: while the host has no space, or cannot write `pool.state`.
//!
//! They are written in their order ([`PoolSpace`](super::super::room::PoolSpace)). If the host cannot write a member's
//! store for another reason, that member fails, as it does without waiting writes. Its tiers believe that it has these
//! writes, so nothing is acknowledged until they have listed it as out of sync. Its labels then show what it lacks: its
//! writes end at one point in their order, as after a crash. It stays offline until the next start.
//!
//! Left out: a member that data depends on, and a member below another tier of a mirror or array, whose other members
//! would have later writes. While the host cannot write these, the pool accepts no writes.

use std::io;

use model::Time;
use model::data::DriveFault;

use super::super::disk::MemberDisk;
use super::super::failing;
use super::super::noted;
use super::super::resync::out_of_sync;
use super::ServedPool;
use crate::store::no_room;

impl ServedPool {
    /// Checks whether the host has no space for the members' writes, or cannot write `pool.state`. Then writes are kept in
    /// memory, and no acknowledgement may depend on them.
    #[inline]
    pub(in crate::served) fn is_full(&self) -> bool {
        self.room.is_full()
    }

    /// Writes the waiting writes of the members and of `pool.state` in their order, if that is possible now. `now` is
    /// the time of the last event.
    ///
    /// # Errors
    /// Errors of the host, with the store's name; some writes then still wait, or a tier does not know yet that a member
    /// has failed.
    pub(in crate::served) fn write_waiting(&mut self, now: Time) -> io::Result<()> {
        if self.room.stays() || self.room.overflowed() {
            return Err(self.room.error());
        }
        loop {
            let members = self.pool.members().iter().map(|it| it.contents());
            let members = members.map(MemberDisk::oldest_waiting).enumerate();
            let writes = members.filter_map(|(member, order)| Some((order?, Some(member as u16))));
            let note = self.note.oldest_waiting().map(|order| (order, None));
            let written = match writes.chain(note).min() {
                None if self.is_leaving() => return Err(self.room.error()),
                None => {
                    self.room.clear();
                    return Ok(());
                }
                Some((_, None)) => self.note.write_oldest(&self.room),
                Some((_, Some(member))) => match self.with_disk(member, MemberDisk::write_oldest) {
                    Err(error) => self.refused(now, member, error),
                    Ok(()) => Ok(()),
                },
            };
            if written.is_err() {
                return Err(self.room.error());
            }
        }
    }

    /// The host has rejected a waiting write of a member: the member fails, if the pool continues without it.
    ///
    /// # Errors
    /// The host's error, if there is no space, or the pool needs the member.
    fn refused(&mut self, now: Time, member: u16, error: io::Error) -> io::Result<()> {
        let mut out: Vec<(u16, u16)> = out_of_sync(&self.config, self.pool.tiers()).collect();
        out.extend(&self.leaving);
        let without = failing::without(&self.config, &out, member);
        let Some(lost) = without.filter(|_| !no_room(&error)) else {
            self.room
                .fill(&self.stores[usize::from(member)].name, &error);
            return Err(error);
        };
        self.leaving.extend(lost);
        self.returning.retain(|(_, one)| *one != member);
        self.pool.befall(now, member, DriveFault::Dies);
        self.with_disk(member, |disk| disk.give_up(error));
        self.stores[usize::from(member)].absent = true;
        Ok(())
    }

    /// Checks whether a tier does not know yet that a member has failed. A flush informs it.
    pub(in crate::served) fn is_leaving(&mut self) -> bool {
        let out: Vec<(u16, u16)> = out_of_sync(&self.config, self.pool.tiers()).collect();
        self.leaving.retain(|it| !out.contains(it));
        !self.leaving.is_empty()
    }

    /// Stops writing to all stores.
    pub(in crate::served) fn stop_writing(&mut self) {
        self.room.stay();
    }

    /// Returns the host's error when a store could not grow.
    pub(in crate::served) fn no_room(&self) -> io::Error {
        self.room.error()
    }

    /// Checks whether the newest error of a store is about `pool.state`.
    pub(in crate::served) fn lacks_note(&self) -> bool {
        self.room.store() == noted::NAME
    }
}
