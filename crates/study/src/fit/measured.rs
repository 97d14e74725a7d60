//! A user's measurements: fio's JSON, or a measurement made from it ([`crate::measure`]), as jobs and measured
//! figures.
//!
//! Each reporting group of fio's output is one run: its jobs ran together, and a stonewall begins the next group.
//! Options are those that fio prints with each job. Not supported: jobs that shared a reporting group under different
//! names with `group_reporting` (fio prints only the first job's options), and groups made by `new_group` without a
//! stonewall.

use serde_json::Value;

use text::problem::{Place, Problem, Problems};
use workload::fio::{self, JobSet, Surroundings};
use workload::job::Job;

use super::documents;
use super::sound::{contradictions, microseconds};
use crate::measure;

/// One run on the measured drive.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredRun {
    /// Names of its jobs.
    pub name: String,
    /// The jobs of the run, without a bound on their I/Os.
    pub jobs: Vec<Job>,
    /// The measured figures.
    pub targets: Vec<MeasuredFigure>,
    /// Differences between the measurement and the model's run, one sentence each.
    pub unlike: Vec<String>,
}

/// One measured figure.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredFigure {
    /// Direction of the I/Os: true for reads, false for writes.
    pub read: bool,
    /// The measured quantity.
    pub quantity: Quantity,
    /// Value in IOPS or microseconds.
    pub value: f64,
    /// Weight of the figure in the fit.
    pub weight: f64,
}

/// A measured quantity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// IOPS of all threads.
    Iops,
    /// Mean latency.
    Mean,
    /// Mean submission latency; only hosts are fitted to it.
    Submission,
    /// A percentile of completion latency.
    Percentile(f64),
}

impl MeasuredFigure {
    /// Returns the name of this figure in the ledger's metrics.
    pub fn figure(&self) -> String {
        let direction = if self.read { "read" } else { "write" };
        match self.quantity {
            Quantity::Iops => format!("{direction}.iops"),
            Quantity::Mean => format!("{direction}.mean_us"),
            Quantity::Submission => format!("{direction}.slat.mean_us"),
            Quantity::Percentile(percent) => format!("{direction}.clat.p{percent}_us"),
        }
    }
}

/// Percentiles that are fitted to, each with its weight: a tail is noisier than a median.
const PERCENTILES: [(f64, &str, f64); 3] = [
    (50.0, "50.000000", 0.5),
    (99.0, "99.000000", 0.3),
    (99.9, "99.900000", 0.1),
];

/// Minimum number of I/Os of one direction for a figure.
const FEWEST: f64 = 100.0;

/// Options that do not affect the load on the drive, or that only bounded the run.
const DROPPED: [&str; 16] = [
    "filename",
    "directory",
    "name",
    "runtime",
    "time_based",
    "number_ios",
    "io_size",
    "loops",
    "startdelay",
    "stonewall",
    "ramp_time",
    "group_reporting",
    "write_bw_log",
    "write_lat_log",
    "write_iops_log",
    "log_avg_msec",
];

/// Reads fio's JSON; `origin` names the file in messages.
///
/// # Errors
/// The text is not fio's JSON, or jobs in it cannot be repeated.
pub fn read(origin: &str, text: &str) -> Result<Vec<MeasuredRun>, Problems> {
    let file = entries(origin, text)?;
    let mut problems = Problems::default();
    let mut runs = Vec::new();
    for group in &file.groups {
        match run(origin, group) {
            Ok(run) => runs.push(run),
            Err(found) => problems.0.extend(found.0),
        }
    }
    problems.or(runs)
}

/// fio's JSON, split by reporting group.
pub(crate) struct Entries {
    /// fio's version as stated in the JSON; empty if absent.
    pub(crate) version: String,
    /// Groups of jobs that ran together.
    pub(crate) groups: Vec<Group>,
}

/// One reporting group.
pub(crate) struct Group {
    /// Options of all jobs.
    pub(crate) globals: Value,
    /// fio's output for each job (or copy of a job).
    pub(crate) members: Vec<Value>,
    /// Statements in the file that limit what the results show, one sentence each.
    pub(crate) unlike: Vec<String>,
}

/// Splits fio's JSON by reporting group, or the JSON of each step of a measurement; `origin` names the file in
/// messages.
///
/// # Errors
/// The text is neither fio's JSON nor a measurement.
pub(crate) fn entries(origin: &str, text: &str) -> Result<Entries, Problems> {
    let found = documents::last(text)
        .map_err(|error| refused(origin, format!("not fio's JSON: {error}")))?;
    let mut unlike = Vec::new();
    if found.count > 1 || found.cut {
        let cut = match found.cut {
            true => ", before one that is cut off",
            false => "",
        };
        unlike.push(format!(
            "the file holds {} complete results, as --status-interval and appending make them: the last one counts{cut}",
            found.count
        ));
    }
    let root = found.last;
    if !measure::is_ours(&root) {
        return of_fio(origin, root, &unlike);
    }
    let mut all = Entries {
        version: String::new(),
        groups: Vec::new(),
    };
    for step in measure::measured(origin, root)? {
        let entries = of_fio(origin, step.fio, &step.unlike)?;
        all.version = entries.version;
        all.groups.extend(entries.groups);
    }
    all.leave_out_short_steps();
    Ok(all)
}

impl Entries {
    /// A measurement with shortened steps keeps only the steps that have usable figures. If no step has any, all stay
    /// and are rejected later.
    fn leave_out_short_steps(&mut self) {
        let is_short = |group: &Group| {
            let ways = [("read", true), ("write", false)].into_iter();
            let mut told = ways.flat_map(|(key, read)| targets(&group.members, key, read));
            told.next().is_none()
        };
        if self.groups.iter().all(is_short) {
            return;
        }
        let short = self.groups.iter().filter(|group| is_short(group));
        let names = short.filter_map(|group| group.members.first()?["jobname"].as_str());
        let names: Vec<&str> = names.collect();
        if names.is_empty() {
            return;
        }
        let what = format!(
            "steps with fewer than {FEWEST} I/Os a direction are left out: {}",
            names.join(", ")
        );
        self.groups.retain(|group| !is_short(group));
        self.groups[0].unlike.push(what);
    }
}

fn refused(origin: &str, what: String) -> Problems {
    let mut problems = Problems::whole(origin, what);
    let help =
        "make it with `fio JOBFILE --output-format=json --output=FILE`, or with `drivelab measure`";
    problems.0[0].help = Some(help.into());
    problems
}

fn of_fio(origin: &str, mut root: Value, unlike: &[String]) -> Result<Entries, Problems> {
    if !root.is_object() {
        return Err(refused(origin, "it contains no `jobs`".into()));
    }
    let jobs = documents::jobs(&mut root);
    if jobs.is_empty() {
        return Err(refused(origin, "it contains no `jobs`".into()));
    }
    let key = |job: &Value| {
        let address = (job["hostname"].clone(), job["port"].clone());
        (address, job["groupid"].as_u64().unwrap_or_default())
    };
    let mut groups: Vec<Group> = Vec::new();
    for (globals, job) in jobs {
        match groups.last_mut() {
            Some(group) if key(&group.members[0]) == key(&job) => group.members.push(job),
            _ => groups.push(Group {
                globals,
                members: vec![job],
                unlike: unlike.to_vec(),
            }),
        }
    }
    Ok(Entries {
        version: root["fio version"].as_str().unwrap_or_default().to_owned(),
        groups,
    })
}

/// Returns the jobs of a group, the ways in which they differ from the model's run, and their names.
///
/// # Errors
/// Options that cannot be simulated.
pub(crate) fn jobs_of(
    origin: &str,
    group: &Group,
) -> Result<(Vec<Job>, Vec<String>, String), Problems> {
    let mut jobs = Vec::new();
    let mut unlike: Vec<String> = group.unlike.clone();
    let mut names: Vec<&str> = Vec::new();
    for member in &group.members {
        let name = member["jobname"].as_str().unwrap_or("job");
        // Without `group_reporting`, fio lists every copy of a job.
        if names.contains(&name) {
            continue;
        }
        names.push(name);
        let set = job(origin, name, &group.globals, &member["job options"])?;
        jobs.extend(set.jobs);
        unlike.extend(set.unlike);
    }
    unlike.dedup();
    Ok((jobs, unlike, names.join(" + ")))
}

/// Returns the figures of both directions of a group.
///
/// # Errors
/// The group has no usable figures.
pub(crate) fn figures(
    origin: &str,
    name: &str,
    members: &[Value],
) -> Result<Vec<MeasuredFigure>, Problems> {
    let targets = [("read", true), ("write", false)]
        .into_iter()
        .flat_map(|(key, read)| targets(members, key, read))
        .collect::<Vec<MeasuredFigure>>();
    match targets.is_empty() {
        true => Err(nothing(origin, name, members)),
        false => Ok(targets),
    }
}

/// Checks whether a ramp preceded the counted time.
pub(crate) fn has_ramp(group: &Group) -> bool {
    let members = group.members.iter().map(|member| &member["job options"]);
    let mut all = members.chain([&group.globals]);
    all.any(|options| {
        options["ramp_time"]
            .as_str()
            .is_some_and(|it| !it.trim_matches('0').is_empty())
    })
}

fn run(origin: &str, group: &Group) -> Result<MeasuredRun, Problems> {
    let (jobs, unlike, name) = jobs_of(origin, group)?;
    let wrong = contradictions(&jobs, &group.members, has_ramp(group)).into_iter();
    let wrong = wrong.flat_map(|(what, help)| problem(origin, &name, &what, Some(help.into())).0);
    Problems(wrong.collect()).or(())?;
    Ok(MeasuredRun {
        targets: figures(origin, &name, &group.members)?,
        name,
        jobs,
        unlike,
    })
}

/// Returns the reason why a run has no figures to fit to.
fn nothing(origin: &str, name: &str, members: &[Value]) -> Problems {
    let has = |key: &str| members.iter().any(|member| !member[key].is_null());
    let failed = members.iter().find_map(|member| {
        let error = member["error"].as_i64();
        error.filter(|&error| error != 0)
    });
    let (what, help) = if let Some(error) = failed {
        (
            format!("fio ended the job with error {error}"),
            "measure it again, or take it out of the file",
        )
    } else if has("mixed") {
        let help = "measure without unified_rw_reporting";
        (
            String::from("reads and writes were reported as one (`mixed`)"),
            help,
        )
    } else {
        let help = "run the job for longer; jobs with only trims cannot be fitted";
        (
            format!("fewer than {FEWEST} reads and fewer than {FEWEST} writes were measured"),
            help,
        )
    };
    problem(origin, name, &what, Some(help.into()))
}

fn problem(origin: &str, job: &str, what: &str, help: Option<String>) -> Problems {
    Problems(vec![Problem {
        origin: origin.into(),
        place: Place::Whole,
        what: format!("job {job}: {what}"),
        help,
    }])
}

/// Returns the job that these options describe, without the options that bounded it.
fn job(origin: &str, name: &str, globals: &Value, own: &Value) -> Result<JobSet, Problems> {
    // fio's default, which is not the default of options without a job file.
    let mut options: Vec<(&str, &str)> = vec![("direct", "0")];
    for (key, value) in [globals, own]
        .into_iter()
        .filter_map(Value::as_object)
        .flatten()
    {
        options.retain(|(known, _)| known != key);
        options.push((key, value.as_str().unwrap_or_default()));
    }
    let asked = options
        .into_iter()
        .filter(|(key, _)| !DROPPED.contains(key))
        .map(|(key, value)| match value {
            "" => format!("--{key}"),
            value => format!("--{key}={value}"),
        });
    // A job may consist of default options only.
    let arguments: Vec<String> = std::iter::once("--name=job".into()).chain(asked).collect();
    let surroundings = Surroundings {
        environment: &|_| None,
        read: &|path| {
            Err(std::io::Error::other(format!(
                "{} is not read",
                path.display()
            )))
        },
        processors: 1,
    };
    let mut set = fio::read(&arguments, &[], &[], &surroundings).map_err(|found| {
        let all: Vec<Problem> = found
            .0
            .into_iter()
            .flat_map(|one| problem(origin, name, &one.what, one.help).0)
            .collect();
        Problems(all)
    })?;
    if set.jobs.iter().any(|job| !job.direct) {
        let what = "buffered I/O (direct=0, fio's default) is simulated as direct=1";
        set.unlike.push(what.into());
    }
    let other = |job: &workload::job::Job| match job {
        job if job.zoned.is_some() => Some("zonemode: zbd was measured on the zones of a drive"),
        job if !job.write_modes.is_empty() => Some("write_mode: other commands than writes"),
        _ => None,
    };
    if let Some(what) = set.jobs.iter().find_map(other) {
        let help = "jobs with plain reads and writes on a drive without zones";
        return Err(problem(origin, name, what, Some(help.into())));
    }
    if set.jobs.iter().any(|job| job.cpu_nodes.on_host(2) != [0]) {
        let what = "numa_cpu_nodes: all threads are simulated on the socket of the drive";
        set.unlike.push(what.into());
    }
    for job in &mut set.jobs {
        job.cpu_nodes = workload::job::CpuNodes::Drive;
        job.name = name.into();
        // A file is a small part of the drive, and its place does not matter to the model.
        job.norandommap = true;
        (job.direct, job.filesystem) = (true, None);
        // The place of the file does not matter, and a range longer than the drive ends at the end of the drive.
        job.on_device = true;
    }
    Ok(set)
}

/// Returns the figures of one direction over the members of a group.
fn targets(members: &[Value], key: &str, read: bool) -> Vec<MeasuredFigure> {
    let number = |value: &Value| value.as_f64().unwrap_or_default();
    let sides: Vec<&Value> = members.iter().map(|member| &member[key]).collect();
    let weights: Vec<f64> = sides
        .iter()
        .map(|side| number(&side["total_ios"]))
        .collect();
    let ios: f64 = weights.iter().sum();
    if ios < FEWEST {
        return Vec::new();
    }
    let target = |quantity, value, weight| MeasuredFigure {
        read,
        quantity,
        value,
        weight,
    };
    // Threads of one group behave alike, so the mean of their percentiles is close to the percentile of all.
    let mean_of = |figure: &dyn Fn(&Value) -> f64| {
        let sum: f64 = sides
            .iter()
            .zip(&weights)
            .map(|(side, weight)| figure(side) * weight)
            .sum();
        sum / ios
    };
    let mut all = vec![
        target(
            Quantity::Iops,
            sides.iter().map(|side| number(&side["iops"])).sum(),
            1.0,
        ),
        target(
            Quantity::Mean,
            mean_of(&|side| microseconds(side, "lat", |it| &it["mean"]).unwrap_or_default()),
            1.0,
        ),
    ];
    for (percent, name, weight) in PERCENTILES {
        let value = mean_of(&|side| {
            microseconds(side, "clat", |it| &it["percentile"][name]).unwrap_or_default()
        });
        if ios * (1.0 - percent / 100.0) >= 10.0 {
            all.push(target(Quantity::Percentile(percent), value, weight));
        }
    }
    all.retain(|target| target.value > 0.0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(options: &str) -> String {
        format!(
            r#"{{"global options": {{"ioengine": "libaio", "bs": "4k", "iodepth": "32", "filename": "/dev/nvme0n1", "runtime": "30"}},
            "jobs": [{{"jobname": "deep", "groupid": 0, "job options": {{{options}}},
              "read": {{"iops": 500000.0, "total_ios": 15000000, "lat_ns": {{"mean": 64000.0}},
                "clat_ns": {{"percentile": {{"50.000000": 60000, "99.000000": 90000, "99.900000": 120000}}}}}},
              "write": {{"iops": 0, "total_ios": 0}}}}]}}"#
        )
    }

    #[test]
    fn jobs_and_figures_come_back() {
        let runs = read("r.json", &json(r#""rw": "randread", "iodepth": "32""#)).expect("fio's");
        assert_eq!(runs.len(), 1);
        assert_eq!(
            (runs[0].jobs[0].iodepth, runs[0].jobs[0].runtime),
            (32, None)
        );
        let figures: Vec<String> = runs[0].targets.iter().map(MeasuredFigure::figure).collect();
        let wanted = [
            "read.iops",
            "read.mean_us",
            "read.clat.p50_us",
            "read.clat.p99_us",
            "read.clat.p99.9_us",
        ];
        assert_eq!(figures, wanted);
        assert_eq!(runs[0].targets[4].value, 120.0);
    }

    /// A measurement that differs from the model's run (a served drive through fio's own NBD client, a page cache) is
    /// reported and does not prevent the fit.
    #[test]
    fn what_was_measured_otherwise_is_told() {
        let told = |options: &str| {
            let runs = read("r.json", &json(options)).expect("fio's");
            runs[0].unlike.join("; ")
        };
        assert_eq!(told(r#""rw": "randread", "direct": "1""#), "");
        let nbd = r#""rw": "randread", "ioengine": "nbd", "uri": "nbd://localhost""#;
        assert!(told(nbd).starts_with("ioengine=nbd is taken as libaio"));
        assert!(told(r#""rw": "randread""#).starts_with("buffered I/O"));
        let zoned = json(r#""rw": "randread", "direct": "1", "zonemode": "zbd""#);
        let refused = read("r.json", &zoned).expect_err("a zoned drive");
        assert!(refused.to_string().contains("zonemode: zbd"), "{refused}");
    }

    #[test]
    fn json_that_is_no_object_is_refused() {
        for text in ["2", "[]", "null", "\"jobs\""] {
            let refused = read("results.json", text).expect_err("no results");
            assert!(refused.to_string().contains("jobs"), "{text}: {refused}");
        }
    }

    #[test]
    fn text_around_the_json_is_fios_own_and_of_several_results_the_last_counts() {
        let one = json(r#""rw": "randread", "bs": "4k""#);
        let alone = read("results.json", &one).expect("a result");
        let around = format!("note: both\n{one}\na: (groupid=0, jobs=1): err= 0: pid=7\n");
        assert_eq!(read("results.json", &around).expect("a result"), alone);
        let twice = format!("{one}\n{one}");
        let last = read("results.json", &twice).expect("two results");
        assert_eq!(last[0].targets, alone[0].targets);
        assert!(last[0].unlike[0].contains("2 complete results"));
    }

    #[test]
    fn what_is_no_result_of_fio_is_refused() {
        for (text, part) in [
            ("rw=read", "not fio's JSON"),
            ("{}", "it contains no `jobs`"),
            (&*json(r#""rw": "sideways""#), "job deep: rw"),
            (
                r#"{"jobs": [{"jobname": "a", "error": 5, "job options": {}}]}"#,
                "job a: fio ended the job with error 5",
            ),
            (
                r#"{"jobs": [{"jobname": "a", "error": 0, "job options": {}, "mixed": {"iops": 9, "total_ios": 900}}]}"#,
                "job a: reads and writes were reported as one",
            ),
            (
                r#"{"jobs": [{"jobname": "a", "job options": {}, "read": {"total_ios": 99}}]}"#,
                "job a: fewer than 100 reads",
            ),
        ] {
            let said = read("r.json", text).expect_err(text).to_string();
            assert!(said.contains(part), "{said}");
        }
    }

    #[test]
    fn steps_that_tell_nothing_are_left_out_unless_none_does() {
        let group = |(name, ios): (&str, u32)| Group {
            globals: Value::Null,
            members: vec![serde_json::json!({"jobname": name,
                "read": {"total_ios": ios, "iops": 900.0, "lat_ns": {"mean": 1e4}}})],
            unlike: Vec::new(),
        };
        let left = |steps: &[(&str, u32)]| {
            let mut all = Entries {
                version: String::new(),
                groups: steps.iter().copied().map(group).collect(),
            };
            all.leave_out_short_steps();
            all.groups
        };
        let some = left(&[("a", 9), ("b", 5000), ("c", 3)]);
        assert_eq!(some.len(), 1);
        assert!(
            some[0].unlike[0].ends_with("left out: a, c"),
            "{:?}",
            some[0].unlike
        );
        assert_eq!(left(&[("a", 9), ("c", 3)]).len(), 2);
        assert!(left(&[("b", 5000)])[0].unlike.is_empty());
    }
}
