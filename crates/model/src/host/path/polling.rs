//! Mean times of commands below the host, for hybrid polling: a core sleeps for half of that before it polls.

use alloc::vec;
use alloc::vec::Vec;

use crate::command::{Command, Op};
use crate::time::Span;

/// Number of size classes: 512 B to 64 KiB and more.
const SIZES: usize = 8;

/// Mean times by thread, and by direction and size, in nanoseconds; 0 if not known.
#[derive(Clone, Debug)]
pub(super) struct MeanTimes(Vec<[u32; 2 * SIZES]>);

fn class(command: &Command) -> usize {
    let size = (command.bytes >> 9).max(1).ilog2() as usize;
    size.min(SIZES - 1) + SIZES * usize::from(command.op != Op::Read)
}

impl MeanTimes {
    pub(super) fn new(threads: usize) -> MeanTimes {
        MeanTimes(vec![[0; 2 * SIZES]; threads])
    }

    /// Returns how long a thread sleeps before it polls for this command.
    pub(super) fn sleep(&self, thread: u16, command: &Command) -> Span {
        let mean = self.0[usize::from(thread)][class(command)];
        Span::from_ns(u64::from(mean / 2))
    }

    /// Records the time that a command took.
    pub(super) fn learn(&mut self, thread: u16, command: &Command, took: Span) {
        let took = took.ns().min(u64::from(u32::MAX / 2)) as u32;
        let mean = &mut self.0[usize::from(thread)][class(command)];
        *mean = if *mean == 0 {
            took
        } else {
            *mean - *mean / 32 + took / 32
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sleep_tends_to_half_of_what_like_commands_take() {
        let mut learnt = MeanTimes::new(2);
        let read = Command::read(0, 0, 4096);
        learnt.learn(1, &read, Span::from_us(100));
        assert_eq!(learnt.sleep(1, &read), Span::from_us(50));
        for _ in 0..400 {
            learnt.learn(1, &read, Span::from_us(20));
        }
        let after = learnt.sleep(1, &read).ns();
        assert!((9_900..10_200).contains(&after), "{after}");
        // Another thread, direction or size is not affected.
        for (thread, command) in [
            (0, read),
            (1, Command::write(0, 0, 4096)),
            (1, Command::read(0, 0, 8192)),
        ] {
            assert_eq!(learnt.sleep(thread, &command), Span::ZERO);
        }
    }
}
