//! The space of a sweep, and the numbering of its scenarios.
//!
//! A space is every combination of its axes, repeated for each of its points. Scenarios are numbered so that those
//! with the same initial state of a drive are consecutive: drive, changed figures, state and seed change slowest. A
//! grid has one point that fixes nothing; each point of a list or of a Latin hypercube fixes some settings.

use std::collections::BTreeMap;
use std::ops::Range;

/// A setting that may differ between scenarios, from the slowest to the fastest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SweepSetting {
    /// The drive or pool.
    Drive,
    /// A figure of the drive's file, by its dotted key.
    Set(String),
    /// The initial state of the drive.
    State,
    /// The random seed.
    Seed,
    /// The host of the drive.
    Host,
    /// A fio job file.
    JobFile,
    /// An option of fio's jobs, by its name.
    Job(String),
}

impl SweepSetting {
    /// Returns the name as in the sweep's file.
    pub(super) fn name(&self) -> String {
        match self {
            SweepSetting::Drive => "drive".into(),
            SweepSetting::Set(key) => format!("set.{key}"),
            SweepSetting::State => "state".into(),
            SweepSetting::Seed => "seed".into(),
            SweepSetting::Host => "host".into(),
            SweepSetting::JobFile => "job_file".into(),
            SweepSetting::Job(option) => format!("job.{option}"),
        }
    }
}

/// One value, as written.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SettingValue {
    /// Text of the value: `p4800x-375`, `12 W`, `16`.
    pub(super) words: String,
    /// Position in the sweep's file.
    pub(super) at: Option<Range<usize>>,
}

/// A setting with its values, each combined with all values of the other axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SweepAxis {
    /// The setting.
    pub(super) what: SweepSetting,
    /// Values of the setting, at least one.
    pub(super) choices: Vec<SettingValue>,
}

/// The settings that one point fixes.
pub(super) type SweepPoint = Vec<(SweepSetting, SettingValue)>;

/// The settings of one scenario.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScenarioSettings<'a> {
    /// Index of the point, starting with 0; `None` in a grid.
    pub(super) point: Option<usize>,
    /// The value of every setting that has one.
    pub(super) values: Vec<(&'a SweepSetting, &'a SettingValue)>,
}

impl<'a> ScenarioSettings<'a> {
    /// Returns the value of a setting.
    pub(super) fn value(&self, what: &SweepSetting) -> Option<&'a SettingValue> {
        let found = self.values.iter().find(|(known, _)| *known == what);
        found.map(|(_, choice)| *choice)
    }

    /// Returns the changed figures, with their keys.
    pub(super) fn set(&self) -> impl Iterator<Item = (&'a str, &'a SettingValue)> + '_ {
        self.values.iter().filter_map(|(what, choice)| match what {
            SweepSetting::Set(key) => Some((key.as_str(), *choice)),
            _ => None,
        })
    }

    /// Returns the options of fio's jobs, with their names.
    pub(super) fn job(&self) -> impl Iterator<Item = (&'a str, &'a SettingValue)> + '_ {
        self.values.iter().filter_map(|(what, choice)| match what {
            SweepSetting::Job(option) => Some((option.as_str(), *choice)),
            _ => None,
        })
    }
}

/// The space of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Space {
    /// Axes that determine the initial state of a drive.
    beginnings: Vec<SweepAxis>,
    /// All other axes.
    others: Vec<SweepAxis>,
    points: Vec<SweepPoint>,
    /// Points with the same initial state, by number.
    groups: Vec<Vec<usize>>,
    /// Number of points in the groups before each group.
    before: Vec<usize>,
    is_grid: bool,
}

/// Returns the number of combinations of axes; `None` if it overflows.
fn combinations(axes: &[SweepAxis]) -> Option<usize> {
    let mut counts = axes.iter().map(|axis| axis.choices.len());
    counts.try_fold(1, usize::checked_mul)
}

/// Returns the values of the `index`-th combination; the last axis changes fastest.
fn combination(axes: &[SweepAxis], mut index: usize) -> Vec<(&SweepSetting, &SettingValue)> {
    let mut values = Vec::with_capacity(axes.len());
    for axis in axes.iter().rev() {
        let count = axis.choices.len();
        values.push((&axis.what, &axis.choices[index % count]));
        index /= count;
    }
    values.reverse();
    values
}

/// Groups points with the same initial state. Groups with the same drive are adjacent; otherwise the order is that of
/// their first points.
fn grouped(points: &[SweepPoint], begins: impl Fn(&SweepSetting) -> bool) -> Vec<Vec<usize>> {
    let mut drives: BTreeMap<Option<&str>, usize> = BTreeMap::new();
    let mut known: BTreeMap<Vec<(&SweepSetting, &str)>, usize> = BTreeMap::new();
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let fixed = point.iter().filter(|(what, _)| begins(what));
        let mut fixed: Vec<_> = fixed.map(|(what, it)| (what, it.words.as_str())).collect();
        fixed.sort_unstable();
        let drive = fixed.iter().find(|(what, _)| **what == SweepSetting::Drive);
        let next = drives.len();
        let drive = *drives.entry(drive.map(|(_, name)| *name)).or_insert(next);
        let group = *known.entry(fixed).or_insert_with(|| {
            groups.push((drive, Vec::new()));
            groups.len() - 1
        });
        groups[group].1.push(index);
    }
    groups.sort_by_key(|(drive, _)| *drive);
    groups.into_iter().map(|(_, group)| group).collect()
}

impl Space {
    /// Returns a space; without points it is a grid. `own_state`: each seed has an initial state of its own.
    pub(super) fn new(
        mut axes: Vec<SweepAxis>,
        points: Option<Vec<SweepPoint>>,
        own_state: bool,
    ) -> Space {
        let begins = |what: &SweepSetting| match what {
            SweepSetting::Drive | SweepSetting::Set(_) | SweepSetting::State => true,
            SweepSetting::Seed => own_state,
            SweepSetting::Host | SweepSetting::JobFile | SweepSetting::Job(_) => false,
        };
        // The sort is stable: keys and options keep the order in which they are written.
        axes.sort_by_key(|axis| match axis.what {
            SweepSetting::Drive => 0,
            SweepSetting::Set(_) => 1,
            SweepSetting::State => 2,
            SweepSetting::Seed => 3,
            SweepSetting::Host => 4,
            SweepSetting::JobFile => 5,
            SweepSetting::Job(_) => 6,
        });
        let (beginnings, others) = axes.into_iter().partition(|axis| begins(&axis.what));
        let is_grid = points.is_none();
        let points = points.unwrap_or_else(|| vec![SweepPoint::new()]);
        let groups = grouped(&points, begins);
        let mut sum = 0;
        let before = groups.iter().map(|group| {
            sum += group.len();
            sum - group.len()
        });
        Space {
            beginnings,
            others,
            before: before.collect(),
            groups,
            points,
            is_grid,
        }
    }

    /// Returns the number of scenarios; `None` if it overflows.
    pub(super) fn count(&self) -> Option<usize> {
        let all = combinations(&self.beginnings)?.checked_mul(combinations(&self.others)?)?;
        all.checked_mul(self.points.len())
    }

    /// Returns the axes, the slowest first.
    pub(super) fn axes(&self) -> impl Iterator<Item = &SweepAxis> {
        self.beginnings.iter().chain(&self.others)
    }

    /// Returns the points; empty for a grid.
    pub(super) fn points(&self) -> &[SweepPoint] {
        if self.is_grid { &[] } else { &self.points }
    }

    /// Returns every setting that has more than one value, or that only some points have, with all its values.
    pub(super) fn varied(&self) -> Vec<(&SweepSetting, Vec<&SettingValue>)> {
        let mut found: Vec<(&SweepSetting, Vec<&SettingValue>)> = Vec::new();
        for axis in self.axes() {
            found.push((&axis.what, axis.choices.iter().collect()));
        }
        let fixed = found.len();
        for (what, choice) in self.points.iter().flatten() {
            match found.iter_mut().find(|(known, _)| *known == what) {
                Some((_, choices)) => choices.push(choice),
                None => found.push((what, vec![choice])),
            }
        }
        let mut place = 0..;
        found.retain(|(_, choices)| place.next() >= Some(fixed) || choices.len() > 1);
        found
    }

    /// Returns the numbers of a scenario's initial state. Consecutive scenarios with equal numbers begin in the same
    /// state.
    pub(super) fn beginning(&self, index: usize) -> (usize, usize) {
        let (group, _, beginning, _) = self.split(index);
        (group, beginning)
    }

    /// Splits an index into group of points, point, combination of initial states, and combination of the others.
    fn split(&self, index: usize) -> (usize, usize, usize, usize) {
        let beginnings = combinations(&self.beginnings).unwrap_or(usize::MAX);
        let others = combinations(&self.others).unwrap_or(usize::MAX);
        let each = beginnings * others;
        let number = self.before.partition_point(|before| before * each <= index) - 1;
        let group = &self.groups[number];
        let index = index - self.before[number] * each;
        let within = index % (group.len() * others);
        let beginning = index / (group.len() * others);
        (number, group[within / others], beginning, within % others)
    }

    /// Returns scenarios in which each value of an axis occurs at least once. If there are at most `most` scenarios,
    /// these are all. Otherwise they are those in which one axis differs from the first scenario, one for each point
    /// (of `most` points, if there are more), and others spread over all.
    pub(super) fn probes(&self, most: usize) -> Vec<usize> {
        let count = self.count().unwrap_or(0);
        if count <= most {
            return (0..count).collect();
        }
        let mut probes = vec![0];
        let others = combinations(&self.others).unwrap_or(1);
        let stride = others * self.groups.first().map_or(1, Vec::len);
        for (axes, mut step) in [(&self.beginnings, stride), (&self.others, 1)] {
            for axis in axes.iter().rev() {
                probes.extend((1..axis.choices.len()).map(|choice| choice * step));
                step *= axis.choices.len();
            }
        }
        let beginnings = combinations(&self.beginnings).unwrap_or(1);
        let every = self.points.len().div_ceil(most);
        for (group, before) in self.groups.iter().zip(&self.before) {
            let begun = before * others * beginnings;
            let places = (0..group.len()).filter(|place| (before + place) % every == 0);
            probes.extend(places.map(|place| begun + place * others));
        }
        let spread = |probe: usize| (probe as u128 * count as u128 / most as u128) as usize;
        probes.extend((0..most).map(spread));
        probes.sort_unstable();
        probes.dedup();
        probes
    }

    /// Returns the settings of the scenario with this number.
    ///
    /// # Panics
    /// The number is not less than the number of scenarios.
    pub(super) fn scenario_settings(&self, index: usize) -> ScenarioSettings<'_> {
        let (_, point, beginning, other) = self.split(index);
        let mut values = combination(&self.beginnings, beginning);
        values.extend(combination(&self.others, other));
        for (what, choice) in &self.points[point] {
            match values.iter_mut().find(|(known, _)| *known == what) {
                Some((_, value)) => *value = choice,
                None => values.push((what, choice)),
            }
        }
        ScenarioSettings {
            point: (!self.is_grid).then_some(point),
            values,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choice(words: &str) -> SettingValue {
        SettingValue {
            words: words.into(),
            at: None,
        }
    }

    fn axis(what: SweepSetting, words: &[&str]) -> SweepAxis {
        let choices = words.iter().map(|words| choice(words)).collect();
        SweepAxis { what, choices }
    }

    fn words(space: &Space) -> Vec<String> {
        let all = 0..space.count().expect("few");
        let shown = all.map(|index| {
            let values = space.scenario_settings(index).values;
            let words: Vec<&str> = values.iter().map(|(_, it)| it.words.as_str()).collect();
            words.join(" ")
        });
        shown.collect()
    }

    #[test]
    fn a_grid_has_every_combination_once_and_drives_change_slowest() {
        let axes = vec![
            axis(SweepSetting::Job("iodepth".into()), &["1", "2"]),
            axis(SweepSetting::Seed, &["7", "8"]),
            axis(SweepSetting::Drive, &["a", "b"]),
        ];
        let space = Space::new(axes, None, true);
        let expected = [
            "a 7 1", "a 7 2", "a 8 1", "a 8 2", "b 7 1", "b 7 2", "b 8 1", "b 8 2",
        ];
        assert_eq!(words(&space), expected);
        let begun: Vec<_> = (0..8).map(|index| space.beginning(index).1).collect();
        assert_eq!(begun, [0, 0, 1, 1, 2, 2, 3, 3]);
        assert_eq!(space.varied().len(), 3);
    }

    #[test]
    fn points_of_one_drive_follow_each_other_and_are_crossed_with_the_axes() {
        let point = |drive: &str, depth: &str| {
            vec![
                (SweepSetting::Drive, choice(drive)),
                (SweepSetting::Job("iodepth".into()), choice(depth)),
            ]
        };
        let points = vec![point("a", "1"), point("b", "2"), point("a", "3")];
        let axes = vec![axis(SweepSetting::Seed, &["7", "8"])];
        let own = Space::new(axes.clone(), Some(points.clone()), true);
        let expected = ["7 a 1", "7 a 3", "8 a 1", "8 a 3", "7 b 2", "8 b 2"];
        assert_eq!(words(&own), expected);
        assert_eq!(own.scenario_settings(1).point, Some(2));
        let shared = Space::new(axes, Some(points), false);
        assert_eq!(shared.beginning(0), shared.beginning(3));
        assert_ne!(shared.beginning(3), shared.beginning(4));
    }

    #[test]
    fn probes_of_many_have_each_value() {
        let depths: Vec<String> = (1..40).map(|depth| depth.to_string()).collect();
        let depths: Vec<&str> = depths.iter().map(String::as_str).collect();
        let axes = vec![
            axis(SweepSetting::Job("iodepth".into()), &depths),
            axis(SweepSetting::Seed, &["7", "8", "9"]),
        ];
        let point = |drive: &str| vec![(SweepSetting::Drive, choice(drive))];
        let points = vec![point("a"), point("b"), point("a"), point("c")];
        let space = Space::new(axes, Some(points), true);
        let count = space.count().expect("few");
        let probes = space.probes(5);
        assert!(probes.len() < 60 && probes.iter().all(|index| *index < count));
        let mut seen = std::collections::BTreeSet::new();
        for index in probes {
            let picked = space.scenario_settings(index);
            seen.extend(
                picked
                    .values
                    .iter()
                    .map(|(what, it)| (what.name(), it.words.clone())),
            );
            seen.insert(("point".into(), format!("{:?}", picked.point)));
        }
        assert_eq!(seen.len(), 39 + 3 + 3 + 4);
        assert_eq!(space.probes(count).len(), count);
        let points =
            (0..1_000).map(|number| vec![(SweepSetting::Drive, choice(&number.to_string()))]);
        let space = Space::new(Vec::new(), Some(points.collect()), true);
        assert!(space.probes(100).len() <= 201);
        let drive = |index: usize| {
            space
                .scenario_settings(index)
                .value(&SweepSetting::Drive)
                .map(|it| it.words.clone())
        };
        assert!((0..1_000).all(|index| drive(index) == Some(index.to_string())));
    }

    #[test]
    fn too_many_to_count_are_not_counted_wrongly() {
        let many: Vec<String> = (0..100_000).map(|seed| seed.to_string()).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let names = ["a", "b", "c", "d"].map(|name| SweepSetting::Job(name.into()));
        let axes = names.map(|what| axis(what, &many)).to_vec();
        assert_eq!(Space::new(axes, None, true).count(), None);
    }
}
