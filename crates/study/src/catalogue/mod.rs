//! Drives and hosts as written: one TOML each under `catalogue/`, every figure with its source and kind.
//!
//! To add a drive: one file under `catalogue/`, nothing else. To add a medium: a file here with a `read` function, and
//! a line in [`MEDIA`]. Drives of one family share `NAME.family.toml`: a drive that says `family = "NAME"` takes from
//! there whatever its own file does not say. What neither says of [`administration`] comes from `common.toml`.

pub mod administration;
pub(crate) mod change;
mod common;
mod figure;
mod host;
mod nand;
pub mod quantity;
mod raid0;
mod ram;
pub mod section;
mod setting;
mod xpoint;

use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use include_dir::{Dir, include_dir};
use model::host::HostConfig;
use model::management::Management;
use model::media::DriveConfig;
use toml_edit::Document;

pub use administration::NvmeIdentity;
pub use change::{Change, drive_with, host_with};
pub use common::Identity;
pub(crate) use figure::{key_span, quoted, span_of};
pub use section::Section;
use section::{Findings, SourceFile};
pub use setting::Settings;

use crate::problem::{Problem, Problems, nearest};
use crate::workload::act::Costs;

/// What holds for every drive that does not say otherwise.
const COMMON: &str = include_str!("../../../../catalogue/common.toml");

static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../catalogue");

/// Reads the section of one medium.
type ReadMedium = fn(&mut Section<'_>, &Context<'_>) -> DriveConfig;

/// The media there are, by the name of their section.
const MEDIA: &[(&str, ReadMedium)] = &[
    ("xpoint", xpoint::read),
    ("nand", nand::read),
    ("ram", ram::read),
    ("raid0", raid0::read),
];

/// What a medium's reader may need beside its own section.
pub struct Context<'a> {
    /// Bytes a host can address, a multiple of 4096.
    pub capacity: u64,
    /// Bytes in a logical block: 512 or 4096.
    pub block: u32,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Where the drive's file is: members and families are looked for beside it first.
    home: &'a Home,
    /// Whether the drive is a member of another.
    role: Role<'a>,
}

/// Whether a drive is read for itself or as a part of another.
#[derive(Clone, Copy)]
enum Role<'a> {
    /// For itself, with these figures of its members changed (`members.NAME.KEY`).
    Alone(&'a [Change]),
    /// As a member of another.
    Member,
}

/// What kind of figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the maker's specification.
    Spec,
    /// Measured by somebody on a real drive.
    Measured,
    /// Set so that the model reproduces the source.
    Fitted,
    /// Nobody has published it; chosen for a stated reason.
    Assumed,
}

impl Kind {
    /// All kinds, the best known first.
    pub const ALL: [Kind; 4] = [Kind::Spec, Kind::Measured, Kind::Fitted, Kind::Assumed];

    /// The word for it in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Spec => "spec",
            Kind::Measured => "measured",
            Kind::Fitted => "fitted",
            Kind::Assumed => "assumed",
        }
    }

    fn named(word: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == word)
    }
}

/// One figure of a drive or host, as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Dotted key, such as `xpoint.read`.
    pub key: String,
    /// The value as written, such as `6.9 us`.
    pub value: String,
    /// Its kind.
    pub kind: Kind,
    /// Row ids of `figures.csv`, or the reason for an assumption.
    pub source: String,
    /// A remark on it.
    pub note: Option<String>,
    /// When it held (prices).
    pub date: Option<String>,
    /// The file that says it.
    pub file: String,
    /// Whether that is another file than the drive's own: its family's, or the one of all drives.
    pub inherited: bool,
}

/// A drive of the catalogue, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct DriveSheet {
    /// Short name: the file's stem, such as `p4800x-375`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Who makes it.
    pub maker: String,
    /// The medium in a reader's words, such as `3D XPoint`.
    pub medium: String,
    /// The family whose file it shares, if any.
    pub family: Option<String>,
    /// Such as `HHHL card`.
    pub form_factor: String,
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Bytes a host can address.
    pub capacity: u64,
    /// What the model is built from, in the first of its LBA formats.
    pub config: DriveConfig,
    /// What its administrator may ask of it: LBA formats (the first is in use), power settings, temperature, retention.
    pub management: Management,
    /// What NVMe's Identify shows.
    pub nvme: NvmeIdentity,
    /// Whether it keeps through a loss of power what it has acknowledged, by capacitors or without a volatile cache; if
    /// published.
    pub power_loss_protection: Option<bool>,
    /// I/O queues the drive offers.
    pub io_queues: u16,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in US dollars, if published; its source and kind are those of the figure `price`.
    pub price_usd: Option<f64>,
    /// When that was the price, such as `2017-11`.
    pub price_date: Option<String>,
    /// How it was fitted to measurements of a user's, in a sentence; none for a drive that nobody fitted so.
    pub fit: Option<String>,
    /// Every figure, in the order in which drives of this medium have them.
    pub figures: Vec<Figure>,
    /// The drives a RAID-0 is made of, each once.
    pub members: Vec<DriveSheet>,
}

/// A host of the catalogue, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct HostSheet {
    /// Short name: the file's stem.
    pub id: String,
    /// Full name.
    pub name: String,
    /// What the model is built from (with `io_queues` still to be set from the drive).
    pub config: HostConfig,
    /// Processors with as many cores each, for programs that are not bound to the drive's.
    pub sockets: u16,
    /// What Aerospike's test costs there, if that is known.
    pub act: Option<Costs>,
    /// Every figure of the file, in its order.
    pub figures: Vec<Figure>,
}

impl DriveSheet {
    /// The figure of this dotted key.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Every figure of the drive and of its members.
    pub fn all_figures(&self) -> impl Iterator<Item = &Figure> {
        let of_members = self.members.iter().flat_map(|member| &member.figures);
        self.figures.iter().chain(of_members)
    }

    /// Rated drive writes a day over the warranty, if both are published.
    pub fn drive_writes_per_day(&self) -> Option<f64> {
        let days = self.warranty_years? * 365.0;
        Some(self.endurance_bytes? as f64 / self.capacity as f64 / days)
    }

    /// What of the dies is usable and what is spare; `None` for what has no dies.
    pub fn spare(&self) -> Option<Spare> {
        Some(Spare {
            raw_bytes: self.config.raw_bytes()?,
            usable_bytes: self.capacity,
        })
    }

    /// Price of a decimal gigabyte in US dollars, if a price is published.
    pub fn usd_per_gb(&self) -> Option<f64> {
        Some(self.price_usd? / (self.capacity as f64 * 1e-9))
    }
}

/// Spare area: what the dies hold beyond what a host can address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Bytes of all dies.
    pub raw_bytes: u64,
    /// Bytes a host can address.
    pub usable_bytes: u64,
}

impl Spare {
    /// Bytes beyond the usable ones.
    pub fn bytes(&self) -> u64 {
        self.raw_bytes.saturating_sub(self.usable_bytes)
    }

    /// Spare as a share of raw, 0 to 1.
    pub fn share(&self) -> f64 {
        self.bytes() as f64 / self.raw_bytes.max(1) as f64
    }

    /// Raw and spare "GB" where a die of 128 Gb counts as 16 GB, as reviewers count (S4-040 to S4-057): dies hold
    /// binary gigabytes, hosts see decimal ones.
    pub fn nominal_gb(&self) -> (f64, f64) {
        let raw = self.raw_bytes as f64 / 1_073_741_824.0;
        (raw, raw - libm::round(self.usable_bytes as f64 * 1e-9))
    }
}

/// Where a catalogue file came from.
#[derive(Clone, Debug)]
enum Home {
    /// The catalogue inside the program.
    BuiltIn,
    /// A folder on disk.
    Folder(PathBuf),
}

/// A catalogue file that has been found.
struct Located {
    id: String,
    file: SourceFile,
    home: Home,
}

/// The drive of this name, or in the file at this path.
///
/// # Errors
/// Everything wrong with the file, or that there is no such drive and what the nearest name is.
pub fn drive(name_or_path: &str) -> Result<DriveSheet, Problems> {
    read_drive(
        &locate(name_or_path, "drive", &Home::BuiltIn)?,
        Role::Alone(&[]),
    )
}

/// The host of this name, or in the file at this path.
///
/// # Errors
/// Everything wrong with the file, or that there is no such host and what the nearest name is.
pub fn host(name_or_path: &str) -> Result<HostSheet, Problems> {
    read_host(&locate(name_or_path, "host", &Home::BuiltIn)?)
}

/// All drives of the built-in catalogue, by medium and id.
///
/// # Errors
/// Everything wrong with all of them (a test sees to it that there is nothing).
pub fn drives() -> Result<Vec<DriveSheet>, Problems> {
    let mut problems = Vec::new();
    let mut sheets = Vec::new();
    for path in built_in_paths("drive") {
        let sheet = built_in(path).and_then(|located| read_drive(&located, Role::Alone(&[])));
        match sheet {
            Ok(sheet) => sheets.push(sheet),
            Err(found) => problems.extend(found.0),
        }
    }
    Problems(problems).or(sheets)
}

/// The names of the built-in drives.
pub fn drive_names() -> Vec<&'static str> {
    built_in_paths("drive").into_iter().map(stem).collect()
}

/// The names of the built-in hosts.
pub fn host_names() -> Vec<&'static str> {
    built_in_paths("host").into_iter().map(stem).collect()
}

/// The drive in this text; `origin` names the text in messages. Families are those of the built-in catalogue.
///
/// # Errors
/// Everything wrong with the text.
pub fn drive_from_text(origin: &str, text: &str) -> Result<DriveSheet, Problems> {
    let located = Located {
        id: stem(Path::new(origin)).to_owned(),
        file: SourceFile {
            origin: origin.to_owned(),
            text: Arc::from(text),
        },
        home: Home::BuiltIn,
    };
    read_drive(&located, Role::Alone(&[]))
}

fn stem(path: &Path) -> &str {
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.unwrap_or_default();
    name.strip_suffix(".toml").unwrap_or(name)
}

/// Files of the built-in catalogue that are drives, hosts or families, in the order of folder and name.
fn built_in_paths(what: &str) -> Vec<&'static Path> {
    let mut paths: Vec<&'static Path> = BUILT_IN
        .dirs()
        .flat_map(|folder| folder.files())
        .map(include_dir::File::path)
        .filter(|path| {
            let is_toml = path
                .extension()
                .is_some_and(|extension| extension == "toml");
            let is = if stem(path).ends_with(".family") {
                "family"
            } else if path.starts_with("host") {
                "host"
            } else {
                "drive"
            };
            is_toml && is == what
        })
        .collect();
    // XPoint first, as the drives this began with; then by name.
    paths.sort_by_key(|path| (Reverse(path.starts_with("xpoint")), path.to_path_buf()));
    paths
}

fn built_in(path: &Path) -> Result<Located, Problems> {
    let origin = format!("catalogue/{}", path.display());
    let text = BUILT_IN
        .get_file(path)
        .and_then(include_dir::File::contents_utf8)
        .ok_or_else(|| Problems::whole(&*origin, "not UTF-8"))?;
    Ok(Located {
        id: stem(path).to_owned(),
        file: SourceFile {
            origin,
            text: Arc::from(text),
        },
        home: Home::BuiltIn,
    })
}

fn on_disk(path: &Path) -> Result<Located, Problems> {
    let origin = path.display().to_string();
    let text = std::fs::read_to_string(path)
        .map_err(|error| Problems::whole(&*origin, format!("cannot be read: {error}")))?;
    Ok(Located {
        id: stem(path).to_owned(),
        file: SourceFile {
            origin,
            text: Arc::from(text),
        },
        home: Home::Folder(path.parent().unwrap_or(Path::new("")).to_owned()),
    })
}

/// The drive, host or family of this name: a path, a file beside the one that names it, or one of the built-in ones.
fn locate(name: &str, what: &str, beside: &Home) -> Result<Located, Problems> {
    if name.ends_with(".toml") || name.contains(['/', '\\']) {
        return on_disk(Path::new(name));
    }
    let file_name = match what {
        "family" => format!("{name}.family"),
        _ => name.to_owned(),
    };
    if let Home::Folder(folder) = beside {
        let path = folder.join(format!("{file_name}.toml"));
        if path.is_file() {
            return on_disk(&path);
        }
    }
    let paths = built_in_paths(what);
    if let Some(path) = paths.iter().find(|path| stem(path) == file_name) {
        return built_in(path);
    }
    let meant = meant(name, &file_name, &paths);
    Err(Problems(vec![Problem {
        origin: name.to_owned(),
        place: crate::problem::Place::Whole,
        what: format!("there is no {what} of this name"),
        help: Some(match (meant.is_empty(), what) {
            (false, _) => format!("did you mean `{}`?", meant.join("` or `")),
            (true, "drive") => String::from(
                "`drivelab drives` lists them; a file of your own is named by its path",
            ),
            (true, _) => String::from("a file of your own is named by its path"),
        }),
    }]))
}

/// The names that somebody may have meant who wrote this one: those that hold it (`p4800x`), else the nearest.
fn meant<'a>(written: &str, file_name: &str, paths: &[&'a Path]) -> Vec<&'a str> {
    let part = written.to_ascii_lowercase();
    let known = || paths.iter().map(|path| stem(path));
    let holding = known().filter(|name| part.len() > 2 && name.contains(&part));
    let mut names: Vec<&str> = holding.collect();
    if names.is_empty() {
        names.extend(nearest(file_name, known()));
    }
    for name in &mut names {
        *name = name.trim_end_matches(".family");
    }
    names
}

/// The document of a file.
///
/// # Errors
/// It is not TOML.
pub(crate) fn parse(file: &SourceFile) -> Result<Document<&str>, Problems> {
    Document::parse(&*file.text).map_err(|error| {
        let message = error.message().trim().replace('\n', "; ");
        Problems(vec![file.problem(
            error.span(),
            format!("not TOML: {message}"),
            None,
        )])
    })
}

/// The family's file that the document names, if it names one.
fn family(document: &Document<&str>, located: &Located) -> Result<Option<Located>, Problems> {
    let Some(item) = document.get("family") else {
        return Ok(None);
    };
    // A family that is no string is reported by the reader of the common part.
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

fn read_drive(located: &Located, role: Role<'_>) -> Result<DriveSheet, Problems> {
    let own = parse(&located.file)?;
    let family = family(&own, located)?;
    let family = match &family {
        Some(family) => Some((&family.file, parse(&family.file)?)),
        None => None,
    };
    let common = SourceFile {
        origin: String::from("catalogue/common.toml"),
        text: Arc::from(COMMON),
    };
    let of_all = parse(&common)?;
    let findings = Findings::default();
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
    let config = read_medium(&mut root, &context);
    if let Some(config) = &config {
        administration.check(&mut root, config);
    }
    if let (Role::Alone([(key, _), ..]), Some(config)) = (role, &config)
        && !matches!(config, DriveConfig::Raid0(_))
    {
        let what = format!("`{key}` cannot be changed: the drive has no members");
        root.whole_problem(what, "members are those of a RAID-0");
    }
    drop(root);
    let problems = Problems(findings.problems.into_inner());
    let (Some(config), true) = (config, problems.0.is_empty()) else {
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
        // A RAID may round it down to whole stripes.
        capacity: config.capacity_bytes(),
        config,
        management: administration.management,
        nvme: administration.nvme,
        power_loss_protection: administration.power_loss_protection,
        io_queues: identity.io_queues,
        endurance_bytes: identity.endurance_bytes,
        warranty_years: identity.warranty_years,
        price_usd: identity.price_usd,
        price_date: identity.price_date,
        fit: identity.fit,
        figures: findings.figures.into_inner(),
        members: findings.members.into_inner(),
    })
}

/// Reads the one section of a medium that the file must have.
fn read_medium(root: &mut Section<'_>, context: &Context<'_>) -> Option<DriveConfig> {
    let present: Vec<_> = MEDIA.iter().filter(|(name, _)| root.has(name)).collect();
    let names: Vec<String> = MEDIA.iter().map(|(name, _)| format!("[{name}]")).collect();
    let help = format!("a drive has one of {}", names.join(", "));
    match present[..] {
        [(name, read)] => Some(read(&mut root.section(name), context)),
        [] => {
            root.whole_problem("the medium's section is missing", help);
            None
        }
        [_, (second, _), ..] => {
            let found: Vec<String> = present
                .iter()
                .map(|(name, _)| format!("[{name}]"))
                .collect();
            let what = format!("more than one medium: {}", found.join(" and "));
            root.problem(second, what, help);
            // What is wrong inside them is told now, and not when one of them has been taken out.
            for (name, read) in present {
                read(&mut root.section(name), context);
            }
            None
        }
    }
}

fn read_host(located: &Located) -> Result<HostSheet, Problems> {
    let own = parse(&located.file)?;
    let findings = Findings::default();
    let mut root = Section::root(&findings, (&located.file, own.as_table()), None);
    let name = root.name("name");
    let config = host::read(&mut root);
    let sockets = root.maybe("sockets", |root, key| root.count(key, 1..=16u16));
    let act = root
        .has("act")
        .then(|| host::read_act(&mut root.section("act")));
    drop(root);
    Problems(findings.problems.into_inner()).or(HostSheet {
        id: located.id.clone(),
        name,
        config,
        sockets: sockets.unwrap_or(1),
        act,
        figures: findings.figures.into_inner(),
    })
}
