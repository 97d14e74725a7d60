//! Named loads: each is a fio job file in `loads/` that a user can read, print and edit. To add one: a file there, and
//! its line here.

/// Name and job file of each load.
const NAMED: [(&str, &str); 5] = [
    ("oltp", include_str!("loads/oltp.fio")),
    ("wal", include_str!("loads/wal.fio")),
    ("nfs-sync", include_str!("loads/nfs-sync.fio")),
    ("web", include_str!("loads/web.fio")),
    ("backup", include_str!("loads/backup.fio")),
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

#[cfg(test)]
mod tests {
    use super::super::work::Load;
    use super::*;
    use crate::review::Workload;
    use workload::job::Extent;

    #[test]
    fn each_is_a_job_file_without_mistakes() {
        for name in names() {
            let text = text(name).expect("it has a name");
            Load::of_text(name, text.to_owned()).expect("fio's words");
            assert!(text.contains("assumed"), "{name} says what it is");
        }
    }

    /// A database reuses the files of its log.
    #[test]
    fn a_log_alone_reuses_a_few_gigabytes() {
        let text = text("wal").expect("it has a name");
        let load = Load::of_text("wal", text.to_owned()).expect("fio's words");
        let Workload::Jobs(jobs) = &load.yours().workload else {
            panic!("jobs")
        };
        let size = jobs[0].size;
        let Some(Extent::Bytes(bytes)) = size else {
            panic!("{size:?}")
        };
        assert!((1 << 30..=16 << 30).contains(&bytes), "{bytes}");
        assert!(jobs[0].time_based);
    }
}
