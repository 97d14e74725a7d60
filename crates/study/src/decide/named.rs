//! Named loads: each is a fio job file in `loads/` that a user can read, print and edit. To add a load, add a file
//! there, and its line here. A file may define the load of one user: `; user_iops: ` (I/Os per second) and `; user: `
//! (a description), and the initial state of the drives: `; state: `.

use lab::Start;
use text::problem::Problems;

use super::rate::OfferedRate;
use super::work::Load;

/// Name and job file of each load.
const NAMED: [(&str, &str); 12] = [
    ("oltp", include_str!("loads/oltp.fio")),
    ("wal", include_str!("loads/wal.fio")),
    ("nfs-sync", include_str!("loads/nfs-sync.fio")),
    ("web", include_str!("loads/web.fio")),
    ("backup", include_str!("loads/backup.fio")),
    ("jesd219", include_str!("loads/jesd219.fio")),
    ("kvcache", include_str!("loads/kvcache.fio")),
    ("checkpoint-save", include_str!("loads/checkpoint-save.fio")),
    (
        "checkpoint-restore",
        include_str!("loads/checkpoint-restore.fio"),
    ),
    ("vector-search", include_str!("loads/vector-search.fio")),
    ("training-files", include_str!("loads/training-files.fio")),
    ("training-shards", include_str!("loads/training-shards.fio")),
];

/// Returns the names of the loads.
pub fn names() -> impl Iterator<Item = &'static str> {
    NAMED.iter().map(|(name, _)| *name)
}

/// Returns the job file with this name.
pub fn text(name: &str) -> Option<&'static str> {
    let found = NAMED.iter().find(|(known, _)| *known == name);
    found.map(|(_, text)| *text)
}

/// Returns the load with this name; `None` if there is none.
///
/// # Errors
/// Its file is invalid (a test ensures that none is).
pub fn load(name: &str) -> Option<Result<Load, Problems>> {
    let load = Load::of_text(name, text(name)?.to_owned());
    let state = comment(name, "state").and_then(Start::named);
    Some(load.map(|load| load.with_state(state.and_then(Start::given))))
}

/// Returns the value of a comment `; key: value` in the file of this name.
fn comment(name: &str, key: &str) -> Option<&'static str> {
    let lines = text(name)?.lines();
    let comments = lines.filter_map(|line| line.strip_prefix("; "));
    let mut values = comments.filter_map(|line| line.split_once(": "));
    values
        .find(|(known, _)| *known == key)
        .map(|(_, value)| value)
}

/// Load of one user.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct User {
    /// I/Os per second.
    pub iops: f64,
    /// Description of the user.
    pub what: &'static str,
}

/// Returns one user of the load of this name, from the lines `; user_iops: ` and `; user: ` of its file; `None` if it
/// has none.
pub fn user(name: &str) -> Option<User> {
    Some(User {
        iops: comment(name, "user_iops")?.parse().ok()?,
        what: comment(name, "user")?,
    })
}

/// Returns the rate of this many users of the load of this name.
///
/// # Errors
/// The load has no users; the message lists the loads that have.
pub fn rate_of_users(name: &str, users: f64) -> Result<OfferedRate, String> {
    match user(name) {
        Some(user) => Ok(OfferedRate::Iops((user.iops * users).max(1.0))),
        None => {
            let with = with_users();
            Err(format!(
                "the load {name} does not define the load of one user; {} do",
                with.join(", ")
            ))
        }
    }
}

/// Returns the names of the loads that define the load of one user.
pub fn with_users() -> Vec<&'static str> {
    names().filter(|name| user(name).is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::review::Workload;
    use model::media::Precondition;
    use workload::job::Extent;

    #[test]
    fn each_is_a_job_file_without_mistakes() {
        for name in names() {
            let text = text(name).expect("it has a name");
            Load::of_text(name, text.to_owned()).expect("fio's words");
            assert!(
                text.to_lowercase().contains("assumed"),
                "{name} says what it is"
            );
        }
    }

    /// The log of a database is on a drive with other data, as in `check postgres`. The user's state takes precedence.
    #[test]
    fn a_log_alone_begins_in_steady_state() {
        let begins = |name: &str, start| load(name).expect("a name").expect("a load").begins(start);
        assert_eq!(begins("wal", Start::Auto), Precondition::Steady);
        assert_eq!(begins("backup", Start::Auto), Precondition::Filled);
        let fresh = Start::As(Precondition::Fresh);
        assert_eq!(begins("wal", fresh), Precondition::Fresh);
        assert!(load("no-such-load").is_none());
        for name in names() {
            let state = comment(name, "state");
            assert!(
                state.is_none_or(|state| Start::named(state).is_some()),
                "{name}"
            );
        }
    }

    /// A database reuses the files of its log.
    #[test]
    fn a_log_alone_reuses_a_few_gigabytes() {
        let text = text("wal").expect("it has a name");
        let load = Load::of_text("wal", text.to_owned()).expect("fio's words");
        let Workload::Jobs(jobs) = &load.user_workload().workload else {
            panic!("jobs")
        };
        let size = jobs[0].size;
        let Some(Extent::Bytes(bytes)) = size else {
            panic!("{size:?}")
        };
        assert!((1 << 30..=16 << 30).contains(&bytes), "{bytes}");
        assert!(jobs[0].time_based);
    }

    /// The figures of a user follow by arithmetic from the published figures that its file names.
    #[test]
    fn users_follow_from_published_figures() {
        let (layers, turn_seconds) = (32.0, 30.0);
        let tokens_of_a_layer = 2.0 * 8.0 * 128.0 * 2.0;
        assert_eq!(tokens_of_a_layer, 4096.0, "bytes of a token in a layer");
        let read = [512.0, 1024.0, 2048.0, 4096.0].map(|tokens| tokens * tokens_of_a_layer);
        assert_eq!(read, [2.0, 4.0, 8.0, 16.0].map(|mib| mib * 1_048_576.0));
        for (name, iops) in [
            ("kvcache", 2.0 * layers / turn_seconds),
            ("vector-search", 100.0),
            ("training-files", 400.0 / 0.224),
            ("training-shards", 7.0 * 146_600_628.0 / 0.323 / 1_048_576.0),
        ] {
            let user = user(name).expect("it has users");
            assert!(
                (user.iops / iops - 1.0).abs() < 1e-3,
                "{name}: {} is {iops}",
                user.iops
            );
            let Ok(OfferedRate::Iops(rate)) = rate_of_users(name, 200.0) else {
                panic!("{name}: a rate")
            };
            assert!((rate / (200.0 * iops) - 1.0).abs() < 1e-3, "{name}: {rate}");
        }
        let refused = rate_of_users("oltp", 5.0).expect_err("it has no users");
        assert!(refused.contains("kvcache, vector-search"), "{refused}");
    }

    /// Blocks of the KV cache are the layers of its contexts: on average, reads have 7.5 MiB and writes 2 MiB.
    #[test]
    fn a_kv_cache_is_read_by_layer() {
        let load = Load::of_text("kvcache", text("kvcache").expect("a load").to_owned());
        let load = load.and_then(|load| load.at_rate(OfferedRate::Iops(400.0)));
        let mean = load.expect("fio's words").mean_bytes().expect("a rate");
        assert_eq!(mean, 1_048_576.0 * (7.5 + 2.0) / 2.0);
    }

    /// Reads of a beam are issued together, and the next beam when all of them have completed; arrivals at a rate do
    /// not wait.
    #[test]
    fn a_search_waits_for_its_beam() {
        let load = Load::of_text("a", text("vector-search").expect("a load").to_owned());
        let load = load.expect("fio's words");
        let of = |load: &Load| {
            let Workload::Jobs(jobs) = &load.user_workload().workload else {
                panic!("jobs")
            };
            (jobs[0].iodepth, jobs[0].iodepth_batch_complete_min)
        };
        assert_eq!(of(&load), (4, 4));
        let paced = load
            .at_rate(OfferedRate::Iops(20_000.0))
            .expect("no rate yet");
        assert_eq!(of(&paced).1, 1);
    }
}
