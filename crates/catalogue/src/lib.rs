//! Drives and hosts as written: one TOML file each under `catalogue/`, with the source and kind of every figure.
//!
//! To add a drive, add one file under `catalogue/`. To add a medium, add a file here with a [`MediumSection`], and
//! its line in [`MEDIA`]. Drives of one family share `NAME.family.toml`: a drive with `family = "NAME"` takes from
//! this file whatever its own file does not give. Keys of [`administration`] that neither file gives come from
//! `common.toml`.

pub mod administration;
pub mod change;
mod common;
mod condition;
mod data_sheet;
mod figure;
mod hdd;
mod host;
mod locate;
mod nand;
pub mod option;
mod pool;
mod qos;
mod raid0;
mod ram;
mod ratings;
pub mod section;
mod setting;
mod sheet;
mod smaller;
mod sold;
mod volume;
mod xpoint;

use std::path::Path;
use std::sync::Arc;

use model::management::LbaFormat;
use model::media::Medium;
use tier::DriveConfig;
use toml_edit::Document;

pub use administration::{NvmeIdentity, VendorLogPages};
pub use change::{Change, host_with};
pub use common::Identity;
pub use condition::Age;
pub use data_sheet::{DataSheet, SolvedFigure};
pub use host::PAGE_CACHE;
pub use locate::drives_like;
use locate::{
    CatalogueFile, Home, built_in, built_in_paths, built_in_pool, locate, pool_paths, stem,
};
pub use pool::{ChildRole as PoolRole, PoolSheet, TierSheet, TunableSetting, text_of_expression};
pub use qos::QosBound;
pub use ratings::{RatedQuantity, Ratings};
use section::Findings;
pub use section::Section;
pub use setting::{Settings, drive_as};
pub use sheet::{DriveSheet, Figure, FigureKind, HostSheet, Spare};
pub use sold::SalesPeriod;

use text::problem::Problems;
use text::toml::{SourceFile, parse};

/// Defaults for all drives.
const COMMON: &str = include_str!("../../../catalogue/common.toml");

/// The section of a drive file that describes one medium.
struct MediumSection {
    /// Name of the section.
    name: &'static str,
    /// Reader of the section.
    read: fn(&mut Section<'_>, &Context<'_>) -> DriveConfig,
    /// The figures that a fit sets by default: they differ between drives of one medium and affect every benchmark.
    free: &'static [&'static str],
    /// Whether the medium consists of other drives, whose figures `members.NAME.KEY` changes.
    composed: bool,
}

/// Readers of all medium sections.
const MEDIA: &[MediumSection] = &[
    xpoint::SECTION,
    nand::SECTION,
    hdd::SECTION,
    ram::SECTION,
    volume::SECTION,
    raid0::SECTION,
];

/// Data that the reader of a medium may need in addition to its own section.
pub struct Context<'a> {
    /// Bytes that a host can address, a multiple of 4096.
    pub capacity: u64,
    /// Bytes in a logical block: 512 or 4096.
    pub block: u32,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Location of the drive's file. Members and families are looked up next to it first.
    home: &'a Home,
    /// Whether the drive is a member of another drive.
    role: DriveRole<'a>,
}

/// Whether a drive is read for itself or as part of another drive.
#[derive(Clone, Copy)]
enum DriveRole<'a> {
    /// A drive for itself, with changed figures of its members (`members.NAME.KEY`).
    Alone(&'a [Change]),
    /// A member of another drive.
    Member,
    /// A data sheet that becomes a drive of this family, or of the family that it names. The number of dies follows
    /// from the capacity.
    DataSheet(Option<&'a str>),
}

/// Returns the drive or pool of this name, of the file at this path, or of this expression.
///
/// # Errors
/// All problems in the file. If the drive does not exist, the problem suggests the nearest name.
pub fn drive(name_or_path: &str) -> Result<DriveSheet, Problems> {
    drive_with(name_or_path, &[])
}

/// Returns the drive or pool of this name, path or expression, with changed figures. Figures of members are
/// `members.NAME.KEY`, figures of the tiers of a pool `tier.NAME.KEY`.
///
/// # Errors
/// As [`drive`]. A changed figure that does not exist or is invalid is reported as if the file contained it.
pub fn drive_with(name_or_path: &str, changes: &[Change]) -> Result<DriveSheet, Problems> {
    let settings = Settings {
        figures: changes.to_vec(),
        ..Settings::default()
    };
    drive_as(name_or_path, &settings)
}

/// Returns the drive or pool with the figures that the settings change. The members of a pool are in the given
/// condition.
fn drive_in(name_or_path: &str, settings: &Settings) -> Result<DriveSheet, Problems> {
    if pool::is_expression(name_or_path) {
        return pool::of_expression(name_or_path, settings);
    }
    any_in(locate(name_or_path, "drive", &Home::BuiltIn)?, settings)
}

/// Returns the drive or pool in this file.
fn any_in(located: CatalogueFile, settings: &Settings) -> Result<DriveSheet, Problems> {
    match pool::is_pool(&located.file) {
        true => pool::of_file(&located, settings),
        false => change::drive_of(located, &settings.figures),
    }
}

/// Returns the host of this name, or of the file at this path.
///
/// # Errors
/// All problems in the file. If the host does not exist, the problem suggests the nearest name.
pub fn host(name_or_path: &str) -> Result<HostSheet, Problems> {
    read_host(&locate(name_or_path, "host", &Home::BuiltIn)?)
}

/// Returns all drives of the built-in catalogue, by medium and id.
///
/// # Errors
/// All problems in all files (a test ensures that there are none).
pub fn drives() -> Result<Vec<DriveSheet>, Problems> {
    let mut problems = Vec::new();
    let mut sheets = Vec::new();
    for path in built_in_paths("drive") {
        let sheet = built_in(path).and_then(|located| read_drive(&located, DriveRole::Alone(&[])));
        match sheet {
            Ok(sheet) => sheets.push(sheet),
            Err(found) => problems.extend(found.0),
        }
    }
    Problems(problems).or(sheets)
}

/// Returns all built-in pools, by name.
///
/// # Errors
/// All problems in all files (a test ensures that there are none).
pub fn pools() -> Result<Vec<DriveSheet>, Problems> {
    let mut problems = Vec::new();
    let mut sheets = Vec::new();
    for path in pool_paths() {
        match built_in_pool(path).and_then(|located| any_in(located, &Settings::default())) {
            Ok(sheet) => sheets.push(sheet),
            Err(found) => problems.extend(found.0),
        }
    }
    Problems(problems).or(sheets)
}

/// Returns the names of the built-in pools.
pub fn pool_names() -> Vec<&'static str> {
    pool_paths().into_iter().map(stem).collect()
}

/// Checks whether the text is a pool expression and not a name or a path.
pub fn is_expression(words: &str) -> bool {
    pool::is_expression(words)
}

/// Returns the names of the built-in drives.
pub fn drive_names() -> Vec<&'static str> {
    built_in_paths("drive").into_iter().map(stem).collect()
}

/// The default host: a typical server.
pub const TYPICAL_HOST: &str = "linux";

/// The host that represents the systems on which makers rate drives: nothing sleeps.
pub const RATING_HOST: &str = "xeon-2017";

/// The default host for volumes: a virtual machine.
pub const GUEST_HOST: &str = "virtual-machine";

/// Returns the names of the built-in hosts.
pub fn host_names() -> Vec<&'static str> {
    built_in_paths("host").into_iter().map(stem).collect()
}

/// Returns the drive or pool in this text; `origin` names the text in messages. Families are those of the built-in
/// catalogue.
///
/// # Errors
/// All problems in the text.
pub fn drive_from_text(origin: &str, text: &str) -> Result<DriveSheet, Problems> {
    drive_from_text_with(origin, text, &[])
}

/// Returns the drive or pool in this text with changed figures, as [`drive_with`].
///
/// # Errors
/// All problems in the text. A changed figure that does not exist or is invalid is reported as if the text contained
/// it.
pub fn drive_from_text_with(
    origin: &str,
    text: &str,
    changes: &[Change],
) -> Result<DriveSheet, Problems> {
    let settings = Settings {
        figures: changes.to_vec(),
        ..Settings::default()
    };
    drive_from_text_as(origin, text, &settings)
}

/// Returns the drive or pool in this text with all given settings, as [`drive_as`].
///
/// # Errors
/// As [`drive_from_text_with`] and [`DriveSheet::set`].
pub fn drive_from_text_as(
    origin: &str,
    text: &str,
    settings: &Settings,
) -> Result<DriveSheet, Problems> {
    setting::set_on(settings, |settings| any_in(in_text(origin, text), settings))
}

/// Returns the host in this text; `origin` names the text in messages.
///
/// # Errors
/// All problems in the text.
pub fn host_from_text(origin: &str, text: &str) -> Result<HostSheet, Problems> {
    read_host(&in_text(origin, text))
}

fn in_text(origin: &str, text: &str) -> CatalogueFile {
    CatalogueFile {
        id: stem(Path::new(origin)).to_owned(),
        file: SourceFile {
            origin: origin.to_owned(),
            text: Arc::from(text),
        },
        home: Home::BuiltIn,
    }
}

/// Returns the family file that the document names, if it names one.
fn family(
    document: &Document<&str>,
    located: &CatalogueFile,
    role: DriveRole<'_>,
) -> Result<Option<CatalogueFile>, Problems> {
    if let DriveRole::DataSheet(Some(name)) = role {
        return locate(name, "family", &located.home).map(Some);
    }
    let Some(item) = document.get("family") else {
        return Ok(None);
    };
    // The reader of the common keys reports a family that is not a string.
    let Some(name) = item.as_str() else {
        return Ok(None);
    };
    locate(name, "family", &located.home)
        .map(Some)
        .map_err(|mut problems| {
            for problem in &mut problems.0 {
                let help = problem.help.take();
                *problem = located
                    .file
                    .problem(item.span(), format!("no family `{name}`"), help);
            }
            problems
        })
}

fn read_drive(located: &CatalogueFile, role: DriveRole<'_>) -> Result<DriveSheet, Problems> {
    let own = parse(&located.file)?;
    let findings = Findings::default();
    let family = findings.family(family(&own, located, role)).flatten();
    let family = family.as_ref().and_then(|family| {
        let document = findings.family(parse(&family.file))?;
        Some((&family.file, document))
    });
    let common = common_file();
    let of_all = parse(&common)?;
    let behind = family
        .as_ref()
        .map(|(file, document)| (*file, document.as_table() as _))
        .into_iter()
        .chain([(&common, of_all.as_table() as _)]);
    let mut root = Section::root(&findings, (&located.file, own.as_table()), behind);
    let identity = common::read(&mut root);
    let context = Context {
        capacity: identity.capacity,
        block: identity
            .lba_formats
            .first()
            .map_or(512, |format| format.data),
        endurance_bytes: identity.endurance_bytes,
        home: &located.home,
        role,
    };
    let administration = administration::read(&mut root, &identity);
    let ratings = ratings::read(&mut root);
    let medium = read_medium(&mut root, &context);
    if let Some((_, config)) = &medium {
        administration.check(&mut root, config);
    }
    if let Some((medium, _)) = &medium {
        check_members(&mut root, role, medium);
    }
    drop(root);
    let problems = Problems(findings.problems.into_inner());
    let (Some((medium, config)), true) = (medium, problems.0.is_empty()) else {
        return Err(problems);
    };
    Ok(DriveSheet {
        id: located.id.clone(),
        name: identity.name,
        maker: identity.maker,
        medium: identity.medium,
        family: identity.family,
        form_factor: identity.form_factor,
        interface: identity.interface,
        // A RAID may round the capacity down to whole stripes.
        capacity: config.capacity_bytes(),
        config,
        management: administration.management,
        nvme: administration.nvme,
        power_loss_protection: administration.power_loss_protection,
        power_states: administration.power_states,
        io_queues: identity.io_queues,
        endurance_bytes: identity.endurance_bytes,
        warranty_years: identity.warranty_years,
        price_usd: identity.price_usd,
        price_date: identity.price_date,
        fit: identity.fit,
        sheet: identity.sheet,
        sold: identity.sold,
        ratings,
        free: medium.free,
        figures: findings.figures.into_inner(),
        members: findings.members.into_inner(),
        pool: None,
    })
}

/// Adds a problem if the members of a drive that has none are changed.
fn check_members(root: &mut Section<'_>, role: DriveRole<'_>, medium: &MediumSection) {
    if let DriveRole::Alone([(key, _), ..]) = role
        && !medium.composed
    {
        let what = format!("`{key}` cannot be changed: the drive has no members");
        root.whole_problem(what, "members are those of a RAID-0");
    }
}

/// Returns the file with the defaults for all drives.
fn common_file() -> SourceFile {
    SourceFile {
        origin: String::from("catalogue/common.toml"),
        text: Arc::from(COMMON),
    }
}

/// Returns the administrative defaults for a drive with these formats.
fn common_administration(
    lba_formats: Vec<LbaFormat>,
) -> Result<administration::Administration, Problems> {
    let file = common_file();
    let findings = Findings::default();
    let identity = Identity {
        lba_formats,
        ..Identity::default()
    };
    let document = parse(&file)?;
    let mut root = Section::root(&findings, (&file, document.as_table()), None);
    Ok(administration::read(&mut root, &identity))
}

/// Finds the one medium section that the file must have, and reads it.
fn read_medium(
    root: &mut Section<'_>,
    context: &Context<'_>,
) -> Option<(&'static MediumSection, DriveConfig)> {
    let present: Vec<&'static MediumSection> = MEDIA
        .iter()
        .filter(|medium| root.has(medium.name))
        .collect();
    let bracketed = |medium: &MediumSection| format!("[{}]", medium.name);
    let names: Vec<String> = MEDIA.iter().map(bracketed).collect();
    let help = format!("a drive has one of {}", names.join(", "));
    match present[..] {
        [medium] => Some((
            medium,
            (medium.read)(&mut root.section(medium.name), context),
        )),
        [] => {
            root.whole_problem("the medium's section is missing", help);
            None
        }
        [_, second, ..] => {
            let found: Vec<String> = present.iter().map(|medium| bracketed(medium)).collect();
            let what = format!("more than one medium: {}", found.join(" and "));
            root.problem(second.name, what, help);
            // Problems inside the sections are reported now, not after one of the sections has been removed.
            for medium in present {
                (medium.read)(&mut root.section(medium.name), context);
            }
            None
        }
    }
}

fn read_host(located: &CatalogueFile) -> Result<HostSheet, Problems> {
    let own = parse(&located.file)?;
    let findings = Findings::default();
    let mut root = Section::root(&findings, (&located.file, own.as_table()), None);
    let name = root.name("name");
    let config = host::read(&mut root);
    let act = root
        .has("act")
        .then(|| host::read_act(&mut root.section("act")));
    drop(root);
    Problems(findings.problems.into_inner()).or(HostSheet {
        id: located.id.clone(),
        name,
        sockets: config.sockets,
        config,
        act,
        figures: findings.figures.into_inner(),
    })
}
