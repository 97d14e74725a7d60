//! Numbers of dies, blocks, slots, pages and places in the buffer, each a type of its own, so that none is taken for
//! another. They are 32 bits wide and cost what a `u32` costs.
//!
//! A multi-plane page has no number: it is named by its first slot. Leaves out planes, which are read, programmed and
//! erased together and so have no numbers either.

macro_rules! number {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index into what is kept by this number.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}

number! {
    /// A die, from 0 on; die `d` is on channel `d % channels`.
    Die,
    /// A multi-plane block, among those of all dies.
    Block,
    /// A place for one 4 KiB unit on the medium, among those of all dies.
    Slot,
    /// A logical page of 4 KiB: an offset of the host's over 4096.
    Page,
    /// A place for one 4 KiB unit in the write buffer.
    BufferSlot,
}

impl Slot {
    /// The slot so many further on.
    #[inline]
    pub const fn plus(self, slots: u32) -> Slot {
        Slot(self.0 + slots)
    }
}

impl Page {
    /// The page so many further on.
    #[inline]
    pub const fn plus(self, pages: u32) -> Page {
        Page(self.0 + pages)
    }
}
