//! Support of each drive's model by published rows: the number of fitted rows, the number of predicted rows, and their
//! errors.
//!
//! `ledger/support.json` holds the results of the last run of the whole ledger, and of later runs of some sources.
//! `drivelab reproduce --support` writes it. It is built into the program, so that `show`, `drives` and a review can
//! distinguish validated drives from unvalidated ones without running the ledger. A row counts for every drive that its
//! metric measures. Rows without a run do not count.

mod file;
mod tables;
mod update;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use super::source::is_of;
use super::{
    AgainstSheet, COLLECTIONS, Class, Errors, Evidence, Judgement, LedgerFile, PublishedValue,
    Reproduction, RowResult, RowVerdict, Summary, is_collected, source_of,
};
use catalogue::DriveSheet;
use text::problem::Problems;
use text::words::listed;

static LAST: LazyLock<Supports> = LazyLock::new(|| {
    serde_json::from_str(include_str!("../../../../ledger/support.json")).unwrap_or_default()
});

/// Results of the rows of one drive, or of all drives of a family.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Support {
    /// Number of rows from which a parameter was set.
    pub fitted: usize,
    /// Number of rows from which no parameter was set.
    pub predicted: usize,
    /// Number of predicted rows that are judged by a number (the others are claims that hold or do not hold).
    pub errors: usize,
    /// Median of their absolute errors, as a share.
    pub median_error: Option<f64>,
    /// 90th percentile of the absolute errors.
    pub p90_error: Option<f64>,
    /// Errors by class of figure, in the order of [`Class::ALL`].
    #[serde(default)]
    pub classes: [Errors; 2],
    /// Number of claims.
    pub claims: usize,
    /// Number of claims that hold.
    pub claims_held: usize,
    /// Number of rows that are out of tolerance or have no figure.
    pub missed: usize,
    /// Errors of the predicted runs, each counted once.
    #[serde(default)]
    pub runs: Errors,
}

/// A row that the models do not reproduce.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Miss {
    /// Id of the row, such as `S0-073`.
    pub id: String,
    /// Subject of the row.
    pub what: String,
    /// Published value with its unit.
    pub published: String,
    /// The model's figure, or the reason why there is none.
    pub model: String,
    /// Remark in the ledger.
    pub note: Option<String>,
}

/// Support of all drives and families that rows measure, by id.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Supports {
    /// Support by all rows with a run.
    #[serde(default)]
    pub all: Support,
    /// Support by the rows of each collection, by its prefix.
    #[serde(default)]
    pub collections: BTreeMap<String, Support>,
    /// Support by all rows outside the collections.
    #[serde(default)]
    pub others: Support,
    /// Errors of predicted rows with one kind of I/O, compared with a formula of the data sheet.
    #[serde(default)]
    pub against_sheet: AgainstSheet,
    /// Support by the id of a source.
    pub sources: BTreeMap<String, Support>,
    /// Support by the id of a drive.
    pub drives: BTreeMap<String, Support>,
    /// Support by family, over all its drives.
    pub families: BTreeMap<String, Support>,
    /// Sources that were run again after the last run of the whole ledger: the totals do not contain these runs.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub since: BTreeSet<String>,
    /// Rows with a run that are out of tolerance or have no figure, and claims that do not hold.
    pub misses: Vec<Miss>,
}

impl Miss {
    fn from_result(result: &RowResult) -> Option<Miss> {
        if result.verdict == RowVerdict::Holds {
            return None;
        }
        let row = &result.row;
        let published = match &row.published {
            PublishedValue::Number(number) => format!("{number} {}", row.unit),
            PublishedValue::Range(low, high) => format!("{low} to {high} {}", row.unit),
            PublishedValue::Words(words) => words.clone(),
        };
        Some(Miss {
            id: row.id.clone(),
            what: row.what.clone(),
            published: match row.judgement {
                Judgement::Equals(_) => published,
                claim => format!("{published} ({})", claim.words()),
            },
            model: match &result.model {
                Ok(model) => shown(model.value),
                Err(why) => why.clone(),
            },
            note: row.note.clone(),
        })
    }
}

/// Returns the value with three significant digits, or with all digits before the decimal point.
fn shown(value: f64) -> String {
    text::digits::fixed(value, 3, 6)
}

/// Support level of a model.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Grade {
    /// At least five predicted rows, a median error of at most 5 %, a 90th percentile of at most 15 %; nearly all claims hold.
    Validated,
    /// Fewer predicted rows than that, or larger errors.
    PartlyValidated,
    /// No predicted rows of its own, but rows of drives of its family.
    ByFamily,
    /// Made to meet its maker's ratings, with all other figures of its family; no measurement tests it.
    FromDataSheet,
    /// No published row tests the model.
    Unvalidated,
    /// Fitted to the user's own measurements.
    YourFit,
    /// The ledger has not been run since its results were cleared.
    Unknown,
}

impl Grade {
    /// Returns the name of the support level.
    pub const fn name(self) -> &'static str {
        match self {
            Grade::Validated => "validated",
            Grade::PartlyValidated => "partly validated",
            Grade::ByFamily => "validated by family",
            Grade::FromDataSheet => "from data sheet",
            Grade::Unvalidated => "unvalidated",
            Grade::YourFit => "your fit",
            Grade::Unknown => "not judged yet",
        }
    }
}

/// Statement on the support of a drive's model.
#[derive(Clone, PartialEq, Debug)]
pub struct Statement {
    /// Support level of the model.
    pub grade: Grade,
    /// The rows that support it; `None` for an unvalidated drive, and for a drive that is not in the catalogue.
    pub support: Option<Support>,
    /// Statement as a sentence.
    pub text: String,
}

fn percent(share: Option<f64>) -> String {
    text::digits::error(share)
}

/// Minimum number of predicted rows of a validated drive.
const FEWEST: usize = 5;

impl Support {
    fn from_results<'a>(results: impl Iterator<Item = &'a RowResult>) -> Support {
        let results: Vec<&RowResult> = results.collect();
        let summary = Summary::from_results(results.iter().copied());
        let runs = Errors::of_runs(results.into_iter());
        // Written with few digits, so that the file changes only when a result does.
        let rounded = |error: f64| {
            let near = libm::round(error * 1e4) * 1e-4;
            format!("{near:.4}").parse().unwrap_or(error)
        };
        Support {
            fitted: summary.fitted,
            predicted: summary.predicted,
            errors: summary.errors.rows,
            median_error: summary.errors.median.map(rounded),
            p90_error: summary.errors.p90.map(rounded),
            classes: summary.classes.map(|errors| Errors {
                median: errors.median.map(rounded),
                p90: errors.p90.map(rounded),
                ..errors
            }),
            claims: summary.claims,
            claims_held: summary.claims_held,
            missed: summary.missed,
            runs: Errors {
                median: runs.median.map(rounded),
                p90: runs.p90.map(rounded),
                ..runs
            },
        }
    }

    fn grade(&self) -> Grade {
        let below = |error: Option<f64>, limit: f64| error.is_none_or(|error| error <= limit);
        let exact = below(self.median_error, 0.05) && below(self.p90_error, 0.15);
        let claims = self.claims_held * 10 >= self.claims * 9;
        match self.predicted {
            0 => Grade::Unvalidated,
            FEWEST.. if exact && claims => Grade::Validated,
            _ => Grade::PartlyValidated,
        }
    }

    /// Returns the numbers as cells of a table.
    fn cells(&self) -> String {
        let claims = match self.claims {
            0 => String::from("-"),
            claims => format!("{} of {claims}", self.claims_held),
        };
        format!(
            "{} | {} | {} | {} | {claims} | {}",
            self.fitted,
            self.predicted,
            percent(self.median_error),
            percent(self.p90_error),
            self.missed
        )
    }

    /// Returns the errors by class, as a table.
    fn by_class(&self) -> String {
        let mut text = String::from(
            "\n| predicted figures of | rows | median error | 90th percentile | within a factor of 1.5 |\n\
             | --- | --: | --: | --: | --: |\n",
        );
        for (class, errors) in Class::ALL.iter().zip(&self.classes) {
            text.push_str(&format!(
                "| {} | {} | {} | {} | {} |\n",
                class.name(),
                errors.rows,
                percent(errors.median),
                percent(errors.p90),
                errors.within_factor
            ));
        }
        text
    }

    /// Returns text such as
    /// `4 rows fitted, 21 predicted: median error of 19 rows 2.1 %, 90th percentile 9.8 %; 12 of 12 claims hold`.
    pub fn words(&self) -> String {
        let rows = |count: usize| if count == 1 { "row" } else { "rows" };
        let mut words = format!(
            "{} {} fitted, {} predicted",
            self.fitted,
            rows(self.fitted),
            self.predicted
        );
        if let (Some(error), 1) = (self.median_error, self.errors) {
            let error = percent(Some(error));
            words.push_str(&format!(": the one with an error is {error} off"));
        } else if let (Some(median), Some(p90)) = (self.median_error, self.p90_error) {
            words.push_str(&format!(
                ": median error of {} rows {}, 90th percentile {}",
                self.errors,
                percent(Some(median)),
                percent(Some(p90))
            ));
        }
        if self.claims > 0 {
            words.push_str(&format!(
                "; {} of {} claims hold",
                self.claims_held, self.claims
            ));
        }
        words
    }
}

impl Supports {
    /// Computes the support from the rows of a run.
    ///
    /// # Errors
    /// A drive of the ledger does not load.
    pub fn from_reproduction(
        files: &[LedgerFile],
        reproduction: &Reproduction,
    ) -> Result<Supports, Problems> {
        let measured = measured_drives(files);
        let families: BTreeMap<String, Option<String>> = measured
            .values()
            .flatten()
            .map(|id| Ok(((*id).to_owned(), catalogue::drive(id)?.family)))
            .collect::<Result<_, Problems>>()?;
        let mut by_drive: BTreeMap<&str, Vec<&RowResult>> = BTreeMap::new();
        let mut by_family: BTreeMap<&str, Vec<&RowResult>> = BTreeMap::new();
        let mut by_source: BTreeMap<&str, Vec<&RowResult>> = BTreeMap::new();
        for result in &reproduction.results {
            if result.row.evidence == Evidence::Catalogue {
                continue;
            }
            let source = source_of(&result.row.id).unwrap_or_default();
            by_source.entry(source).or_default().push(result);
            let drives = measured.get(&*result.row.id).into_iter().flatten();
            let mut of_row = BTreeSet::new();
            for drive in drives {
                by_drive.entry(drive).or_default().push(result);
                of_row.extend(families[*drive].as_deref());
            }
            for family in of_row {
                by_family.entry(family).or_default().push(result);
            }
        }
        let supports = |all: BTreeMap<&str, Vec<&RowResult>>| {
            let all = all.into_iter();
            all.map(|(id, results)| (id.to_owned(), Support::from_results(results.into_iter())))
                .collect()
        };
        let run = |result: &&RowResult| result.row.evidence != Evidence::Catalogue;
        let with_run = || reproduction.results.iter().filter(run);
        let missed = with_run();
        let collected = |result: &&RowResult| is_collected(&result.row.id);
        Ok(Supports {
            all: Support::from_results(with_run()),
            collections: COLLECTIONS
                .iter()
                .map(|one| {
                    let of = |result: &&RowResult| is_of(&result.row.id, one.prefix);
                    (
                        one.prefix.to_owned(),
                        Support::from_results(with_run().filter(of)),
                    )
                })
                .collect(),
            others: Support::from_results(with_run().filter(|result| !collected(result))),
            against_sheet: AgainstSheet::from_reproduction(files, reproduction)?.rounded(),
            sources: supports(by_source),
            drives: supports(by_drive),
            families: supports(by_family),
            since: BTreeSet::new(),
            misses: missed.filter_map(Miss::from_result).collect(),
        })
    }

    /// Returns the statement on a drive.
    pub fn statement(&self, sheet: &DriveSheet) -> Statement {
        let own = self.drives.get(&sheet.id);
        let family = sheet
            .family
            .as_ref()
            .and_then(|family| self.families.get(family));
        let (built_in, of_sheet) = (is_built_in(sheet), sheet.as_its_sheet_says());
        let (grade, support, text) = match (own, family) {
            _ if sheet.fit.is_some() => {
                (Grade::YourFit, None, sheet.fit.clone().unwrap_or_default())
            }
            _ if self.sources.is_empty() => {
                let text = "ledger/support.json is out of date: run `drivelab reproduce --support`";
                (Grade::Unknown, None, text.into())
            }
            (own, _) if sheet.pool.is_some() && own.is_none_or(|it| it.predicted == 0) => {
                self.of_pool(sheet)
            }
            (None, _) if let Some(words) = &of_sheet => (Grade::FromDataSheet, None, words.clone()),
            _ if !built_in => {
                let text = "a drive of your own, or a changed one: no published row tests it";
                (Grade::Unvalidated, None, text.into())
            }
            (Some(own), _) if own.predicted > 0 => (own.grade(), Some(own), own.words()),
            (_, Some(family)) if family.predicted > 0 => (
                Grade::ByFamily,
                Some(family),
                format!("no row of its own; its family's: {}", family.words()),
            ),
            (own, _) => (
                Grade::Unvalidated,
                own,
                match own {
                    Some(own) => format!("{}: nothing tests it", own.words()),
                    None => String::from("no published row measures it"),
                },
            ),
        };
        Statement {
            grade,
            support: support.cloned(),
            text,
        }
    }
}

impl Supports {
    /// Returns the support level of a pool that no row measures. It is at most that of its members' models.
    fn of_pool(&self, sheet: &DriveSheet) -> (Grade, Option<&Support>, String) {
        let grades = sheet
            .members
            .iter()
            .map(|it| (self.statement(it).grade, it));
        let grades: Vec<(Grade, &DriveSheet)> = grades.collect();
        let rank = |grade: Grade| match grade {
            Grade::Validated => 0,
            Grade::PartlyValidated => 1,
            Grade::ByFamily => 2,
            Grade::YourFit => 3,
            Grade::FromDataSheet => 4,
            Grade::Unvalidated => 5,
            Grade::Unknown => 6,
        };
        let worst = grades.iter().map(|it| it.0).max_by_key(|&it| rank(it));
        let words = grades
            .iter()
            .map(|(grade, it)| format!("{} {}", it.id, grade.name()));
        let text = format!(
            "its drives: {}; no published row measures what its tiers make of them",
            listed(&words.collect::<Vec<_>>())
        );
        (worst.unwrap_or(Grade::Unvalidated), None, text)
    }
}

/// Checks whether all figures of a drive are the catalogue's own.
pub(crate) fn is_built_in(sheet: &DriveSheet) -> bool {
    let own = |figure: &catalogue::Figure| {
        figure.file.starts_with("catalogue/") && !figure.file.ends_with(')')
    };
    sheet.fit.is_none() && sheet.figures.iter().all(own)
}

/// Returns the statement on a drive by the last run of the whole ledger.
pub fn statement(sheet: &DriveSheet) -> Statement {
    LAST.statement(sheet)
}

/// Returns the results of the last run of the whole ledger, as the tables of `docs/fidelity.md`.
///
/// # Errors
/// A drive of the catalogue does not load.
pub fn tables() -> Result<String, Problems> {
    LAST.tables()
}

/// Returns the comparison of the last run of the whole ledger with the formula of three data-sheet numbers: the first
/// table of `docs/fidelity.md`.
pub fn against_sheet() -> String {
    LAST.against_sheet.table()
}

/// Returns the drives that each row's metric measures, without those that only represent something else.
pub fn measured_drives(files: &[LedgerFile]) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut measured: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for file in files {
        for row in &file.rows {
            let drives = measured.entry(&row.id).or_default();
            row.expression.figures(&mut |owner, _| {
                let found = file.measurements.iter().find(|it| it.name == owner);
                let measured = found.filter(|it| it.stands_for.is_none());
                drives.extend(measured.map(|it| &*it.drive));
            });
        }
    }
    measured
}

#[cfg(test)]
mod tests {
    use super::*;

    fn support(predicted: usize, median: f64, p90: f64, held: usize) -> Support {
        Support {
            fitted: 3,
            predicted,
            errors: predicted.min(8),
            median_error: Some(median),
            p90_error: Some(p90),
            classes: Default::default(),
            claims: 10,
            claims_held: held,
            missed: 0,
            runs: Errors::default(),
        }
    }

    #[test]
    fn grades_follow_from_rows() {
        assert_eq!(support(12, 0.03, 0.12, 10).grade(), Grade::Validated);
        assert_eq!(support(12, 0.06, 0.12, 10).grade(), Grade::PartlyValidated);
        assert_eq!(support(12, 0.03, 0.16, 10).grade(), Grade::PartlyValidated);
        assert_eq!(support(12, 0.03, 0.12, 8).grade(), Grade::PartlyValidated);
        assert_eq!(support(4, 0.03, 0.12, 10).grade(), Grade::PartlyValidated);
        assert_eq!(support(0, 0.03, 0.12, 10).grade(), Grade::Unvalidated);
    }

    #[test]
    fn a_drive_without_rows_goes_by_its_family() {
        let sheet = |id: &str| catalogue::drive(id).expect("built in");
        let known = Supports {
            sources: BTreeMap::from([(String::from("S1"), support(12, 0.03, 0.12, 10))]),
            drives: BTreeMap::from([(String::from("p4800x-375"), support(12, 0.03, 0.12, 10))]),
            families: BTreeMap::from([(String::from("optane-ssd"), support(20, 0.04, 0.14, 10))]),
            ..Supports::default()
        };
        let own = known.statement(&sheet("p4800x-375"));
        assert_eq!(own.grade, Grade::Validated);
        assert_eq!(
            own.text,
            "3 rows fitted, 12 predicted: median error of 8 rows 3.0 %, 90th percentile 12.0 %; \
             10 of 10 claims hold"
        );
        let one = Support {
            errors: 1,
            ..support(3, 0.03, 0.03, 0)
        };
        assert!(one.words().contains(": the one with an error is 3.0 % off"));
        // An absolute error of 2406 % is a prediction of 25 times the published value.
        let far = support(12, 0.03, 24.064, 0).words();
        assert!(
            far.contains("3.0 %, 90th percentile a factor of 25.1;"),
            "{far}"
        );
        assert_eq!(known.statement(&sheet("900p-480")).grade, Grade::ByFamily);
        assert_eq!(
            known.statement(&sheet("ram-disk")).grade,
            Grade::Unvalidated
        );
        let none = Supports::default().statement(&sheet("p4800x-375"));
        assert_eq!(none.grade, Grade::Unknown);
        let changes = [(String::from("xpoint.power.limit"), String::from("12 W"))];
        let changed = catalogue::drive_with("p4800x-375", &changes).expect("built in");
        assert_eq!(known.statement(&changed).grade, Grade::Unvalidated);
    }

    #[test]
    fn a_drive_that_stands_for_others_is_not_measured() {
        let measure = |name: &str, more: &str| {
            format!(
                "[measure.{name}]\ndrive = \"ram-disk\"\n{more}state = \"fresh\"\nhost = \"xeon-2017\"\n\
                 fio = [\"--rw=randread\"]\n"
            )
        };
        let row = |id: &str, of: &str| format!("{id} | 1 | IOPS | predicted | {of}.read.iops");
        let measures =
            measure("itself", "") + &measure("others", "stands_for = \"seven drives\"\n");
        let rows = [row("S0-001", "itself"), row("S0-002", "others")];
        let text = super::super::table_of_rows(&measures, rows);
        let file = super::super::file("test.toml", &text);
        let files = [file.unwrap_or_else(|problems| panic!("{problems}"))];
        let measured = measured_drives(&files);
        assert_eq!(measured["S0-001"], BTreeSet::from(["ram-disk"]));
        assert!(measured["S0-002"].is_empty());
    }

    #[test]
    fn figures_are_shown_with_three_digits() {
        assert_eq!(
            [0.012_345, 1.5, 54.321, 543_210.9].map(shown),
            ["0.0123", "1.50", "54.3", "543211"]
        );
    }

    #[test]
    fn the_file_of_the_last_run_is_whole() {
        let text = include_str!("../../../../ledger/support.json");
        let read: Supports = serde_json::from_str(text).expect("written by `drivelab reproduce`");
        for id in read.drives.keys() {
            // A row can be of a pool that has no name.
            if let Err(problems) = catalogue::drive(id) {
                panic!("{id} is no drive and no pool: {problems}");
            }
        }
    }
}
