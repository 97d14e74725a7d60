//! Sources of rows, and the source of each row.
//!
//! Ids are `S4-012` (source and number), or `P0134`, `M0001` and `U0001`. The latter are rows of collections of
//! measurements by others (of pools, syncs and hard disks; of single drives; of drives under load), which are numbered
//! consecutively. Each source within a collection is a source here.

/// The sources, by the prefix of their rows or their name in the collection.
pub const SOURCES: [(&str, &str); 23] = [
    (
        "S0",
        "Optane Memory 16 GB and a Samsung 950 PRO in an ESXi guest",
    ),
    ("S1", "P4800X 375 GB, random access"),
    ("S2", "Optane M.2 drives under FreeBSD"),
    ("S3", "P5800X as a vSAN 8 cache"),
    ("S4", "P4800X 750 GB, hands-on"),
    ("S5", "Makers' ratings of data-centre drives, and a flush"),
    ("CMIN", "Writes with fsync on servers with one SSD or RAID"),
    ("TJJ", "Writes with fdatasync on 19 SSDs"),
    ("HAN", "O_DSYNC writes on 40 SSDs"),
    ("DUZ", "etcd's test of fdatasync on one drive"),
    (
        "SHOAL2",
        "Hard disks: synchronous overwrites, journals, reads at random",
    ),
    ("PKL", "pg_test_fsync on drives and RAID"),
    (
        "PROB",
        "Synchronous writes to persistent memory, ZFS and dm-writecache",
    ),
    ("DI-HUH", "diskinfo on a 12 TB disk"),
    ("DI-RED", "diskinfo on a 3 TB disk"),
    ("BU", "P4800X and P4510, files through libaio"),
    ("CHEOPS", "First-generation Optane by interface"),
    ("FBSD", "Writes with a flush on a 950 PRO"),
    ("ICPE", "980 PRO, reads at random by depth and size"),
    (
        "IOCOST",
        "Limits of 17 drives as a resource controller knows them",
    ),
    ("KANG", "P3600, files through libaio"),
    ("TH-9100", "Ratings of three drives as a review prints them"),
    ("LOAD", "Three data-centre drives under a load of writes"),
];

/// Measurements by many people under one prefix. A third of the runs of each source may set parameters (`may-set`).
#[derive(Debug)]
pub struct Collection {
    /// Prefix of the ids; on the command line it selects all sources of the collection.
    pub prefix: &'static str,
    /// Subject of the collection.
    pub what: &'static str,
    /// Sources of the collection, each with its first and last row.
    sources: &'static [(&'static str, u32, u32)],
}

/// Collections with their sources.
pub const COLLECTIONS: [Collection; 3] = [
    Collection {
        prefix: "P",
        what: "pools, syncs and hard disks",
        sources: &COLLECTED,
    },
    Collection {
        prefix: "M",
        what: "single drives",
        sources: &MEASURED,
    },
    Collection {
        prefix: "U",
        what: "reads and writes under load",
        sources: &[("LOAD", 1, 189)],
    },
];

const MEASURED: [(&str, u32, u32); 7] = [
    ("BU", 1, 550),
    ("CHEOPS", 551, 598),
    ("FBSD", 599, 601),
    ("ICPE", 602, 971),
    ("IOCOST", 972, 1073),
    ("KANG", 1074, 1293),
    ("TH-9100", 1294, 1314),
];

const COLLECTED: [(&str, u32, u32); 9] = [
    ("CMIN", 1, 64),
    ("TJJ", 65, 88),
    ("HAN", 89, 133),
    ("DUZ", 134, 161),
    ("SHOAL2", 162, 320),
    ("PKL", 321, 363),
    ("PROB", 364, 499),
    ("DI-HUH", 500, 509),
    ("DI-RED", 510, 519),
];

/// Returns a row's prefix and number: ("S4", 12) for `S4-012`, ("P", 134) for `P0134`; `None` if the text is not the
/// id of a row.
pub fn number(id: &str) -> Option<(&str, u32)> {
    let parse = |digits: &str, many: usize| {
        let plain = digits.len() == many && digits.bytes().all(|byte| byte.is_ascii_digit());
        plain.then(|| digits.parse().ok())?
    };
    let Some((source, digits)) = id.split_once('-') else {
        let all = COLLECTIONS.iter().map(|one| one.prefix);
        let prefix = { all }.find(|prefix| id.starts_with(prefix))?;
        let number = parse(&id[prefix.len()..], 4)?;
        return collected(prefix, number).map(|_| (prefix, number));
    };
    let known = SOURCES.iter().any(|(prefix, _)| *prefix == source);
    (known && collection_of(source).is_none()).then(|| Some((source, parse(digits, 3)?)))?
}

/// Returns the id with a prefix and number.
pub(super) fn id(prefix: &str, number: u32) -> String {
    match collection(prefix) {
        Some(_) => format!("{prefix}{number:04}"),
        None => format!("{prefix}-{number:03}"),
    }
}

/// Returns the collection with this prefix.
fn collection(prefix: &str) -> Option<&'static Collection> {
    COLLECTIONS.iter().find(|one| one.prefix == prefix)
}

fn collected(prefix: &str, number: u32) -> Option<&'static str> {
    let mut all = collection(prefix)?.sources.iter();
    let found = all.find(|(_, first, last)| (*first..=*last).contains(&number))?;
    Some(found.0)
}

/// Returns the source of a row.
pub fn source_of(id: &str) -> Option<&'static str> {
    let (prefix, number) = number(id)?;
    collected(prefix, number).or_else(|| {
        let mut all = SOURCES.iter();
        all.find(|(source, _)| *source == prefix).map(|one| one.0)
    })
}

/// Checks whether this is the name of a source or a collection.
pub fn is_source(name: &str) -> bool {
    collection(name).is_some() || SOURCES.iter().any(|(source, _)| *source == name)
}

/// Checks whether a row belongs to the source or the collection with this name.
pub(super) fn is_of(id: &str, source: &str) -> bool {
    match collection(source) {
        Some(_) => number(id).is_some_and(|(prefix, _)| prefix == source),
        None => source_of(id) == Some(source),
    }
}

/// Returns the collection that contains a source.
pub(super) fn collection_of(source: &str) -> Option<&'static Collection> {
    COLLECTIONS
        .iter()
        .find(|one| one.sources.iter().any(|(name, ..)| *name == source))
}

/// Checks whether a row belongs to a collection.
pub fn is_collected(id: &str) -> bool {
    number(id).is_some_and(|(prefix, _)| collection(prefix).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_of_one_source() {
        for (id, source) in [
            ("S4-012", Some("S4")),
            ("P0001", Some("CMIN")),
            ("P0064", Some("CMIN")),
            ("P0065", Some("TJJ")),
            ("P0134", Some("DUZ")),
            ("P0519", Some("DI-RED")),
            ("P0520", None),
            ("M0001", Some("BU")),
            ("M1314", Some("TH-9100")),
            ("M1315", None),
            ("U0001", Some("LOAD")),
            ("U0189", Some("LOAD")),
            ("U0190", None),
            ("P0000", None),
            ("P3700", None),
            ("P134", None),
            ("HAN-001", None),
            ("S6-001", None),
        ] {
            assert_eq!(source_of(id), source, "{id}");
        }
        assert!(is_of("P0134", "DUZ") && is_of("P0134", "P") && !is_of("P0134", "HAN"));
        assert!(is_of("S4-012", "S4") && !is_of("S4-012", "P"));
    }

    #[test]
    fn collections_are_numbered_without_gaps() {
        for Collection { sources, .. } in &COLLECTIONS {
            assert_eq!(sources[0].1, 1);
            for pair in sources.windows(2) {
                assert_eq!(pair[0].2 + 1, pair[1].1, "{}", pair[1].0);
            }
            for (name, ..) in *sources {
                assert!(is_source(name), "{name}");
            }
        }
    }
}
