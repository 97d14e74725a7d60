//! Lifetime of one drive, or of a member of a pool: rating, writes of the load, and wear.
//!
//! Only the values. [`super::life`] computes them and names their sources.

use serde::Serialize;

/// Days per year of a warranty, as makers count.
pub(super) const DAYS: f64 = 365.0;
pub(super) const DAY: f64 = 86_400.0;

/// Bytes of a run that are too few to know wear.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct FewWrites {
    /// Bytes that the host writes in a run, 10^9.
    pub written_gb: f64,
    /// Capacity of the pSLC cache, 10^9 bytes.
    pub cache_gb: f64,
}

/// Rated endurance of a drive.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct EnduranceRating {
    /// 10^12 bytes written.
    pub tbw: f64,
    /// Warranty in years; null if not published.
    pub warranty_years: Option<f64>,
    /// Drive writes per day over the warranty.
    pub dwpd: Option<f64>,
    /// Maximum continuous write rate for the requested years, 10^6 bytes per second.
    pub lasting_mb_s: f64,
    /// Kind: `spec`, `assumed`, ...
    pub kind: &'static str,
}

/// Rated cycles of a NAND medium.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cycles {
    /// Program and erase cycles of a block.
    pub rated: u32,
    /// Kind: `spec`, `assumed`, ...
    pub kind: &'static str,
    /// Write amplification at which the rated bytes use up the rated cycles; null without a rating.
    pub rated_write_amplification: Option<f64>,
}

/// Writes of a load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WriteLoad {
    /// 10^6 bytes per second: mean, least and greatest of the seeds.
    pub mb_s: [f64; 3],
    /// Bytes programmed for each byte written; null if nothing was written.
    pub write_amplification: Option<[f64; 3]>,
    /// Drive writes per day.
    pub dwpd: f64,
    /// 10^12 bytes in the requested years.
    pub tbw: f64,
    /// Years until the rated bytes are written; null without a rating or without writes. 0 if the drive is read-only
    /// and the load writes.
    pub years_to_rating: Option<f64>,
    /// Range of `years_to_rating` over seeds.
    pub years_to_rating_by_seed: Option<[f64; 2]>,
}

/// When SMART's Percentage Used exceeds a value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct WearCrossing {
    /// The value in percent.
    pub percent: f64,
    /// Days from now.
    pub day: f64,
    /// Consequence of exceeding it.
    pub then: String,
}

/// Maximum destaging to a member.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DestageRate {
    /// 10^6 bytes per second.
    pub mb_s: f64,
    /// Years until its rated bytes are written; null without a rating.
    pub years_to_rating: Option<f64>,
}

/// Lifetime of a drive, or of a member of a pool.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LifePart {
    /// Name of the member, or of the drive.
    pub name: String,
    /// Catalogue name of the drive.
    pub drive: String,
    /// Whether it is a hard disk, which writes do not wear.
    #[serde(skip)]
    pub is_disk: bool,
    /// Bytes that a host can address.
    pub capacity_bytes: u64,
    /// Rating; null if none is published.
    pub rating: Option<EnduranceRating>,
    /// Rated cycles; null for media other than NAND.
    pub cycles: Option<Cycles>,
    /// Writes; null without a load.
    pub written: Option<WriteLoad>,
    /// Present Percentage Used.
    pub used_percent: f64,
    /// Increase of Percentage Used per year, as the model computes it; null if the medium does not wear or nothing is
    /// written.
    pub used_percent_a_year: Option<f64>,
    /// When 100 and 105 percent are exceeded, or the value at which the drive throttles; empty if it does not wear.
    pub passes: Vec<WearCrossing>,
    /// For a member below a write buffer that no run filled: the maximum that is destaged to it later; null otherwise.
    pub destaged: Option<DestageRate>,
    /// Set if wear is not known, because the run writes too few bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub few_writes: Option<FewWrites>,
}

impl LifePart {
    /// Returns the years until the rated bytes are written, including later destaging.
    pub fn years_to_rating(&self) -> Option<f64> {
        let now = self.written.as_ref()?.years_to_rating;
        let later = self.destaged.as_ref().and_then(|it| it.years_to_rating);
        now.into_iter().chain(later).min_by(f64::total_cmp)
    }

    /// Returns the years until the rated bytes are written; without a rating, until Percentage Used exceeds 100.
    pub fn years(&self) -> Option<f64> {
        let rated = self.years_to_rating();
        rated.or_else(|| self.passes.first().map(|pass| pass.day / DAYS))
    }

    /// Returns the years after which Percentage Used of a new drive in this place exceeds 100 at the load.
    pub fn years_of_new_cycles(&self) -> Option<f64> {
        Some(100.0 / (self.used_percent_a_year? - self.used_percent))
    }

    /// Returns the years that a new drive in this place lasts at the load, computed like [`LifePart::years`].
    pub fn years_of_a_new_one(&self) -> Option<f64> {
        let Some(rating) = &self.rating else {
            return self.years_of_new_cycles();
        };
        let now = self.written.as_ref()?.mb_s[0];
        let later = self.destaged.as_ref().map_or(0.0, |it| it.mb_s);
        let rate = now.max(later);
        (rate > 0.0).then(|| rating.tbw * 1e6 / rate / DAY / DAYS)
    }
}
