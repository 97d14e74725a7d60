//! A fresh drive's SLC cache holds what its sheet says.

use model::media::DriveConfig;

/// Of drives whose size is in the source of a figure and not among the ratings, bytes.
const QUOTED: [(&str, u64); 3] = [
    ("960evo-250", 13_000_000_000),
    ("970evo-500", 22_000_000_000),
    ("970evo-1000", 42_000_000_000),
];

#[test]
fn a_cache_holds_what_its_sheet_says() {
    let mut checked = 0;
    for name in catalogue::drive_names() {
        let sheet = catalogue::drive(name).expect("built in");
        let quoted = QUOTED.iter().find(|(drive, _)| *drive == name);
        let Some(said) = sheet
            .ratings
            .as_ref()
            .and_then(|it| it.slc_cache)
            .or(quoted.map(|&(_, bytes)| bytes))
        else {
            continue;
        };
        let DriveConfig::Nand(config) = &sheet.config else {
            panic!("{name}: a cache without flash");
        };
        let slc = config.slc.as_ref().expect("a cache");
        let geometry = &config.geometry;
        let dies = u64::from(geometry.channels * geometry.dies_per_channel);
        let block = geometry.raw_bytes() / dies / u64::from(geometry.blocks_per_plane);
        let holds = dies * u64::from(slc.blocks_per_die) * (block / u64::from(slc.bits));
        let off = holds as f64 / said as f64 - 1.0;
        assert!(
            off.abs() < 0.05,
            "{name}: {holds} bytes, {said} on its sheet"
        );
        checked += 1;
    }
    assert!(checked >= 6, "{checked} caches");
}
