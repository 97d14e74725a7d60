//! Destaging below the upper mark: a controller reaches its target, a cleaner waits until no client command arrives.

use model::command::Command;

use super::client::{Client, client, random_write};
use super::*;

const RING: u64 = 64 * MIB;

fn with(known: WriteBackConfig) -> WriteBackConfig {
    WriteBackConfig {
        destage: Destage {
            round: small().destage.round,
            merge: small().destage.merge,
            ..known.destage
        },
        segment: small().segment,
        record: small().record,
        ..known
    }
}

fn bcache(integral_s2: f64) -> WriteBackConfig {
    let mut config = with(WriteBackConfig::BCACHE);
    let Cleaning::Rate(law) = &mut config.destage.cleaning else {
        panic!("it has a rate");
    };
    law.integral_s2 = integral_s2;
    config
}

impl Client {
    /// Random writes at this interval, for `seconds` seconds; returns the mean of dirty bytes, and bytes destaged per
    /// second.
    fn paced(&mut self, every: Span, seconds: f64) -> (f64, f64) {
        let (from, destaged) = (self.now, self.gauge(Gauge::DestagedBytes));
        let until = from + Span::from_seconds(seconds);
        let (mut sum, mut count) = (0.0, 0.0);
        while self.now < until {
            let command = random_write(&mut self.stream, 2000 * MIB);
            self.pool.submit(self.now, command);
            self.pass(every);
            sum += self.gauge(Gauge::DirtyBytes);
            count += 1.0;
        }
        let moved = self.gauge(Gauge::DestagedBytes) - destaged;
        (sum / count, moved / self.now.since(from).seconds())
    }

    /// Lets time pass.
    fn pass(&mut self, span: Span) {
        let until = self.now + span;
        while self.pool.next_event() <= until {
            let next = self.pool.next_event();
            self.pool.advance(next, next, &mut self.done);
        }
        self.done.clear();
        self.now = until;
    }
}

/// 50 writes per second: 200 KiB. The proportional term alone settles where it destages at that rate, at 40 s of the
/// load above the target; the integral term removes this offset.
#[test]
fn a_controlled_rate_comes_to_its_target() {
    let (target, load) = (0.1 * RING as f64, 50.0 * f64::from(UNIT));
    for (integral_s2, settles) in [(1e12, target + 40.0 * load), (10_000.0, target)] {
        let config = bcache(integral_s2);
        let mut client = client(config, &[ram(RING + 16384), slow(2048 * MIB, 20)]);
        client.paced(Span::from_ms(20), 2500.0);
        let (dirty, rate) = client.paced(Span::from_ms(20), 500.0);
        let off = (dirty - settles) / RING as f64;
        assert!(off.abs() < 0.005, "{integral_s2}: {dirty} of {settles}");
        assert!((rate / load - 1.0).abs() < 0.03, "{rate} of {load}");
    }
}

#[test]
fn below_its_target_it_moves_the_least_and_all_once_nobody_comes() {
    let mut client = client(bcache(10_000.0), &[ram(RING), slow(2048 * MIB, 20)]);
    client.run(1, 500, |stream, _| random_write(stream, 2000 * MIB));
    client.pass(Span::from_ms(10_000));
    let before = client.gauge(Gauge::DestagedBytes);
    for _ in 0..200 {
        client.pool.submit(client.now, Command::read(0, 0, UNIT));
        client.pass(Span::from_ms(2000));
    }
    // 4 KiB per second for 400 s, in segments with 8 units of data.
    let moved = client.gauge(Gauge::DestagedBytes) - before;
    assert!((moved - 400.0 * 4096.0).abs() < 65536.0, "{moved}");
    assert!(client.gauge(Gauge::DirtyBytes) > 32768.0);
    let begun = client.now;
    client.settle();
    // Six updates of 5 s, and the one after them, begun up to 2 s and an update before.
    let passed = client.now.since(begun).seconds();
    assert!((25.0..41.0).contains(&passed), "{passed}");
    assert!(client.gauge(Gauge::DirtyBytes) < 65536.0);
}

/// Overwritten data takes space, too: it is freed before writes must wait for space.
#[test]
fn a_ring_full_of_what_was_overwritten_is_freed() {
    for known in [WriteBackConfig::BCACHE, WriteBackConfig::OPEN_CAS] {
        let mut client = client(with(known), &[ram(4 * MIB), slow(64 * MIB, 20)]);
        let (waited, _) = client.run(1, 5000, |stream, _| random_write(stream, MIB / 8));
        assert_eq!(waited, Span::ZERO);
        assert!(client.gauge(Gauge::DestagedBytes) < 0.1 * 5000.0 * 4096.0);
    }
}

#[test]
fn a_cleaner_waits_until_nobody_comes_and_then_cleans_what_is_old() {
    let config = with(WriteBackConfig::OPEN_CAS);
    let mut client = client(config, &[ram(RING), slow(2048 * MIB, 20)]);
    client.run(1, 800, |stream, _| random_write(stream, 2000 * MIB));
    // A read every 9 s: never quiet for 10 s.
    for _ in 0..40 {
        client.pool.submit(client.now, Command::read(0, 0, UNIT));
        client.pass(Span::from_ms(9000));
    }
    assert_eq!(client.gauge(Gauge::DestagedBytes), 0.0);
    // All segments are old enough by then: all are destaged at the first wake-up without a client command for 10 s.
    client.run(1, 80, |stream, _| random_write(stream, 2000 * MIB));
    let young = 80.0 * 4096.0;
    client.pass(Span::from_ms(31_000));
    let left = client.gauge(Gauge::DirtyBytes);
    assert!((left - young).abs() < 65536.0, "{left} of {young}");
    // These are cleaned once they are 120 s old, except the segment that is being written.
    client.pass(Span::from_ms(88_000));
    assert_eq!(client.gauge(Gauge::DirtyBytes), left);
    client.pass(Span::from_ms(30_000));
    assert!(client.gauge(Gauge::DirtyBytes) < 65536.0);
    client.settle();
    assert_eq!(client.pool.next_event(), Time::NEVER);
}

/// One segment every 10 ms, with 8 units of data each.
#[test]
fn rounds_follow_each_other_in_their_time_whoever_comes() {
    let mut config = with(WriteBackConfig::OPEN_CAS);
    config.destage.cleaning = WriteBackConfig::ACP;
    let mut client = client(config, &[ram(RING), slow(2048 * MIB, 20)]);
    client.run(1, 5000, |stream, _| random_write(stream, 2000 * MIB));
    let before = client.gauge(Gauge::DestagedBytes);
    let (_, rate) = client.paced(Span::from_ms(7), 1.0);
    assert!(before < 0.1 * 5000.0 * 4096.0);
    let expected = 100.0 * 8.0 * 4096.0;
    assert!((rate / expected - 1.0).abs() < 0.03, "{rate} of {expected}");
    client.settle();
    assert!(client.gauge(Gauge::DirtyBytes) < 65536.0);
}
