//! What each member of a pool did with a workload, and how long it would last under it.

use serde::Serialize;

use super::rounding::rounded;
use catalogue::DriveSheet;
use lab::Outcome;

/// What a member did.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
pub struct MemberFigures {
    /// Its name in the pool.
    pub name: String,
    /// The drive's short name.
    pub drive: String,
    /// 10^6 bytes a second that it was asked to read.
    pub read_mb_s: f64,
    /// 10^6 bytes a second that it was asked to write.
    pub write_mb_s: f64,
    /// Share of the time that its busiest part was busy, 0 to 1.
    pub busy: f64,
    /// Bytes programmed into its medium for each that it was asked to write; null without writes, or if it does not say.
    pub write_amplification: Option<f64>,
    /// Mean power.
    pub watts: Option<f64>,
    /// Years until its rated endurance is written at this rate, day and night; null without writes or a rating.
    pub years: Option<f64>,
}

const SECONDS_A_YEAR: f64 = 365.25 * 86_400.0;

/// Of all members, without their names.
pub(super) fn figures(outcome: &Outcome) -> Vec<MemberFigures> {
    let seconds = outcome.counted.seconds().max(1e-12);
    let members = outcome.members().into_iter();
    let of = |member: lab::Member| MemberFigures {
        read_mb_s: rounded(member.bytes_read / seconds / 1e6),
        write_mb_s: rounded(member.bytes_written / seconds / 1e6),
        busy: rounded(member.busy),
        write_amplification: member.write_amplification.map(rounded),
        watts: member.watts.map(rounded),
        ..MemberFigures::default()
    };
    members.map(of).collect()
}

/// Gives members their names, and what follows from their ratings; a drive has none.
pub(super) fn tell(members: &mut Vec<MemberFigures>, pool: &DriveSheet) {
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

/// The member that wears out first, and in how many years.
pub(crate) fn first_to_wear_out(members: &[MemberFigures]) -> Option<(&str, f64)> {
    let years = members.iter().filter_map(|it| Some((&*it.name, it.years?)));
    years.min_by(|a, b| a.1.total_cmp(&b.1))
}
