//! Preparation of a measurement: the parameters, with every reason why it is impossible.

use std::path::Path;

use model::Span;
use study::measure::{
    Document, MeasureOptions, MeasureSettings, MeasuredDevice, MeasuredHost, Plan,
};
use text::digits::bytes_decimal;
use text::problem::Problems;
use text::words::listed;

use super::fio::Fio;
use super::refusal::TargetState;
use super::sysfs::Tree;
use super::target::MeasuredTarget;
use super::{Args, of_device};
use crate::answer::collect_problems;
use crate::failure::on_command_line;
use crate::output;

/// Minimum size of a drive in bytes.
const SMALLEST: u64 = 1 << 20;

/// A completely checked measurement.
pub(super) struct CheckedMeasurement {
    pub(super) plan: Plan,
    pub(super) settings: MeasureSettings,
    pub(super) fio: Fio,
    pub(super) fresh: Document,
    pub(super) target: MeasuredTarget,
    /// Reasons for a refusal; only in a dry run, where the commands are still shown.
    pub(super) refused: Problems,
}

impl CheckedMeasurement {
    /// Reads and checks all parameters.
    ///
    /// # Errors
    /// All reasons why the measurement is impossible.
    pub(super) fn read(args: &Args) -> Result<CheckedMeasurement, Problems> {
        let mut problems = Problems::default();
        let plan = Plan::named(&args.plan).and_then(|plan| match args.read_only {
            true => plan.reads_alone(),
            false => Ok(plan),
        });
        let plan = collect_problems(plan, &mut problems);
        let tree = Tree::of_the_machine();
        let target = collect_problems(MeasuredTarget::open(&args.device, &tree), &mut problems);
        let fio = collect_problems(Fio::installed(), &mut problems);
        let outputs = output::requested_files([("--output", &args.output)]);
        let unwritable = output::problems(&outputs, &[Path::new(&args.device)]);
        problems.0.extend(unwritable.0);
        let (Some(plan), Some(target)) = (plan, target) else {
            return Err(problems);
        };
        let device = target.device(&tree);
        problems.0.extend(of_extent(args, &device).0);
        let standing = TargetState::inspect(&target, &device, &tree);
        let mut refused = standing.problems(plan.writes(), args.destroy_data.as_deref());
        if !args.dry_run {
            problems.0.append(&mut refused.0);
        }
        let engine = fio.as_ref().and_then(|fio| {
            let engine = fio.engine(args.ioengine.as_deref(), &target);
            collect_problems(engine, &mut problems)
        });
        let (Some(fio), Some(engine), true) = (fio, engine, problems.0.is_empty()) else {
            return Err(problems);
        };
        let mut settings = MeasureSettings {
            target: target.for_fio(),
            engine,
            size_bytes: args.size,
            is_read_only: !plan.writes(),
        };
        if !args.dry_run {
            settings.engine = fio.working(settings.clone(), args.ioengine.is_some())?;
        }
        let (plan, asked) = shortened(plan, args, &device);
        let host = MeasuredHost {
            kernel: tree.kernel(),
            cpu: tree.cpu(),
            processors: tree.processors(),
            fio: fio.version.clone(),
            engine: settings.engine.clone(),
        };
        let notes = notes(&plan, &asked, &standing, device.size_bytes);
        let fresh = Document::new(device, host, asked, notes, &plan);
        Ok(CheckedMeasurement {
            plan,
            settings,
            fio,
            fresh,
            target,
            refused,
        })
    }
}

/// Returns problems of the requested time and size.
fn of_extent(args: &Args, device: &MeasuredDevice) -> Problems {
    let mut problems = Problems::default();
    if args
        .runtime
        .is_some_and(|runtime| runtime < Span::from_ms(10))
    {
        let what = "--runtime: shorter than 10 ms, fio measures nothing";
        problems.0.push(on_command_line(what, "such as 2s"));
    }
    if device.size_bytes == Some(0) {
        let help = "a device with a medium; a loop device with a file";
        problems
            .0
            .push(of_device(&args.device, "has no size", help));
    }
    let Some(size) = args.size else {
        return problems;
    };
    if size < SMALLEST {
        problems
            .0
            .push(on_command_line("--size: less than 1 MiB", "such as 8G"));
    }
    if let Some(all) = device.size_bytes.filter(|all| *all < size) {
        let what = format!("--size: {} has {all} bytes, not {size}", args.device);
        problems
            .0
            .push(on_command_line(what, "less, or leave it out"));
    }
    problems
}

/// Returns the plan with the requested length, without steps that the device's blocks do not support.
fn shortened(mut plan: Plan, args: &Args, device: &MeasuredDevice) -> (Plan, MeasureOptions) {
    let runtime_s = args.runtime.map(Span::seconds);
    if let Some(seconds) = runtime_s {
        plan.shorten(seconds);
    }
    let left_out = device
        .block_bytes
        .map(|bytes| plan.without_smaller_than(bytes));
    let asked = MeasureOptions {
        plan: plan.name.clone(),
        is_read_only: !plan.writes(),
        runtime_s,
        size_bytes: args.size,
        left_out: left_out.unwrap_or_default(),
        jobs: plan.jobs.clone(),
    };
    (plan, asked)
}

/// Returns notes for readers of the figures.
fn notes(
    plan: &Plan,
    asked: &MeasureOptions,
    standing: &TargetState,
    all: Option<u64>,
) -> Vec<String> {
    let mut notes = standing.notes();
    if plan.writes() {
        notes.push(String::from(
            "this program did not purge the drive (nvme format, blkdiscard): its earlier state is unknown",
        ));
    } else {
        notes.push(String::from(
            "only reads: blocks that were never written, or were trimmed, are answered without the medium",
        ));
    }
    if let Some(used) = asked
        .size_bytes
        .filter(|used| all.is_none_or(|all| *used < all))
    {
        let of = all.map_or_else(String::new, |all| {
            format!(" of {}", bytes_decimal(all as f64))
        });
        notes.push(format!(
            "only the first {}{of} were used",
            bytes_decimal(used as f64)
        ));
    }
    if let Some(seconds) = asked.runtime_s {
        notes.push(format!(
            "each timed step ran for {} s, not as long as the plan says",
            text::digits::digits(seconds)
        ));
    }
    if !asked.left_out.is_empty() {
        notes.push(format!(
            "left out, because the device's blocks are larger: {}",
            listed(&asked.left_out)
        ));
    }
    notes
}
