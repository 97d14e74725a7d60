//! Drive settings, as arguments of every subcommand that takes drives.

use catalogue::option;
use catalogue::{Age, Change, Settings};
use model::Span;
use model::management::LbaFormat;
use text::quantity::quantity;

/// Changed figures, and settings that an administrator may have made on the drive.
#[derive(clap::Args, Clone)]
pub(crate) struct SettingArgs {
    /// Change a figure that `drivelab show` lists, such as xpoint.power.limit=12W; may be given several times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = option::change)]
    figures: Vec<Change>,
    /// Power limit of each drive's governor, such as 12W
    #[arg(long, value_name = "WATTS", value_parser = option::watts)]
    power_limit: Option<f64>,
    /// LBA format, one of those that `drivelab show` lists, such as 4096 or 4096+8
    #[arg(long, value_name = "FORMAT", value_parser = option::lba_format)]
    lba_format: Option<LbaFormat>,
    /// Percentage Used at the start (SMART), such as 104; some drives throttle writes above 105
    #[arg(long, value_name = "PERCENT", value_parser = option::percent)]
    percentage_used: Option<f64>,
    /// Wear of each byte written, as a multiple of the drive's own, such as 1e5: a run of seconds then reaches the end of
    /// the drive's rated endurance
    #[arg(long, value_name = "FACTOR", value_parser = option::wear_factor)]
    wear_factor: Option<f64>,
    /// Time since power-on, such as 10min; XPoint drives refresh all data in the hours after power-on
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    uptime: Option<Span>,
    /// Share of the rated capacity that is reserved as spare area, such as 20%; jobs see a smaller drive
    #[arg(long, value_name = "PERCENT", value_parser = option::share)]
    overprovision: Option<f64>,
    /// Share of the capacity that holds data at the start, beginning at the first address, such as 80%; the rest is
    /// trimmed and serves as spare area until a job writes to it
    #[arg(long, value_name = "PERCENT", value_parser = option::share)]
    fill: Option<f64>,
    /// Time in service at the rated drive writes per day, such as 3y, or at another rate, such as 3y@20MB/s: sets
    /// Percentage Used
    #[arg(long, value_name = "YEARS", value_parser = Age::read, conflicts_with = "percentage_used")]
    age: Option<Age>,
}

impl From<&SettingArgs> for Settings {
    fn from(args: &SettingArgs) -> Settings {
        Settings {
            figures: args.figures.clone(),
            power_limit: args.power_limit,
            lba_format: args.lba_format,
            percentage_used: args.percentage_used,
            wear_factor: args.wear_factor,
            uptime: args.uptime,
            overprovision: args.overprovision,
            fill: args.fill,
            age: args.age,
            volume: None,
        }
    }
}
