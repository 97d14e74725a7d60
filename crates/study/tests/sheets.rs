//! Drives from data sheets: those of the catalogue have their makers' ratings, a sheet becomes a drive with its
//! ratings, and problems of a sheet are reported with their place.

use catalogue::{DataSheet, RatedQuantity};
use study::fit;

const HOST: &str = "xeon-2017";

fn sheet(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sheet.toml");
    std::fs::write(&path, text).expect("it is written");
    let path = path.to_string_lossy().into_owned();
    (folder, path)
}

const SHEET: &str = r#"name = "A drive"
maker = "nobody"
medium = "TLC NAND"
sheet = "a test's document, rev 1"

capacity = "500 GB"

[ratings]
sequential_read = "3000 MB/s"
sequential_write = "900 MB/s"
random_read = 350000
random_write = 50000
read_latency = "90 us"
write_latency = "20 us"

[nvme]
model_number = "A drive"
"#;

/// Drives whose figures, or those of their Optane family, were set from measurements that are off their ratings
/// (`met = false`).
const MEASURED: [&str; 16] = [
    "800p-118",
    "800p-58",
    "905p-960",
    "p4800x-1500",
    "p4800x-375",
    "p4800x-750",
    "7450max-800",
    "7450pro-960",
    "970evo-1000",
    "970evo-500",
    "980pro-1000",
    "mp600-2000",
    "mp600-500",
    "p3600-1600",
    "p4510-1000",
    "pm9a3-960",
];

/// Every drive of the catalogue that names ratings has all of them within 5 %, but for those that were measured.
#[test]
fn drives_have_their_makers_ratings() {
    let host = catalogue::host(HOST).expect("built in");
    let drives = catalogue::drives().expect("built in");
    let named = drives.iter().filter(|it| it.ratings.is_some());
    let (rated, measured): (Vec<_>, Vec<_>) = named.partition(|it| it.ratings_met().is_some());
    let measured: Vec<_> = measured.iter().map(|it| &*it.id).collect();
    assert_eq!(measured, MEASURED);
    assert!(rated.len() >= 19, "{} drives with ratings", rated.len());
    let met = lab::in_parallel(&rated, &lab::to_the_end, |drive, _| {
        (drive.id.clone(), fit::ratings(drive, &host))
    });
    let mut wrong = Vec::new();
    for (drive, met) in met {
        for met in met.expect("its conditions fit it") {
            if met.error().abs() > fit::TOLERANCE {
                let model = met.rated.words(met.model);
                let rating = met.rated.words(met.rating);
                wrong.push(format!(
                    "{drive}: {}: {model}, not {rating}",
                    met.rated.key()
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_sheet_becomes_a_drive_with_its_ratings() {
    let (_folder, path) = sheet(SHEET);
    let host = catalogue::host(HOST).expect("built in");
    let made = || {
        let sheet = DataSheet::open(&path, Some("data-centre-tlc")).expect("a sheet");
        fit::from_sheet(&sheet, &host, &|_| {}).expect("the family can do that")
    };
    let first = made();
    assert_eq!(first.met.len(), 6);
    for met in &first.met {
        assert!(met.error().abs() < fit::TOLERANCE, "{met:?}");
    }
    // The host on which the ratings hold is named, and those at QD1 are missed on the typical one.
    assert_eq!(first.host, HOST);
    let typical: Vec<_> = first.typical.iter().map(|it| it.rated).collect();
    let at_one = [RatedQuantity::ReadLatency, RatedQuantity::WriteLatency];
    assert_eq!(typical, at_one);
    let write = first.typical[1].error();
    assert!((0.1..0.5).contains(&write), "{write}");
    // A longer latency of reads sets only a longer sense time.
    let figure = |key: &str| first.drive.figure(key).expect("it has one").clone();
    let read = figure("nand.medium.read");
    assert!(!read.inherited && read.source.contains("a random read at QD1, 90.0 us"));
    assert!(figure("nand.medium.erase").inherited);
    assert_eq!(figure("capacity").source, "a test's document, rev 1");
    // The same sheet gives the same file, and that file is a sheet whose drive needs no change.
    assert_eq!(made().toml, first.toml);
    std::fs::write(&path, &first.toml).expect("it is written");
    let again = DataSheet::open(&path, None).expect("it names its family");
    let again = fit::from_sheet(&again, &host, &|_| {}).expect("as before");
    for (before, after) in first.met.iter().zip(&again.met) {
        assert!((before.model / after.model - 1.0).abs() < 0.02, "{after:?}");
    }
}

#[test]
fn what_no_drive_of_the_family_can_do_is_refused_with_its_place() {
    let fast = SHEET
        .replace("\"90 us\"", "\"9 us\"")
        .replace("350000", "9000000");
    let (_folder, path) = sheet(&fast);
    let host = catalogue::host(HOST).expect("built in");
    let sheet = DataSheet::open(&path, Some("data-centre-tlc")).expect("a sheet");
    let problems = fit::from_sheet(&sheet, &host, &|_| {}).expect_err("nobody can");
    let said = problems.render(false).replace(&path, "sheet.toml");
    assert!(said.contains("sheet.toml:11:15"), "{said}");
    assert!(
        said.contains("`ratings.random_read` is 9000 kIOPS"),
        "{said}"
    );
    assert_eq!(sheet.ratings.value(RatedQuantity::RandomRead), Some(9e6));
}

#[test]
fn everything_wrong_with_a_sheet_comes_at_once() {
    let text = r#"name = "A drive"
maker = "nobody"
medium = "TLC NAND"
sheet = "a test's document, rev 1"
family = "data-centre-tlc"
capacity = "500 Gb"
endurance = 300

[ratings]
sequential_read = "fast"
random_reads = 350000
read_latency = "2 us"
random_read_qd1 = 12000
random_write = "50000"

[nvme]
model_number = "A drive"
"#;
    let (_folder, path) = sheet(text);
    let problems = DataSheet::open(&path, None).err().expect("it is wrong");
    let said = problems.render(false).replace(&path, "sheet.toml");
    insta::assert_snapshot!(said);
    let (_folder, path) = sheet("name = \"A drive\"\n");
    let problems = DataSheet::open(&path, Some("client-tlk")).err();
    let said = problems.expect("no family").to_string();
    assert!(said.contains("client-tlc"), "{said}");
    let optane = DataSheet::open("900p-280", None).err().expect("no sheet");
    let said = optane.to_string();
    for part in [
        "`sheet` is missing",
        "no rating is given",
        "only drives with NAND",
    ] {
        assert!(said.contains(part), "{said}");
    }
}
