//! Pools fulfil their durability guarantees: power cuts, failed members and other faults, on small copies of pools of
//! real drives.

use study::prove::{FaultCoverage, FaultVerdict, ProveSettings, Report, prove};
use tier::DriveConfig;

fn tried(pool: &str, points: u64, only: &str) -> Report {
    let sheet = catalogue::drive(pool).unwrap_or_else(|problems| panic!("{problems}"));
    let DriveConfig::Pool(config) = &sheet.config else {
        panic!("{pool} is no pool");
    };
    let settings = ProveSettings {
        points,
        seed: 1,
        only: only.to_owned(),
        to_the_first: false,
    };
    prove(config, &settings, &|_, _| true).expect("its data can be found again")
}

/// Points of a shape with many faults: a third of them in each run of the tests, all of them in the nightly run.
fn many(points: u64) -> u64 {
    match std::env::var_os("DRIVELAB_NIGHTLY") {
        Some(_) => points,
        None => points / 3,
    }
}

fn is_kept(pool: &str, points: u64) -> Report {
    is_kept_in(pool, points, "")
}

/// Only with faults whose names contain this.
fn is_kept_in(pool: &str, points: u64, only: &str) -> Report {
    let report = tried(pool, points, only);
    for row in &report.rows {
        println!(
            "{pool}: {:<40} {:?} {:?}",
            row.fault, row.verdict, row.tally
        );
    }
    if let Some(broken) = &report.broken {
        panic!(
            "{pool}: {}: {}\n{}\n{}",
            broken.fault,
            broken.what,
            broken.program.join("\n"),
            broken.replay
        );
    }
    assert!(report.is_kept(), "{pool}");
    report
}

#[test]
fn mirrors_keep_their_promise() {
    for pool in [
        "mirror(2*p4801x-100)",
        "mirror(2*950pro-256)",
        "mirror(p4801x-100, 950pro-256)",
    ] {
        let report = is_kept(pool, 300);
        let sum = |what: &dyn Fn(&study::prove::SearchTally) -> u64| -> u64 {
            report.rows.iter().map(|row| what(&row.tally)).sum()
        };
        // The pool is not too small for events to occur.
        assert!(sum(&|it| it.torn) > 100);
        assert!(sum(&|it| it.stale) > 100);
        assert!(sum(&|it| it.unclean) > 100);
        assert!(sum(&|it| it.absent) > 100);
        assert!(sum(&|it| it.second) > 100);
    }
}

#[test]
fn stripes_and_concatenations_lose_what_they_say_and_nothing_else() {
    for pool in ["stripe(2*950pro-256)", "concat(2*p4801x-100)"] {
        let report = is_kept(pool, 300);
        let lost = report
            .rows
            .iter()
            .filter(|it| it.covered == FaultCoverage::LostByPromise);
        let verdicts: Vec<FaultVerdict> = lost.map(|row| row.verdict).collect();
        assert_eq!(
            verdicts,
            [FaultVerdict::AsDesigned; 3],
            "{pool}: two members and both"
        );
    }
}

/// A cache of its own, a mirrored one, and one that is durable only after a flush: the losses with each drive, and
/// rings that wrap, have gaps, lose durable records and report that.
#[test]
fn write_back_caches_lose_what_they_say_and_nothing_else() {
    let alone = "write-back-cache(cache=950pro-256, capacity=950pro-256)";
    let late = "write-back-cache(cache=950pro-256, capacity=950pro-256; durability=flush)";
    for pool in [alone, late] {
        let report = is_kept(pool, 300);
        let sum = |what: &dyn Fn(&study::prove::SearchTally) -> u64| -> u64 {
            report.rows.iter().map(|row| what(&row.tally)).sum()
        };
        assert!(sum(&|it| it.wrapped) > 100, "no ring wraps");
        assert!(sum(&|it| it.gaps) > 100, "no ring has a gap");
        assert!(sum(&|it| it.told) > 10, "nothing is ever told");
        assert!(sum(&|it| it.second) > 100);
        let lost = |row: &&study::prove::FaultResult| row.covered == FaultCoverage::LostByPromise;
        let verdicts: Vec<FaultVerdict> = report
            .rows
            .iter()
            .filter(lost)
            .map(|it| it.verdict)
            .collect();
        assert_eq!(verdicts, [FaultVerdict::AsDesigned; 3], "{pool}");
    }
}

#[test]
fn a_mirrored_cache_outlives_one_of_its_legs() {
    let mirrored = "write-back-cache(cache=mirror(2*950pro-256), capacity=2*d7-p5510-3840)";
    let report = is_kept(mirrored, many(200));
    assert_eq!(verdict(&report, "950pro-256.0 dies"), FaultVerdict::Kept);
    let both = "950pro-256.0 and 950pro-256.1 die";
    assert_eq!(verdict(&report, both), FaultVerdict::AsDesigned);
}

/// With the settings of existing software, and with a buffer that many writes bypass.
fn keeps_its_promise(like: &str) {
    let pool = format!("write-back-cache(cache=950pro-256, capacity=950pro-256; {like})");
    let report = is_kept_in(&pool, 1000, "power cut");
    let told: u64 = report.rows.iter().map(|row| row.tally.gaps).sum();
    assert!(told > 10, "{like}: no ring has a gap");
}

#[test]
fn a_cache_like_dm_writecache_keeps_its_promise() {
    keeps_its_promise("like=dm-writecache");
}

#[test]
fn a_cache_like_bcache_keeps_its_promise() {
    keeps_its_promise("like=bcache");
}

#[test]
fn caches_like_open_cas_keep_their_promise() {
    keeps_its_promise("like=open-cas");
    keeps_its_promise("like=open-cas, clean=acp");
}

#[test]
fn a_cache_that_much_goes_past_keeps_its_promise() {
    keeps_its_promise(
        "like=bcache, durability=ack, commit_blocks=0, commit_time=0us, pass_from=5%, pass_fua_from=5%",
    );
}

#[test]
fn a_cache_that_takes_in_what_comes_again_keeps_its_promise() {
    keeps_its_promise("like=open-cas, fill_at_miss=2, fill_from=0%");
}

/// Returns the verdict on a fault with this description.
fn verdict(report: &Report, fault: &str) -> FaultVerdict {
    let row = report.rows.iter().find(|row| row.fault == fault);
    row.unwrap_or_else(|| panic!("nothing is called {fault}"))
        .verdict
}

// An intent log loses the data that `show` states, and nothing else: with a mirrored log, one log, two in turn, none,
// and without syncs. There is one test for each, so that they run in parallel.

#[test]
fn a_mirrored_log_outlives_one_of_its_legs() {
    let mirrored = "intent-log(main=mirror(2*950pro-256), log=mirror(2*p4801x-100))";
    let report = is_kept(mirrored, many(200));
    let sum = |what: &dyn Fn(&study::prove::SearchTally) -> u64| -> u64 {
        report.rows.iter().map(|row| what(&row.tally)).sum()
    };
    assert!(sum(&|it| it.logged) > 100, "nothing is ever done again");
    assert!(sum(&|it| it.gaps) > 10, "no log has a gap");
    assert!(sum(&|it| it.second) > 100);
    assert_eq!(verdict(&report, "p4801x-100.0 dies"), FaultVerdict::Kept);
    let both = "p4801x-100.0 and p4801x-100.1 die";
    assert_eq!(verdict(&report, both), FaultVerdict::AsDesigned);
}

#[test]
fn one_log_loses_what_it_says_and_nothing_else() {
    let alone = "intent-log(main=mirror(2*950pro-256), log=950pro-256)";
    let cut = is_kept_in(alone, 200, "power cut");
    assert_eq!(verdict(&cut, "power cut"), FaultVerdict::Kept);
    let dead = is_kept_in(alone, 200, "950pro-256.2 dies");
    assert_eq!(
        verdict(&dead, "950pro-256.2 dies"),
        FaultVerdict::AsDesigned
    );
}

#[test]
fn two_logs_in_turn_lose_what_they_say_and_nothing_else() {
    let striped = "intent-log(main=mirror(2*950pro-256), log=2*p4801x-100)";
    let striped = is_kept_in(striped, 400, "p4801x");
    assert_eq!(
        verdict(&striped, "p4801x-100.1 dies"),
        FaultVerdict::AsDesigned
    );
}

#[test]
fn without_a_log_what_was_synced_is_there() {
    let without = is_kept_in("intent-log(main=mirror(2*950pro-256))", 400, "power cut");
    assert_eq!(verdict(&without, "power cut"), FaultVerdict::Kept);
}

#[test]
fn what_is_not_synced_is_lost_as_designed() {
    let disabled = "intent-log(main=mirror(2*950pro-256); sync=disabled)";
    let disabled = is_kept_in(disabled, 400, "power cut");
    assert_eq!(verdict(&disabled, "power cut"), FaultVerdict::AsDesigned);
}

#[test]
fn tiers_on_tiers_keep_their_promise() {
    is_kept("stripe(mirror(2*950pro-256), mirror(2*950pro-256))", 100);
    is_kept("mirror(stripe(2*950pro-256), 950pro-256)", 100);
    // Writes of the outer mirror during its recovery are marked in the inner ones.
    is_kept_in("mirror(2*mirror(2*950pro-256))", 100, "power cut");
}

/// Caches below a log and below a mirror: a recovery writes to them, and the next one has the same result.
#[test]
fn tiers_on_write_back_caches_keep_their_promise() {
    let log =
        "intent-log(main=write-back-cache(cache=p4801x-100, capacity=950pro-256), log=p4801x-100)";
    is_kept_in(log, many(1000), "power cut");
    // Rings that drives have modified report their losses.
    is_kept_in(log, many(1000), "p4801x-100.0 misplaces");
    let two = "mirror(2*write-back-cache(cache=p4801x-100, capacity=950pro-256))";
    is_kept_in(two, 100, "power cut");
    is_kept_in(two, 100, "p4801x-100.1 loses");
    is_kept_in(two, 100, "p4801x-100.0 cannot read some, p");
}

/// A recovery of the cache writes to the mirrors; power is cut between two mirror members.
#[test]
fn a_cache_on_an_array_keeps_its_promise() {
    let pool = "write-back-cache(cache=p4801x-100, capacity=raid5(3*950pro-256))";
    is_kept_in(pool, 100, "power cut");
}

#[test]
fn a_cache_over_mirrors_keeps_its_promise_through_a_cut_recovery() {
    let pool = "write-back-cache(cache=mirror(2*p4801x-100), capacity=mirror(2*950pro-256))";
    is_kept_in(pool, 1000, "again in recovery");
}

/// A volatile cache that lies or misplaces loses records; later records written over them show the loss.
#[test]
fn a_cache_of_a_lying_drive_tells_what_it_has_lost() {
    let pool = "write-back-cache(cache=950pro-256, capacity=exos-x18-16tb; durability=flush)";
    for fault in [
        "950pro-256 lies about flushes",
        "950pro-256 misplaces a write",
    ] {
        let report = is_kept_in(pool, 1000, fault);
        assert_eq!(verdict(&report, fault), FaultVerdict::NotPromised);
    }
}

/// A pool with one member has only the server's own record of the last opening.
#[test]
fn an_old_copy_of_the_only_member_is_refused() {
    let report = is_kept_in("intent-log(main=950pro-256)", 300, "an old copy");
    let fault = "an old copy of 950pro-256 returns";
    assert_eq!(verdict(&report, fault), FaultVerdict::Kept);
    assert!(report.rows[0].tally.lost > 300, "it is refused");
}

/// Cases that the checker has found: a flush is in flight when a mirror member returns, and the resync ends before the
/// flush.
#[test]
fn what_was_broken_once_is_right() {
    let sheet = catalogue::drive("mirror(p4801x-100, 950pro-256)").expect("it is right");
    let DriveConfig::Pool(config) = &sheet.config else {
        panic!("it is a pool");
    };
    for digits in [
        "040000000000000001020008000000100004c0050000080002000000000000000000000002000100000000000000000000ffff",
        "1800000000000000020300280800000800040800000008000008030000080002020000000000000000000003000100000000000000000000ffff",
    ] {
        let broken = study::prove::replay(config, digits).expect("it is a case of this pool");
        assert_eq!(broken, None);
    }
}
