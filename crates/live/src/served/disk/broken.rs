//! Stores that the host cannot read or write, permanently or once, for tests; and tests of pools with such a member.

use std::cell::RefCell;
use std::io;

/// Kind of access that the host rejects.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Broken {
    Opens,
    Reads,
    Writes,
}

thread_local! {
    /// Names of members of this thread's pools, each with a kind of access that ends with an input/output error.
    static BROKEN: RefCell<Vec<(String, Broken)>> = const { RefCell::new(Vec::new()) };
}

/// Checks whether the host can access the store of this member.
pub(super) fn check(member: &str, kind: Broken) -> io::Result<()> {
    let is_broken = BROKEN.with_borrow(|all| all.iter().any(|it| *it.0 == *member && it.1 == kind));
    match is_broken {
        true => Err(io::Error::from_raw_os_error(
            rustix::io::Errno::IO.raw_os_error(),
        )),
        false => Ok(()),
    }
}

/// Checks whether the host can open the store of this member.
pub(in crate::served) fn openable(member: &str) -> io::Result<()> {
    check(member, Broken::Opens)
}

fn break_store(member: &str, kind: Broken) {
    BROKEN.with_borrow_mut(|all| all.push((member.into(), kind)));
}

fn mend_all() {
    BROKEN.with_borrow_mut(Vec::clear);
}

mod tests {
    use super::{Broken, break_store, mend_all};
    use crate::clock::Wall;
    use crate::served::condition::Condition;
    use crate::served::full::{Client, open};
    use crate::served::room::limit;
    use crate::setup::Setup;
    use model::media::Precondition;
    use model::{Span, Time};
    use workload::faults::Fault;

    /// Pools that outlive a member, with this member, and the members that have the same data.
    const POOLS: [(&str, &str, &[&str]); 8] = [
        ("mirror(2*p4801x-100)", "p4801x-100.1", &["p4801x-100.0"]),
        ("mirror(2*950pro-256)", "950pro-256.0", &["950pro-256.1"]),
        (
            "stripe(2*mirror(2*p4801x-100))",
            "p4801x-100.1",
            &["p4801x-100.0"],
        ),
        (
            "mirror(2*write-back-cache(cache=optane-memory-16, capacity=950pro-256))",
            "optane-memory-16.1",
            &["optane-memory-16.0", "950pro-256.0"],
        ),
        (
            "write-back-cache(cache=mirror(2*optane-memory-16), capacity=950pro-256)",
            "optane-memory-16.0",
            &["optane-memory-16.1"],
        ),
        (
            "intent-log(main=mirror(2*950pro-256), log=p4801x-100; ram=100MiB)",
            "950pro-256.1",
            &["950pro-256.0"],
        ),
        (
            "intent-log(main=950pro-256, log=mirror(2*p4801x-100); ram=100MiB)",
            "p4801x-100.0",
            &["p4801x-100.1"],
        ),
        (
            "raid6(4*p4801x-100)",
            "p4801x-100.1",
            &["p4801x-100.0", "p4801x-100.2"],
        ),
    ];

    /// Lets time pass until all members are in sync.
    fn resync(client: &mut Client, pool: &str) {
        for _ in 0..10_000 {
            if client.drive.out_of_sync() == 0 {
                return;
            }
            let now = client.drive.now() + Span::from_ms(100);
            client.drive.settle(now);
        }
        panic!("{pool}: {} members are out", client.drive.out_of_sync());
    }

    fn messages(client: &mut Client) -> String {
        let lines = std::iter::from_fn(|| client.drive.complaint(Wall::NEVER));
        lines.take(100).collect::<Vec<_>>().join("\n")
    }

    fn condition(client: &mut Client) -> (Condition, String) {
        let (condition, reasons) = client.drive.condition(Time::ZERO);
        (condition, reasons.join("; "))
    }

    fn written(pool: &str, folder: &std::path::Path) -> Client {
        let mut client = Client::new(open(pool, folder).expect("a new pool"));
        client.fill(100, 0);
        client.flush();
        client
    }

    fn accepts_all(client: &mut Client, pool: &str, first: u64) {
        client.fill(100, first);
        client.flush();
        assert!(client.refused.is_empty(), "{pool}: {:?}", client.refused);
        client.check(pool);
    }

    /// A mirror continues, in this run, after a kill with the error, and after one without it; then the member has all
    /// data.
    #[test]
    fn a_mirror_outlives_a_store_that_cannot_be_written() {
        for (pool, member, others) in POOLS.into_iter().take(2) {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            break_store(member, Broken::Writes);
            accepts_all(&mut client, pool, 100);
            let (is, why) = condition(&mut client);
            client.drive.settle(client.drive.now());
            let lines = messages(&mut client);
            assert_eq!(is, Condition::Degraded, "{pool}: {why}");
            assert!(why.contains("is not in sync with"), "{pool}: {why}");
            assert!(
                lines.contains(&format!("{member} cannot be written: ")),
                "{pool}: {lines}"
            );
            assert!(lines.contains(" continues without "), "{pool}: {lines}");
            let state = std::fs::read_to_string(folder.path().join("store/pool.state"));
            let state = state.expect("a file");
            assert!(state.contains("\nbehind "), "{pool}: {state}");

            let may_be = client.kill();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            let found = client.drive.findings().join("\n");
            assert!(
                found.contains(&format!("{member} cannot be written: ")),
                "{pool}: {found}"
            );
            client.check(&format!("{pool}, opened with the error"));
            accepts_all(&mut client, pool, 200);

            let may_be = client.kill();
            mend_all();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(&format!("{pool}, opened without the error"));
            resync(&mut client, pool);
            for other in others {
                break_store(other, Broken::Reads);
            }
            client.check(&format!("{pool}, in sync"));
            mend_all();
            client.drive.shut_down().expect("an orderly end");
        }
    }

    /// The tier above reads its tables through a mirror or an array, one member of which is rebuilt at the opening.
    #[test]
    fn a_pool_with_a_member_to_be_rebuilt_below_an_intent_log_opens() {
        for (pool, member) in [
            (
                "intent-log(main=raid5(3*950pro-256), log=p4801x-100; ram=100MiB)",
                "950pro-256.1",
            ),
            (
                "intent-log(main=raid6(4*950pro-256), log=p4801x-100; ram=100MiB)",
                "950pro-256.0",
            ),
            (
                "intent-log(main=mirror(2*950pro-256), log=p4801x-100; ram=100MiB)",
                "950pro-256.0",
            ),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            let at = client.drive.now() + Span::from_ms(20_000);
            client.drive.settle(at);
            break_store(member, Broken::Writes);
            for round in 1..6 {
                accepts_all(&mut client, pool, round * 100);
                let at = client.drive.now() + Span::from_ms(20_000);
                client.drive.settle(at);
            }
            assert!(client.drive.out_of_sync() > 0, "{pool}");
            mend_all();
            client.drive.shut_down().expect("an orderly end");
            let may_be = client.kill();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(&format!("{pool}, opened again"));
        }
    }

    #[test]
    fn a_mirror_without_a_member_that_can_be_written_says_so() {
        let pool = "mirror(2*p4801x-100)";
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = written(pool, folder.path());
        for member in ["p4801x-100.0", "p4801x-100.1"] {
            break_store(member, Broken::Writes);
        }
        client.fill(100, 100);
        client.drive.settle(client.drive.now());
        assert!(!client.refused.is_empty());
        let lines = messages(&mut client);
        assert!(lines.contains("mirror rejects writes: "), "{lines}");
        assert!(!lines.contains("continues without"), "{lines}");
        let (is, why) = condition(&mut client);
        assert_eq!(is, Condition::ReadOnly, "{why}");
        client.check("while writes are rejected");
        mend_all();
        client.refused.clear();
        accepts_all(&mut client, pool, 300);
        client.drive.settle(client.drive.now());
        let lines = messages(&mut client);
        assert!(lines.contains("mirror accepts writes again"), "{lines}");
        let (is, why) = condition(&mut client);
        assert!(is.takes_writes(), "{why}");
        let may_be = client.kill();
        let mut client = Client::opened_again(pool, folder.path(), may_be);
        client.check("opened again");
    }

    /// Its reads fail for ever: at first each is repeated on another member, later none goes to it.
    #[test]
    fn a_member_that_cannot_read_any_more_is_put_out() {
        for (pool, member) in [
            ("mirror(2*p4801x-100)", "p4801x-100.0"),
            ("raid5(3*p4801x-100; chunk=16KiB)", "p4801x-100.1"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            break_store(member, Broken::Reads);
            let mut rounds = 0;
            while client.drive.out_of_sync() == 0 {
                client.check(pool);
                rounds += 1;
                assert!(rounds < 40, "{pool}: {member} is still used");
            }
            client.drive.settle(client.drive.now());
            let lines = messages(&mut client);
            let line = format!(" continues without {member}: ");
            assert!(lines.contains(&line), "{pool}: {lines}");
            accepts_all(&mut client, pool, 100);
            mend_all();
            client.drive.shut_down().expect("an orderly end");
            let may_be = client.kill();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(&format!("{pool}, opened without the error"));
            resync(&mut client, pool);
        }
    }

    /// Reads are served by another member, and the error is reported.
    #[test]
    fn a_pool_outlives_a_store_that_cannot_be_read() {
        for (pool, member, _) in POOLS {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            break_store(member, Broken::Reads);
            accepts_all(&mut client, pool, 100);
            let may_be = client.kill();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(&format!("{pool}, opened with the error"));
            accepts_all(&mut client, pool, 200);
            client.drive.settle(client.drive.now());
            let may_be = client.kill();
            mend_all();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(&format!("{pool}, opened without the error"));
            accepts_all(&mut client, pool, 300);
        }
    }

    #[test]
    fn reads_that_another_member_serves_are_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = written("mirror(2*p4801x-100)", folder.path());
        break_store("p4801x-100.0", Broken::Reads);
        client.check("a mirror");
        client.drive.settle(client.drive.now());
        let lines = messages(&mut client);
        mend_all();
        assert!(lines.contains("p4801x-100.0 cannot be read: "), "{lines}");
    }

    /// After a power cut the tiers are recovered in the running server.
    #[test]
    fn a_power_cut_with_such_a_member_does_not_end_the_service() {
        for (pool, member, _) in POOLS {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            break_store(member, Broken::Writes);
            client.drive.power_cut(client.drive.now());
            client.check(&format!("{pool}, after the power cut"));
            accepts_all(&mut client, pool, 100);
            let may_be = client.kill();
            mend_all();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(pool);
            accepts_all(&mut client, pool, 200);
        }
    }

    /// The members that were dropped are not the reason.
    #[test]
    fn a_power_cut_that_no_member_outlives_has_the_reason_of_the_first_attempt() {
        for pool in ["mirror(2*p4801x-100)", "raid5(3*p4801x-100)"] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            for member in ["p4801x-100.0", "p4801x-100.1", "p4801x-100.2"] {
                break_store(member, Broken::Writes);
            }
            client.drive.power_cut(client.drive.now());
            mend_all();
            let (is, why) = condition(&mut client);
            assert_eq!(is, Condition::Failed, "{pool}: {why}");
            assert!(why.contains(" cannot be written ("), "{pool}: {why}");
            assert!(!why.contains("missing"), "{pool}: {why}");
        }
    }

    /// A pool refuses to start without a member that holds the only copy of its data.
    #[test]
    fn a_pool_that_needs_the_member_is_refused_with_the_reason() {
        for (pool, member) in [
            ("stripe(2*p4801x-100)", "p4801x-100.1"),
            (
                "intent-log(main=mirror(2*950pro-256), log=p4801x-100; ram=100MiB)",
                "p4801x-100",
            ),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let client = written(pool, folder.path());
            let may_be = client.kill();
            break_store(member, Broken::Writes);
            let why = open(pool, folder.path()).expect_err("it is refused");
            assert!(
                why.contains(&format!("{member} cannot be written: ")),
                "{why}"
            );
            mend_all();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            client.check(pool);
        }
    }

    /// Writes that no flush has made durable, with an error of this member's store since then.
    fn unflushed(pool: &str, member: &str, folder: &std::path::Path) -> Client {
        let mut client = written(pool, folder);
        for block in 0..7 {
            client.write(block, 251);
        }
        break_store(member, Broken::Writes);
        client
    }

    fn state_of(folder: &std::path::Path, member: &str) -> String {
        let file = folder.join(format!("store/{member}.img.state"));
        std::fs::read_to_string(file).expect("a file")
    }

    #[test]
    fn an_end_that_loses_acknowledged_data_fails() {
        for (pool, member) in [
            ("stripe(2*950pro-256)", "950pro-256.0"),
            ("concat(950pro-256, p4801x-100)", "950pro-256"),
        ] {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = unflushed(pool, member, folder.path());
            let why = client.drive.shut_down().expect_err("data is lost");
            mend_all();
            let why = why.to_string();
            assert!(why.contains("the flush at the end failed"), "{why}");
            let error = format!("{member} cannot be written: ");
            assert!(why.contains(&error), "{why}");
            let cache = format!("are lost, in the volatile cache of {member} (");
            assert!(why.contains(&cache), "{why}");
            let state = state_of(folder.path(), member);
            assert!(state.contains("clean false"), "{state}");
        }
    }

    /// The other member has the data. The error is reported nevertheless.
    #[test]
    fn an_end_without_a_member_that_is_not_needed_succeeds_and_reports_it() {
        let (pool, member) = ("mirror(2*950pro-256)", "950pro-256.0");
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = unflushed(pool, member, folder.path());
        client.drive.shut_down().expect("an orderly end");
        let lines = client.drive.last_complaints().join("\n");
        let error = format!("{member} cannot be written: ");
        assert!(lines.contains(&error), "{lines}");
        let state = state_of(folder.path(), "950pro-256.1");
        assert!(state.contains("clean true"), "{state}");
        // All blocks must have their last values.
        client.settled();
        let may_be = client.kill();
        mend_all();
        let mut client = Client::opened_again(pool, folder.path(), may_be);
        client.check(pool);
        resync(&mut client, pool);
        break_store("950pro-256.1", Broken::Reads);
        client.check(&format!("{pool}, in sync"));
        mend_all();
    }

    /// Data of a pool in memory ends with it.
    #[test]
    fn an_end_of_a_pool_in_memory_cannot_lose_data() {
        let setup = Setup {
            size: Some(1 << 20),
            precondition: Some(Precondition::Fresh),
            ..Setup::new(catalogue::drive("stripe(2*950pro-256)").expect("a pool"))
        };
        let mut drive = setup.open().expect("a pool in memory");
        let suffers = drive.member_suffers(Time::ZERO, 0, &Fault::Dies);
        suffers.expect("a fault of a member");
        drive.shut_down().expect("nothing to lose");
    }

    /// A member whose store cannot be opened is missing, with the reason.
    #[test]
    fn a_pool_opens_without_a_store_that_cannot_be_opened() {
        for (pool, member, others) in POOLS.into_iter().take(2) {
            let folder = tempfile::tempdir().expect("a folder");
            let mut client = written(pool, folder.path());
            client.drive.shut_down().expect("an orderly end");
            let may_be = client.kill();
            break_store(member, Broken::Opens);
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            let found = client.drive.findings().join("\n");
            let error = format!("{member} cannot be opened: ");
            assert!(found.contains(&error), "{pool}: {found}");
            accepts_all(&mut client, pool, 100);
            let returns = client.drive.member_could_suffer(0, &Fault::Returns);
            let other = client.drive.member_could_suffer(1, &Fault::Returns);
            assert!(returns.is_err() != other.is_err(), "{pool}");
            client.drive.shut_down().expect("an orderly end");
            let may_be = client.kill();
            mend_all();
            let mut client = Client::opened_again(pool, folder.path(), may_be);
            resync(&mut client, pool);
            for other in others {
                break_store(other, Broken::Reads);
            }
            client.check(&format!("{pool}, in sync"));
            mend_all();
        }
        let pool = "stripe(2*p4801x-100)";
        let folder = tempfile::tempdir().expect("a folder");
        let may_be = written(pool, folder.path()).kill();
        break_store("p4801x-100.1", Broken::Opens);
        let why = open(pool, folder.path()).expect_err("it is needed");
        mend_all();
        assert!(why.contains("p4801x-100.1 cannot be opened: "), "{why}");
        Client::opened_again(pool, folder.path(), may_be).check(pool);
    }

    /// A folder in the place of the new file prevents that the state of one member is saved.
    #[test]
    fn the_state_of_each_member_is_saved_although_one_cannot_be() {
        let pool = "stripe(2*p4801x-100)";
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = written(pool, folder.path());
        let file = folder.path().join("store/p4801x-100.0.img.state");
        std::fs::remove_file(&file).expect("a file");
        std::fs::create_dir_all(file.join("x")).expect("a folder");
        let why = client.drive.shut_down().expect_err("it is needed");
        assert!(why.to_string().contains("p4801x-100.0"), "{why}");
        let state = state_of(folder.path(), "p4801x-100.1");
        assert!(state.contains("clean true"), "{state}");
    }

    /// Such a member stays offline until the next start, as its message says.
    #[test]
    fn a_member_that_a_power_cut_dropped_does_not_return() {
        let (pool, member) = ("mirror(2*p4801x-100)", "p4801x-100.1");
        let folder = tempfile::tempdir().expect("a folder");
        let mut client = written(pool, folder.path());
        break_store(member, Broken::Writes);
        client.drive.power_cut(client.drive.now());
        mend_all();
        for fault in [Fault::Returns, Fault::PowerCut] {
            let now = client.drive.now();
            let returns = client.drive.member_suffers(now, 1, &fault);
            let why = returns.expect_err("it is missing");
            assert!(why.contains("start the server again"), "{why}");
        }
        accepts_all(&mut client, pool, 100);
    }

    /// The host has no space at first, and then an error for one member.
    #[test]
    fn a_member_that_fails_while_writes_wait_is_dropped() {
        for (pool, member, others) in [
            (
                "mirror(2*p4801x-100)",
                "p4801x-100.0",
                &["p4801x-100.1"][..],
            ),
            ("mirror(2*p4801x-100)", "p4801x-100.1", &["p4801x-100.0"]),
            (
                "mirror(3*950pro-256)",
                "950pro-256.1",
                &["950pro-256.0", "950pro-256.2"],
            ),
            (
                "stripe(2*mirror(2*p4801x-100))",
                "p4801x-100.1",
                &["p4801x-100.0"],
            ),
            (
                "intent-log(main=mirror(2*950pro-256), log=p4801x-100; ram=100MiB)",
                "950pro-256.0",
                &["950pro-256.1"],
            ),
        ] {
            for left in [5_000, 90_000] {
                let folder = tempfile::tempdir().expect("a folder");
                let mut client = written(pool, folder.path());
                limit(Some(left));
                client.fill(60, 100);
                assert!(!client.refused.is_empty(), "{pool}: {left} are enough");
                break_store(member, Broken::Writes);
                limit(None);
                for _ in 0..20 {
                    let at = client.drive.now() + Span::from_ms(1_000);
                    client.drive.settle(at);
                }
                client.check(&format!("{pool}, {left}, with space again"));
                client.refused.clear();
                accepts_all(&mut client, pool, 200);
                let lines = messages(&mut client);
                let error = format!("{member} cannot be written: ");
                assert!(lines.contains(&error), "{pool}: {lines}");

                let may_be = client.kill();
                mend_all();
                let mut client = Client::opened_again(pool, folder.path(), may_be);
                client.check(&format!("{pool}, {left}, opened without the error"));
                resync(&mut client, pool);
                for other in others {
                    break_store(other, Broken::Reads);
                }
                client.check(&format!("{pool}, {left}, in sync"));
                mend_all();
            }
        }
    }

    /// A kill at each step of that is a crash: acknowledged data is there, from either member.
    #[test]
    fn a_kill_while_such_a_member_is_dropped_loses_nothing() {
        for member in ["p4801x-100.0", "p4801x-100.1"] {
            for steps in 0..6 {
                let pool = "mirror(2*p4801x-100)";
                let folder = tempfile::tempdir().expect("a folder");
                let mut client = written(pool, folder.path());
                limit(Some(5_000));
                client.fill(60, 100);
                break_store(member, Broken::Writes);
                limit(None);
                for step in 0..steps {
                    client.write(step, 252);
                }
                let may_be = client.kill();
                mend_all();
                let mut client = Client::opened_again(pool, folder.path(), may_be);
                client.check(&format!("{pool}, {member}, {steps}"));
                resync(&mut client, pool);
                client.check(&format!("{pool}, {member}, {steps}, in sync"));
            }
        }
    }
}
