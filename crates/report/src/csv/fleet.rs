//! CSV lines of real drives and the end of their life (`drivelab life --smart`).

use serde::Serialize;
use study::decide::fleet::{FleetAnswer, LimitingCounter, Remaining};

use super::Table;

/// Line of one drive; years count power-on time.
#[derive(Clone, Debug, Default, Serialize)]
struct FleetDrive<'a> {
    place: &'a str,
    device: Option<&'a str>,
    model: Option<&'a str>,
    serial_end: Option<&'a str>,
    interface: &'a str,
    capacity_bytes: Option<f64>,
    written_tb: Option<f64>,
    written_gb_a_day: Option<f64>,
    used_percent: Option<f64>,
    power_on_hours: Option<f64>,
    spare_percent: Option<f64>,
    media_errors: Option<f64>,
    temperature_celsius: Option<f64>,
    rated_tb: Option<f64>,
    rated_by: Option<&'a str>,
    rating_used_percent: Option<f64>,
    years_to_rating: Option<f64>,
    years_to_100_percent: Option<f64>,
    years_to_100_percent_low: Option<f64>,
    years_to_100_percent_high: Option<f64>,
    ends_by: Option<&'a str>,
    ends_in_years: Option<f64>,
    remarks: String,
}

/// Returns a line for each drive, the one that ends first before the others. A line for each unreadable part of the
/// files follows: its place, and the reason as its remark.
pub fn fleet(answer: &FleetAnswer) -> Table {
    let drives = answer.drives.iter().map(|one| {
        let health = &one.health;
        let rating = one.rating.as_ref();
        let used = |part: fn(Remaining) -> Option<f64>| one.to_used.and_then(part);
        FleetDrive {
            place: &health.place,
            device: health.device.as_deref(),
            model: health.model.as_deref(),
            serial_end: health.serial_end.as_deref(),
            interface: health.interface,
            capacity_bytes: health.capacity_bytes,
            written_tb: health.written.as_ref().map(|it| it.value * 1e-12),
            written_gb_a_day: one.written_gb_a_day,
            used_percent: health.used_percent.as_ref().map(|it| it.value),
            power_on_hours: health.power_on_hours,
            spare_percent: health.spare_percent,
            media_errors: health.media_errors,
            temperature_celsius: health.temperature_celsius,
            rated_tb: rating.map(|rating| rating.tb),
            rated_by: rating.map(|rating| &*rating.of),
            rating_used_percent: one.rating_used_percent,
            years_to_rating: one.to_rating.and_then(|it| it.years),
            years_to_100_percent: used(|it| it.years),
            years_to_100_percent_low: used(|it| Some(it.least)),
            years_to_100_percent_high: used(|it| it.most),
            ends_by: one.ends_by.map(|limit| match limit {
                LimitingCounter::Failed => "failed",
                LimitingCounter::Rating => "rating",
                LimitingCounter::PercentageUsed => "percentage_used",
            }),
            ends_in_years: one.ends_in_years,
            remarks: health.remarks.join("; "),
        }
    });
    let unreadable = answer.unreadable.iter().map(|one| FleetDrive {
        place: &one.place,
        remarks: format!("could not be read: {}", one.reason),
        ..FleetDrive::default()
    });
    Table::from_rows(drives.chain(unreadable))
}
