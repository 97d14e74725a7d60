//! Request for how long writes stay fast ([`crate::decide::fill`]).

use catalogue::DriveSheet;
use lab::Lab;
use text::problem::Problems;

use super::conditions::{self, check_range, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::problems::{collect_problems, of_option};
use super::{AnswerListener, Ask, DriveRequest, OnDrives, defaults};
use crate::decide::fill::{self, FillAnswer, FillRequest};

request! {
    /// How long writes stay fast.
    Fill {
        /// Names, with settings.
        drives: Vec<DriveSpec> = Vec::new(),
        /// Percent of the drive in use at the start.
        used: Vec<u32> = fill::USED.into(),
        /// Random instead of sequential writes.
        random: bool = false,
        /// Block size, as in fio; `None`: 1m, or 4k if writes are random.
        bs: Option<String> = None,
        /// Writes in flight; `None`: 8, or 32 if writes are random.
        iodepth: Option<u32> = None,
        /// Host of the drives.
        host: String = catalogue::TYPICAL_HOST.into(),
        /// First seed.
        seed: u64 = defaults::SEED,
        /// Number of seeds.
        seeds: u32 = defaults::SEEDS,
    }
}

impl Ask for Fill {
    const NAME: &'static str = "fill";
    type Resolved = OnDrives<FillRequest>;

    fn resolve(&self) -> Result<OnDrives<FillRequest>, Problems> {
        let mut problems = Problems::default();
        let drives = load_all(&self.drives, &mut problems);
        let host = conditions::host(&self.host, &mut problems);
        check_range(
            "iodepth",
            self.iodepth,
            &defaults::DEPTH_RANGE,
            &mut problems,
        );
        check_seeds(self.seed, self.seeds, &mut problems);
        let writes = fill::writes(self.random, self.bs.as_deref(), self.iodepth);
        // If the block size is invalid there is a problem, and nothing runs.
        let (block, depth) = collect_problems(writes, &mut problems).unwrap_or((4096, 1));
        if self.used.is_empty() {
            let help = "percentages, such as 50,90";
            problems
                .0
                .push(of_option("--used: the list is empty", help));
        }
        for used in &self.used {
            check_range("used", Some(*used), &defaults::PERCENT_RANGE, &mut problems);
        }
        let mut settings = self.drives.iter().map(|drive| &drive.settings);
        problems.0.extend(settings.find_map(fill::problem_of));
        let request = FillRequest {
            random: self.random,
            block,
            depth,
            used: self.used.clone(),
            host,
            seed: self.seed,
            seeds: self.seeds,
        };
        let of_each = drives.iter();
        let of_each = of_each.filter_map(|drive| fill::check(&request, drive).err());
        problems.0.extend(of_each.flat_map(|more| more.0));
        problems.or(OnDrives { drives, request })
    }
}

impl DriveRequest for FillRequest {
    type Answer = FillAnswer;
    const IS_IN_TURN: bool = true;

    fn answer(
        &self,
        drive: &DriveSheet,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<FillAnswer, Problems> {
        fill::measure(self, drive, lab, listener.step)
    }
}
