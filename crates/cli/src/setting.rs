//! What is set on drives, as arguments of every verb that takes drives.

use catalogue::administration::lba_format;
use catalogue::{Age, Change, Settings};
use model::Span;
use model::management::LbaFormat;
use text::quantity::{Share, Watts, quantity};

/// Changed figures, and what an administrator may have set on the drive.
#[derive(clap::Args, Clone)]
pub(crate) struct SettingArgs {
    /// Change a figure of the drives that `drivelab show` lists, such as xpoint.power.limit=12W; may be given several
    /// times
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = change)]
    figures: Vec<Change>,
    /// Power limit of each drive's governor, such as 12W
    #[arg(long, value_name = "WATTS", value_parser = watts)]
    power_limit: Option<f64>,
    /// LBA format, one of those that `drivelab show` lists, such as 4096 or 4096+8
    #[arg(long, value_name = "FORMAT", value_parser = format)]
    lba_format: Option<LbaFormat>,
    /// Percentage Used at the start (SMART), such as 104; some drives throttle writes past 105
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    percentage_used: Option<f64>,
    /// Time since power-on, such as 10min; XPoint drives refresh all data in the hours after power-on
    #[arg(long, value_name = "TIME", value_parser = quantity::<Span>)]
    uptime: Option<Span>,
    /// Share of the capacity it is sold with that is kept back as spare area, such as 20%: jobs see the smaller drive
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    overprovision: Option<f64>,
    /// Share of what jobs see, from its beginning, that holds data at the start, such as 80%; the rest is trimmed, and is
    /// spare area until a job writes there
    #[arg(long, value_name = "PERCENT", value_parser = share)]
    fill: Option<f64>,
    /// Years it has served at its rated writes a day, such as 3y, or at a rate of its own, such as 3y@20MB/s: sets its
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
            uptime: args.uptime,
            overprovision: args.overprovision,
            fill: args.fill,
            age: args.age,
            volume: None,
        }
    }
}

fn change(text: &str) -> Result<Change, String> {
    let parts = text.split_once('=');
    let (key, value) = parts.ok_or("write KEY=VALUE, such as xpoint.power.limit=12W")?;
    match (key.trim(), value.trim()) {
        ("", _) => Err(String::from("there is no key before the `=`")),
        (_, "") => Err(String::from("there is no value behind the `=`")),
        (key, value) => Ok((key.to_owned(), value.to_owned())),
    }
}

fn watts(text: &str) -> Result<f64, String> {
    quantity::<Watts>(text).map(|watts| watts.0)
}

fn share(text: &str) -> Result<f64, String> {
    quantity::<Share>(text).map(|share| share.0)
}

fn format(text: &str) -> Result<LbaFormat, String> {
    lba_format(text).ok_or_else(|| {
        String::from("not an LBA format: write 512, 4096, or with bytes of metadata such as 4096+8")
    })
}

fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    number
        .parse()
        .map_err(|_| String::from("not a number of percent, such as 104"))
}
