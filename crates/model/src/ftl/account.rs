//! Counters of the translation layer, and the attribution of garbage collection (GC) to host writes: the cost of GC is
//! charged to the writes that use the space which it frees.
//!
//! GC works ahead: an idle drive frees space for writes that may never come, and a burst uses space that was freed long
//! ago. The ratio of bytes programmed to bytes written is therefore not a property of the writes: with one write per
//! second, an idle drive's GC would give a write amplification of a thousand. For this reason, each copy is added to an
//! account. Each unit that the host writes is charged a share of the account: its share of the free space (average
//! cost, as for goods in stock). The sum of the charged and the remaining copies always equals the copies made, so over
//! many writes the result is the measured write amplification. Why: `docs/decisions/0046-write-amplification.md`.
//!
//! In steady state, the free space has cost as much as the last victims of the dies. After a warm-up it is valued at
//! that price, because an error in the initial account persists for as many writes as there is free space. Not
//! modelled: a unit in a pSLC block (one bit per cell) takes more space; the remaining space then becomes more
//! expensive.

/// Counters of what the translation layer has done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Traffic {
    /// Slots of host data programmed.
    pub host: u64,
    /// Slots that GC moved.
    pub moved: u64,
    /// Slots programmed without data, to complete a page.
    pub padded: u64,
    /// Multi-plane blocks erased.
    pub erased: u64,
}

impl Traffic {
    /// Returns the slots programmed per slot of host data between `earlier` and now; 1 if the host wrote nothing.
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
    /// Free slots: erased and unused ones, and the examined part of victims, which will be erased. Counting that part
    /// keeps the space, and its price, from changing one block at a time.
    room: f64,
    /// Copies made for that space and not yet charged to a write.
    spent: f64,
    charged: f64,
}

impl Account {
    /// Creates an account with `room` slots of free space that has cost nothing.
    pub(super) fn opened(room: u64) -> Account {
        Account {
            room: room as f64,
            spent: 0.0,
            charged: 0.0,
        }
    }

    /// Values the free space at `price` copies per slot; charges made before do not change.
    pub(super) fn value(&mut self, price: f64) {
        self.spent = self.room * price;
    }

    /// Adds `slots` slots of a victim, which only needs to be erased.
    #[inline]
    pub(super) fn collected(&mut self, slots: u32) {
        self.room += f64::from(slots);
    }

    #[inline]
    pub(super) fn use_slots(&mut self, slots: u32) {
        self.room -= f64::from(slots);
    }

    #[inline]
    pub(super) fn copied(&mut self) {
        self.spent += 1.0;
    }

    /// Returns the copies that a slot of the free space has cost.
    #[inline]
    pub(super) fn price(&self) -> f64 {
        (self.spent / self.room.max(1.0)).min(self.spent)
    }

    /// Charges a unit that will use a slot.
    #[inline]
    pub(super) fn charge(&mut self) {
        let price = self.price();
        self.spent -= price;
        self.charged += price;
    }

    /// Returns the copies charged so far.
    pub(super) fn charged(&self) -> f64 {
        self.charged
    }
}
