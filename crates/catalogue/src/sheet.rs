//! Contents of a drive or host file: the model's configuration, and every figure with its kind and source.

use model::host::{HostConfig, PowerPolicy, PowerState, PowerTransition, ProgramCosts};
use model::management::Management;
use model::media::Medium;
use tier::DriveConfig;

use super::administration::NvmeIdentity;
use super::change::CHANGED;
use super::pool::PoolSheet;
use super::ratings::Ratings;
use super::sold::SalesPeriod;

/// Origin of a figure.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FigureKind {
    /// From the maker's specification.
    Spec,
    /// Measured on a real drive.
    Measured,
    /// Set so that the model reproduces the source.
    Fitted,
    /// Not in our sources; chosen for a stated reason.
    Assumed,
}

impl FigureKind {
    /// All kinds, the most certain first.
    pub const ALL: [FigureKind; 4] = [
        FigureKind::Spec,
        FigureKind::Measured,
        FigureKind::Fitted,
        FigureKind::Assumed,
    ];

    /// Returns the word in files and tables.
    pub const fn name(self) -> &'static str {
        match self {
            FigureKind::Spec => "spec",
            FigureKind::Measured => "measured",
            FigureKind::Fitted => "fitted",
            FigureKind::Assumed => "assumed",
        }
    }

    pub(super) fn named(word: &str) -> Option<FigureKind> {
        FigureKind::ALL.into_iter().find(|kind| kind.name() == word)
    }

    /// Returns the kind of a figure from this document: [`FigureKind::Spec`], or [`FigureKind::Assumed`] if the name of the
    /// document ends with "not checked", because the figure was not read in it.
    pub fn of_document(document: &str) -> FigureKind {
        match document.trim_end().ends_with("not checked") {
            true => FigureKind::Assumed,
            false => FigureKind::Spec,
        }
    }
}

/// One figure of a drive or host as written.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Dotted key, such as `xpoint.read`.
    pub key: String,
    /// The value as written, such as `6.9 us`.
    pub value: String,
    /// Origin of the value.
    pub kind: FigureKind,
    /// Row ids of `figures.csv`, or the reason for an assumption.
    pub source: String,
    /// Optional remark.
    pub note: Option<String>,
    /// Date for which it was valid (prices).
    pub date: Option<String>,
    /// File that contains the figure.
    pub file: String,
    /// Whether the figure comes from another file: the family's, or the one of all drives.
    pub inherited: bool,
}

/// A drive of the catalogue, checked.
#[derive(Clone, PartialEq, Debug)]
pub struct DriveSheet {
    /// Short name: the file's stem, such as `p4800x-375`.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Name of the manufacturer.
    pub maker: String,
    /// The medium as shown to readers, such as `3D XPoint`.
    pub medium: String,
    /// The family whose file the drive shares, if any.
    pub family: Option<String>,
    /// Such as `HHHL card`.
    pub form_factor: String,
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Bytes that a host can address.
    pub capacity: u64,
    /// Configuration of the model, with the first LBA format.
    pub config: DriveConfig,
    /// Administrative properties: LBA formats (the first is in use), power settings, temperature, retention.
    pub management: Management,
    /// Strings of NVMe Identify.
    pub nvme: NvmeIdentity,
    /// Whether acknowledged data survives a power loss, through capacitors or because there is no volatile cache;
    /// `None` if not published.
    pub power_loss_protection: Option<bool>,
    /// Non-operational NVMe power states, by falling power; empty if the drive has none.
    pub power_states: Vec<PowerState>,
    /// I/O queues that the drive offers.
    pub io_queues: u16,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in US dollars, if published; its source and kind are those of the figure `price`.
    pub price_usd: Option<f64>,
    /// Date of the price, such as `2017-11`.
    pub price_date: Option<String>,
    /// Sentence that describes how the drive was fitted to a user's measurements; `None` if it was not.
    pub fit: Option<String>,
    /// The maker's document from which its own file takes its figures, if named.
    pub sheet: Option<String>,
    /// When it was sold new, if known; `None` for a pool, whose drives have their own.
    pub sold: Option<SalesPeriod>,
    /// Ratings of the maker, if the file gives them.
    pub ratings: Option<Ratings>,
    /// Keys of the figures that a fit sets by default.
    pub free: &'static [&'static str],
    /// All figures, in the order of the keys of this medium.
    pub figures: Vec<Figure>,
    /// Drives of a RAID-0 or a pool, each once.
    pub members: Vec<DriveSheet>,
    /// Properties as a pool, if it is one.
    pub pool: Option<PoolSheet>,
}

/// A host of the catalogue, checked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostSheet {
    /// Short name: the file's stem.
    pub id: String,
    /// Full name.
    pub name: String,
    /// Configuration of the model (the number of queues comes from the drive).
    pub config: HostConfig,
    /// Number of processors with `config`'s cores each, for programs that are not bound to the drive's processor.
    pub sockets: u16,
    /// Costs of Aerospike's ACT on this host, if known.
    pub act: Option<ProgramCosts>,
    /// All figures of the file, in its order.
    pub figures: Vec<Figure>,
}

impl DriveSheet {
    /// Returns the drive that is no longer made, and since when: itself, or the first such drive of a pool or a RAID-0.
    /// For a pool that a candidate with this name completes, such as the pool with a log `p4801x-100`, only drives that
    /// the name contains count: the user has the others. The candidate `none` has none.
    pub fn no_longer_made(&self, candidate: &str) -> Option<(&DriveSheet, &str)> {
        let mut drives = Vec::new();
        self.add_drives(&mut drives);
        let is_own = |one: &&DriveSheet| candidate.contains(&one.id);
        let is_named = drives.iter().any(is_own);
        let mut counted = (drives.into_iter()).filter(|one| match is_named {
            true => is_own(one),
            false => candidate != "none",
        });
        counted.find_map(|one| Some((one, one.sold.as_ref()?.until.as_deref()?)))
    }

    /// Adds the drive, or the drives of a pool at any depth.
    fn add_drives<'a>(&'a self, drives: &mut Vec<&'a DriveSheet>) {
        if self.members.is_empty() || self.sold.is_some() {
            return drives.push(self);
        }
        for member in &self.members {
            member.add_drives(drives);
        }
    }

    /// Whether the drive has non-operational power states of NVMe. A SATA drive does not, whatever its family has.
    pub fn has_power_states(&self) -> bool {
        !self.power_states.is_empty() && self.interface.contains("NVMe")
    }

    /// Returns the power state transitions that this host lets an idle drive make; none for a pool or a RAID-0.
    pub fn power_transitions(&self, host: &HostConfig) -> Vec<PowerTransition> {
        if !self.has_power_states() {
            return Vec::new();
        }
        let idle = self.config.idle_watts();
        let transitions = |policy: &PowerPolicy| policy.transitions(&self.power_states, idle);
        host.power_states.as_ref().map_or(Vec::new(), transitions)
    }

    /// Returns the figure of this dotted key.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Returns the members with their names in `members.NAME.KEY`: each drive of a RAID-0 once, each member of a
    /// pool.
    pub fn named_members(&self) -> Vec<(&str, &DriveSheet)> {
        match (self.pool_config(), &self.pool) {
            (Some(config), Some(pool)) => {
                let names = config.members.iter().map(|member| &*member.name);
                let sheets = pool.members.iter().map(|&member| &self.members[member]);
                names.zip(sheets).collect()
            }
            _ => self.members.iter().map(|it| (&*it.id, it)).collect(),
        }
    }

    /// Returns the ratings if the model was solved to meet them.
    pub fn ratings_met(&self) -> Option<&Ratings> {
        self.ratings.as_ref().filter(|ratings| ratings.met)
    }

    /// Returns a sentence on how well a drive built from its data sheet is known; `None` for other drives, and if a
    /// figure was changed.
    pub fn as_its_sheet_says(&self) -> Option<String> {
        let ratings = self.ratings_met()?.given.len();
        let changed = |figure: &Figure| figure.source == CHANGED.1;
        (!self.figures.iter().any(changed)).then(|| {
            let family = self.family.as_deref().unwrap_or("none");
            format!(
                "made to meet {ratings} ratings of its data sheet; all else is assumed for its family ({family}), and \
                 no measurement tests it"
            )
        })
    }

    /// Returns all figures of the drive and of its members.
    pub fn all_figures(&self) -> impl Iterator<Item = &Figure> {
        let of_members = self.members.iter().flat_map(|member| &member.figures);
        self.figures.iter().chain(of_members)
    }

    /// Returns the rated drive writes per day over the warranty, if both are published.
    pub fn drive_writes_per_day(&self) -> Option<f64> {
        let days = self.warranty_years? * 365.0;
        Some(self.endurance_bytes? as f64 / self.capacity as f64 / days)
    }

    /// Returns the spare area of the dies; `None` for a drive without dies.
    pub fn spare(&self) -> Option<Spare> {
        Some(Spare {
            raw_bytes: self.config.raw_bytes()?,
            usable_bytes: self.capacity,
        })
    }

    /// Returns the price per decimal gigabyte in US dollars, if a price is published.
    pub fn usd_per_gb(&self) -> Option<f64> {
        Some(self.price_usd? / (self.capacity as f64 * 1e-9))
    }
}

/// Spare area: capacity of the dies beyond the capacity that a host can address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Spare {
    /// Bytes of all dies.
    pub raw_bytes: u64,
    /// Bytes that a host can address.
    pub usable_bytes: u64,
}

impl Spare {
    /// Returns the bytes beyond the usable ones.
    pub fn bytes(&self) -> u64 {
        self.raw_bytes.saturating_sub(self.usable_bytes)
    }

    /// Returns the spare area as a share of raw capacity, 0 to 1.
    pub fn share(&self) -> f64 {
        self.bytes() as f64 / self.raw_bytes.max(1) as f64
    }

    /// Returns raw and spare "GB" with 16 GB per die of 128 Gb, as reviewers count (S4-040 to S4-057): dies hold
    /// binary gigabytes, hosts see decimal ones.
    pub fn nominal_gb(&self) -> (f64, f64) {
        let raw = self.raw_bytes as f64 / 1_073_741_824.0;
        (raw, raw - libm::round(self.usable_bytes as f64 * 1e-9))
    }
}
