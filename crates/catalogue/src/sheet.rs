//! What has been read of a drive or host: the model's configuration, and every figure with its kind and source.

use model::host::{HostConfig, ProgramCosts};
use model::management::Management;
use model::media::{DriveConfig, Medium};

use super::administration::NvmeIdentity;
use super::change::CHANGED;
use super::pool::PoolSheet;
use super::ratings::Ratings;

/// What kind of figure it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// From the maker's specification.
    Spec,
    /// Measured by somebody on a real drive.
    Measured,
    /// Set so that the model reproduces the source.
    Fitted,
    /// Not in our sources; chosen for a stated reason.
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

    pub(super) fn named(word: &str) -> Option<Kind> {
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
    /// The maker's document that its own file takes its figures from, if it names one.
    pub sheet: Option<String>,
    /// What its maker rates it at, if the file says.
    pub ratings: Option<Ratings>,
    /// Keys of the figures that a fit sets unless it is told which.
    pub free: &'static [&'static str],
    /// Every figure, in the order in which drives of this medium have them.
    pub figures: Vec<Figure>,
    /// The drives that a RAID-0 or a pool is made of, each once.
    pub members: Vec<DriveSheet>,
    /// What is known of it as a pool, if it is one.
    pub pool: Option<PoolSheet>,
}

/// A host of the catalogue, checked.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct HostSheet {
    /// Short name: the file's stem.
    pub id: String,
    /// Full name.
    pub name: String,
    /// What the model is built from (how many queues it has, the drive says).
    pub config: HostConfig,
    /// Processors with as many cores each, for programs that are not bound to the drive's.
    pub sockets: u16,
    /// What Aerospike's test costs there, if that is known.
    pub act: Option<ProgramCosts>,
    /// Every figure of the file, in its order.
    pub figures: Vec<Figure>,
}

impl DriveSheet {
    /// The figure of this dotted key.
    pub fn figure(&self, key: &str) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.key == key)
    }

    /// Its members, each by the name that `members.NAME.KEY` has: of a RAID-0 each drive once, of a pool each member.
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

    /// The ratings that the model was made to meet, if it was.
    pub fn ratings_met(&self) -> Option<&Ratings> {
        self.ratings.as_ref().filter(|ratings| ratings.met)
    }

    /// How far a drive made from its data sheet is known, in words; `None` for others, and if a figure was changed.
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
