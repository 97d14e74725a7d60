//! Division of a drive into namespaces by hosts, and deallocation of a deleted namespace.
//!
//! The drive itself has no namespaces: it is one range of bytes in one format. The front end defines the division, and
//! the drive saves it with its data.

use model::data::Verdict;
use model::management::Refusal;
use model::{Command, Op, Payload, Time};

use super::machine::Machine;
use super::{InFlightCommand, SLOTS, ServedDevice};
use crate::store::Share;

/// Maximum bytes that are deallocated by one command.
const AT_ONCE: u64 = 1 << 30;

impl ServedDevice {
    /// Returns the division into namespaces; `None` if the whole drive is one namespace.
    pub fn shares(&self) -> Option<&[Share]> {
        self.shares.as_deref()
    }

    /// Changes the division and saves it.
    ///
    /// # Errors
    /// Errors of the file system.
    pub fn divide(&mut self, shares: Option<Vec<Share>>) -> std::io::Result<()> {
        self.shares = shares;
        self.save(false)
    }

    /// Returns byte ranges (start, end) that cannot be read until they are written.
    pub fn unreadable(&self) -> Vec<(u64, u64)> {
        match &self.machine {
            Machine::Drive(it) => it.data.unreadable(),
            Machine::Pool(_) => Vec::new(),
        }
    }

    /// Returns a counter that changes with [`ServedDevice::unreadable`].
    pub fn unreadable_changes(&self) -> u16 {
        match &self.machine {
            Machine::Drive(it) => it.data.changes(),
            Machine::Pool(_) => 0,
        }
    }

    /// Discards the data of a range without a waiting client: the data is erased at once, and the drive deallocates
    /// the range in its own time.
    ///
    /// # Errors
    /// Errors of the store.
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

    /// Submits a deallocation of the drive's own: no client waits for its completion.
    fn deallocate_unheard(&mut self, now: Time, offset: u64, bytes: u32) {
        let slot = InFlightCommand {
            token: 0,
            submitted: now,
            op: Op::Deallocate,
            fua: false,
            offset,
            bytes,
            heard: false,
            before: self.mark(),
            payload: Payload::default(),
            logged: None,
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

    /// Switches to another format, with this [`ServedDevice::protection`], at once: for a drive of which no part is in use.
    ///
    /// # Errors
    /// There is no such format, commands are in flight, or an operation is in progress.
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
