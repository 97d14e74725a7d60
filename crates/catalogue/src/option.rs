//! Drive settings as option texts: the options that every subcommand and the pages accept.
//!
//! Not included: `--volume`, which names a part of a pool and is for subcommands that attach one volume.

use model::Span;
use model::management::LbaFormat;
use text::digits::significant;
use text::problem::{Place, Problem, Problems};
use text::quantity::{Quantity, Share, Watts, quantity};

use super::administration;
use super::{Age, Change, Settings};

/// Parses a changed figure, written `KEY=VALUE`.
///
/// # Errors
/// A description of the allowed form.
pub fn change(text: &str) -> Result<Change, String> {
    let parts = text.split_once('=');
    let (key, value) = parts.ok_or("write KEY=VALUE, such as xpoint.power.limit=12W")?;
    match (key.trim(), value.trim()) {
        ("", _) => Err(String::from("there is no key before the `=`")),
        (_, "") => Err(String::from("there is no value after the `=`")),
        (key, value) => Ok((key.to_owned(), value.to_owned())),
    }
}

/// Parses a power in watts, such as `12W`.
///
/// # Errors
/// A description of the allowed form.
pub fn watts(text: &str) -> Result<f64, String> {
    quantity::<Watts>(text).map(|watts| watts.0)
}

/// Parses a share, such as `20%`; 1 is the whole.
///
/// # Errors
/// A description of the allowed form.
pub fn share(text: &str) -> Result<f64, String> {
    quantity::<Share>(text).map(|share| share.0)
}

/// Parses an LBA format, such as `4096+8`.
///
/// # Errors
/// A description of the allowed form.
pub fn lba_format(text: &str) -> Result<LbaFormat, String> {
    administration::lba_format(text).ok_or_else(|| {
        String::from("not an LBA format: write 512, 4096, or with bytes of metadata such as 4096+8")
    })
}

/// Parses a percentage that may exceed 100, such as `104` or `104%`.
///
/// # Errors
/// A description of the allowed form.
pub fn percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end();
    number
        .parse()
        .map_err(|_| String::from("not a percentage, such as 104"))
}

/// Parses a multiple of a drive's wear, such as `100000`.
///
/// # Errors
/// A description of the allowed form.
pub fn wear_factor(text: &str) -> Result<f64, String> {
    match text.trim().parse() {
        Ok(factor) if factor > 0.0 && factor <= 1e12 => Ok(factor),
        _ => Err(String::from(
            "not a multiple of a drive's wear: write a number above 0, at most 1e12, such as 1e5",
        )),
    }
}

impl Settings {
    /// Reads settings from options and their values, as (`overprovision`, `20%`); `set` may be given several times.
    ///
    /// # Errors
    /// Options that are unknown, have an invalid value, or are given twice.
    pub fn read<'a>(
        options: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Settings, Problems> {
        let mut settings = Settings::default();
        let mut problems = Vec::new();
        for (option, value) in options {
            if let Err(what) = settings.give(option, value) {
                problems.push(Problem {
                    origin: format!("--{option}={value}"),
                    place: Place::Whole,
                    what,
                    help: None,
                });
            }
        }
        Problems(problems).or(settings)
    }

    /// Returns the options and values that [`Settings::read`] turns into these settings; without the volume.
    pub fn options(&self) -> Vec<(&'static str, String)> {
        // 12 significant digits: as many as a user writes, without digits that result from rounding of the factor.
        let written = |value: f64| significant(value, 12);
        let percent = |share: f64| format!("{}%", written(share * 100.0));
        let age = |age: Age| match age.bytes_a_second {
            None => format!("{}y", age.years),
            Some(rate) => format!("{}y@{}MB/s", age.years, written(rate / 1e6)),
        };
        let uptime = |span: Span| {
            let shown = span.show();
            match quantity::<Span>(&shown) == Ok(span) {
                true => shown,
                false => format!("{} ns", span.ns()),
            }
        };
        let figures = self.figures.iter();
        let figures = figures.map(|(key, value)| ("set", format!("{key}={value}")));
        let others = [
            (
                "power-limit",
                self.power_limit.map(|watts| format!("{watts}W")),
            ),
            ("lba-format", self.lba_format.map(|it| it.to_string())),
            (
                "percentage-used",
                self.percentage_used.map(|it| it.to_string()),
            ),
            ("wear-factor", self.wear_factor.map(written)),
            ("uptime", self.uptime.map(uptime)),
            ("overprovision", self.overprovision.map(percent)),
            ("fill", self.fill.map(percent)),
            ("age", self.age.map(age)),
        ];
        let others = others.into_iter();
        let given = others.filter_map(|(option, value)| Some((option, value?)));
        figures.chain(given).collect()
    }

    fn give(&mut self, option: &str, value: &str) -> Result<(), String> {
        fn once<T>(place: &mut Option<T>, value: T) -> Result<(), String> {
            match place.replace(value) {
                None => Ok(()),
                Some(_) => Err(String::from("it is given twice")),
            }
        }
        match option {
            "set" => {
                self.figures.push(change(value)?);
                Ok(())
            }
            "power-limit" => once(&mut self.power_limit, watts(value)?),
            "lba-format" => once(&mut self.lba_format, lba_format(value)?),
            "percentage-used" => once(&mut self.percentage_used, percent(value)?),
            "wear-factor" => once(&mut self.wear_factor, wear_factor(value)?),
            "uptime" => once(&mut self.uptime, quantity::<Span>(value)?),
            "overprovision" => once(&mut self.overprovision, share(value)?),
            "fill" => once(&mut self.fill, share(value)?),
            "age" => once(&mut self.age, Age::read(value)?),
            _ => Err(String::from("there is no such option of a drive")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_settings_and_all_that_is_wrong_is_told_at_once() {
        let all = [
            ("set", "capacity = 10 GB"),
            ("set", "xpoint.power.idle=4W"),
            ("power-limit", "12W"),
            ("lba-format", "4096+8"),
            ("percentage-used", "104%"),
            ("wear-factor", "1e6"),
            ("uptime", "10min"),
            ("overprovision", "7.1%"),
            ("fill", "80 %"),
            ("age", "3y@20MB/s"),
        ];
        let settings = Settings::read(all).expect("all are right");
        assert_eq!(settings.words().len(), all.len(), "{:?}", settings.words());
        assert_eq!(
            settings.figures[0],
            ("capacity".into(), String::from("10 GB"))
        );
        let again = settings.options();
        let again = again.iter().map(|(option, value)| (*option, &**value));
        assert_eq!(Settings::read(again).as_ref(), Ok(&settings));
        let wrong = [
            ("set", "capacity"),
            ("fill", "much"),
            ("age", "3y"),
            ("age", "4y"),
            ("colour", "red"),
        ];
        let told = Settings::read(wrong).expect_err("four are wrong");
        let origins: Vec<&str> = told.0.iter().map(|problem| &*problem.origin).collect();
        assert_eq!(
            origins,
            ["--set=capacity", "--fill=much", "--age=4y", "--colour=red"]
        );
    }
}
