//! What the translation layer has done, and what of it the host caused: what collection costs, laid on the writes that
//! use up the room it makes.
//!
//! Collection works ahead: a drive at rest makes room for writes that may never come, and a burst uses room that was made
//! long ago. Bytes programmed by bytes written is then no property of the writes: a drive that tidies while one write a
//! second comes would be said to write a thousandfold. So each copy goes into an account, and each unit that the host
//! hands over takes its part of the account, as a part of the room there is (average cost, as in a store of goods). What is
//! charged and what is left is always what was spent, so over many writes it is the amplification that is measured.
//! Why: `docs/decisions/0046-write-amplification.md`.
//!
//! In a steady state the room there is has cost what the dies' last victims cost: after a warm-up it is valued so, since an
//! account that is off at the start stays off for as many writes as there is room. Leaves out: that a unit written with one bit a
//! cell takes more room; the room that is left is dearer for it.

/// Counters of what the translation layer has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Slots of host data placed.
    pub host: u64,
    /// Slots that collection moved.
    pub moved: u64,
    /// Slots programmed without data, to complete a page.
    pub padded: u64,
    /// Blocks erased (multi-plane).
    pub erased: u64,
}

impl Traffic {
    /// Slots programmed for each slot of host data between `earlier` and now; 1 if the host wrote nothing.
    pub fn write_amplification_since(&self, earlier: &Traffic) -> f64 {
        let host = self.host - earlier.host;
        if host == 0 {
            return 1.0;
        }
        let own = (self.moved - earlier.moved) + (self.padded - earlier.padded);
        (host + own) as f64 / host as f64
    }
}

/// The account of one translation layer, in slots.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(super) struct Account {
    /// Erased and not taken, and what has been looked at of victims, which will be erased: so that room does not come a
    /// block at a time, and its price with it.
    room: f64,
    /// Copies made for that room and not charged to a write.
    spent: f64,
    charged: f64,
}

impl Account {
    /// An account of this much room, in slots, that has cost nothing.
    pub(super) fn opened(room: u64) -> Account {
        Account {
            room: room as f64,
            spent: 0.0,
            charged: 0.0,
        }
    }

    /// Values the room there is at `price` copies a slot; what was charged stays.
    pub(super) fn value(&mut self, price: f64) {
        self.spent = self.room * price;
    }

    /// So many slots of a victim need no more to be erased.
    #[inline]
    pub(super) fn collected(&mut self, slots: u32) {
        self.room += f64::from(slots);
    }

    #[inline]
    pub(super) fn taken(&mut self, slots: u32) {
        self.room -= f64::from(slots);
    }

    #[inline]
    pub(super) fn copied(&mut self) {
        self.spent += 1.0;
    }

    /// Copies that a slot of the room there is has cost.
    #[inline]
    pub(super) fn price(&self) -> f64 {
        (self.spent / self.room.max(1.0)).min(self.spent)
    }

    /// A unit will need a slot.
    #[inline]
    pub(super) fn charge(&mut self) {
        let price = self.price();
        self.spent -= price;
        self.charged += price;
    }

    /// Copies charged so far.
    pub(super) fn charged(&self) -> f64 {
        self.charged
    }
}
