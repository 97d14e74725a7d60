//! Read-ahead: streams benefit from it, and other reads lose nothing.

use alloc::boxed::Box;

use super::*;

/// Returns the time of these reads on a steady drive without read-ahead, and on one with it.
fn without_and_with<F>(depth: u32, total: u64, reads: impl Fn(u64) -> F) -> (f64, f64)
where
    F: FnMut(CommandId, u64) -> Command,
{
    let ahead = ReadAhead {
        bytes: 512 << 10,
        after: 2,
    };
    let [without, with] = [None, Some(ahead)].map(|read_ahead| {
        let mut config = small();
        config.read_ahead = read_ahead;
        let pages = pages(&config);
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let mut load = Closed::new(depth, total, reads(pages));
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER);
        assert_eq!(load.finished, total);
        load.now.seconds()
    });
    (without, with)
}

/// Runs of `pieces` reads of `bytes` bytes; each run begins at a random offset.
fn runs_of(pieces: u64, bytes: u32) -> impl Fn(u64) -> Box<dyn FnMut(CommandId, u64) -> Command> {
    move |pages| {
        let mut random = Stream::new(3, "runs");
        let run = pieces * u64::from(bytes);
        let mut from = 0;
        Box::new(move |id, n| {
            if n % pieces == 0 {
                from = random.uniform_below(pages * 4096 / run - 1) * run;
            }
            Command::read(id, from + n % pieces * u64::from(bytes), bytes)
        })
    }
}

#[test]
fn large_random_reads_are_no_streams() {
    // As one command that the drive splits, and as the commands into which a host splits it.
    let cases = [
        ("drive", without_and_with(16, 800, runs_of(1, 1 << 20))),
        (
            "host",
            without_and_with(16 * 8, 6400, runs_of(8, 128 << 10)),
        ),
    ];
    for (cut_by, (without, with)) in cases {
        assert!(
            with < 1.01 * without,
            "cut by the {cut_by}: {with} s, without reading ahead {without} s"
        );
    }
}

#[test]
fn what_is_read_ahead_for_nobody_gives_way() {
    // Each of 16 threads reads four times sequentially and then elsewhere: a stream that ends when it is recognised.
    let reads = |pages| {
        let mut random = Stream::new(3, "threads");
        let mut places = [(0, 0); 16];
        move |id: CommandId, _| {
            let (from, n) = &mut places[id as usize];
            if *n % 4 == 0 {
                *from = random.uniform_below(pages - 4 * 4) * 4096;
            }
            *n += 1;
            Command::read(id, *from + (*n - 1) % 4 * (16 << 10), 16 << 10)
        }
    };
    let (without, with) = without_and_with(16, 8000, reads);
    assert!(with < 1.2 * without, "{with} s, without {without} s");
}

#[test]
fn a_stream_of_large_reads_is_followed() {
    // From one completion to the next read, although each has several pieces.
    let reads = |_| |id, n| Command::read(id, n * (256 << 10), 256 << 10);
    let (without, with) = without_and_with(1, 200, reads);
    assert!(with < 0.8 * without, "{with} s, without {without} s");
}

#[test]
fn reading_ahead_speeds_up_small_sequential_reads() {
    let run_with = |read_ahead| {
        let mut config = small();
        config.read_ahead = read_ahead;
        let mut drive = Nand::new(config, Precondition::Steady, 1);
        let read = |id, n| Command::read(id, n * 4096, 4096);
        let mut load = Closed::new(1, 4_000, read);
        run(&mut drive, &mut load, Time::ZERO, Time::NEVER)
    };
    let ahead = ReadAhead {
        bytes: 131_072,
        after: 2,
    };
    let (without, with) = (run_with(None), run_with(Some(ahead)));
    assert!(
        with.ns() * 4 < without.ns(),
        "{with:?}, without {without:?}"
    );
}
