//! Servers of a node that a piece waits for: cores, with one queue for all of them, and ports, one per direction.
//!
//! First come, first served, booked on arrival. A port is busy for the bytes divided by its rate. The first byte
//! arrives on the other side a delay after it was sent, and the port there is busy from then. Crossing an idle network
//! therefore takes its delay, and the time of the bytes once.

use alloc::vec;
use alloc::vec::Vec;

use model::engine::Station;
use model::time::{Span, Time};

use super::Network;

/// Bytes of a message in addition to its data (assumed: headers of TCP/IP and of the protocol above it).
const MESSAGE: u64 = 256;

/// Cores with one queue.
#[derive(Clone, Debug)]
pub(crate) struct NodeCores {
    /// When each core becomes free: a heap, the earliest first.
    free: Vec<Time>,
    served: Span,
}

impl NodeCores {
    pub(crate) fn new(count: u16) -> NodeCores {
        NodeCores {
            free: vec![Time::ZERO; usize::from(count)],
            served: Span::ZERO,
        }
    }

    /// Joins the queue for `work`; returns when it is done.
    pub(crate) fn book(&mut self, now: Time, work: Span) -> Time {
        if work == Span::ZERO {
            return now;
        }
        let until = self.free[0].max(now) + work;
        self.served += work;
        let mut hole = 0;
        loop {
            let left = 2 * hole + 1;
            let Some(&first) = self.free.get(left) else {
                break;
            };
            let right = self.free.get(left + 1).copied().unwrap_or(Time::NEVER);
            let (child, earlier) = match right < first {
                true => (left + 1, right),
                false => (left, first),
            };
            if until <= earlier {
                break;
            }
            self.free[hole] = earlier;
            hole = child;
        }
        self.free[hole] = until;
        until
    }

    /// Removes all work from the queue.
    pub(crate) fn clear(&mut self, now: Time) {
        self.served = self.busy(now);
        for free in &mut self.free {
            *free = (*free).min(now);
        }
        self.free.sort_unstable();
    }

    /// Returns the sum of the cores' busy time up to `now`.
    pub(crate) fn busy(&self, now: Time) -> Span {
        // After now a core has no gaps, because only arrived work is booked.
        let ahead = self.free.iter().map(|free| free.since(now.min(*free)).ns());
        self.served.saturating_sub(Span::from_ns(ahead.sum()))
    }
}

/// One direction of a node's link.
#[derive(Clone, Debug, Default)]
pub(crate) struct Port(Station);

impl Port {
    /// A message with `data` bytes waits for the port; returns when its first byte is on the other side.
    pub(crate) fn first_byte(&mut self, now: Time, network: &Network, data: u64) -> Time {
        let (waits, _) = self.0.book(now, held(network, data));
        now + waits + network.delay
    }

    /// The first byte of a message has arrived; returns when its last byte has.
    pub(crate) fn last_byte(&mut self, now: Time, network: &Network, data: u64) -> Time {
        self.0.book(now, held(network, data)).1
    }

    pub(crate) fn clear(&mut self, now: Time) {
        self.0.clear(now);
    }
}

fn held(network: &Network, data: u64) -> Span {
    Span::per_bytes(network.ps_per_byte, MESSAGE + data)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn us(us: u64) -> Time {
        Time::from_ns(us * 1000)
    }

    #[test]
    fn cores_take_from_one_queue_and_count_what_they_have_done() {
        let mut cores = NodeCores::new(2);
        let mut book = |at, work| cores.book(us(at), Span::from_us(work));
        assert_eq!(book(0, 10), us(10));
        assert_eq!(book(0, 4), us(4));
        // Both cores are busy: it waits for the second.
        assert_eq!(book(1, 5), us(9));
        assert_eq!(book(2, 1), us(10));
        assert_eq!(book(20, 3), us(23));
        assert_eq!(cores.busy(us(0)), Span::ZERO);
        assert_eq!(cores.busy(us(30)), Span::from_us(23));
        cores.clear(us(21));
        assert_eq!(cores.busy(us(30)), Span::from_us(21));
        assert_eq!(cores.book(us(21), Span::from_us(1)), us(22));
    }

    #[test]
    fn many_cores_do_as_much_as_there_are_of_them() {
        let mut cores = NodeCores::new(7);
        let last = (0..7000).map(|_| cores.book(us(0), Span::from_us(1))).max();
        assert_eq!(last, Some(us(1000)));
    }

    #[test]
    fn a_message_takes_its_delay_and_its_bytes_once_and_waits_for_those_before_it() {
        let network = Network {
            ps_per_byte: 1000,
            delay: Span::from_us(15),
            message: Span::ZERO,
        };
        let (mut from, mut to) = (Port::default(), Port::default());
        let mut cross = |data| {
            let first = from.first_byte(us(0), &network, data);
            to.last_byte(first, &network, data)
        };
        assert_eq!(cross(744), us(16));
        assert_eq!(cross(744), us(17));
    }
}
