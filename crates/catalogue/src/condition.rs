//! Condition of a drive before a run: the share reserved as spare area, the share that holds data, and the wear.
//!
//! *Over-provisioning* is a share of the capacity with which the drive was sold. Jobs see the smaller drive. The
//! rated endurance in bytes does not change. *Fill* is a share of the capacity that jobs see, from its beginning; the
//! rest is trimmed. *Age* is the time in service in years. The write rate is the rated one (rated bytes over the
//! warranty) unless the user gives another. The bytes written are compared with the rated bytes, which include the
//! maker's own write amplification. Age becomes Percentage Used, whose effect depends on the medium: 3D XPoint
//! throttles writes above 105 %; NAND latencies do not change, and some NAND drives become read-only. *Wear factor*
//! multiplies the wear of the writes of the run, so that the run reaches the end of the drive's life.
//!
//! In a pool, each member is in this condition, by its own capacity and rating. Not modelled: data with holes
//! between, spread over the whole drive. A filled share from the beginning represents it, because only the map
//! matters.

use model::media::{Medium, Precondition};
use text::problem::{Place, Problem, Problems};
use text::quantity::{Quantity, Rate, Share, quantity};

use super::{Change, DriveSheet, Settings, option};

/// Keys of a condition among the changed figures.
const OVERPROVISION: &str = "overprovision";
const FILL: &str = "fill";
const AGE: &str = "age";
const WEAR_FACTOR: &str = "wear_factor";

fn is_condition(key: &str) -> bool {
    [OVERPROVISION, FILL, AGE, WEAR_FACTOR].contains(&key)
}

const SECONDS_A_YEAR: f64 = 365.0 * 86_400.0;

/// Time in service, and the writes in that time.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Age {
    /// Years of 365 days.
    pub years: f64,
    /// Bytes written per second, on average; `None` means the rated write rate.
    pub bytes_a_second: Option<f64>,
}

impl Age {
    /// Parses an age such as `3y`, or `3y@20MB/s` with a write rate.
    ///
    /// # Errors
    /// A description of the allowed form.
    pub fn read(text: &str) -> Result<Age, String> {
        let (years, rate) = match text.split_once('@') {
            Some((years, rate)) => (years, Some(rate)),
            None => (text, None),
        };
        let number = years.trim().trim_end_matches("years").trim_end_matches('y');
        let years = match number.trim().parse::<f64>() {
            Ok(years) if (0.0..=100.0).contains(&years) => years,
            _ => {
                return Err(String::from(
                    "not an age: write years from 0 to 100, such as 3y, or with a rate of writes, such as 3y@20MB/s",
                ));
            }
        };
        let rate = rate.map(quantity::<Rate>).transpose()?;
        Ok(Age {
            years,
            bytes_a_second: rate.map(|rate| rate.0),
        })
    }

    /// Returns the text as a user writes it.
    pub fn words(self) -> String {
        match self.bytes_a_second {
            None => format!("{} years old", self.years),
            Some(rate) => format!("{} years old at {}", self.years, Rate(rate).show()),
        }
    }

    /// Returns the Percentage Used of a drive with these ratings.
    fn percentage_used(self, drive: &DriveSheet) -> Result<f64, &'static str> {
        let rated = drive
            .endurance_bytes
            .ok_or("no endurance is published: set --percentage-used instead")?;
        match (self.bytes_a_second, drive.warranty_years) {
            (Some(rate), _) => Ok(100.0 * rate * self.years * SECONDS_A_YEAR / rated as f64),
            (None, Some(warranty)) => Ok(100.0 * self.years / warranty),
            (None, None) => {
                Err("no warranty is published: say how much is written, as in 3y@20MB/s")
            }
        }
    }
}

impl Settings {
    /// Changes a figure or a condition, in place of an earlier change of the same key.
    pub fn change(&mut self, key: &str, value: &str) {
        match key {
            OVERPROVISION => self.overprovision = None,
            FILL => self.fill = None,
            AGE => self.age = None,
            WEAR_FACTOR => self.wear_factor = None,
            _ => {}
        }
        self.figures.retain(|(known, _)| known != key);
        self.figures.push((key.to_owned(), value.to_owned()));
    }

    /// Returns these settings with condition keys among the changed figures (`fill = 80 %`) moved to their own
    /// fields.
    ///
    /// # Errors
    /// Values that are invalid or given twice.
    pub(super) fn settled(&self) -> Result<Settings, Problems> {
        let mut settled = Settings {
            figures: self.figures_alone(),
            ..self.clone()
        };
        let mut problems = Vec::new();
        for (key, value) in self.figures.iter().filter(|(key, _)| is_condition(key)) {
            let words = value.trim_matches('"');
            let share = || quantity::<Share>(words).map(|share| share.0);
            let taken = match &**key {
                OVERPROVISION => {
                    share().map(|share| settled.overprovision.replace(share).is_some())
                }
                FILL => share().map(|share| settled.fill.replace(share).is_some()),
                WEAR_FACTOR => option::wear_factor(words)
                    .map(|factor| settled.wear_factor.replace(factor).is_some()),
                _ => Age::read(words).map(|age| settled.age.replace(age).is_some()),
            };
            let wrong = match taken {
                Ok(false) => continue,
                Ok(true) => String::from("it is said twice"),
                Err(why) => why,
            };
            problems.push(Problem {
                origin: format!("{key}={value}"),
                place: Place::Whole,
                what: wrong,
                help: None,
            });
        }
        Problems(problems).or(settled)
    }

    /// Returns why a drive in this initial state cannot have the given fill: a drive in the initial state `fresh`
    /// holds no data.
    pub fn problem_from(&self, state: Precondition) -> Option<Problem> {
        let holds = self.fill.is_some() || self.figures.iter().any(|(key, _)| key == FILL);
        (state == Precondition::Fresh && holds).then(|| Problem {
            origin: String::from("--fill"),
            place: Place::Whole,
            what: String::from("--fill contradicts --state fresh: a fresh drive holds no data"),
            help: Some(String::from("leave one of them out")),
        })
    }

    /// Returns the changed figures without the condition keys.
    pub fn figures_alone(&self) -> Vec<Change> {
        let figures = self.figures.iter().filter(|(key, _)| !is_condition(key));
        figures.cloned().collect()
    }

    /// Returns the settings of a pool member. A value given for the member itself takes precedence over the value for
    /// the pool.
    pub(super) fn of_member(&self, own: &[Change]) -> Result<Settings, Problems> {
        let own = Settings {
            figures: own.to_vec(),
            ..Settings::default()
        };
        let own = own.settled()?;
        Ok(Settings {
            overprovision: own.overprovision.or(self.overprovision),
            fill: own.fill.or(self.fill),
            age: own.age.or(self.age),
            percentage_used: self.percentage_used,
            ..own
        })
    }
}

impl DriveSheet {
    /// Brings a drive that is not a pool into the given condition. Returns the settings that the drive does not
    /// support, each named as its command line option.
    pub(super) fn bring_into_condition(&mut self, settings: &Settings) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut wrong = |option: &str, what: String| {
            problems.push(Problem {
                origin: String::from(option),
                place: Place::Whole,
                what: format!("{}: {what}", self.id),
                help: None,
            });
        };
        if let Some(share) = settings.overprovision {
            match self.config.set_overprovision(share) {
                Ok(()) => self.capacity = self.config.capacity_bytes(),
                Err(refusal) => wrong("--overprovision", refusal.to_string()),
            }
        }
        if let Some(share) = settings.fill
            && let Err(refusal) = self.config.set_filled(share)
        {
            wrong("--fill", refusal.to_string());
        }
        if let Some(factor) = settings.wear_factor
            && let Err(refusal) = self.config.set_wear_factor(factor)
        {
            wrong("--wear-factor", refusal.to_string());
        }
        if let Some(age) = settings.age {
            if settings.percentage_used.is_some() {
                let both =
                    "--age and --percentage-used exclude each other: both set Percentage Used";
                wrong("--age", String::from(both));
            } else if let Err(refusal) = self.config.set_percentage_used(0.0) {
                wrong("--age", refusal.to_string());
            } else {
                let used = age.percentage_used(self);
                let set = used.map(|percent| self.config.set_percentage_used(percent));
                match set {
                    Ok(Ok(())) => {}
                    Ok(Err(refusal)) => wrong("--age", refusal.to_string()),
                    Err(why) => wrong("--age", String::from(why)),
                }
            }
        }
        problems
    }

    /// Returns a sentence about the settings that have no effect on this drive; `None` if all have one.
    pub fn note_on(&self, settings: &Settings) -> Option<String> {
        let settings = settings.settled().ok()?;
        let said = [
            settings.overprovision.map(|_| "--overprovision"),
            settings.fill.map(|_| "--fill"),
        ];
        let said: Vec<&str> = said.into_iter().flatten().collect();
        let members = self.pool.is_some().then_some(&self.members);
        let drives = members.map_or_else(|| vec![self], |members| members.iter().collect());
        let in_place = drives.iter().filter(|drive| !drive.config.collects());
        let in_place: Vec<&str> = in_place.map(|drive| &*drive.id).collect();
        if said.is_empty() || in_place.is_empty() {
            return None;
        }
        Some(format!(
            "{}: written in place, without garbage collection: {} gives {} no write amplification to lower",
            in_place.join(", "),
            said.join(" and "),
            if in_place.len() == 1 { "it" } else { "them" }
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::drive_as;

    fn read(name: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
        drive_as(name, settings)
    }

    fn said(name: &str, settings: &Settings) -> String {
        let problems = read(name, settings).expect_err("refused").0;
        let lines = problems
            .iter()
            .map(|it| format!("{}: {}", it.origin, it.what));
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn what_is_kept_back_is_a_share_of_what_was_sold() {
        let whole = crate::drive("p4610-1600").expect("built in");
        let settings = Settings {
            overprovision: Some(0.2),
            fill: Some(0.5),
            ..Settings::default()
        };
        let less = read("p4610-1600", &settings).expect("it can");
        let share = less.capacity as f64 / whole.capacity as f64;
        assert!((share - 0.8).abs() < 1e-6, "{share}");
        assert_eq!(less.endurance_bytes, whole.endurance_bytes);
        assert!(less.drive_writes_per_day() > whole.drive_writes_per_day());
        assert_eq!(less.note_on(&settings), None);
    }

    #[test]
    fn an_age_is_years_at_the_rating_or_at_a_rate() {
        let aged = |text: &str| {
            let settings = Settings {
                age: Some(Age::read(text).expect("an age")),
                ..Settings::default()
            };
            let drive = read("p4800x-375", &settings).expect("it wears");
            drive.config.percentage_used()
        };
        assert!((aged("3y") - 60.0).abs() < 1e-9);
        let rated = crate::drive("p4800x-375")
            .expect("built in")
            .endurance_bytes;
        let rated = rated.expect("published") as f64;
        let at_a_rate = 100.0 * 3.0 * 365.0 * 86_400.0 * 20e6 / rated;
        assert!((aged("3 years@20MB/s") - at_a_rate).abs() < 1e-9);
        for wrong in ["", "y", "-1y", "101y", "3y@", "3y@fast", "3 months"] {
            assert!(Age::read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_change_replaces_an_earlier_one() {
        let mut settings = Settings {
            fill: Some(0.5),
            ..Settings::default()
        };
        for share in ["60%", "80%"] {
            settings.change("fill", share);
        }
        let settled = settings.settled().expect("given once");
        assert_eq!(settled.fill, Some(0.8));
    }

    /// Each member uses its own capacity and rating; slices shrink with their members.
    #[test]
    fn a_pool_is_of_members_in_that_condition() {
        let pool = "mirror(2*p4610-1600)";
        let whole = crate::drive(pool).expect("a pool");
        let settings = Settings {
            overprovision: Some(0.25),
            age: Some(Age::read("1y").expect("an age")),
            ..Settings::default()
        };
        let less = read(pool, &settings).expect("it can");
        let share = less.capacity as f64 / whole.capacity as f64;
        assert!((share - 0.75).abs() < 1e-4, "{share}");
        assert!((less.config.percentage_used() - 20.0).abs() < 1e-9);
        assert_eq!(
            less.members[0].capacity,
            less.members[0].config.capacity_bytes()
        );
    }

    /// As in `--set`, in a sweep and in a pool's file.
    #[test]
    fn a_condition_may_be_said_among_the_figures() {
        let changed = |key: &str, value: &str| Settings {
            figures: vec![(String::from(key), String::from(value))],
            ..Settings::default()
        };
        let option = Settings {
            fill: Some(0.8),
            ..Settings::default()
        };
        let (figure, option) = (changed("fill", "80%"), option);
        let drive = read("p4610-1600", &figure).expect("it can");
        assert_eq!(drive, read("p4610-1600", &option).expect("it can"));
        let one = changed("members.p4610-1600.0.overprovision", "50 %");
        let pool = read("stripe(2*p4610-1600)", &one);
        let capacities = pool.expect("it can").members;
        assert!(capacities[0].capacity * 2 <= capacities[1].capacity + 4096);
        let both = Settings {
            fill: Some(0.5),
            ..figure
        };
        insta::assert_snapshot!(
            [
                said("p4610-1600", &both),
                said("p4610-1600", &changed("age", "old")),
                said(
                    "stripe(2*p4610-1600)",
                    &changed("members.p4610-1600.0.fill", "half")
                ),
            ]
            .join("\n")
        );
    }

    #[test]
    fn what_changes_nothing_is_noted_and_what_cannot_be_is_refused() {
        let settings = Settings {
            overprovision: Some(0.2),
            fill: Some(0.8),
            ..Settings::default()
        };
        let xpoint = read("p4800x-375", &settings).expect("only smaller");
        let sold = crate::drive("p4800x-375").expect("built in").capacity;
        assert_eq!(xpoint.capacity, (sold as f64 * 0.8) as u64 / 4096 * 4096);
        let note = xpoint.note_on(&settings).expect("in place");
        assert!(note.starts_with("p4800x-375: written in place"), "{note}");
        let aged = Settings {
            age: Some(Age::read("3y").expect("an age")),
            ..settings.clone()
        };
        insta::assert_snapshot!(
            [
                said("exos-x18-16tb", &aged),
                said("mirror(2*exos-x18-16tb)", &settings),
                said(
                    "p4610-1600",
                    &Settings {
                        overprovision: Some(0.95),
                        fill: Some(0.0),
                        ..aged.clone()
                    }
                ),
                said(
                    "p4610-1600",
                    &Settings {
                        percentage_used: Some(4.0),
                        ..aged
                    }
                ),
            ]
            .join("\n")
        );
    }
}
