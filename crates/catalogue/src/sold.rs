//! Years in which a drive was sold new: `"2017 to 2022"`, or `"since 2023"` if no end is known.
//!
//! Not covered: stock that is sold after the end of production, and single capacities of a series.

/// When a drive was sold new; each date is a year, or a year and a month such as `2022-07`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SalesPeriod {
    /// First date.
    pub from: String,
    /// Date after which the drive is no longer made; `None` if none is known.
    pub until: Option<String>,
}

/// Help of the key.
pub(super) const HELP: &str = "write \"2017 to 2022\", or \"since 2023\" if it is still made; a date is a year, or a \
                               year and a month such as 2022-07";

impl SalesPeriod {
    /// Parses a period; `None` if the text is invalid or the period ends before it begins.
    pub fn from_text(text: &str) -> Option<SalesPeriod> {
        if let Some(from) = text.strip_prefix("since ") {
            return Some(SalesPeriod {
                from: date(from)?,
                until: None,
            });
        }
        let (from, until) = text.split_once(" to ")?;
        let (from, until) = (date(from)?, date(until)?);
        let is_ordered = from[..4] <= until[..4];
        is_ordered.then_some(SalesPeriod {
            from,
            until: Some(until),
        })
    }
}

/// Returns a date if it is a year, or a year and a month.
fn date(text: &str) -> Option<String> {
    let (year, month) = text.split_once('-').unwrap_or((text, "01"));
    let number = |text: &str, digits: usize| {
        let is_number = text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u32>().ok())?
    };
    let is_date =
        (1950..=2100).contains(&number(year, 4)?) && (1..=12).contains(&number(month, 2)?);
    is_date.then(|| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_have_dates_in_order() {
        let of = |text: &str| SalesPeriod::from_text(text).map(|it| (it.from, it.until));
        let owned = String::from;
        assert_eq!(
            of("2017 to 2022-07"),
            Some((owned("2017"), Some(owned("2022-07"))))
        );
        assert_eq!(of("since 2023"), Some((owned("2023"), None)));
        for wrong in [
            "2022 to 2017",
            "2017",
            "since 17",
            "2017 to now",
            "since 2023-13",
            "",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
