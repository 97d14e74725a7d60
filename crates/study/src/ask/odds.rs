//! Request for the odds of data loss ([`crate::decide::odds`]).

use catalogue::DriveSheet;
use lab::Lab;
use text::problem::Problems;

use super::conditions::{self, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::problems::of_option;
use super::{AnswerListener, Ask, DriveRequest, OnDrives, defaults};
use crate::decide::odds::{self, OddsAnswer, OddsRequest};

request! {
    /// How often pools lose data.
    Odds {
        /// Pools and drives.
        drives: Vec<DriveSpec> = Vec::new(),
        /// Time until a failed drive is replaced, such as `24h`.
        replace_after: String = odds::REPLACED_AFTER.into(),
        /// Annual failure rates, such as `0.5%` or `p4801x-100=0.2%`.
        afr: Vec<String> = Vec::new(),
        /// Power failures and crashes of the machine per year.
        crashes: f64 = odds::CRASHES,
        /// Years over which the probability of a loss is also computed.
        years: Option<f64> = None,
        /// Host on which a rebuild runs.
        host: String = catalogue::TYPICAL_HOST.into(),
        /// First seed.
        seed: u64 = defaults::SEED,
    }
}

/// Loads the drives and pools. A raidz, which is refused by itself, is loaded as main of an intent log without log
/// devices: a ZFS pool without a separate log.
fn load(drives: &[DriveSpec], problems: &mut Problems) -> Vec<DriveSheet> {
    if drives.is_empty() {
        return load_all(drives, problems);
    }
    let each = drives.iter().flat_map(|drive| {
        let name = &*drive.name;
        if !name.contains("raidz(") || name.contains("intent-log(") {
            return load_all(std::slice::from_ref(drive), problems);
        }
        let main = DriveSpec {
            name: format!("intent-log(main={name})"),
            settings: drive.settings.clone(),
        };
        let loaded = load_all(&[main], problems).into_iter();
        let loaded = loaded.map(|sheet| DriveSheet {
            id: name.to_owned(),
            ..sheet
        });
        loaded.collect()
    });
    each.collect()
}

impl Ask for Odds {
    const NAME: &'static str = "odds";
    type Resolved = OnDrives<OddsRequest>;

    fn resolve(&self) -> Result<OnDrives<OddsRequest>, Problems> {
        let mut problems = Problems::default();
        let drives = load(&self.drives, &mut problems);
        let mut wrong = |option: &str, text: &str, help: String| {
            let what = format!("--{option}: {text}");
            problems.0.push(of_option(what, help));
        };
        let crashes = self.crashes.to_string();
        if let Err(help) = odds::crashes(&crashes) {
            wrong("crashes", &crashes, help);
        }
        if let Some(years) = self.years.map(|years| years.to_string())
            && let Err(help) = odds::years(&years)
        {
            wrong("years", &years, help);
        }
        let replaced = odds::hours(&self.replace_after);
        let replace_hours = replaced.unwrap_or_else(|help| {
            wrong("replace-after", &self.replace_after, help);
            0.0
        });
        let failures = self.afr.iter().filter_map(|text| {
            let read = odds::share_of_drives(text);
            read.map_err(|help| wrong("afr", text, help)).ok()
        });
        let failures = failures.collect();
        let request = OddsRequest {
            replace_hours,
            crashes: self.crashes,
            failures,
            years: self.years,
            host: conditions::host(&self.host, &mut problems),
            seed: self.seed,
        };
        check_seeds(self.seed, 1, &mut problems);
        let checked = odds::check(&request, &drives);
        problems.0.extend(checked.err().unwrap_or_default().0);
        problems.or(OnDrives { drives, request })
    }
}

impl DriveRequest for OddsRequest {
    type Answer = OddsAnswer;
    const IS_IN_TURN: bool = true;

    fn answer(
        &self,
        drive: &DriveSheet,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<OddsAnswer, Problems> {
        odds::measure(self, drive, lab, listener.step)
    }
}
