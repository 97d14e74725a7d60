//! Traps and interrupts that a virtual machine's monitor leaves out.
//!
//! Source: I. Ahmad, A. Gulati, A. Mashtizadeh, "vIC: Interrupt Coalescing for Virtual Machine Storage Device IO"
//! (USENIX ATC 2011), the scheme of ESXi for interrupts. The more commands are in flight, the surer another completion
//! follows soon, and the larger the share of interrupts that are left out. From the same number on the guest leaves its
//! commands in PVSCSI's ring without a trap: the monitor looks there whenever a completion brings it to work. Left out
//! here: the threshold on I/Os a second (2000), and that shares are worked out anew only every 200 ms.

/// Decides for each completion whether it is told to the guest, or waits for the next that is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Coalescing {
    /// Commands in flight from which on interrupts are left out; 0 for never.
    from: u32,
    counter: u32,
}

impl Coalescing {
    /// Begins to leave out interrupts with `from` commands in flight.
    pub fn new(from: u16) -> Coalescing {
        Coalescing {
            from: u32::from(from),
            counter: 1,
        }
    }

    /// Whether the guest traps into the monitor for a command when it waits for `others` besides.
    #[inline]
    pub fn traps(&self, others: u32) -> bool {
        self.from == 0 || others < self.from
    }

    /// Whether this completion is told, with `in_flight` others still below the guest.
    pub fn tells(&mut self, in_flight: u32) -> bool {
        if self.from == 0 || in_flight < self.from {
            self.counter = 1;
            return true;
        }
        // So many of so many are told.
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
            (0..600).filter(|_| coalescing.tells(in_flight)).count()
        };
        assert_eq!(told(0), 600);
        assert_eq!(told(3), 600);
        assert_eq!(told(4), 480);
        assert_eq!(told(8), 450);
        assert_eq!(told(12), 400);
        assert_eq!(told(16), 300);
        assert_eq!(told(32), 150);
        let mut never = Coalescing::new(0);
        assert!((0..100).all(|_| never.tells(1000)));
    }
}
