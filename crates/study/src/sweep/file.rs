//! Reader of a sweep's TOML file, described in `docs/sweep.md`, into a [`Space`]. All problems are reported at once,
//! each with its line. Whether drives and jobs are valid is checked elsewhere.

use std::collections::BTreeSet;
use std::ops::Range;

use text::toml::{Cursor, Page, SourceFile, parse};
use toml_edit::Value;

use super::sample::{Dimension, DimensionValues, NumberRange, latin_hypercube};
use super::space::{SettingValue, Space, SweepAxis, SweepPoint, SweepSetting};
use crate::ask::defaults;
use text::problem::Problems;

/// Maximum seed: JSON keeps whole numbers up to 2^53.
const MOST_SEED: u64 = (1 << 53) - 1;
/// Maximum number of points of a hypercube.
const MOST_POINTS: u64 = 10_000_000;
/// Maximum number of scenarios.
const MOST_SCENARIOS: usize = 1_000_000_000;

/// Content of a sweep's file.
#[derive(Clone, Debug)]
pub(super) struct SweepContent {
    /// Space of the sweep.
    pub(super) space: Space,
    /// Seed for preconditioning; if `None`, the scenario's seed.
    pub(super) warm_seed: Option<u64>,
}

/// Reads the file of a sweep.
///
/// # Errors
/// All problems of the file.
pub(super) fn read(file: &SourceFile) -> Result<SweepContent, Problems> {
    let document = parse(file)?;
    let page = Page::new(file);
    let mut root = Cursor::new(&page, "sweep", document.as_table(), None);
    let mut axes = values_of(&page, &mut root, true);
    let warm_seed = root.count("warm_seed", 0..=MOST_SEED);
    let points = points(&page, &mut root, &axes);
    let alone = root.place("latin_hypercube");
    let hypercube = hypercube(&page, &mut root, &axes);
    if points.is_some() && hypercube.is_some() {
        let what = "both [[point]] and [latin_hypercube]";
        page.add_problem(alone, what, "points can be listed or drawn, but not both");
    }
    drop(root);
    let points = points.or(hypercube);
    add_defaults(&page, &mut axes, points.as_deref());
    if let Some(points) = &points {
        let named: BTreeSet<&SweepSetting> =
            points.iter().flatten().map(|(what, _)| what).collect();
        axes.retain(|axis| {
            axis.choices.len() > 1 || !named.contains(&axis.what) || some_lack(points, &axis.what)
        });
    }
    let space = Space::new(axes, points, warm_seed.is_none());
    if space.count().is_none_or(|count| count > MOST_SCENARIOS) {
        let what = format!("more than {MOST_SCENARIOS} scenarios");
        page.add_problem(
            None,
            what,
            "a Latin hypercube samples a space that is too large",
        );
    }
    Problems(page.problems.into_inner()).or(SweepContent { space, warm_seed })
}

/// Checks whether some points lack this setting.
fn some_lack(points: &[SweepPoint], what: &SweepSetting) -> bool {
    let says = |point: &SweepPoint| point.iter().any(|(known, _)| known == what);
    !points.iter().all(says)
}

/// Adds the defaults of host, state and seed, which are those of every subcommand; a drive and a job are mandatory.
fn add_defaults(page: &Page<'_>, axes: &mut Vec<SweepAxis>, points: Option<&[SweepPoint]>) {
    let lacks = |axes: &[SweepAxis], what: &SweepSetting| {
        let fixed = axes.iter().any(|axis| axis.what == *what);
        !fixed && points.is_none_or(|points| some_lack(points, what))
    };
    if lacks(axes, &SweepSetting::Drive) {
        let help = "such as drive = [\"p4800x-375\", \"p3700-1600\"]; `drivelab drives` lists them";
        page.add_problem(None, "no drive is named", help);
    }
    let mut whats = axes.iter().map(|axis| &axis.what);
    let of_points = points.unwrap_or_default().iter().flatten();
    let mut of_points = of_points.map(|(what, _)| what);
    let is_job = |what: &SweepSetting| matches!(what, SweepSetting::Job(_) | SweepSetting::JobFile);
    if !whats.any(is_job) && !of_points.any(is_job) {
        let help =
            "a table [job] of fio's options, such as rw = \"randread\", or job_file = \"a.fio\"";
        page.add_problem(None, "there is no job", help);
    }
    let seed = defaults::SEED.to_string();
    let usual = [
        (SweepSetting::Host, catalogue::TYPICAL_HOST),
        (SweepSetting::State, defaults::STEADY),
        (SweepSetting::Seed, &*seed),
    ];
    for (what, words) in usual {
        if lacks(axes, &what) {
            let words = words.to_owned();
            let choices = vec![SettingValue { words, at: None }];
            axes.push(SweepAxis { what, choices });
        }
    }
}

/// Reads all settings of scenarios in one table; `lists`: whether a setting may have more than one value.
fn values_of(page: &Page<'_>, cursor: &mut Cursor<'_>, lists: bool) -> Vec<SweepAxis> {
    let mut axes = Vec::new();
    let mut take = |what: SweepSetting, choices: Option<Vec<SettingValue>>| {
        if let Some(choices) = choices.filter(|choices| !choices.is_empty()) {
            if let (false, [_, second, ..]) = (lists, &choices[..]) {
                let what = format!("{}: a point must have one value", what.name());
                page.add_problem(second.at.clone(), what, "write more points");
            }
            twice(page, &what, &choices);
            axes.push(SweepAxis { what, choices });
        }
    };
    let simple = [
        ("drive", SweepSetting::Drive),
        ("host", SweepSetting::Host),
        ("state", SweepSetting::State),
        ("job_file", SweepSetting::JobFile),
    ];
    for (key, what) in simple {
        let value = cursor.value(key);
        let choices = value.map(|value| texts(page, key, value));
        take(what, choices);
    }
    let seeds = cursor.value("seed").map(|value| seeds(page, value));
    take(SweepSetting::Seed, seeds);
    for (key, value) in cursor.pairs("set") {
        let choices = choices(page, &key, value);
        take(SweepSetting::Set(key), Some(choices));
    }
    for (key, value) in cursor.pairs("job") {
        if is_option(page, &key, value) {
            let choices = choices(page, &key, value);
            take(SweepSetting::Job(key), Some(choices));
        }
    }
    axes
}

/// Checks whether this is an option that all of a scenario's jobs may have.
fn is_option(page: &Page<'_>, key: &str, value: &Value) -> bool {
    if key == "name" {
        let help = "a job file holds several jobs: job_file = \"a.fio\"";
        page.add_problem(
            value.span(),
            "job.name: the options here are those of one job",
            help,
        );
    }
    key != "name"
}

/// Reports values that occur twice.
fn twice(page: &Page<'_>, what: &SweepSetting, choices: &[SettingValue]) {
    let mut known = BTreeSet::new();
    for choice in choices {
        if !known.insert(&choice.words) {
            let what = format!("{}: `{}` stands twice", what.name(), choice.words);
            page.add_problem(
                choice.at.clone(),
                what,
                "each value once; repetitions are seeds",
            );
        }
    }
}

/// Returns a value as text.
fn words(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.value().trim().is_empty() => {
            Some(text.value().trim().to_owned())
        }
        Value::Integer(whole) => Some(whole.value().to_string()),
        Value::Float(number) if number.value().is_finite() => Some(number.value().to_string()),
        // fio's options that are on or off.
        Value::Boolean(on) => Some(u8::from(*on.value()).to_string()),
        _ => None,
    }
}

/// Returns a value, or each element of a list.
fn each(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(array) => array.iter().collect(),
        other => vec![other],
    }
}

/// Reads the values of a figure or option.
fn choices(page: &Page<'_>, key: &str, value: &Value) -> Vec<SettingValue> {
    let mut choices = Vec::new();
    let given = each(value);
    if given.is_empty() {
        page.add_problem(
            value.span(),
            format!("`{key}` is an empty list"),
            "a value at least",
        );
    }
    for one in given {
        let at = one.span().or_else(|| value.span());
        match words(one) {
            Some(words) => choices.push(SettingValue { words, at }),
            None => {
                let what = format!("`{key}`: neither a text nor a number");
                page.add_problem(
                    at,
                    what,
                    "such as \"12 W\", 16, or a list [1, 16]; ranges belong in [latin_hypercube]",
                );
            }
        }
    }
    choices
}

/// Reads the values of a key whose values are names.
fn texts(page: &Page<'_>, key: &str, value: &Value) -> Vec<SettingValue> {
    let choices = choices(page, key, value);
    for one in each(value)
        .into_iter()
        .filter(|one| one.as_str().is_none() && words(one).is_some())
    {
        page.add_problem(one.span(), format!("`{key}` must be a text in quotes"), "");
    }
    choices
}

/// Reads seeds: a number, a list, or a count starting with 1.
fn seeds(page: &Page<'_>, value: &Value) -> Vec<SettingValue> {
    let help = "a whole number, a list of them, or { from = 1, count = 100 }";
    let at = value.span();
    if let Some(table) = value.as_inline_table() {
        let mut cursor = Cursor::new(page, "seed", table, at.clone());
        let from = cursor.count("from", 0..=MOST_SEED).unwrap_or(1);
        let count = cursor.count("count", 1..=MOST_POINTS);
        if !cursor.has("count") {
            page.add_problem(at.clone(), "seed: `count` is missing", help);
        }
        let seeds = from..from.saturating_add(count.unwrap_or(0)).min(MOST_SEED);
        let choice = |seed: u64| SettingValue {
            words: seed.to_string(),
            at: at.clone(),
        };
        return seeds.map(choice).collect();
    }
    let mut seeds = Vec::new();
    for one in each(value) {
        let seed = one.as_integer().and_then(|seed| u64::try_from(seed).ok());
        let at = one.span().or_else(|| at.clone());
        match seed.filter(|seed| *seed <= MOST_SEED) {
            Some(seed) => seeds.push(SettingValue {
                words: seed.to_string(),
                at,
            }),
            None => page.add_problem(at, "`seed` must be a whole number below 2^53", help),
        }
    }
    seeds
}

/// Reports settings of points or dimensions that are also axes of the whole sweep.
fn overlap(page: &Page<'_>, axes: &[SweepAxis], what: &SweepSetting, at: Option<Range<usize>>) {
    let axis = axes.iter().find(|axis| axis.what == *what);
    if axis.is_some_and(|axis| axis.choices.len() > 1) {
        let what = format!("{} has a list above, and values here", what.name());
        page.add_problem(at, what, "remove one of the two");
    }
}

/// Reads the points of `[[point]]`, if there are any.
fn points(page: &Page<'_>, root: &mut Cursor<'_>, axes: &[SweepAxis]) -> Option<Vec<SweepPoint>> {
    if !root.has("point") {
        return None;
    }
    let tables = root.tables("point");
    let points = tables.into_iter().enumerate().map(|(number, (table, at))| {
        let mut cursor = Cursor::new(page, format!("point {number}"), table, at);
        let said = values_of(page, &mut cursor, false);
        let mut point = SweepPoint::new();
        for axis in said {
            let first = axis.choices.into_iter().next();
            overlap(
                page,
                axes,
                &axis.what,
                first.as_ref().and_then(|it| it.at.clone()),
            );
            point.extend(first.map(|choice| (axis.what, choice)));
        }
        point
    });
    Some(points.collect())
}

/// Returns the points of `[latin_hypercube]`, if it is present.
fn hypercube(
    page: &Page<'_>,
    root: &mut Cursor<'_>,
    axes: &[SweepAxis],
) -> Option<Vec<SweepPoint>> {
    let item = root.item("latin_hypercube")?;
    let Some(table) = item.as_table_like() else {
        page.add_problem(
            item.span(),
            "`latin_hypercube` is not a table",
            "write [latin_hypercube]",
        );
        return None;
    };
    let at = item.span();
    let mut cursor = Cursor::new(page, "latin_hypercube", table, at.clone());
    let count = cursor.count("points", 1..=MOST_POINTS);
    if !cursor.has("points") {
        page.add_problem(
            at.clone(),
            "latin_hypercube: `points` is missing",
            "how many, such as points = 1000",
        );
    }
    let seed = cursor.count("seed", 0..=MOST_SEED).unwrap_or(1);
    let mut dimensions = Vec::new();
    for (key, what) in [
        ("drive", SweepSetting::Drive),
        ("host", SweepSetting::Host),
        ("state", SweepSetting::State),
    ] {
        let value = cursor.value(key);
        let choices = value.map(|value| texts(page, key, value));
        dimensions.extend(choices.map(|choices| (what, DimensionValues::Any(choices))));
    }
    type Named = fn(String) -> SweepSetting;
    for (table, named) in [
        ("set", SweepSetting::Set as Named),
        ("job", SweepSetting::Job as Named),
    ] {
        for (key, value) in cursor.pairs(table) {
            if table == "set" || is_option(page, &key, value) {
                let values = dimension(page, &key, value);
                dimensions.extend(values.map(|values| (named(key), values)));
            }
        }
    }
    drop(cursor);
    let mut whole = Vec::new();
    for (what, values) in dimensions {
        let place = match &values {
            DimensionValues::Any(choices) => choices.first().and_then(|choice| choice.at.clone()),
            DimensionValues::Between(range) => range.at.clone(),
        };
        overlap(page, axes, &what, place);
        if !matches!(&values, DimensionValues::Any(choices) if choices.is_empty()) {
            whole.push(Dimension { what, values });
        }
    }
    if whole.is_empty() {
        let help =
            "such as [latin_hypercube.job] with iodepth = { from = 1, to = 64, whole = true }";
        page.add_problem(at, "latin_hypercube: nothing is drawn", help);
    }
    Some(latin_hypercube(&whole, count.unwrap_or(1) as usize, seed))
}

/// Reads the values of a dimension.
fn dimension(page: &Page<'_>, key: &str, value: &Value) -> Option<DimensionValues> {
    let Some(table) = value.as_inline_table() else {
        let choices = choices(page, key, value);
        twice(page, &SweepSetting::Set(key.to_owned()), &choices);
        return Some(DimensionValues::Any(choices));
    };
    let at = value.span();
    let mut cursor = Cursor::new(page, key, table, at.clone());
    let mut number = |name: &'static str| {
        let given = cursor.value(name);
        let number = given.and_then(|it| {
            it.as_float()
                .or_else(|| it.as_integer().map(|it| it as f64))
        });
        if number.is_none_or(|number| !number.is_finite()) {
            let help = "such as { from = 1, to = 64 }; a unit has a key of its own: unit = \"W\"";
            cursor.add_problem(name, format!("`{name}` must be a number"), help);
        }
        number.filter(|number| number.is_finite())
    };
    let (from, to) = (number("from"), number("to"));
    let flag = cursor.value("whole");
    let whole = flag.and_then(Value::as_bool);
    if flag.is_some() && whole.is_none() {
        cursor.add_problem("whole", "`whole` must be true or false", "");
    }
    let whole = whole.unwrap_or(false);
    let scale = cursor.maybe_text("scale");
    let unit = cursor.maybe_text("unit").unwrap_or_default();
    let logarithmic = match scale.as_deref() {
        None | Some("linear") => false,
        Some("log") => true,
        Some(other) => {
            cursor.add_problem(
                "scale",
                format!("`{other}` is not a scale"),
                "linear or log",
            );
            false
        }
    };
    let (from, to) = (from?, to?);
    let least = if whole { 1.0 } else { f64::MIN_POSITIVE };
    if from >= to {
        cursor.add_problem("to", "the range is empty", "`to` above `from`");
    } else if logarithmic && from < least {
        let help = "at least 1 if whole, otherwise above 0";
        cursor.add_problem("from", "the start of a logarithmic range is too low", help);
    } else if whole && (from.fract() != 0.0 || to.fract() != 0.0) {
        cursor.add_problem("from", "the ends of whole numbers are whole", "");
    } else {
        return Some(DimensionValues::Between(NumberRange {
            from,
            to,
            logarithmic,
            whole,
            unit: unit.trim().to_owned(),
            at,
        }));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn of(text: &str) -> Result<SweepContent, Problems> {
        read(&SourceFile {
            origin: "sweep.toml".into(),
            text: Arc::from(text),
        })
    }

    #[test]
    fn a_grid_takes_what_is_not_said_as_every_verb_does() {
        let written = of("drive = [\"a\", \"b\"]\n[job]\nrw = \"randread\"\niodepth = [1, 2, 4]\n");
        let space = written.expect("nothing is wrong").space;
        assert_eq!(space.count(), Some(6));
        let picked = space.scenario_settings(4);
        let words = |what: SweepSetting| picked.value(&what).map(|choice| choice.words.as_str());
        assert_eq!(words(SweepSetting::Drive), Some("b"));
        assert_eq!(words(SweepSetting::Job("iodepth".into())), Some("2"));
        assert_eq!(words(SweepSetting::State), Some("steady"));
        assert_eq!(words(SweepSetting::Seed), Some("1"));
        assert_eq!(picked.point, None);
    }

    #[test]
    fn points_count_above_what_holds_for_all() {
        let text = "drive = \"a\"\nseed = { from = 5, count = 2 }\n[job]\nrw = \"read\"\niodepth = 1\n\
                    [[point]]\njob = { iodepth = 8 }\n[[point]]\ndrive = \"b\"\n";
        let space = of(text).expect("nothing is wrong").space;
        assert_eq!(space.count(), Some(4));
        let shown: Vec<String> = (0..4)
            .map(|index| {
                let picked = space.scenario_settings(index);
                let word =
                    |what: SweepSetting| picked.value(&what).map_or("-", |it| it.words.as_str());
                let depth = word(SweepSetting::Job("iodepth".into()));
                format!(
                    "{} {} {depth}",
                    word(SweepSetting::Drive),
                    word(SweepSetting::Seed)
                )
            })
            .collect();
        assert_eq!(shown, ["a 5 8", "a 6 8", "b 5 1", "b 6 1"]);
    }

    #[test]
    fn a_hypercube_draws_ranges_and_lists() {
        let text = "seed = [1, 2]\n[job]\nrw = \"randread\"\n[latin_hypercube]\npoints = 10\ndrive = [\"a\", \"b\"]\n\
                    [latin_hypercube.job]\niodepth = { from = 1, to = 10, whole = true }\n\
                    [latin_hypercube.set]\n\"x.limit\" = { from = 8, to = 12, unit = \"W\" }\n";
        let space = of(text).expect("nothing is wrong").space;
        assert_eq!(space.count(), Some(20));
        let of_a = (0..20).filter(|&index| {
            space
                .scenario_settings(index)
                .value(&SweepSetting::Drive)
                .is_some_and(|it| it.words == "a")
        });
        assert_eq!(of_a.count(), 10);
        let limit = space
            .scenario_settings(0)
            .value(&SweepSetting::Set("x.limit".into()))
            .expect("drawn")
            .words
            .clone();
        assert!(limit.ends_with(" W"), "{limit}");
    }

    #[test]
    fn everything_wrong_is_told_at_once_with_its_line() {
        let text = "drives = \"a\"\nstate = 3\nseed = [-1]\nset.xpoint.limit = 3\n[job]\nname = \"x\"\niodepth = [1, 1, {}]\n\
                    bs = []\n[[point]]\njob = { rw = [\"read\", \"write\"], iodepth = 3 }\n[latin_hypercube]\n\
                    job = { a = { from = 2, to = 1 }, b = { from = 0, to = 3, scale = \"log\" }, c = { to = \"x\", mean = 1 } }\n";
        let problems = of(text).expect_err("much is wrong");
        insta::assert_snapshot!(problems.to_string());
    }

    #[test]
    fn drive_and_job_must_be_there() {
        let problems = of("seed = 1\n").expect_err("nothing to run");
        insta::assert_snapshot!(problems.to_string());
        let many = "drive = \"a\"\n[job]\nrw = \"read\"\niodepth = 1\n[latin_hypercube]\npoints = 20000\n\
                    [latin_hypercube.job]\nbs = [\"4k\", \"8k\"]\n";
        assert_eq!(of(many).expect("many").space.count(), Some(20_000));
    }
}
