//! The catalogue as users see it: built-in files, errors in a user's file, and their messages.

use model::media::Medium;
use std::fs;

use proptest::prelude::*;
use text::problem::Place;

const RAM_DISK: &str = include_str!("../../../catalogue/ram/ram-disk.toml");
const P4800X: &str = include_str!("../../../catalogue/xpoint/p4800x-375.toml");

/// Returns a drive file with only the required keys, and with places to break it.
fn drive_with(root: &str, ram: &str) -> String {
    format!(
        r#"name = "Test drive"
maker = "nobody"
medium = "DRAM"
form_factor = {{ value = "card", kind = "spec", source = "S4-034" }}
interface = {{ value = "PCIe", kind = "spec", source = "S4-035" }}
io_queues = {{ value = 8, kind = "assumed", source = "a test" }}
{root}

[ram]
{ram}
"#
    )
}

const CAPACITY: &str = r#"capacity = { value = "1 GB", kind = "spec", source = "S4-016" }"#;
const FORMATS: &str = r#"lba_formats = { value = ["512"], kind = "spec", source = "S2-054" }"#;
const PER_COMMAND: &str = r#"per_command = { value = "1 us", kind = "fitted", source = "S1-001" }"#;
const RATE: &str = r#"rate = { value = "1 GB/s", kind = "fitted", source = "S1-002" }"#;

fn messages(text: &str) -> String {
    match catalogue::drive_from_text("test.toml", text) {
        Ok(sheet) => format!("no problem: {}", sheet.name),
        Err(problems) => problems.render(false),
    }
}

/// Errors in the drive's own file are reported together with an unknown family, not after it. Keys that may be in the
/// family are not reported as missing.
#[test]
fn an_unknown_family_hides_nothing_else() {
    let capacity = r#"family = "optane-sdd"
capacity = { value = "375 Gb", kind = "speck", source = "S4-016" }
drive_writes_per_day = { value = 30, kind = "spec", source = "S4-014" }
bogus = 3"#;
    let rate = "rate = { value = \"fast\", kind = \"fitted\", source = \"S1-002\" }";
    insta::assert_snapshot!(messages(&drive_with(capacity, rate)));
}

#[test]
fn every_built_in_drive_loads() {
    let drives =
        catalogue::drives().unwrap_or_else(|problems| panic!("{}", problems.render(false)));
    assert!(!drives.is_empty());
    let names: Vec<&str> = drives.iter().map(|drive| &*drive.id).collect();
    assert_eq!(names, catalogue::drive_names());
    for name in names {
        assert_eq!(
            catalogue::drive(name).map(|drive| drive.id).as_deref(),
            Ok(name)
        );
    }
}

#[test]
fn two_media_do_not_hide_what_is_wrong_inside_them() {
    let ram = format!(
        "{PER_COMMAND}\nrate = {{ value = \"1 GB\", kind = \"fitted\", source = \"S1-002\" }}"
    );
    let root = format!("{CAPACITY}\n{FORMATS}\n[raid0]\nmember = 3");
    let said = messages(&drive_with(&root, &ram));
    for part in [
        "more than one medium: [ram] and [raid0]",
        "`ram.rate`",
        "raid0.member",
    ] {
        assert!(said.contains(part), "{part} in:\n{said}");
    }
}

#[test]
fn every_built_in_host_loads() {
    for name in catalogue::host_names() {
        let host =
            catalogue::host(name).unwrap_or_else(|problems| panic!("{}", problems.render(false)));
        assert_eq!(host.id, name);
    }
}

#[test]
fn a_right_file_is_read_whole() {
    let text = drive_with(
        &format!(
            "{CAPACITY}\n{FORMATS}\n\
             warranty = {{ value = \"5 years\", kind = \"spec\", source = \"S4-015\" }}\n\
             drive_writes_per_day = {{ value = 30, kind = \"spec\", source = \"S4-014\" }}\n\
             price = {{ value = \"40 USD\", date = \"2017-11\", kind = \"spec\", source = \"S4-033\" }}"
        ),
        &format!("{PER_COMMAND}\n{RATE}"),
    );
    let sheet = catalogue::drive_from_text("test.toml", &text).expect("it is right");
    assert_eq!(sheet.id, "test");
    assert_eq!(sheet.capacity, 1_000_000_000 / 4096 * 4096);
    assert_eq!(sheet.warranty_years, Some(5.0));
    let writes = sheet.endurance_bytes.expect("endurance is published") as f64;
    assert!(
        (writes / (30.0 * 1825.0 * 1e9) - 1.0).abs() < 1e-5,
        "{writes}"
    );
    assert_eq!(sheet.drive_writes_per_day(), Some(30.0));
    assert_eq!(sheet.price_date.as_deref(), Some("2017-11"));
    let shared = sheet.figures.iter().filter(|figure| figure.inherited);
    assert!(shared.clone().count() > 0);
    assert!(
        shared
            .clone()
            .all(|figure| figure.file == "catalogue/common.toml")
    );
    assert_eq!(
        sheet.figure("ram.per_command").map(|f| &*f.value),
        Some("1 us")
    );
}

#[test]
fn all_problems_come_at_once() {
    let text = drive_with(
        r#"capacity = { value = "1 Gb", kind = "spec", source = "S4-016" }
lba_formats = { value = ["520"], kind = "guess", source = "" }
colour = "red"
warranty = "5 years"
price = { value = "40 USD", kind = "spec", source = "S4-033", sauce = "S4-033" }
endurance = { kind = "spec", source = "S4-014" }"#,
        r#"per_comand = { value = "1 us", kind = "fitted", source = "S1-001" }
rate = { value = "1 kB/s", kind = "fitted", source = "S1-002" }"#,
    );
    insta::assert_snapshot!(messages(&text));
}

#[test]
fn a_drive_needs_exactly_one_medium() {
    let root = format!("{CAPACITY}\n{FORMATS}");
    let none = drive_with(&root, "").replace("[ram]", "");
    let misspelt = drive_with(&root, "").replace("[ram]", "[rom]");
    let flat = none.clone() + "ram = 7\n";
    insta::assert_snapshot!(
        [none, misspelt, flat]
            .map(|text| messages(&text))
            .join("\n\n---\n\n")
    );
}

#[test]
fn texts_that_are_not_toml() {
    let texts = ["name = ", "[ram\n", "name = \"a\"\nname = \"b\"\n", "\u{0}"];
    insta::assert_snapshot!(texts.map(messages).join("\n\n---\n\n"));
}

#[test]
fn values_of_the_wrong_form() {
    let root = r#"capacity = { value = 375, kind = "spec", source = "S4-016" }
lba_formats = { value = "512", kind = "spec", source = "S2-054" }
warranty = { value = "5", kind = "spec", source = "S4-015" }
drive_writes_per_day = { value = "30", kind = "spec", source = "S4-014" }
price = { value = "40 EUR", date = "2017", kind = "spec", source = "S4-033" }"#;
    let ram = r#"per_command = { value = "0.2 ns", kind = "fitted", source = "S1-001", note = 3 }
rate = { value = "2 GBps", kind = "fitted", source = "S1-002" }"#;
    insta::assert_snapshot!(messages(&drive_with(root, ram)));
}

#[test]
fn a_drive_takes_from_its_family_what_it_does_not_say() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let write = |name: &str, text: String| {
        fs::write(folder.path().join(name), text).expect("it can be written")
    };
    let shared = format!(
        "{FORMATS}\nwarranty = {{ value = \"5 years\", kind = \"spec\", source = \"S4-015\" }}\n[ram]\n{PER_COMMAND}\n{RATE}\n"
    );
    write("shared.family.toml", shared);
    let own = drive_with(
        &format!("family = \"shared\"\n{CAPACITY}"),
        r#"rate = { value = "3 GB/s", kind = "measured", source = "S1-003" }"#,
    );
    write("own.toml", own.clone());
    let path = folder.path().join("own.toml");
    let sheet = catalogue::drive(path.to_str().expect("a path in UTF-8")).expect("it is right");
    let figure = |key: &str| sheet.figure(key).map(|f| (&*f.value, f.inherited));
    assert_eq!(figure("ram.rate"), Some(("3 GB/s", false)));
    assert_eq!(figure("ram.per_command"), Some(("1 us", true)));
    assert_eq!(figure("warranty"), Some(("5 years", true)));
    assert_eq!(figure("capacity"), Some(("1 GB", false)));

    // An error in the family's file is reported with the family's line.
    write(
        "shared.family.toml",
        String::from("[ram]\nper_command = 3\nrat = 4\n"),
    );
    let problems =
        catalogue::drive(path.to_str().expect("a path in UTF-8")).expect_err("it is wrong");
    let shown = problems
        .render(false)
        .replace(&*folder.path().to_string_lossy(), "FOLDER");
    let nowhere = messages(&own.replace("\"shared\"", "\"shared-no-more\""));
    insta::assert_snapshot!(format!("{shown}\n\n---\n\n{nowhere}"));
}

/// Returns a RAID-0 of these members with the given capacity.
/// A bound on a percentile names its own document, and a wrong bound is reported with its key and place.
#[test]
fn bounds_on_percentiles_are_read_and_checked() {
    let drive = catalogue::drive_from_text("test.toml", P4800X).expect("it is right");
    let bounds = &drive.ratings.as_ref().expect("it has ratings").qos;
    let words: Vec<String> = bounds.iter().map(catalogue::QosBound::words).collect();
    assert_eq!(
        words[..2],
        ["reads at QD1, p99.999", "reads at QD16, p99.999"]
    );
    assert_eq!((bounds[3].writes, bounds[3].bound.us()), (true, 200.0));
    let figure = drive.figure("ratings.qos.3.bound").expect("it is a figure");
    assert_eq!(
        (figure.kind, &*figure.value),
        (catalogue::FigureKind::Spec, "100 us")
    );
    assert_eq!(
        figure.source,
        "Intel's ratings, as the table of S4 prints them"
    );
    let wrong = |from: &str, to: &str| messages(&P4800X.replacen(from, to, 1));
    for (from, to, said) in [
        (
            "direction = \"read\"",
            "direction = \"reads\"",
            "`ratings.qos.1.direction` is not one of the choices",
        ),
        (
            "percentile = 99.999",
            "percentile = 100",
            "`ratings.qos.1.percentile` is out of range",
        ),
        (
            "bound = \"60 us\"",
            "bound = 60",
            "`ratings.qos.1.bound` is not",
        ),
        (
            "bound = \"60 us\"",
            "bound = \"60 us\"\nblock = 4096",
            "unknown key `ratings.qos.1.block`",
        ),
        (
            "depth = 16",
            "depth = 1",
            "two bounds on reads at QD1, p99.999",
        ),
        (
            "sheet = \"Intel's ratings, as the table of S4 prints them\"\n",
            "",
            "`ratings.qos.1.direction` has no kind",
        ),
    ] {
        let found = wrong(from, to);
        assert!(
            found.contains(said) && found.contains("test.toml:"),
            "{to}: {found}"
        );
    }
    let one = P4800X.split("[[ratings.qos]]").collect::<Vec<_>>();
    let one = format!("{}[ratings.qos]{}{}", one[0], one[1], "[xpoint.medium]\n");
    let found = messages(&one);
    assert!(found.contains("not a list of tables"), "{found}");
}

fn raid(capacity: &str, members: &str) -> String {
    let root = format!(
        "capacity = {{ value = \"{capacity}\", kind = \"spec\", source = \"S4-016\" }}\n{FORMATS}"
    );
    drive_with(&root, "").replace(
        "[ram]",
        &format!(
            "[raid0]\nmembers = {{ value = [{members}], kind = \"spec\", source = \"S4-089\" }}\n\
             stripe = {{ value = \"128 KiB\", kind = \"assumed\", source = \"a test\" }}"
        ),
    )
}

#[test]
fn a_raid_holds_what_its_members_hold() {
    let sheet =
        catalogue::drive_from_text("test.toml", &raid("8 GiB", "\"ram-disk\", \"ram-disk\""))
            .expect("it is right");
    assert_eq!(sheet.capacity, 8 << 30);
    let p3608 = catalogue::drive("p3608-1600").expect("it is built in");
    assert_eq!(p3608.capacity, p3608.config.capacity_bytes());
}

#[test]
fn raids_that_cannot_be() {
    let texts = [
        raid("9 GiB", "\"ram-disk\", \"ram-disk\""),
        raid("4 GiB", "\"ram-disk\""),
        raid("8 GiB", "\"ram-disk\", \"ram-disc\""),
        raid("3200 GB", "\"p3608-1600\", \"p3608-1600\""),
    ];
    insta::assert_snapshot!(texts.map(|text| messages(&text)).join("\n\n---\n\n"));
}

#[test]
fn names_that_are_no_drive() {
    let shown = ["ramdisk", "zzz", "./no/such.toml"].map(|name| {
        catalogue::drive(name)
            .expect_err("there is none")
            .render(false)
    });
    insta::assert_snapshot!(shown.join("\n\n---\n\n"));
}

proptest! {
    #[test]
    fn arbitrary_text_is_refused_without_a_panic(text in any::<String>()) {
        prop_assert!(catalogue::drive_from_text("test.toml", &text).is_err());
    }

    /// A valid file with one piece replaced: it is read or refused, and refusals can be displayed.
    #[test]
    fn a_damaged_file_is_read_or_refused(
        at in 0..RAM_DISK.len(),
        cut in 0usize..40,
        put in "[\\[\\]{}=\"a-z0-9 .%\n\u{e9}-]{0,8}",
    ) {
        let mut text = RAM_DISK.to_owned();
        let start = text.floor_char_boundary(at);
        let end = text.floor_char_boundary((at + cut).min(text.len()));
        text.replace_range(start..end, &put);
        if let Err(problems) = catalogue::drive_from_text("test.toml", &text) {
            prop_assert!(!problems.0.is_empty());
            prop_assert!(!problems.render(false).is_empty());
            prop_assert!(!problems.to_string().is_empty());
        }
    }
}

#[test]
fn a_problem_of_a_change_is_in_the_text_that_the_user_typed() {
    let cases = [
        (
            "p4800x-375",
            "xpoint.power.limt",
            "12W",
            "xpoint.power.limt",
        ),
        ("p4800x-375", "xpoint.power.limit", "12q", "12q"),
        ("p4800x-375", "xpoint.power.limit", "-5 W", "-5 W"),
        ("p4800x-375", "capacity", "10", "10"),
        ("p4800x-375", "name.first", "x", "name.first"),
        ("p4800x-375", "nand.read", "12 W", "nand.read"),
        (
            "mirror(2*p4801x-100)",
            "members.p4801x-100.0.xpoint.power.idel",
            "2 W",
            "xpoint.power.idel",
        ),
        (
            "mirror(2*p4801x-100)",
            "members.p4801x-100.0.xpoint.power.idle",
            "2 q",
            "2 q",
        ),
    ];
    for (drive, key, value, marked) in cases {
        let change = (String::from(key), String::from(value));
        let problems = catalogue::drive_with(drive, &[change]).expect_err(key).0;
        let [problem] = &problems[..] else {
            panic!("{key}: {problems:?}");
        };
        assert!(problem.origin.starts_with("--set on p480"), "{problem}");
        let Place::Text { text, range } = &problem.place else {
            panic!("{key}: {problem}");
        };
        assert_eq!(**text, *format!("{key}={value}"));
        assert_eq!(&text[range.clone()], marked);
    }
}
