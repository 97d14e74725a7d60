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

fn dies(at_us: u64, member: u16) -> RunFault {
    RunFault {
        called: format!("m.{member}: dies"),
        ..befalls(at_us, Some(member), FaultKind::Dies)
    }
}

fn back(at_us: u64, member: u16, what: FaultKind) -> RunFault {
    RunFault {
        called: format!("m.{member}: back"),
        ..befalls(at_us, Some(member), what)
    }
}

type Watched = FaultyDevice<Pool<DataBackedDrive<Drive, NullContents>>>;

/// Runs a pool with these faults and a write of 64 KiB each 20 us up to `writes_until`, then without writes; calls `look`
/// after each event.
fn watched(
    pool: &str,
    faults: &[RunFault],
    (writes_until, end): (u64, u64),
    mut look: impl FnMut(&Watched, Time),
) -> (Vec<Rebuild>, Vec<String>) {
    let DriveConfig::Pool(config) = sheet(pool) else {
        panic!("a pool");
    };
    let log = TriggerLog::default();
    let pool = config.vulnerable(Precondition::Fresh, 1);
    let mut device = FaultyDevice::new(pool, faults, 1, &log);
    let at = |us| Time::ZERO + Span::from_us(us);
    let mut done = Vec::new();
    let mut advance = |device: &mut Watched, until: Time| {
        while device.next_event() <= until {
            let next = device.next_event();
            let now = device.advance(next, next, &mut done);
            look(device, now);
        }
    };
    for number in 0..writes_until / 20 {
        advance(&mut device, at(20 * number));
        let write = Command::write(number as u32, (number * 7 % 64) << 16, 1 << 16);
        device.submit(at(20 * number), write);
    }
    advance(&mut device, at(end));
    let names = log.entries_after(0).into_iter().map(|it| it.1);
    (device.rebuilds(at(end)), names.collect())
}

/// Each drive of this pool is in an array and in two mirrors, which are rebuilt at the same time.
#[test]
fn a_rebuild_has_the_bytes_of_all_tiers_of_its_member() {
    let DriveConfig::Pool(config) = sheet("vsan-esa") else {
        panic!("a pool");
    };
    let faults = [dies(100, 0), back(60_000, 0, FaultKind::Returns)];
    let mut written = 0;
    let mut of_tiers = Vec::new();
    let look = |device: &Watched, now: Time| {
        for rebuild in device.rebuilds(now) {
            assert!(rebuild.written >= written, "{rebuild:?}");
            written = rebuild.written;
        }
        let tiers = device.device.tiers().iter().zip(&config.tiers);
        of_tiers = tiers
            .flat_map(|(tier, of)| {
                let children = (0..).zip(&of.children);
                let on_it =
                    children.filter(|(_, it)| matches!(it, tier::Target::Slice { member: 0, .. }));
                on_it.map(|(child, _)| tier.rebuilt_bytes(child))
            })
            .collect();
    };
    let (rebuilds, names) = watched("vsan-esa", &faults, (60_000, 5_000_000), look);
    let [rebuild] = &rebuilds[..] else {
        panic!("{rebuilds:?}");
    };
    assert!(rebuild.in_sync, "{rebuild:?}");
    let busy = of_tiers.iter().filter(|&&bytes| bytes > 0).count();
    assert!(busy > 1, "{of_tiers:?}");
    assert_eq!(
        rebuild.written,
        of_tiers.iter().sum::<u64>(),
        "{of_tiers:?}"
    );
    assert_eq!(names, ["m.0: in sync"]);
}

/// The labels list the member as complete until the tier has noticed its absence.
#[test]
fn a_rebuild_is_reported_although_no_command_met_the_absent_member() {
    let returned = [dies(5_000, 1), back(9_000, 1, FaultKind::Returns)];
    let (rebuilds, names) = watched("mirror(2*ram-disk)", &returned, (0, 20_000), |_, _| {});
    assert_eq!(rebuilds.len(), 1, "{rebuilds:?}");
    assert!(rebuilds[0].in_sync && rebuilds[0].written == 0);
    assert_eq!(
        names.len(),
        0,
        "nothing was written, so no phase begins: {names:?}"
    );
    for pool in ["mirror(2*ram-disk)", "raid5(3*ram-disk)"] {
        let replaced = [back(9_000, 1, FaultKind::Replaced)];
        let (rebuilds, _) = watched(pool, &replaced, (2_000, 20_000), |_, _| {});
        let [rebuild] = &rebuilds[..] else {
            panic!("{pool}: {rebuilds:?}");
        };
        let words = rebuild.words();
        assert!(!rebuild.in_sync && rebuild.written > 0, "{pool}: {words}");
        assert!(words.contains(" left: another "), "{pool}: {words}");
    }
}

#[test]
fn a_rebuild_that_waits_for_another_one_says_so() {
    let replaced = [0, 1].map(|member| back(9_000, member, FaultKind::Replaced));
    let (rebuilds, _) = watched("raid6(4*ram-disk)", &replaced, (2_000, 20_000), |_, _| {});
    let [first, second] = &rebuilds[..] else {
        panic!("{rebuilds:?}");
    };
    assert!(first.words().contains(" left: another "), "{first:?}");
    assert!(second.began.is_none() && second.left > 0, "{second:?}");
    let words = second.words();
    assert!(
        words.ends_with(" left: it waits for another rebuild"),
        "{words}"
    );
}

/// No member can compute the data of the returned one: nothing rebuilds it any more, and nothing watches it.
#[test]
fn a_rebuild_that_failed_is_not_watched_any_more() {
    use model::data::{CommandKind, Effect, Lasting};
    let unreadable = FaultKind::Rule(Rule {
        kind: Some(CommandKind::Reads),
        effect: Effect::Fails,
        range: None,
        rate: 1.0,
        lasting: Lasting::Forever,
    });
    let faults = [
        dies(100, 0),
        befalls(1_900, Some(1), unreadable),
        back(2_000, 0, FaultKind::Returns),
    ];
    let mut watches = true;
    let look = |device: &Watched, _| watches = device.rebuilds.is_watching();
    let (rebuilds, names) = watched("raid5(3*ram-disk)", &faults, (1_500, 50_000), look);
    assert_eq!(rebuilds.len(), 1, "{rebuilds:?}");
    let words = rebuilds[0].words();
    assert!(words.ends_with("; no rebuild is running"), "{words}");
    assert!(!watches && names.is_empty(), "{names:?}");
}
