//! Durability guarantee, log size, and invalid settings.

use super::*;

#[test]
fn promises_what_its_log_can_hold() {
    let loss = |tier: &IntentLogConfig, logs| pool(tier, logs).promise();
    let standard = loss(&config(), 1);
    assert_eq!(standard.durable, DurabilityPoint::Flushed);
    assert_eq!(
        standard.loss.cut_sets(),
        [(vec![0], false), (vec![1], true)]
    );
    // Either of two log devices that are used in turn.
    let striped = loss(&config(), 2).loss.cut_sets();
    let sets = [(vec![0], false), (vec![1], true), (vec![2], true)];
    assert_eq!(striped, sets);
    assert_eq!(loss(&config(), 0).loss, Loss::Member(0));
    let ram = ram(16 * MIB, 3);
    let mirrored = raidz_and_mirror(&config(), &ram).promise().loss.cut_sets();
    assert!(mirrored.contains(&(vec![5, 6], true)));
    assert!(!mirrored.contains(&(vec![5], true)));
    let disabled = loss(
        &IntentLogConfig {
            sync: SyncPolicy::Disabled,
            ..config()
        },
        1,
    );
    assert_eq!(disabled.loss.cut_sets(), [(vec![], true), (vec![0], false)]);
    // None of its settings shrinks with the scale.
    let whole = pool(&config(), 1);
    assert_eq!(whole.shrunk(whole.bytes() / 2), whole);
    // Flushes must reach it.
    assert!(DriveConfig::Pool(pool(&config(), 1).into()).volatile_write_cache());
}

#[test]
fn the_log_it_needs_is_two_groups_or_twice_what_may_be_dirty() {
    let of_ram = |ram| IntentLogConfig { ram, ..config() };
    let tier = of_ram(64 << 30);
    assert_eq!(tier.dirty_max(), 4 << 30);
    assert_eq!(of_ram(16 << 30).dirty_max(), (16 << 30) / 10);
    let gbit = 1e9 / 8.0;
    let needed = [1.0, 10.0, 25.0, 100.0].map(|it| tier.log_needed(it * gbit));
    assert_eq!(needed[0], 1.25e9);
    assert_eq!(needed[1..], [(8u64 << 30) as f64; 3]);
}

#[test]
fn what_cannot_be_an_intent_log_is_told() {
    let problems = |change: &dyn Fn(&mut IntentLogConfig), children: &[u64]| {
        let mut tier = config();
        change(&mut tier);
        tier.problems(children).len()
    };
    let children = [64 * MIB, 8 * MIB];
    assert_eq!(problems(&|_| {}, &children), 0);
    assert_eq!(problems(&|it| it.size = 60 * MIB, &children), 1);
    assert_eq!(problems(&|it| it.size = 4096, &children), 1);
    assert_eq!(problems(&|it| it.record = 5000, &children), 1);
    assert_eq!(problems(&|it| it.ram = MIB, &children), 1);
    assert_eq!(problems(&|it| (it.run, it.lanes) = (0, 0), &children), 2);
    assert_eq!(problems(&|_| {}, &[64 * MIB, 4096]), 1);
    assert_eq!(problems(&|_| {}, &[]), 1);
}
