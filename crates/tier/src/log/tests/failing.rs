//! Writes when a log device or the main pool fails.

use model::data::DriveFault;

use super::*;

/// A RAM disk that fails writes, or fails to make them durable.
#[derive(Clone, Debug)]
struct Failing {
    ram: Ram,
    fails: Option<Op>,
    sent: Vec<Command>,
}

impl Device for Failing {
    fn capacity(&self) -> Capacity {
        self.ram.capacity()
    }
    fn submit(&mut self, now: Time, command: Command) {
        self.sent.push(command);
        self.ram.submit(now, command);
    }
    fn next_event(&self) -> Time {
        self.ram.next_event()
    }
    fn advance(&mut self, now: Time, horizon: Time, done: &mut Vec<Completion>) -> Time {
        let first = done.len();
        let now = self.ram.advance(now, horizon, done);
        for completion in &mut done[first..] {
            let sent = self.sent.iter().rposition(|it| it.id == completion.id);
            let command = self.sent.remove(sent.unwrap());
            if Some(command.op) == self.fails {
                completion.status = Status::WriteFault;
            }
        }
        now
    }
    fn power_cut(&mut self, now: Time, lost: &mut Vec<Range>) -> Time {
        self.ram.power_cut(now, lost)
    }
    fn inspect(&self, now: Time, gauges: &mut dyn Gauges) {
        self.ram.inspect(now, gauges);
    }
}

fn failing(config: &PoolConfig<DriveConfig>, fails: &[Option<Op>]) -> Pool<Failing> {
    let leaf = |(member, &fails): (&Member<DriveConfig>, &Option<Op>)| {
        let DriveConfig::Ram(ram) = &member.drive else {
            panic!("these pools are of RAM disks")
        };
        Failing {
            ram: Ram::new(ram.clone()),
            fails,
            sent: Vec::new(),
        }
    };
    let mut pool = Pool::new(config, config.members.iter().zip(fails).map(leaf).collect());
    pool.record();
    pool
}

#[test]
fn a_log_that_fails_is_used_no_more_and_main_takes_what_it_should_have() {
    let commands: Vec<_> = (0..40)
        .map(|index| (us(index * 20), sync(index % 3 * 131072, 131072)))
        .collect();
    for fails in [Op::Write, Op::Flush] {
        let mut pool = failing(&pool(&config(), 1), &[None, Some(fails)]);
        let done = play(&mut pool, &commands, seconds(60));
        assert_eq!(done.len(), 40);
        assert!(done.iter().all(|it| it.status == Status::Success));
        let asked = pool.recorded();
        let on_main = asked.iter().find(|it| it.member == 0).unwrap().at;
        let later = asked.iter().filter(|it| it.at > on_main + Span::from_ms(1));
        assert!(later.clone().count() > 10);
        assert!(later.clone().all(|it| it.member == 0));
    }
}

#[test]
fn where_main_takes_nothing_nothing_is_acknowledged_any_more() {
    let commands: Vec<_> = (0..400)
        .map(|index| (us(index * 20), sync(index * 131072 % (16 * MIB), 131072)))
        .chain([
            (seconds(20), sync(0, 4096)),
            (seconds(21), Command::flush(0)),
        ])
        .collect();
    let mut pool = failing(&pool(&config(), 1), &[Some(Op::Write), None]);
    let done = play(&mut pool, &commands, seconds(60));
    assert_eq!(done.len(), commands.len());
    for last in &done[400..] {
        assert_eq!(last.status, Status::WriteFault);
    }
}

/// Returns the time of a 4 KiB sync if blocks go to a child that needs this time for a command, and also for a flush.
fn takes(us: u64) -> Span {
    let cpu = config().cpu;
    let software = cpu.write + Span::per_bytes(cpu.copy_ps, 4096) + cpu.commit + cpu.block;
    software + Span::from_us(us) + Span::per_bytes(100, 8192) + Span::from_us(us)
}

#[test]
fn without_its_log_a_sync_takes_the_write_and_flush_of_main_and_with_it_again_the_logs() {
    let config = pool(&config(), 1);
    let mut pool = config.vulnerable(Precondition::Fresh, 1);
    let took = |pool: &mut _, at, bytes| {
        let done = play(pool, &[(us(at), sync(0, bytes))], us(at + 900));
        assert_eq!((done.len(), done[0].status), (1, Status::Success));
        done[0].anatomy.total()
    };
    took(&mut pool, 0, 131072);
    assert_eq!(took(&mut pool, 1000, 4096), takes(3));
    pool.befall(us(1900), 1, DriveFault::Dies);
    // The first commit detects the failure; it does not wait for the group, which is five seconds away.
    assert!((takes(30)..takes(40)).contains(&took(&mut pool, 2000, 4096)));
    pool.record();
    assert_eq!(took(&mut pool, 3000, 4096), takes(30));
    let asked: Vec<_> = pool.recorded().iter().map(of).collect();
    assert_eq!(asked, [(0, Op::Write), (0, Op::Flush)]);
    pool.befall(us(3900), 1, DriveFault::Returns);
    pool.record();
    assert_eq!(took(&mut pool, 4000, 4096), takes(3));
    let asked: Vec<_> = pool.recorded().iter().map(of).collect();
    assert_eq!(asked, [(1, Op::Write), (1, Op::Flush)]);
}

fn of(asked: &ChildCommand) -> (u16, Op) {
    (asked.member, asked.command.op)
}
