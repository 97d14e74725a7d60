//! Numbers of dies, blocks, slots, pages and buffer slots. Each is a separate type, so that they cannot be confused.
//! They are 32 bits wide and cost as much as a `u32`.
//!
//! A multi-plane page has no number: it is identified by its first slot. Planes have no numbers either, because they
//! are read, programmed and erased together.

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// Returns the number as an index into a table.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

number! {
    /// A die, counted from 0; die `d` is on channel `d % channels`.
    Die,
    /// A multi-plane block, numbered over all dies.
    Block,
    /// A slot for one 4 KiB unit on the medium, numbered over all dies.
    Slot,
    /// A logical page of 4 KiB: a host offset divided by 4096.
    Page,
    /// A slot for one 4 KiB unit in the write buffer.
    BufferSlot,
}

impl Slot {
    /// Returns the slot that is `slots` further on.
    #[inline]
    pub const fn plus(self, slots: u32) -> Slot {
        Slot(self.0 + slots)
    }
}

impl Page {
    /// Returns the page that is `pages` further on.
    #[inline]
    pub const fn plus(self, pages: u32) -> Page {
        Page(self.0 + pages)
    }
}
