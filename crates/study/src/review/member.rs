//! Load of each member of a pool under a workload, and its lifetime at this load.

use serde::Serialize;

use super::rounding::rounded;
use catalogue::DriveSheet;
use lab::Outcome;

/// Figures of a pool member.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MemberFigures {
    /// Name of the member in the pool.
    pub name: String,
    /// Short name of the drive.
    pub drive: String,
    /// 10^6 bytes per second read from the member.
    pub read_mb_s: f64,
    /// 10^6 bytes per second written to the member.
    pub write_mb_s: f64,
    /// Utilisation of the busiest part of the member, 0 to 1.
    pub busy: f64,
    /// Bytes programmed into the medium for each byte written to the member; null without writes, or if the member
    /// does not report it.
    pub write_amplification: Option<f64>,
    /// Mean power in watts.
    pub watts: Option<f64>,
    /// Lifetime in years: rated endurance divided by this write rate, around the clock; null without writes or a
    /// rating.
    pub years: Option<f64>,
}

const SECONDS_A_YEAR: f64 = 365.25 * 86_400.0;

/// Returns the figures of all members, without their names.
pub(super) fn figures(outcome: &Outcome) -> Vec<MemberFigures> {
    let seconds = outcome.counted.seconds().max(1e-12);
    let members = outcome.members().into_iter();
    let of = |member: lab::MemberOutcome| MemberFigures {
        read_mb_s: rounded(member.bytes_read / seconds / 1e6),
        write_mb_s: rounded(member.bytes_written / seconds / 1e6),
        busy: rounded(member.busy),
        write_amplification: member.write_amplification.map(rounded),
        watts: member.watts.map(rounded),
        ..MemberFigures::default()
    };
    members.map(of).collect()
}

/// Sets the names of members, and the figures that follow from their ratings; a single drive has none.
pub(super) fn set_names_and_years(members: &mut Vec<MemberFigures>, pool: &DriveSheet) {
    if pool.pool.is_none() {
        return members.clear();
    }
    for (figures, (name, sheet)) in members.iter_mut().zip(pool.named_members()) {
        figures.name = name.to_owned();
        figures.drive.clone_from(&sheet.id);
        let a_year = figures.write_mb_s * 1e6 * SECONDS_A_YEAR;
        let rated = sheet.endurance_bytes.filter(|_| a_year > 0.0);
        figures.years = rated.map(|bytes| rounded(bytes as f64 / a_year));
    }
}

/// Returns the member that wears out first, and the years until then.
pub(crate) fn first_to_wear_out(members: &[MemberFigures]) -> Option<(&str, f64)> {
    let years = members.iter().filter_map(|it| Some((&*it.name, it.years?)));
    years.min_by(|a, b| a.1.total_cmp(&b.1))
}
