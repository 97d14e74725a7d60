//! A free parameter: a figure of a drive's or host's file with its value and unit.

use catalogue::{Change, Figure};
use text::problem::{Place, Problem, nearest};
use text::quantity::split;

/// A figure that a fit may move.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// Dotted key, with the prefix `host.` for a figure of the host.
    pub key: String,
    /// Current value.
    pub value: f64,
    /// Unit as written in the file; empty for a count.
    pub unit: String,
    /// The file that contains the figure.
    pub file: String,
}

impl Parameter {
    /// Returns the parameter with this key among the figures of a drive and a host.
    ///
    /// # Errors
    /// There is no such figure, or it is not a positive number.
    pub(crate) fn named(
        key: &str,
        drive: &[Figure],
        host: &[Figure],
    ) -> Result<Parameter, Problem> {
        let problem = |what: String, help: Option<String>| Problem {
            origin: "command line".into(),
            place: Place::Whole,
            what,
            help,
        };
        let (figures, own) = match key.strip_prefix("host.") {
            Some(own) => (host, own),
            None => (drive, key),
        };
        let Some(figure) = figures.iter().find(|figure| figure.key == own) else {
            let near = nearest(own, figures.iter().map(|figure| &*figure.key));
            return Err(problem(
                format!("there is no figure `{key}` to fit"),
                near.map(|near| format!("did you mean `{near}`?")),
            ));
        };
        match split(&figure.value) {
            Some((value, unit)) if value > 0.0 => Ok(Parameter {
                key: key.to_owned(),
                value,
                unit: unit.to_owned(),
                file: figure.file.clone(),
            }),
            _ => Err(problem(
                format!(
                    "`{key}` is {}: only a positive number can be fitted",
                    figure.value
                ),
                None,
            )),
        }
    }

    /// Returns the value, multiplied by the factor with this logarithm, as text for a file.
    pub fn moved(&self, log: f64) -> String {
        let value = self.value * libm::exp(log);
        let rounded = match &*self.unit {
            // Counts, and times that the model keeps in whole nanoseconds.
            "" | "ns" => format!("{value:.0}"),
            "us" => format!("{value:.3}"),
            "ms" | "s" => format!("{value:.6}"),
            _ => format!("{value:.4}"),
        };
        let rounded = match rounded.contains('.') {
            true => rounded.trim_end_matches('0').trim_end_matches('.'),
            false => &rounded,
        };
        format!("{rounded} {}", self.unit).trim().to_owned()
    }

    /// Returns the change that moves the parameter, and whether it is a figure of the host.
    pub(super) fn change(&self, log: f64) -> (bool, Change) {
        match self.key.strip_prefix("host.") {
            Some(key) => (true, (key.to_owned(), self.moved(log))),
            None => (false, (self.key.clone(), self.moved(log))),
        }
    }
}

/// Returns the changes of all parameters at a point of the search: those of the drive, and those of the host.
pub(super) fn changes(parameters: &[Parameter], at: &[f64]) -> (Vec<Change>, Vec<Change>) {
    let all = parameters
        .iter()
        .zip(at)
        .map(|(parameter, log)| parameter.change(*log));
    let (host, drive): (Vec<_>, Vec<_>) = all.partition(|(host, _)| *host);
    let plain =
        |changes: Vec<(bool, Change)>| changes.into_iter().map(|(_, change)| change).collect();
    (plain(drive), plain(host))
}

#[cfg(test)]
mod tests {
    use super::*;
    use catalogue;

    #[test]
    fn parameters_keep_their_unit() {
        let drive = catalogue::drive("p4800x-375").expect("built in");
        let named = |key| Parameter::named(key, &drive.figures, &[]);
        let read = named("xpoint.medium.read").expect("a time");
        assert_eq!(read.moved(0.0), format!("{} us", read.value));
        let slots = named("xpoint.medium.channels").expect("a count");
        assert_eq!(slots.moved(libm::log(2.0)), "14");
        let unknown = named("xpoint.medium.reed").expect_err("no such figure");
        assert_eq!(
            unknown.help.as_deref(),
            Some("did you mean `xpoint.medium.read`?")
        );
        assert!(named("interface").is_err());
    }
}
