//! Request for a check against an application's published minimum ([`crate::decide::check`]).

use catalogue::DriveSheet;
use lab::Lab;
use text::problem::Problems;

use super::conditions::{self, check_seeds};
use super::drive_spec::{DriveSpec, load_all};
use super::problems::collect_problems;
use super::{AnswerListener, Ask, ResolvedRequest, defaults};
use crate::decide::check::{self, CheckAnswer};
use crate::decide::work::Conditions;

request! {
    /// Whether drives meet the published minimum of an application.
    CheckRequest {
        /// Name of the check.
        software: String = String::new(),
        /// Names, with settings.
        drives: Vec<DriveSpec> = Vec::new(),
        /// Host of the drives; `None`: that of the check.
        host: Option<String> = None,
        /// Initial state of the drives.
        state: String = defaults::STEADY.into(),
        /// First seed.
        seed: u64 = defaults::SEED,
        /// Number of seeds.
        seeds: u32 = defaults::SEEDS,
    }
}

/// A checked request.
#[derive(Debug)]
pub struct ResolvedCheck {
    /// Published minimum.
    pub check: check::Check,
    /// Loaded drives.
    pub drives: Vec<DriveSheet>,
    /// Conditions of the runs.
    pub conditions: Conditions,
}

impl Ask for CheckRequest {
    const NAME: &'static str = "check";
    const FIRST: Option<&'static str> = Some("software");
    type Resolved = ResolvedCheck;

    fn resolve(&self) -> Result<ResolvedCheck, Problems> {
        let mut problems = Problems::default();
        let drives = load_all(&self.drives, &mut problems);
        let state = conditions::state(&self.state, &self.drives, &mut problems);
        check_seeds(self.seed, self.seeds, &mut problems);
        let check = collect_problems(check::Check::named(&self.software), &mut problems);
        let of_check = check.as_ref().map(|check| &*check.host);
        let host = self.host.as_deref().or(of_check);
        let host = conditions::host(host.unwrap_or(catalogue::TYPICAL_HOST), &mut problems);
        let conditions = Conditions {
            host,
            state,
            seed: self.seed,
            seeds: self.seeds,
        };
        match check {
            Some(check) => problems.or(ResolvedCheck {
                check,
                drives,
                conditions,
            }),
            None => Err(problems),
        }
    }
}

impl ResolvedRequest for ResolvedCheck {
    type Answer = CheckAnswer;

    fn drives(&self) -> &[DriveSheet] {
        &self.drives
    }

    fn answer(
        &self,
        index: usize,
        lab: &Lab,
        listener: &AnswerListener<'_>,
    ) -> Result<CheckAnswer, Problems> {
        let drive = &self.drives[index];
        self.check
            .answer(drive, &self.conditions, lab, listener.share)
    }
}
