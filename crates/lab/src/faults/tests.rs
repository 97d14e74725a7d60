//! Devices with faults obey the device laws, and counts are reached at the right times.

use super::*;
use model::conformance;

fn sheet(name: &str) -> DriveConfig {
    catalogue::drive(name).expect("it is read").config
}

fn befalls(at_us: u64, member: Option<u16>, what: FaultKind) -> RunFault {
    RunFault {
        at: Span::from_us(at_us),
        trigger: None,
        member,
        what,
        called: String::new(),
    }
}

#[test]
fn a_drive_that_becomes_slow_keeps_the_laws() {
    let config = sheet("ram-disk");
    let faults = [
        befalls(0, None, FaultKind::Refresh),
        befalls(300, None, FaultKind::Slow(Span::from_us(70))),
        befalls(900, None, FaultKind::Slow(Span::ZERO)),
    ];
    conformance::check(|seed| {
        let drive = Drive::new(&config, Precondition::Fresh, seed);
        let kept = DataBackedDrive::new(drive, NullContents, Bytes::default(), false);
        FaultyDevice::new(kept, &faults, 1, &TriggerLog::default())
    });
}

#[test]
fn a_drive_with_rules_and_triggers_keeps_the_laws() {
    use model::data::{CommandKind, Effect, Lasting, Moment};
    let config = sheet("ram-disk");
    let delay = |rate, range| {
        FaultKind::Rule(Rule {
            kind: None,
            effect: Effect::Delays(Span::from_us(40)),
            range,
            rate,
            lasting: Lasting::Forever,
        })
    };
    let by_count = |number, what| RunFault {
        trigger: Some(Trigger {
            kind: CommandKind::Writes,
            moment: Moment::Arrival,
            number,
        }),
        ..befalls(0, None, what)
    };
    let faults = [
        befalls(0, None, delay(0.3, None)),
        befalls(0, None, delay(1.0, Some((0, 1 << 20)))),
        by_count(9, FaultKind::Slow(Span::from_us(15))),
        by_count(30, FaultKind::Slow(Span::ZERO)),
        by_count(60, FaultKind::Clear),
    ];
    conformance::check(|seed| {
        let drive = Drive::new(&config, Precondition::Fresh, seed);
        let kept = DataBackedDrive::new(drive, NullContents, Bytes::default(), false);
        FaultyDevice::new(kept, &faults, 1, &TriggerLog::default())
    });
}

/// A mirror that resyncs completes nothing for clients: a member reaches its count in the middle of a long advance.
#[test]
fn a_count_is_reached_at_its_time_however_far_a_device_may_advance() {
    use model::data::{CommandKind, Moment};
    let DriveConfig::Pool(config) = sheet("mirror(2*ram-disk)") else {
        panic!("a pool");
    };
    let third_copy = RunFault {
        trigger: Some(Trigger {
            kind: CommandKind::Writes,
            moment: Moment::Arrival,
            number: 3,
        }),
        ..befalls(0, Some(0), FaultKind::Dies)
    };
    let faults = [
        befalls(0, Some(0), FaultKind::Dies),
        befalls(500, Some(0), FaultKind::Returns),
        third_copy,
    ];
    let struck = |far: bool| {
        let log = TriggerLog::default();
        let pool = config.vulnerable(Precondition::Fresh, 1);
        let mut device = FaultyDevice::new(pool, &faults, 1, &log);
        let mut done = Vec::new();
        for number in 0..8 {
            let now = Time::ZERO + Span::from_us(10 + number);
            while device.next_event() <= now {
                let next = device.next_event();
                device.advance(next, next, &mut done);
            }
            let write = Command::write(number as u32, number << 20, 1 << 20);
            device.submit(now, write);
        }
        let end = Time::ZERO + Span::from_ms(100);
        while device.next_event() <= end {
            let next = device.next_event();
            device.advance(next, if far { end } else { next }, &mut done);
        }
        log.entries_after(0)
    };
    assert_eq!(struck(false).len(), 1);
    assert_eq!(struck(true), struck(false));
}

#[test]
fn how_much_slower_is_said_in_the_unit_it_has() {
    let said = [0, 70, 1_000, 200_000, 1_000_000, 1_500_000, 2_000_000_000]
        .map(|ns| slower(Span::from_ns(ns)));
    let wanted = [
        "as before",
        "70 ns slower",
        "1 us slower",
        "200 us slower",
        "1 ms slower",
        "1.5 ms slower",
        "2 s slower",
    ];
    assert_eq!(said, wanted);
}

#[test]
fn an_intent_log_without_its_log_and_with_it_again_keeps_the_laws() {
    let DriveConfig::Pool(config) =
        sheet("intent-log(main=ram-disk, log=ram-disk; size=1GiB, ram=1GiB)")
    else {
        panic!("a pool");
    };
    let log = config.members.iter().position(|it| it.name == "ram-disk.1");
    let log = log.map(|it| it as u16);
    assert!(log.is_some());
    let faults = [
        befalls(200, log, FaultKind::Dies),
        befalls(700, log, FaultKind::Returns),
        befalls(900, log, FaultKind::FailsWrite),
    ];
    conformance::check(|seed| {
        let pool = config.vulnerable(Precondition::Fresh, seed);
        FaultyDevice::new(pool, &faults, 1, &TriggerLog::default())
    });
}

#[test]
fn a_mirror_that_loses_a_leg_and_has_it_again_keeps_the_laws() {
    let DriveConfig::Pool(config) = sheet("mirror(2*ram-disk)") else {
        panic!("a pool");
    };
    let faults = [
        befalls(200, Some(0), FaultKind::Dies),
        befalls(700, Some(0), FaultKind::Returns),
        befalls(700, Some(1), FaultKind::Slow(Span::from_us(20))),
    ];
    conformance::check(|seed| {
        let pool = config.vulnerable(Precondition::Fresh, seed);
        FaultyDevice::new(pool, &faults, 1, &TriggerLog::default())
    });
}
