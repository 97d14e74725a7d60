//! Distance between this machine's cores: the time to write a page that another core has just read.
//!
//! This is most of the work of a server on one core for a client on another, because the kernel reuses the same few
//! pages for the data of a connection. Virtual processors may be two threads of one core or far apart, and may be
//! moved between runs. Figures of different runs are comparable only while this one is unchanged.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{scope, yield_now};
use std::time::{Duration, Instant};

const WORDS: usize = 4096 / 8;
const PAGES: usize = 32;
const ROUNDS: u64 = 2_000;
/// Times below this are not possible between two cores: both threads were on one.
const SHARED: Duration = Duration::from_nanos(150);

/// Waits for the turn of this round.
fn until(turn: &AtomicU64, round: u64) {
    let mut looks = 0u32;
    while turn.load(Ordering::Acquire) != round {
        looks += 1;
        if looks % 4096 == 0 {
            // Both threads may be on one core.
            yield_now();
        }
    }
}

/// Returns the time to write a page of 4 KiB that the other core has read.
fn page() -> Duration {
    let pages: Vec<AtomicU64> = (0..PAGES * WORDS).map(|_| AtomicU64::new(0)).collect();
    let turn = AtomicU64::new(0);
    let mut times = Vec::new();
    scope(|scope| {
        scope.spawn(|| {
            for round in 0..ROUNDS {
                until(&turn, 2 * round + 1);
                let sum: u64 = pages.iter().map(|word| word.load(Ordering::Relaxed)).sum();
                std::hint::black_box(sum);
                turn.store(2 * round + 2, Ordering::Release);
            }
        });
        for round in 0..ROUNDS {
            let start = Instant::now();
            for word in &pages {
                word.store(round, Ordering::Relaxed);
            }
            times.push(start.elapsed());
            turn.store(2 * round + 1, Ordering::Release);
            until(&turn, 2 * round + 2);
        }
    });
    // The median, because both threads may be on one core in some rounds.
    times.sort_unstable();
    times[times.len() / 2] / PAGES as u32
}

/// Prints the time.
pub(super) fn show() {
    let time = page();
    if time < SHARED {
        println!("cores: not known, another program keeps one busy");
        return;
    }
    println!(
        "cores: {:.2} us to write 4 KiB that the other core has read",
        time.as_secs_f64() * 1e6
    );
}
