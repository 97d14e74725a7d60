//! Request for the highest load within limits ([`crate::decide::max`]).

use catalogue::DriveSheet;
use lab::Lab;
use text::problem::Problems;

use super::conditions::{self, check_range, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::problems::collect_problems;
use super::{AnswerListener, Ask, DriveRequest, OnDrives, defaults};
use crate::decide::load::Pattern;
use crate::decide::max::{self, MaxAnswer, MaxRequest};
use crate::decide::slo::Slo;

request! {
    /// Highest load of drives within limits.
    Max {
        /// Names, with settings.
        drives: Vec<DriveSpec> = Vec::new(),
        /// Limits, such as `p99<1ms`.
        slo: String = String::new(),
        /// Access pattern, as in fio.
        rw: String = defaults::RW.into(),
        /// Percentage of reads in a mix.
        rwmixread: u32 = defaults::READ_PERCENT,
        /// Block size, as in fio.
        bs: String = defaults::BS.into(),
        /// Maximum number of threads; `None`: the cores of the host, or one if the load is sequential.
        numjobs: Option<u32> = None,
        /// Further options of fio's jobs.
        fio: Vec<(String, String)> = Vec::new(),
        /// I/Os of a run; `None`: as many as the deepest percentile needs.
        ios: Option<u64> = None,
        /// Host of the drives.
        host: String = catalogue::TYPICAL_HOST.into(),
        /// Initial state of the drives.
        state: String = defaults::AUTO.into(),
        /// First seed.
        seed: u64 = defaults::SEED,
        /// Number of seeds.
        seeds: u32 = defaults::SEEDS,
    }
}

impl Ask for Max {
    const NAME: &'static str = "max";
    type Resolved = OnDrives<MaxRequest>;

    fn resolve(&self) -> Result<OnDrives<MaxRequest>, Problems> {
        let mut problems = Problems::default();
        let drives = load_all(&self.drives, &mut problems);
        let start = conditions::start(&self.state, &self.drives, &mut problems);
        let slo = collect_problems(Slo::read(&self.slo), &mut problems);
        let host = conditions::host(&self.host, &mut problems);
        let percent = Some(self.rwmixread);
        check_range(
            "numjobs",
            self.numjobs,
            &defaults::THREADS_RANGE,
            &mut problems,
        );
        check_range(
            "rwmixread",
            percent,
            &defaults::PERCENT_RANGE,
            &mut problems,
        );
        check_range("ios", self.ios, &defaults::IOS_RANGE, &mut problems);
        check_seeds(self.seed, self.seeds, &mut problems);
        let mix = (&*self.rw, self.rwmixread);
        let pattern = Pattern::new(mix, &self.bs, &self.fio, self.numjobs, &host);
        let request = MaxRequest {
            state: start.before(pattern.is_in_order()),
            pattern,
            slo: slo.clone().unwrap_or_default(),
            host,
            ios: self.ios,
            seed: self.seed,
            seeds: self.seeds,
        };
        let checked = match slo {
            Some(_) => max::check(&request),
            None => request.pattern.check(),
        };
        problems.0.extend(checked.err().unwrap_or_default().0);
        problems.or(OnDrives { drives, request })
    }
}

impl DriveRequest for MaxRequest {
    type Answer = MaxAnswer;
    const IS_IN_TURN: bool = true;

    fn answer(
        &self,
        drive: &DriveSheet,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<MaxAnswer, Problems> {
        max::highest(self, drive, lab, listener.step)
    }
}
