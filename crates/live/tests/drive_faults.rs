//! Effects on commands when a drive is slow, stuck, worn, formatted, or loses its power.

use live::Setup;
use live::served::{IoRequest, Outcome, Reply, ServedDevice};
use model::media::Precondition;
use model::{Op, Span, Time};
use workload::faults::Fault;

fn served(id: &str) -> ServedDevice {
    let sheet = catalogue::drive(id).expect("a drive of the catalogue");
    Setup {
        size: Some(64 << 20),
        precondition: Some(Precondition::Fresh),
        seed: 3,
        ..Setup::new(sheet)
    }
    .open()
    .expect("memory")
}

fn request(tag: u32, op: Op) -> IoRequest {
    IoRequest {
        tag,
        op,
        fua: false,
        queue: 0,
        offset: u64::from(tag) * 4096,
        bytes: 4096,
    }
}

const fn ms(ms: u64) -> Time {
    Time::from_ns(ms * 1_000_000)
}

/// Runs the drive to `until` and returns the replies.
fn until(drive: &mut ServedDevice, until: Time) -> Vec<Reply> {
    let mut replies = Vec::new();
    drive.advance(until, &mut replies);
    replies
}

#[test]
fn a_slow_drive_takes_longer_for_as_long_as_it_is_slow() {
    let mut drive = served("p4800x-375");
    let slow = Fault::Slow {
        by: Span::from_ms(5),
        lasting: Some(Span::from_ms(10)),
    };
    drive.suffer(ms(1), &slow).expect("it can be slow");
    drive.submit(ms(2), 0, &request(0, Op::Read));
    assert!(until(&mut drive, ms(6)).is_empty());
    assert_eq!(drive.in_flight(), 1);
    let replies = until(&mut drive, ms(8));
    assert!(replies[0].latency >= Span::from_ms(5) && replies[0].latency < Span::from_us(5_100));
    drive.submit(ms(20), 0, &request(1, Op::Read));
    assert!(until(&mut drive, ms(30))[0].latency < Span::from_us(100));
}

#[test]
fn a_stuck_drive_answers_when_it_is_freed() {
    let mut drive = served("p4800x-375");
    drive
        .suffer(ms(1), &Fault::Stuck { lasting: None })
        .expect("it can be stuck");
    for tag in 0..4 {
        drive.submit(ms(2), u64::from(tag), &request(tag, Op::Write));
    }
    assert!(until(&mut drive, ms(1_000)).is_empty());
    assert_eq!(drive.in_flight(), 4);
    drive
        .suffer(ms(2_000), &Fault::Unstuck)
        .expect("it can be freed");
    let replies = until(&mut drive, ms(2_000));
    assert_eq!(replies.len(), 4);
    assert!(
        replies
            .iter()
            .all(|it| it.outcome == Outcome::Success && it.at == ms(2_000))
    );
}

/// Returns the bytes written in a second, starting at `start` in ms, with 64 commands at a time.
fn written_in_a_second(drive: &mut ServedDevice, start: u64) -> u64 {
    let mut tag = 0;
    let mut now = ms(start);
    let mut written = 0;
    for _ in 0..64 {
        drive.submit(now, 0, &request(tag % 1000, Op::Write));
        tag += 1;
    }
    while now < ms(start + 1_000) && drive.next_event() != Time::NEVER {
        now = drive.next_event();
        for _ in until(drive, now) {
            written += 4096u64;
            drive.submit(now, 0, &request(tag % 1000, Op::Write));
            tag += 1;
        }
    }
    until(drive, ms(start + 9_000));
    written
}

/// As NVMe describes the end of a medium: writes fail, reads succeed, and SMART's critical warning has bit 3.
#[test]
fn a_worn_out_flash_drive_is_read_only() {
    let mut drive = served("p3700-1600");
    assert!(written_in_a_second(&mut drive, 0) > 0);
    drive
        .suffer(ms(20_000), &Fault::Wear(104.9))
        .expect("it wears");
    assert_eq!(drive.health(ms(20_000)).warning.bits(), 1 << 2);
    drive.submit(ms(20_001), 0, &request(1, Op::Write));
    assert_eq!(until(&mut drive, ms(20_010))[0].outcome, Outcome::Success);
    drive
        .suffer(ms(20_011), &Fault::Wear(105.0))
        .expect("it wears");
    assert_eq!(drive.health(ms(20_011)).warning.bits(), 1 << 3 | 1 << 2);
    for (op, outcome) in [
        (Op::Write, Outcome::ReadOnly),
        (Op::WriteZeroes, Outcome::ReadOnly),
        (Op::Deallocate, Outcome::ReadOnly),
        (Op::Read, Outcome::Success),
        (Op::Flush, Outcome::Success),
    ] {
        drive.submit(ms(20_012), 0, &request(1, op));
        assert_eq!(until(&mut drive, ms(20_030))[0].outcome, outcome, "{op:?}");
    }
    let condition = drive.condition(ms(20_031)).0;
    assert_eq!(condition, live::served::Condition::ReadOnly);
    assert!(drive.sanitize(ms(20_032)).is_err());
}

#[test]
fn a_drive_that_is_too_hot_throttles_until_it_has_cooled_down() {
    const TOO_HOT: u8 = 1 << 1;
    let mut drive = served("p4800x-375");
    let health = |drive: &mut ServedDevice, at: u64| drive.health(ms(at)).warning.bits() & TOO_HOT;
    let before = written_in_a_second(&mut drive, 0);
    assert_eq!(health(&mut drive, 20_000), 0);
    drive
        .suffer(ms(20_000), &Fault::Ambient(120.0))
        .expect("it can be hot");
    // Five times the time constant of its temperature.
    assert_eq!(health(&mut drive, 620_000), TOO_HOT);
    let hot = written_in_a_second(&mut drive, 620_000);
    assert!(hot < before / 2, "{hot} of {before} B/s");
    drive
        .suffer(ms(640_000), &Fault::Ambient(25.0))
        .expect("it can cool down");
    assert_eq!(health(&mut drive, 1_240_000), 0);
    let again = written_in_a_second(&mut drive, 1_240_000);
    assert!(
        again.abs_diff(before) < before / 100,
        "{again} of {before} B/s"
    );
}

/// A desktop drive's model has no governor that heat could affect, and a remark states that.
#[test]
fn a_drive_without_a_governor_is_not_slowed_by_heat_and_says_so() {
    let hot = Fault::Ambient(120.0);
    assert_eq!(served("p4800x-375").remark(&hot), "");
    let mut drive = served("950pro-256");
    assert!(drive.remark(&hot).contains("no power governor"));
    drive.suffer(ms(0), &hot).expect("it can be hot");
    let health = drive.health(ms(1_200_000));
    assert!(
        health.celsius > 100.0 && health.warning.temperature,
        "{health:?}"
    );
}

/// Returns the share of consecutive reads that take 30 us more than the fastest: longer than the recovery of a read,
/// which one in a thousand needs. They begin at `start`, in ms.
fn share_of_late_reads(drive: &mut ServedDevice, start: u64) -> f64 {
    const READS: u32 = 20_000;
    let mut latencies = Vec::new();
    for read in 0..READS {
        let at = ms(start) + Span::from_us(u64::from(read) * 100);
        // Spread over the drive.
        let block = read.wrapping_mul(0x9e37_79b9) % ((64 << 20) / 4096);
        drive.submit(at, 0, &request(block, Op::Read));
        let replies = until(drive, at + Span::from_us(99));
        latencies.extend(replies.iter().map(|reply| reply.latency));
    }
    let quickest = latencies.iter().min().copied().unwrap_or(Span::ZERO);
    let late = |latency: &&Span| **latency > quickest + Span::from_us(30);
    latencies.iter().filter(late).count() as f64 / f64::from(READS)
}

#[test]
fn the_refresh_after_power_on_makes_reads_wait_until_it_is_done() {
    const HOUR_MS: u64 = 3_600_000;
    let mut drive = served("p4800x-375");
    let before = share_of_late_reads(&mut drive, 0);
    drive
        .suffer(ms(10_000), &Fault::Refresh)
        .expect("it begins again");
    let during = share_of_late_reads(&mut drive, HOUR_MS);
    let after = share_of_late_reads(&mut drive, 4 * HOUR_MS);
    // Ten days for a pass become three hours (S4-069).
    assert!(
        during > 10.0 * before.max(after),
        "{before} {during} {after}"
    );
}

#[test]
fn a_worn_drive_throttles() {
    let mut drive = served("p4800x-375");
    let new = written_in_a_second(&mut drive, 0);
    assert!(new > 1_000_000_000, "{new} B/s");
    drive
        .suffer(ms(10_000), &Fault::Wear(105.5))
        .expect("it wears");
    let worn = written_in_a_second(&mut drive, 11_000);
    // S4: 30 MB/s above 105 %.
    assert!((25_000_000..=35_000_000).contains(&worn), "{worn} B/s");
}

#[test]
fn a_power_cut_ends_what_is_inside_and_empties_a_volatile_cache() {
    let mut drive = served("950pro-256");
    for tag in 0..64 {
        drive.submit(ms(1), u64::from(tag), &request(tag, Op::Write));
    }
    // Just after the last acknowledgement, some writes have not reached the flash.
    let mut acknowledged = 0;
    while acknowledged < 64 {
        let next = drive.next_event();
        for reply in until(&mut drive, next) {
            assert_eq!(reply.outcome, Outcome::Success);
            drive
                .write(reply.offset, &[7; 4096], reply.fua)
                .expect("memory");
            acknowledged += 1;
        }
    }
    let now = drive.now();
    for tag in 100..110 {
        drive.submit(now, u64::from(tag), &request(tag, Op::Read));
    }
    let cycles = drive.health(now).lifetime.power_cycles;
    let loss = drive.power_cut(now);
    assert_eq!(loss.commands, 10);
    assert!(
        loss.cached_bytes > 0 && loss.cached_bytes <= 64 * 4096,
        "{loss:?}"
    );
    let mut kept = 0;
    for tag in 0..64 {
        let mut data = [1; 4096];
        drive.read(tag * 4096, &mut data).expect("memory");
        assert!(data == [0; 4096] || data == [7; 4096], "torn");
        kept += u64::from(data[0] == 7);
    }
    assert_eq!(kept * 4096 + loss.cached_bytes, 64 * 4096);
    let replies = until(&mut drive, ms(10_000));
    assert_eq!(replies.len(), 10);
    assert!(
        replies
            .iter()
            .all(|reply| reply.outcome == Outcome::PowerLoss)
    );
    assert_eq!(drive.in_flight(), 0);
    let life = drive.health(now).lifetime;
    assert_eq!((life.power_cycles, life.unsafe_shutdowns), (cycles + 1, 1));
    // It continues afterwards.
    drive.submit(ms(20_000), 0, &request(1, Op::Read));
    assert_eq!(until(&mut drive, ms(30_000))[0].outcome, Outcome::Success);
}

/// Writes this range of pages sequentially, filled with sevens.
fn write_pages(drive: &mut ServedDevice, pages: std::ops::Range<u32>) {
    for tag in pages {
        let now = drive.now();
        drive.submit(now, u64::from(tag), &request(tag, Op::Write));
        while drive.in_flight() > 0 {
            let next = drive.next_event();
            for reply in until(drive, next) {
                let written = drive.write(reply.offset, &[7; 4096], reply.fua);
                written.expect("memory");
            }
        }
    }
}

#[test]
fn what_was_flushed_survives_a_power_cut_and_so_does_all_where_there_are_capacitors() {
    for (name, flushes, kept) in [("950pro-256", true, 8), ("p3700-1600", false, 16)] {
        let mut drive = served(name);
        write_pages(&mut drive, 0..8);
        if flushes {
            let now = drive.now();
            drive.submit(now, 99, &request(99, Op::Flush));
            while drive.in_flight() > 0 {
                let next = drive.next_event();
                until(&mut drive, next);
            }
        }
        write_pages(&mut drive, 8..16);
        let now = drive.now();
        let lost = drive.power_cut(now).cached_bytes;
        assert_eq!(lost, (16 - kept) * 4096, "{name}");
        for page in 0..16 {
            let mut data = [1; 4096];
            drive.read(page * 4096, &mut data).expect("memory");
            let expected = if page < kept { 7 } else { 0 };
            assert_eq!(data, [expected; 4096], "{name}: page {page}");
        }
    }
}

#[test]
fn a_format_takes_its_time_and_everything_with_it() {
    let mut drive = served("p4800x-375");
    drive.submit(ms(1), 0, &request(0, Op::Write));
    assert_eq!(until(&mut drive, ms(2)).len(), 1);
    drive.write(0, &[7; 4096], false).expect("memory");
    let number = drive
        .management()
        .format_number(4096, 0)
        .expect("a 4096 B format");
    let operation = drive.format(ms(3), number, 0).expect("it is idle");
    assert!(
        operation.until > ms(60_000),
        "FORMAT takes about one fill: {operation:?}"
    );
    drive.submit(ms(4), 0, &request(0, Op::Read));
    assert_eq!(until(&mut drive, ms(5))[0].outcome, Outcome::Formatting);
    let after = operation.until + Span::from_ms(1);
    drive.submit(after, 0, &request(0, Op::Read));
    assert_eq!(
        until(&mut drive, after + Span::from_ms(1))[0].outcome,
        Outcome::Success
    );
    let mut data = [1; 4096];
    drive.read(0, &mut data).expect("memory");
    assert_eq!((data, drive.block()), ([0; 4096], 4096));
}
