//! Interrupt coalescing and trap avoidance in the monitor of a virtual machine.
//!
//! Source: I. Ahmad, A. Gulati, A. Mashtizadeh, "vIC: Interrupt Coalescing for Virtual Machine Storage Device IO"
//! (USENIX ATC 2011), the scheme of ESXi for interrupts. The more commands are in flight, the more likely another
//! completion follows soon, and the larger the share of interrupts that are omitted. At and above the same number of
//! commands in flight, the guest leaves its commands in PVSCSI's ring without a trap: the monitor checks the ring
//! whenever a completion makes it run. Not modelled: the threshold on IOPS (2000 per second), and that shares are
//! recomputed only every 200 ms.

/// Decides for each completion whether it interrupts the guest, or waits for the next one that does.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coalescing {
    /// Commands in flight at and above which interrupts are omitted; 0 for never.
    from: u32,
    counter: u32,
}

impl Coalescing {
    /// Creates a coalescer that omits interrupts with `from` or more commands in flight.
    pub fn new(from: u16) -> Coalescing {
        Coalescing {
            from: u32::from(from),
            counter: 1,
        }
    }

    /// Whether the guest traps into the monitor for a command while it waits for `others` more.
    #[inline]
    pub fn traps(&self, others: u32) -> bool {
        self.from == 0 || others < self.from
    }

    /// Whether this completion interrupts the guest, with `in_flight` others still below the guest.
    pub fn interrupts_guest(&mut self, in_flight: u32) -> bool {
        if self.from == 0 || in_flight < self.from {
            self.counter = 1;
            return true;
        }
        // `told` of `of` completions interrupt the guest.
        let (told, of) = match in_flight / self.from {
            1 => (4, 5),
            2 => (3, 4),
            3 => (2, 3),
            _ => (1, in_flight / (2 * self.from)),
        };
        if self.counter < told {
            self.counter += 1;
            true
        } else if self.counter >= of {
            self.counter = 1;
            true
        } else {
            self.counter += 1;
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_told_falls_with_the_depth() {
        let told = |in_flight| {
            let mut coalescing = Coalescing::new(4);
            (0..600)
                .filter(|_| coalescing.interrupts_guest(in_flight))
                .count()
        };
        assert_eq!(told(0), 600);
        assert_eq!(told(3), 600);
        assert_eq!(told(4), 480);
        assert_eq!(told(8), 450);
        assert_eq!(told(12), 400);
        assert_eq!(told(16), 300);
        assert_eq!(told(32), 150);
        let mut never = Coalescing::new(0);
        assert!((0..100).all(|_| never.interrupts_guest(1000)));
    }
}
