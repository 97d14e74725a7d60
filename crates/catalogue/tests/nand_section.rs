//! All problems in a NAND drive's file are reported together, and contradictory figures are refused.

use catalogue::drive_from_text;
use model::media::Medium;

fn sheet(capacity: &str, dies: &str, low_water: &str) -> String {
    format!(
        r#"
name = "a drive"
maker = "somebody"
medium = "NAND"
family = "intel-p3x00"
capacity = {{ value = "{capacity}", kind = "assumed", source = "a test" }}

[nand.array]
dies_per_channel = {{ value = {dies}, kind = "assumed", source = "a test" }}

[nand.buffer]
size = {{ value = "8 MiB", kind = "assumed", source = "a test" }}

[nand.collection]
low_water = {{ value = {low_water}, kind = "assumed", source = "a test" }}
unit_interval = {{ value = "5 us", kind = "assumed", source = "a test" }}
"#
    )
}

#[test]
fn a_drive_of_a_family_says_only_what_differs() {
    let drive = drive_from_text("mine", &sheet("800 GB", "4", "4")).expect("valid");
    assert_eq!(drive.config.capacity_bytes(), 800_000_000_000);
}

#[test]
fn more_data_than_the_array_holds_is_refused() {
    let problems = drive_from_text("mine", &sheet("1200 GB", "4", "4")).expect_err("no spare area");
    let text = problems.to_string();
    assert!(text.contains("no space for garbage collection"), "{text}");
}

#[test]
fn cores_are_counted_and_say_what_a_read_takes_of_one() {
    let with = |cores: &str| sheet("800 GB", "4", "4") + "[nand.cores]\n" + cores;
    let figure = |key: &str, value: &str| {
        format!("{key} = {{ value = {value}, kind = \"assumed\", source = \"a test\" }}\n")
    };
    let whole = with(&(figure("count", "9") + &figure("read", "\"20 us\"")));
    drive_from_text("mine", &whole).expect("valid");
    for (cores, wrong) in [
        (figure("count", "0") + &figure("read", "\"20 us\""), "count"),
        (figure("count", "9"), "read"),
    ] {
        let problems =
            drive_from_text("mine", &with(&cores)).expect_err("cores that are not there");
        let text = problems.to_string();
        assert!(text.contains(wrong), "{text}");
    }
}

#[test]
fn figures_out_of_range_are_all_named() {
    let problems =
        drive_from_text("mine", &sheet("800 GB", "0", "1")).expect_err("two figures are wrong");
    let text = problems.to_string();
    assert!(text.contains("dies_per_channel"), "{text}");
    assert!(text.contains("low_water"), "{text}");
}
