//! Command-line form of the drives of a review, for a page that simulates them again.
//!
//! A NAND drive is run at a smaller size ([`DriveSheet::smaller`]), so that its tables fit into a page's memory and
//! its steady state is computed in a fraction of a second. Rates and latencies differ from the whole drive by some
//! percent. The smaller size is expressed as figures of the drive's file, so that `drivelab run` accepts it too. Other
//! drives, and pools, are run at full size. Not supported: drives from files, which a page cannot read, and drives
//! with settings other than figures and a power limit.

use catalogue::{Change, DriveSheet, Settings, TunableSetting, drive_as};
use model::media::Medium;
use serde::Serialize;
use tier::DriveConfig;

/// A drive as arguments of the command line.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DriveArguments {
    /// Name of the drive, or expression of a pool.
    pub drive: String,
    /// Changed figures: those of the review, and those that make the drive smaller.
    pub set: Vec<Change>,
    /// Factor by which the drive is smaller than the whole one; 1 for the whole drive.
    pub smaller: f64,
    /// Bytes offered to the host, if the drive has a spare area for garbage collection: offering fewer bytes enlarges
    /// that area.
    pub capacity_bytes: Option<u64>,
    /// Power limit that the review set on the governor.
    pub power_limit_watts: Option<f64>,
    /// Idle power and the limit in force, for a drive with a governor.
    pub governor_watts: Option<[f64; 2]>,
    /// Settings of the tiers that can be changed, for a pool.
    pub dials: Vec<TunableSetting>,
}

impl DriveArguments {
    /// Returns `None` for a drive that its name and these settings do not reproduce.
    pub fn from_sheet(sheet: &DriveSheet, settings: &Settings) -> Option<DriveArguments> {
        let plain = Settings {
            figures: settings.figures.clone(),
            power_limit: settings.power_limit,
            ..Settings::default()
        };
        let known = |set: &[Change]| {
            let settings = Settings {
                figures: set.to_vec(),
                ..plain.clone()
            };
            drive_as(&sheet.id, &settings).ok()
        };
        let built_in = catalogue::drive_names().contains(&&*sheet.id)
            || catalogue::pool_names().contains(&&*sheet.id)
            || catalogue::is_expression(&sheet.id) && !sheet.id.contains(".toml");
        let is_it = |set: &[Change], config: &DriveConfig| {
            known(set).is_some_and(|known| known.config == *config)
        };
        if *settings != plain || !built_in || !is_it(&plain.figures, &sheet.config) {
            return None;
        }
        let mut again = DriveArguments {
            drive: sheet.id.clone(),
            set: plain.figures.clone(),
            smaller: 1.0,
            capacity_bytes: None,
            power_limit_watts: settings.power_limit,
            governor_watts: governor(sheet, &plain),
            dials: sheet.dials(&plain),
        };
        if let Some((small, changes)) = sheet.smaller() {
            again.set.extend(changes);
            again.smaller = sheet.capacity as f64 / small.capacity_bytes() as f64;
            again.capacity_bytes = Some(small.capacity_bytes());
            // If the figures of the file cannot express the smaller drive, the command line cannot run it.
            if !is_it(&again.set, &small) {
                return None;
            }
        }
        Some(again)
    }
}

/// Returns idle power and the limit in force, if a limit can be set. The power of a pool is that of its drives, and no
/// limit can be set.
fn governor(sheet: &DriveSheet, plain: &Settings) -> Option<[f64; 2]> {
    let limit = sheet.config.power_limit_watts()?;
    let limited = Settings {
        power_limit: Some(limit),
        ..plain.clone()
    };
    let takes = drive_as(&sheet.id, &limited).is_ok();
    takes.then(|| [sheet.config.idle_watts(), limit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use lab::{Lab, Machine, Scenario};
    use model::host::HostConfig;
    use model::media::Precondition;
    use workload::job::{Job, Mix};

    #[test]
    fn every_drive_of_the_catalogue_can_be_had_again() {
        let mut without = Vec::new();
        for name in catalogue::drive_names() {
            let sheet = catalogue::drive(name).expect("built in");
            match DriveArguments::from_sheet(&sheet, &Settings::default()) {
                None => without.push(name),
                Some(again) => {
                    let settings = Settings {
                        figures: again.set,
                        ..Settings::default()
                    };
                    let small = drive_as(name, &settings).expect("it loads");
                    assert!(
                        small.capacity <= sheet.capacity && again.smaller >= 1.0,
                        "{name}"
                    );
                }
            }
        }
        assert_eq!(without, [""; 0]);
    }

    #[test]
    fn a_drive_that_no_words_name_is_left_out() {
        let mut sheet = catalogue::drive("p3700-1600").expect("built in");
        let worn = Settings {
            percentage_used: Some(104.0),
            ..Settings::default()
        };
        assert_eq!(DriveArguments::from_sheet(&sheet, &worn), None);
        sheet.id = String::from("mine");
        assert_eq!(
            DriveArguments::from_sheet(&sheet, &Settings::default()),
            None
        );
        let other = catalogue::drive("p3700-800").expect("built in");
        sheet.id = other.id;
        assert_eq!(
            DriveArguments::from_sheet(&sheet, &Settings::default()),
            None
        );
    }

    #[test]
    fn what_the_review_set_is_kept() {
        let settings = Settings {
            figures: vec![("xpoint.power.idle".into(), "4 W".into())],
            power_limit: Some(12.0),
            ..Settings::default()
        };
        let sheet = drive_as("p4800x-375", &settings).expect("built in");
        let again = DriveArguments::from_sheet(&sheet, &settings).expect("by its name");
        assert_eq!(again.set, settings.figures);
        assert_eq!(again.governor_watts, Some([4.0, 12.0]));
        assert_eq!(again.power_limit_watts, Some(12.0));
    }

    #[test]
    fn a_pool_takes_its_dials_and_no_power_limit() {
        let sheet = catalogue::drive("slog-mirror").expect("built in");
        let again = DriveArguments::from_sheet(&sheet, &Settings::default()).expect("by its name");
        assert_eq!(again.governor_watts, None);
        assert!(again.dials.iter().any(|dial| dial.key == "tier.tank.txg"));
    }

    #[test]
    fn a_smaller_drive_writes_at_the_rate_of_the_whole() {
        let sheet = catalogue::drive("p3700-800").expect("built in");
        let again = DriveArguments::from_sheet(&sheet, &Settings::default()).expect("by its name");
        let settings = Settings {
            figures: again.set,
            ..Settings::default()
        };
        let small = drive_as("p3700-800", &settings).expect("it loads");
        assert!(small.capacity < sheet.capacity / 10);
        let iops = |sheet: &DriveSheet| {
            let job = Job {
                mix: Mix::Write,
                random: true,
                norandommap: true,
                iodepth: 16,
                number_ios: Some(20_000),
                ..Job::default()
            };
            let machine = Machine::from_configs("", sheet.config.clone(), HostConfig::default());
            let scenario = Scenario::jobs(machine, Precondition::Steady, vec![job], 1);
            let outcome = Lab::with_drives(1).run(&scenario).expect("it runs");
            outcome.threads[0].write.iops()
        };
        let (whole, small) = (iops(&sheet), iops(&small));
        assert!((small / whole - 1.0).abs() < 0.06, "{whole}, {small}");
    }
}
