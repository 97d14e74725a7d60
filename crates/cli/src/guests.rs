//! Arguments for runs with several virtual machines.

use catalogue::DriveSheet;
use text::problem::Problems;
use workload::fio::JobSet;
use workload::guests::{MAX_GUESTS, of_guests};

/// Virtual machines that run the jobs.
#[derive(clap::Args, Clone)]
pub(crate) struct GuestArgs {
    /// Run the jobs in this number of virtual machines, each on its own share of the smallest drive
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_GUESTS)))]
    guests: Option<u32>,
}

impl GuestArgs {
    /// Returns the jobs of all guests, on shares of the smallest drive.
    ///
    /// # Errors
    /// Jobs that cannot run in a guest.
    pub(crate) fn split(&self, mut set: JobSet, drives: &[DriveSheet]) -> Result<JobSet, Problems> {
        let smallest = drives.iter().map(|drive| drive.capacity).min();
        if let (Some(guests), Some(capacity)) = (self.guests, smallest) {
            set.jobs = of_guests(&set.jobs, guests, capacity).map_err(|all| {
                let problems = all
                    .into_iter()
                    .flat_map(|why| Problems::whole("--guests", why).0);
                Problems(problems.collect())
            })?;
        }
        Ok(set)
    }
}
