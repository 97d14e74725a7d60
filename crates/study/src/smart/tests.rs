//! Outputs of smartctl and nvme-cli, in the formats of several versions, complete and damaged.

use super::*;

fn sample(name: &str) -> String {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds/smart/");
    std::fs::read_to_string(format!("{folder}{name}")).expect("a seed of the fuzz target")
}

fn drives(text: &str) -> Vec<Health> {
    match read("smart.json", text.as_bytes()) {
        Ok(dump) => dump.drives,
        Err(problems) => panic!("{problems}"),
    }
}

fn one(text: &str) -> Health {
    let mut drives = drives(text);
    assert_eq!(drives.len(), 1, "{drives:#?}");
    drives.remove(0)
}

fn problems(text: &str) -> String {
    match read("smart.json", text.as_bytes()) {
        Ok(dump) => panic!("{dump:#?}"),
        Err(problems) => problems.to_string(),
    }
}

/// Model, end of the serial number, TB written, percent used, hours, spare, errors and temperature.
type Row = (
    Option<String>,
    Option<String>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
    Option<f64>,
);

fn row(health: &Health) -> Row {
    (
        health.model.clone(),
        health.serial_end.clone(),
        health.written.as_ref().map(|it| it.value / 1e12),
        health.used_percent.as_ref().map(|it| it.value),
        health.power_on_hours.map(libm::floor),
        health.spare_percent,
        health.media_errors,
        health.temperature_celsius,
    )
}

fn words(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// Data units of 512,000 bytes: 390,625,000 of them are 200 TB.
#[test]
fn nvme_drives_are_read_from_both_programs_and_as_text() {
    let model = words("Samsung SSD 980 PRO 1TB");
    let figures = (Some(200.0), Some(30.0), Some(17520.0), Some(100.0));
    let (written, used, hours, spare) = figures;
    let from_smartctl = one(&sample("smartctl-nvme.json"));
    let serial = words("001A");
    let expected = (
        model,
        serial,
        written,
        used,
        hours,
        spare,
        Some(0.0),
        Some(41.0),
    );
    assert_eq!(row(&from_smartctl), expected);
    assert_eq!(from_smartctl.capacity_bytes, Some(1_000_204_886_016.0));
    assert_eq!(from_smartctl.place, "smart.json:1");

    let text = one(&sample("smartctl-nvme.txt"));
    let expected = (
        words("INTEL SSDPED1K375GA"),
        words("375A"),
        Some(1000.0),
        Some(0.0),
        Some(26280.0),
        Some(100.0),
        Some(0.0),
        Some(38.0),
    );
    assert_eq!(row(&text), expected);
    assert_eq!(text.capacity_bytes, Some(375_083_606_016.0));

    let [first, second] = &drives(&sample("nvme-cli.txt"))[..] else {
        panic!("two drives");
    };
    let expected = (
        None,
        None,
        Some(200.0),
        Some(21.0),
        Some(17520.0),
        Some(100.0),
        Some(0.0),
        Some(40.0),
    );
    assert_eq!(row(first), expected);
    assert_eq!(
        (first.device.as_deref(), second.device.as_deref()),
        (Some("nvme0"), Some("nvme1"))
    );
    assert_eq!(
        second.written.as_ref().map(|it| it.value),
        Some(19_397_424.0 * 512e3)
    );
}

#[test]
fn versions_of_nvme_cli_differ_in_names_types_and_units() {
    let float = one(&sample("nvme-cli-1.json"));
    assert_eq!(
        float.written.as_ref().map(|it| it.value),
        Some(75_340_987.0 * 512e3)
    );
    assert_eq!(
        (float.temperature_celsius, float.spare_percent),
        (Some(36.0), Some(100.0))
    );
    let strings = one(&sample("nvme-cli-2-strings.json"));
    let expected = (
        words("TESTMAKER NVME 2TB"),
        words("3456"),
        Some(1200.0),
        Some(104.0),
        Some(35040.0),
        Some(87.0),
        Some(2.0),
        Some(40.0),
    );
    assert_eq!(row(&strings), expected);
    assert_eq!(
        strings.remarks,
        ["critical warning: reliability is degraded"]
    );
    // Celsius, if a version ever prints it.
    let celsius =
        r#"{"critical_warning":0,"percent_used":1,"data_units_written":1,"temperature":36}"#;
    assert_eq!(one(celsius).temperature_celsius, Some(36.0));
}

/// 117,187,500,000 blocks of 512 bytes are 60 TB; 1,200,000 units of 32 MiB are 40.3 TB.
#[test]
fn sata_drives_are_read_by_the_names_of_their_attributes() {
    let json = one(&sample("smartctl-sata.json"));
    let expected = (
        words("Samsung SSD 870 EVO 1TB"),
        words("0042"),
        Some(60.0),
        Some(8.0),
        Some(13140.0),
        None,
        Some(0.0),
        Some(30.0),
    );
    assert_eq!(row(&json), expected);
    assert_eq!(
        json.written.expect("written").rule,
        "ATA attribute 241 Total_LBAs_Written, logical blocks of 512 bytes"
    );
    let text = one(&sample("smartctl-sata.txt"));
    let written = text.written.as_ref().expect("written");
    assert_eq!(written.value, 1_200_000.0 * 32.0 * 1_048_576.0);
    assert_eq!(
        written.rule,
        "ATA attribute 241 Host_Writes_32MiB, units of 32 MiB"
    );
    let used = text.used_percent.as_ref().map(|it| it.value);
    assert_eq!((used, text.media_errors), (Some(5.0), Some(3.0)));
    assert_eq!(
        (text.power_on_hours, text.spare_percent),
        (Some(21900.0), Some(99.0))
    );
    assert_eq!(text.temperature_celsius, Some(27.0));
}

#[test]
fn raw_values_without_a_known_unit_are_refused() {
    // The same drive, but not in smartctl's database: 241 may have any unit, and 177 any scale.
    let unknown =
        sample("smartctl-sata.json").replace("  \"model_family\": \"Samsung based SSDs\",\n", "");
    let said = problems(&unknown);
    assert!(
        said.contains("241 Total_LBAs_Written is not used"),
        "{said}"
    );
    assert!(
        said.contains("177 Wear_Leveling_Count is not used"),
        "{said}"
    );
    // With device statistics the value is known.
    let statistics = r#""ata_device_statistics": {"pages": [{"number": 1, "table": [
        {"offset": 24, "name": "Logical Sectors Written", "size": 6, "value": 2000000000, "flags": {"valid": true}}]},
        {"number": 7, "table": [
        {"offset": 8, "name": "Percentage Used Endurance Indicator", "value": 9, "flags": {"valid": true}}]}]},
        "rotation_rate": 0,"#;
    let known = one(&unknown.replace("  \"rotation_rate\": 0,", statistics));
    assert_eq!(known.written.expect("written").value, 1.024e12);
    assert_eq!(known.used_percent.expect("used").value, 9.0);
    // A name without a unit, a NAND counter, a scale up to 200 and a saturated counter.
    for (from, to, why) in [
        (
            "Total_LBAs_Written",
            "Host_Writes",
            "241 Host_Writes is not used: its unit is not known",
        ),
        ("Total_LBAs_Written", "Sectors_Written_to_NAND", ""),
        ("117187500000", "4294967295", "all ones"),
        ("117187500000", "281474976710655", "all ones"),
    ] {
        let health = one(&sample("smartctl-sata.json").replace(from, to));
        assert!(health.written.is_none(), "{to}");
        assert_eq!(health.remarks.len(), usize::from(!why.is_empty()), "{to}");
        assert!(
            health.remarks.iter().all(|it| it.contains(why)),
            "{:?}",
            health.remarks
        );
    }
    let scale = one(&sample("smartctl-sata.json").replace(
        "\"value\": 92, \"worst\": 92",
        "\"value\": 192, \"worst\": 92",
    ));
    assert!(scale.used_percent.is_none() && scale.remarks[0].contains("above 100"));
}

/// Attribute 230 of WD and SanDisk SATA drives has the name of Intel's attribute 233, but counts up: 001 on a drive with
/// 1 % used.
#[test]
fn an_indicator_that_may_count_up_is_not_a_wear() {
    let table = |id: u8| {
        format!(
            r#"{{"smartctl": {{}}, "in_smartctl_database": true, "model_name": "WDC WDS500G2B0A", "rotation_rate": 0,
            "ata_smart_attributes": {{"table": [
            {{"id": {id}, "name": "Media_Wearout_Indicator", "value": 1, "raw": {{"value": 2044404433356, "string": "0x01dc00f301dc"}}}},
            {{"id": 241, "name": "Host_Writes_GiB", "value": 253, "raw": {{"value": 9000, "string": "9000"}}}}]}}}}"#
        )
    };
    let up = one(&table(230));
    assert_eq!(up.used_percent, None);
    assert_eq!(
        up.written.map(|it| it.value),
        Some(9000.0 * 1_073_741_824.0)
    );
    assert!(
        up.remarks[0].contains("the wear is not known"),
        "{:?}",
        up.remarks
    );
    assert_eq!(one(&table(233)).used_percent.map(|it| it.value), Some(99.0));
}

#[test]
fn sas_drives_are_read_from_the_error_counter_log() {
    let json = one(&sample("smartctl-sas.json"));
    let expected = (
        words("TESTVEND SAS SSD 1600"),
        words("0777"),
        Some(456.789123),
        Some(12.0),
        Some(26280.0),
        None,
        Some(1.0),
        Some(33.0),
    );
    assert_eq!(row(&json), expected);
    let text = one(&sample("smartctl-sas.txt"));
    let expected = (
        words("TESTVEND SAS SSD 400"),
        words("0009"),
        Some(81.2345),
        Some(7.0),
        Some(30000.0),
        None,
        Some(1.0),
        Some(29.0),
    );
    assert_eq!(row(&text), expected);
}

#[test]
fn several_drives_in_a_file_are_all_read() {
    let dump = read("fleet.json", sample("fleet-array.json").as_bytes()).expect("a fleet");
    assert_eq!(dump.drives.len(), 2);
    assert_eq!(
        dump.left_out,
        ["TESTDISK 4TB …0003: a hard disk (7200 rpm), which writes do not wear"]
    );
    // In sequence, with terminal output between them, in JSON and text, in UTF-16 with a byte order mark.
    let many = format!(
        "[sudo] password for me:\n{}$ smartctl -a -j /dev/sda\n{}\n# now text\n{}",
        sample("smartctl-nvme.json"),
        sample("smartctl-sata.json"),
        sample("smartctl-nvme.txt"),
    );
    let models: Vec<Option<String>> = drives(&many).into_iter().map(|it| it.model).collect();
    let expected = [
        "Samsung SSD 980 PRO 1TB",
        "Samsung SSD 870 EVO 1TB",
        "INTEL SSDPED1K375GA",
    ];
    assert_eq!(models, expected.map(words));
    let mut utf16: Vec<u8> = vec![0xff, 0xfe];
    utf16.extend(many.encode_utf16().flat_map(u16::to_le_bytes));
    assert_eq!(read("x", &utf16).expect("UTF-16").drives.len(), 3);
    // Keyed by name, and on one line.
    let named = format!("{{\"nvme7\": {}}}", sample("nvme-cli-1.json"));
    assert_eq!(one(&named).device.as_deref(), Some("nvme7"));
    let line = r#"{"percent_used":5,"critical_warning":0}"#;
    assert_eq!(drives(&format!("{line}{line}\n{line}")).len(), 3);
}

#[test]
fn what_cannot_be_read_is_named_with_its_line_all_at_once() {
    let whole = sample("smartctl-nvme.json");
    let cut = &whole[..whole.len() / 2];
    let said = problems(&format!(
        "{cut}\n{}\n{}",
        sample("no-permission.json"),
        "{}"
    ));
    assert!(
        said.contains("smart.json:1: the JSON document that begins here is in"),
        "{said}"
    );
    assert!(said.contains("Permission denied"), "{said}");
    assert!(said.contains("exit status 2"), "{said}");
    assert!(said.contains("it is empty"), "{said}");
    assert_eq!(said.matches("error: ").count(), 3, "{said}");

    let cut = whole.find("\"nvme_smart_health").expect("the log");
    let said = problems(&whole[..cut]);
    assert!(said.contains("incomplete"), "{said}");
    let text = sample("smartctl-nvme.txt");
    let cut = text.find("Percentage Used").expect("the log");
    let said = problems(&text[..cut]);
    assert!(said.contains("missing \"Data Units Written\""), "{said}");
    assert!(
        said.contains("smart.json:2: INTEL SSDPED1K375GA …375A"),
        "{said}"
    );
    for (text, why) in [
        ("", "empty"),
        ("hello", "no SMART data"),
        ("[1, 2]", "no SMART data"),
        ("{\"a\": 1}", "its keys are a"),
        (
            "{\"smartctl\": {}}",
            "neither host writes nor a wear indicator",
        ),
        ("{\"nvme_smart_health_information_log\": 7}", "missing"),
        (
            "{\"percent_used\": \"x\", \"critical_warning\": 0}",
            "missing",
        ),
        (
            "Smart Log for NVME device:nvme0 namespace-id:ffffffff\n",
            "missing",
        ),
        (
            "smartctl 7.3 2022-02-28 r5338 [x] (local build)\nSmartctl open device: /dev/sda failed: No such device\n",
            "No such device",
        ),
    ] {
        let said = problems(text);
        assert!(said.contains(why), "{text}: {said}");
    }
}

#[test]
fn impossible_figures_are_refused_with_a_remark() {
    let log = |units: &str, used: &str, hours: &str| {
        format!(
            r#"{{"critical_warning":0,"percent_used":{used},"data_units_written":{units},"power_on_hours":{hours}}}"#
        )
    };
    let ones = one(&log("340282366920938463463374607431768211455", "3", "10"));
    assert!(ones.written.is_none() && ones.remarks[0].contains("impossible"));
    let hours = one(&log("1", "3", "4294967295"));
    assert!(hours.power_on_hours.is_none() && hours.remarks[0].contains("60 years"));
    let used = one(&log("1", "300", "10"));
    assert!(used.used_percent.is_none() && used.remarks[0].contains("255"));
    let negative = one(&log("-5", "255", "10"));
    assert!(negative.written.is_none());
    assert_eq!(negative.used_percent.expect("the cap").value, 255.0);
    let nothing = one(&log("0", "0", "0"));
    assert_eq!(nothing.written.expect("0").value, 0.0);
}

#[test]
fn numbers_are_read_with_the_separators_of_any_locale() {
    for (text, expected) in [
        ("28,167,888 [14.4 TB]", Some(28_167_888.0)),
        ("28.167.888 (14.42 TB)", Some(28_167_888.0)),
        ("28 167 888", Some(28_167_888.0)),
        ("28\u{202f}167\u{202f}888", Some(28_167_888.0)),
        ("1,23,45,678", Some(12_345_678.0)),
        ("28'167'888", Some(28_167_888.0)),
        ("499.055", Some(499_055.0)),
        ("0x04", Some(4.0)),
        ("45%", Some(45.0)),
        ("1.234e+07", Some(1.234e7)),
        ("12 hours", Some(12.0)),
        ("1e400", None),
        ("inf", None),
        ("", None),
        ("-5", None),
        (",", None),
    ] {
        assert_eq!(number::of_text(text), expected, "{text}");
    }
}

/// `smartctl -i` and `smartctl -A` as two commands.
#[test]
fn identity_and_attributes_of_two_commands_are_one_drive() {
    let whole = sample("smartctl-sata.txt");
    let version = "smartctl 7.1 2019-12-30 r5022 [x86_64-linux] (local build)\n";
    let data = whole.find("=== START OF READ").expect("a section");
    let both = format!(
        "{}$ smartctl -A /dev/sda\n{version}{}",
        &whole[..data],
        &whole[data..]
    );
    let (joined, expected) = (one(&both), one(&whole));
    assert_eq!(joined.remarks.len(), 1);
    assert_eq!(row(&joined), row(&expected));
    // Without the identity smartctl's database is not known to have the model, but the attribute's name has a unit.
    let alone = one(&format!("{version}{}", &whole[data..]));
    assert!(alone.model.is_none() && alone.written.is_some() && alone.used_percent.is_none());
}

/// Names from outside are printed on a terminal only as text.
#[test]
fn escape_sequences_in_names_are_shown_as_text() {
    let text = r#"{"smartctl":{},"model_name":"A\u001b[2JB","nvme_smart_health_information_log":{"percentage_used":1}}"#;
    assert_eq!(one(text).model.as_deref(), Some("A\\u{1b}[2JB"));
}
