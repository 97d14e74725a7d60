//! A drive in parts: what hosts have made namespaces of, and what becomes of a part that is given back.
//!
//! The drive itself knows no namespaces: it is one run of bytes in one format. The front end that divides it says how,
//! and the drive remembers it with its data.

use model::data::Verdict;
use model::management::Refusal;
use model::{Command, Op, Payload, Time};

use super::machine::Machine;
use super::{SLOTS, Served, Slot};
use crate::store::Share;

/// Most bytes that are deallocated by one command.
const AT_ONCE: u64 = 1 << 30;

impl Served {
    /// How it is divided into namespaces; nothing if it is one.
    pub fn shares(&self) -> Option<&[Share]> {
        self.shares.as_deref()
    }

    /// Divides it in another way, and writes that down.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn divide(&mut self, shares: Option<Vec<Share>>) -> std::io::Result<()> {
        self.shares = shares;
        self.save(false)
    }

    /// Ranges in bytes (start, end) that cannot be read until they are written.
    pub fn unreadable(&self) -> Vec<(u64, u64)> {
        match &self.machine {
            Machine::Drive(it) => it.data.unreadable(),
            Machine::Pool(_) => Vec::new(),
        }
    }

    /// Changes with [`Served::unreadable`].
    pub fn unreadable_changes(&self) -> u16 {
        match &self.machine {
            Machine::Drive(it) => it.data.changes(),
            Machine::Pool(_) => 0,
        }
    }

    /// Forgets what is stored in a range, for which nobody waits: the data is gone at once, and the drive deallocates it
    /// in its own time.
    ///
    /// # Errors
    /// Those of the store.
    pub fn discard(&mut self, now: Time, offset: u64, bytes: u64) -> std::io::Result<()> {
        self.break_off_log("a namespace was deleted");
        let now = now.max(self.now);
        self.run_until(now);
        self.now = now;
        if let Machine::Drive(it) = &mut self.machine {
            it.data.heal(offset, bytes);
        }
        self.zero(offset, bytes)?;
        let mut done = 0;
        while done < bytes && self.slots.len() < SLOTS {
            let piece = (bytes - done).min(AT_ONCE) as u32;
            self.deallocate_unheard(now, offset + done, piece);
            done += u64::from(piece);
        }
        Ok(())
    }

    /// A command of the drive's own: nobody hears of its end.
    fn deallocate_unheard(&mut self, now: Time, offset: u64, bytes: u32) {
        let slot = Slot {
            token: 0,
            submitted: now,
            op: Op::Deallocate,
            fua: false,
            offset,
            bytes,
            heard: false,
            before: self.mark(),
            payload: Payload::default(),
            verdict: Verdict::default(),
        };
        let id = self.slots.insert(slot) as u32;
        let command = Command {
            id,
            ..Command::new(0, Op::Deallocate, offset, bytes)
        };
        if let Some(recording) = &mut self.recording {
            recording.arrivals.push((now, command));
        }
        self.machine.submit(now, command);
    }

    /// Takes another format, and this [`Served::protection`], at once: for a drive of which nothing is in use.
    ///
    /// # Errors
    /// If there is no such format, commands are inside, or an operation is in progress.
    pub fn adopt_format(
        &mut self,
        now: Time,
        number: usize,
        protection: u8,
    ) -> Result<(), Refusal> {
        self.format(now, number, protection)?;
        self.machine.drive_alone()?.end_operation();
        Ok(())
    }
}
