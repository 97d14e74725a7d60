//! The front end alone: order of segments, bookings, anatomy.

use super::*;
use crate::media::nand::tests::small;

fn front() -> Front {
    Front::new(&small(), 1)
}

/// Returns all write segments in progress, by command and arrival time.
fn arrivals(front: &mut Front) -> Vec<(CommandId, u64)> {
    let mut all = Vec::new();
    while front.next() != Time::NEVER {
        let next = front.next();
        let segment = front.pop_write(next).expect("nothing else is under way");
        front.answer(next, &mut Vec::new());
        all.push((segment.id, next.ns()));
    }
    all
}

#[test]
fn what_is_not_in_whole_blocks_is_refused() {
    let mut config = small();
    config.block = 4096;
    let front = Front::new(&config, 1);
    for (offset, bytes, refused) in [
        (0, 4096, false),
        (4096, 8192, false),
        (512, 4096, true),
        (4096, 512, true),
        (front.capacity().bytes, 4096, true),
    ] {
        let read = Command::read(0, offset, bytes);
        assert_eq!(front.refuses(&read), refused, "{bytes} from {offset}");
    }
    assert!(!front.refuses(&Command::flush(0)));
}

#[test]
fn a_command_is_cut_where_the_largest_transfer_ends() {
    let mut front = front();
    let command = Command::read(3, 4096, 300 << 10);
    front.accept(Time::ZERO, &command, false);
    front.dispatch(Time::ZERO, &command, PrecomputedSlot::NOTHING);
    let mut cut = Vec::new();
    while front.next() != Time::NEVER {
        let next = front.next();
        let segment = front.pop_read(next).expect("a read");
        front.answer(next, &mut Vec::new());
        cut.push((segment.offset, segment.bytes));
    }
    let whole = 128 << 10;
    let cuts = [
        (4096, whole),
        (4096 + u64::from(whole), whole),
        (4096 + 2 * u64::from(whole), 44 << 10),
    ];
    assert_eq!(cut, cuts);
    assert!(!front.piece_done(3) && !front.piece_done(3) && front.piece_done(3));
}

#[test]
fn a_pause_keeps_back_what_has_not_left_the_controller_and_no_more() {
    let pause = Span::from_us(50);
    let run = |paused: bool| {
        let mut front = front();
        for id in 0..6 {
            let command = Command::write(id, u64::from(id) * 4096, 4096);
            front.accept(Time::ZERO, &command, false);
            front.dispatch(Time::ZERO, &command, PrecomputedSlot::NOTHING);
        }
        if paused {
            // Each takes 2 us of the controller: three have left it.
            front.pause(Time::from_ns(6_500), pause);
        }
        arrivals(&mut front)
    };
    let expected = run(false).into_iter().map(|(id, at)| match id {
        0..3 => (id, at),
        _ => (id, at + pause.ns()),
    });
    assert_eq!(run(true), expected.collect::<Vec<_>>());
}

#[test]
fn a_spread_of_writes_is_beyond_their_least_delay_and_lets_them_pass_each_other() {
    let mut config = small();
    config.controller.write_spread = Span::from_us(3);
    let mut front = Front::new(&config, 1);
    let arrived = Time::ZERO + config.controller.link_latency;
    let mut answered = Vec::new();
    let count = 4000;
    for id in 0..count {
        let command = Command::write(id, 0, 4096);
        front.accept(Time::ZERO, &command, false);
        front.explain_way_down(id, arrived, arrived);
        front.finish_write(arrived, id);
    }
    while front.next() != Time::NEVER {
        front.answer(front.next(), &mut answered);
    }
    assert!(answered.is_sorted_by_key(|completion| completion.at));
    assert!(!answered.is_sorted_by_key(|completion| completion.id));
    let least = arrived + config.controller.write_latency;
    let beyond: Vec<f64> = answered
        .iter()
        .map(|completion| completion.at.since(least).us())
        .collect();
    let mean = beyond.iter().sum::<f64>() / f64::from(count);
    assert!((mean - 3.0).abs() < 0.15, "{mean}");
    assert!(beyond.iter().all(|us| *us >= 0.0));
}

#[test]
#[should_panic(expected = "command 7 is not in flight")]
fn a_command_that_is_not_in_flight_is_a_broken_invariant() {
    front().piece_done(7);
}
