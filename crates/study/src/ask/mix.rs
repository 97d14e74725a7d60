//! Request for mixed reads and writes ([`crate::decide::mix`]).

use catalogue::DriveSheet;
use lab::Lab;
use text::problem::Problems;

use super::conditions::{self, check_range, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::{AnswerListener, Ask, DriveRequest, OnDrives, defaults};
use crate::decide::load::Pattern;
use crate::decide::mix::{self, MixAnswer, MixRequest};

request! {
    /// IOPS and latency from reads alone to writes alone.
    Mix {
        /// Names, with settings.
        drives: Vec<DriveSpec> = Vec::new(),
        /// Access pattern, as in fio: a mix.
        rw: String = defaults::MIXED_RW.into(),
        /// Step between mixes, in percent of reads.
        step: u32 = mix::STEP,
        /// Block size, as in fio.
        bs: String = defaults::BS.into(),
        /// Queue depth, over all threads.
        iodepth: u32 = mix::DEPTH,
        /// Maximum number of threads; `None`: the cores of the host, or one if the load is sequential.
        numjobs: Option<u32> = None,
        /// Further options of fio's jobs.
        fio: Vec<(String, String)> = Vec::new(),
        /// I/Os of a run; `None`: 20000.
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

impl Ask for Mix {
    const NAME: &'static str = "mix";
    type Resolved = OnDrives<MixRequest>;

    fn resolve(&self) -> Result<OnDrives<MixRequest>, Problems> {
        let mut problems = Problems::default();
        let drives = load_all(&self.drives, &mut problems);
        let start = conditions::start(&self.state, &self.drives, &mut problems);
        let host = conditions::host(&self.host, &mut problems);
        let (step, depth) = (Some(self.step), Some(self.iodepth));
        check_range(
            "numjobs",
            self.numjobs,
            &defaults::THREADS_RANGE,
            &mut problems,
        );
        check_range("step", step, &defaults::STEP_RANGE, &mut problems);
        check_range("iodepth", depth, &defaults::MIX_DEPTH_RANGE, &mut problems);
        check_range("ios", self.ios, &defaults::IOS_RANGE, &mut problems);
        check_seeds(self.seed, self.seeds, &mut problems);
        // Each mix replaces the share of reads.
        let any = (&*self.rw, defaults::READ_PERCENT);
        let pattern = Pattern::new(any, &self.bs, &self.fio, self.numjobs, &host);
        let request = MixRequest {
            state: start.before(pattern.is_in_order()),
            pattern,
            depth: self.iodepth,
            percents: mix::percents(self.step),
            host,
            ios: self.ios,
            seed: self.seed,
            seeds: self.seeds,
        };
        let checked = mix::check(&request);
        problems.0.extend(checked.err().unwrap_or_default().0);
        problems.or(OnDrives { drives, request })
    }
}

impl DriveRequest for MixRequest {
    type Answer = MixAnswer;

    fn answer(
        &self,
        drive: &DriveSheet,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<MixAnswer, Problems> {
        mix::measure(self, drive, lab, listener.share)
    }
}
