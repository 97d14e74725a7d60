//! Recordings for crash-consistency tests: the log contains the commands in the order in which they have changed the
//! data of the served drive.

use crash::log::Event;
use crash::{Assumptions, EventKind, Log, Lost, Walk};
use live::Setup;
use live::served::{IoRequest, Outcome, Reply, ServedDevice};
use model::media::Precondition;
use model::{Op, Span, Stream, Time};
use workload::faults::Fault;

const BLOCK: usize = 4096;

/// Bytes of the drive: small, so that commands overlap.
const BYTES: usize = 4 << 20;

/// Blocks that the commands change.
const BLOCKS: u64 = 12;

/// A drive that is recorded, and the data of its commands in flight.
struct Recorded {
    drive: ServedDevice,
    file: tempfile::NamedTempFile,
    /// By tag: the byte that fills the data of the command.
    fill: Vec<u8>,
    replies: Vec<Reply>,
}

impl Recorded {
    fn new(id: &str) -> Recorded {
        let setup = Setup {
            size: Some(BYTES as u64),
            precondition: Some(Precondition::Fresh),
            seed: 3,
            ..Setup::new(catalogue::drive(id).expect("a drive of the catalogue"))
        };
        let mut drive = setup.open().expect("memory");
        let file = tempfile::NamedTempFile::new().expect("a file");
        let log = file.reopen().expect("the file");
        drive.record_to(log, 1 << 30).expect("it records");
        Recorded {
            drive,
            file,
            fill: Vec::new(),
            replies: Vec::new(),
        }
    }

    fn submit(&mut self, op: Op, fua: bool, block: u64, blocks: u64) {
        let tag = self.fill.len() as u32;
        let fill = tag as u8 | 1;
        self.fill.push(fill);
        let request = IoRequest {
            tag,
            op,
            fua,
            queue: 0,
            offset: block * BLOCK as u64,
            bytes: blocks as u32 * BLOCK as u32,
        };
        let now = self.drive.now();
        let mut give = |data: &mut [u8]| {
            data.fill(fill);
            true
        };
        self.drive.submit_with(now, tag.into(), &request, &mut give);
    }

    /// Moves the data of the replies, as the event loop and a front end do.
    fn reply(&mut self) {
        for mut reply in self.replies.drain(..) {
            self.drive.hand_over(&mut reply);
            assert_eq!(reply.outcome, Outcome::Success);
            if reply.op == Op::Write {
                let data = vec![self.fill[reply.tag as usize]; reply.bytes as usize];
                let written = self.drive.write(reply.offset, &data, reply.fua);
                written.expect("memory");
            }
            self.drive.take_back(&reply);
        }
    }

    /// Runs the drive for this time, and then moves the data of all replies.
    fn advance(&mut self, by: Span) {
        let until = self.drive.now() + by;
        self.drive.advance(until, &mut self.replies);
        self.reply();
    }

    fn end(mut self) -> (Log, Vec<u8>) {
        self.drive.complete_all(&mut self.replies);
        self.reply();
        let mut data = vec![1; BYTES];
        for (number, block) in data.chunks_mut(BLOCK).enumerate() {
            let offset = (number * BLOCK) as u64;
            self.drive.read(offset, block).expect("memory");
        }
        self.drive.end_log("end");
        let log = std::fs::read(self.file.path()).expect("the log");
        (Log::read(log).expect("a log"), data)
    }
}

/// Returns the content of a drive that loses nothing of this log.
fn last_image(log: &Log) -> Vec<u8> {
    let how = Assumptions {
        part: 4096,
        torn: true,
        volatile: true,
        flush_lies: false,
    };
    let walk = Walk::new(log, how).go_to_end();
    let nothing = Lost::nothing(walk.undecided().len());
    let mut data = vec![1; BYTES];
    walk.image(&nothing).read(0, &mut data);
    data
}

fn first_difference(a: &[u8], b: &[u8]) -> Option<usize> {
    a.chunks(512).zip(b.chunks(512)).position(|(a, b)| a != b)
}

#[test]
fn a_write_and_a_trim_of_the_same_block_in_flight_together() {
    for op in [Op::Deallocate, Op::WriteZeroes] {
        let mut it = Recorded::new("950pro-256");
        it.submit(Op::Write, false, 0, 8);
        it.advance(Span::from_ms(10));
        it.submit(Op::Write, false, 0, 1);
        it.submit(op, false, 0, 1);
        let (log, data) = it.end();
        let order = log.events.iter().filter_map(|event| match event {
            Event::Completed(number) => Some(log.commands[*number as usize].kind),
            _ => None,
        });
        // The test requires that both complete before the event loop moves data, the write first.
        assert_eq!(order.clone().nth(1), Some(EventKind::Write));
        assert_ne!(order.clone().nth(2), Some(EventKind::Write));
        assert_eq!(first_difference(&data, &last_image(&log)), None, "{op:?}");
        assert!(data[..BLOCK].iter().all(|byte| *byte == 0));
    }
}

#[test]
fn overlapping_commands_change_the_drive_in_the_order_of_the_log() {
    for id in ["950pro-256", "pm9a3-960", "wd6001fzwx"] {
        for seed in 0..20 {
            let mut it = Recorded::new(id);
            if seed % 4 == 3 {
                // Later replies overtake those that the fault delays.
                let slow = Fault::Slow {
                    by: Span::from_us(700),
                    lasting: Some(Span::from_ms(3)),
                };
                it.drive.suffer(Time::ZERO, &slow).expect("it is slow");
            }
            let mut random = Stream::numbered(seed, "overlap", 0);
            for _ in 0..400 {
                let op = match random.uniform_below(10) {
                    0..6 => Op::Write,
                    6..8 => Op::Deallocate,
                    8 => Op::WriteZeroes,
                    _ => Op::Flush,
                };
                let block = random.uniform_below(BLOCKS);
                let (block, blocks) = match op {
                    Op::Flush => (0, 0),
                    _ => (block, 1 + random.uniform_below(BLOCKS - block)),
                };
                it.submit(op, random.uniform_below(5) == 0, block, blocks);
                if random.uniform_below(4) == 0 {
                    it.advance(Span::from_us(random.uniform_below(2_000)));
                }
            }
            let (log, data) = it.end();
            assert_eq!(log.commands.len(), 400);
            let differs = first_difference(&data, &last_image(&log));
            assert_eq!(differs, None, "{id}, seed {seed}: first sector");
        }
    }
}

#[test]
fn a_write_whose_client_is_gone_is_logged_as_failed_unless_a_part_is_stored() {
    let mut it = Recorded::new("p4800x-375");
    it.submit(Op::Write, false, 0, 1);
    it.advance(Span::from_ms(10));
    // The client disconnects with two writes in flight: the front end no longer has their data.
    it.submit(Op::Write, true, 0, 1);
    it.submit(Op::Write, false, 1, 2);
    it.drive.complete_all(&mut it.replies);
    for (number, mut reply) in it.replies.drain(..).enumerate() {
        it.drive.hand_over(&mut reply);
        // Of the second write, half of the data is moved.
        if number == 1 {
            let written = it.drive.write(reply.offset, &[9; BLOCK], reply.fua);
            written.expect("memory");
        }
        it.drive.take_back(&reply);
    }
    it.submit(Op::Flush, false, 0, 0);
    let (log, data) = it.end();
    // The log ends with the second write in flight.
    let ended: Vec<(bool, bool)> = log
        .commands
        .iter()
        .map(|it| (it.failed, it.completed.is_some()))
        .collect();
    assert_eq!(ended, [(false, true), (true, true), (false, false)]);
    assert!(data[..BLOCK].iter().all(|byte| *byte == 1));
    assert!(data[BLOCK..2 * BLOCK].iter().all(|byte| *byte == 9));
}
