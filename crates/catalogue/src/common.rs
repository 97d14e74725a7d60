//! Keys that all drive files share: identity, capacity, formats, queues, endurance, warranty, price.

use model::management::{LbaFormat, RelativePerformance};

use super::section::Section;
use super::sold::{self, SalesPeriod};

/// Identity and ratings of a drive that do not depend on its medium.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Identity {
    /// Full name.
    pub name: String,
    /// Name of the manufacturer.
    pub maker: String,
    /// The medium as shown to readers, such as `3D XPoint` or `MLC NAND`.
    pub medium: String,
    /// The family whose file the drive shares, if any.
    pub family: Option<String>,
    /// Such as `HHHL card` or `M.2 2280`.
    pub form_factor: String,
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Bytes that a host can address: the value in the file, rounded down to whole 4 KiB blocks.
    pub capacity: u64,
    /// Formats that the drive offers; the first is in use.
    pub lba_formats: Vec<LbaFormat>,
    /// I/O queue pairs that the drive offers, without the admin queue.
    pub io_queues: u16,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in US dollars, if published.
    pub price_usd: Option<f64>,
    /// Date of the price, such as `2017-11`.
    pub price_date: Option<String>,
    /// Description of the fit, as written by `drivelab fit`.
    pub fit: Option<String>,
    /// The maker's document from which the file takes its figures.
    pub sheet: Option<String>,
    /// When it was sold new, if known.
    pub sold: Option<SalesPeriod>,
}

/// Reads the common keys from the root of a drive file.
pub(super) fn read(root: &mut Section<'_>) -> Identity {
    let name = root.name("name");
    let maker = root.name("maker");
    let medium = root.name("medium");
    let family = root.maybe("family", |root, key| root.name(key));
    let form_factor = root.text("form_factor");
    let interface = root.text("interface");
    let capacity = root.bytes("capacity", 1_048_576..=1_000_000_000_000_000) / 4096 * 4096;
    let lba_formats = lba_formats(root);
    let io_queues = root.count("io_queues", 1..=65_535u16);
    let warranty_years = root.maybe("warranty", |root, key| {
        let year = model::Span::from_seconds(365.0 * 86_400.0);
        root.span(key, year..=year * 20).ns() as f64 / year.ns() as f64
    });
    let endurance_bytes = endurance(root, capacity, warranty_years);
    let fit = root.maybe("fit", |root, key| root.name(key));
    let sheet = root.maybe("sheet", |root, key| root.name(key));
    let (price_usd, price_date) = root.maybe("price", |root, key| root.price(key)).unzip();
    let sold = root.maybe("sold", sold).flatten();
    Identity {
        name,
        maker,
        medium,
        family,
        form_factor,
        interface,
        capacity,
        lba_formats,
        io_queues,
        endurance_bytes,
        warranty_years,
        price_usd,
        price_date,
        fit,
        sheet,
        sold,
    }
}

/// Reads when the drive was sold new.
fn sold(root: &mut Section<'_>, key: &str) -> Option<SalesPeriod> {
    let text = root.text(key);
    let period = SalesPeriod::from_text(&text);
    if period.is_none() && !text.is_empty() {
        root.problem(
            key,
            format!("`{key}` is not a period: `{text}`"),
            sold::HELP,
        );
    }
    period
}

fn lba_formats(root: &mut Section<'_>) -> Vec<LbaFormat> {
    let key = "lba_formats";
    let written = root.texts(key);
    let formats: Vec<LbaFormat> = written.iter().filter_map(|text| lba_format(text)).collect();
    if formats.len() < written.len() {
        root.problem(
            key,
            format!("`{key}` contains an invalid format"),
            "write bytes of data (512 or 4096), and of metadata if any (up to 128), and how the drive rates it if \
             known (best, better, good, degraded), such as [\"512\", \"4096+8 best\"]",
        );
    } else if formats.first().is_some_and(|format| format.metadata > 0) {
        root.problem(
            key,
            format!("the first of `{key}` has metadata"),
            "the first is the format that the drive is sold in, which has none",
        );
    } else if (1..formats.len())
        .any(|at| formats[..at].iter().any(|it| it.same_layout(&formats[at])))
    {
        let what = format!("`{key}` has a format twice");
        root.problem(key, what, "write each once, in the order of their numbers");
    }
    formats
}

/// Parses a format such as `4096+8` or `4096+8 best`. A format without a rating counts as one of the best.
pub fn lba_format(text: &str) -> Option<LbaFormat> {
    let (bytes, rating) = text.trim().split_once(' ').unwrap_or((text.trim(), "best"));
    let (data, metadata) = bytes.split_once('+').unwrap_or((bytes, "0"));
    let data = data
        .parse()
        .ok()
        .filter(|data| matches!(data, 512 | 4096))?;
    let metadata = metadata.parse().ok().filter(|&bytes| bytes <= 128)?;
    let performance = RelativePerformance::ALL
        .into_iter()
        .find(|it| it.name() == rating.trim())?;
    Some(LbaFormat {
        data,
        metadata,
        performance,
    })
}

/// Returns the rated endurance in bytes. The file gives it as bytes or as drive writes per day over the warranty.
fn endurance(root: &mut Section<'_>, capacity: u64, warranty_years: Option<f64>) -> Option<u64> {
    let written = root.maybe("endurance", |root, key| {
        root.bytes(key, 1_000_000_000..=u64::MAX / 2)
    });
    let per_day = "drive_writes_per_day";
    let daily = root.maybe(per_day, |root, key| root.number(key, 0.01..=1000.0));
    match (written, daily, warranty_years) {
        (Some(_), Some(_), _) => {
            root.problem(
                per_day,
                format!("`{per_day}` and `endurance` say the same thing"),
                "keep the one that the source gives",
            );
            None
        }
        (Some(bytes), None, _) => Some(bytes),
        (None, Some(daily), Some(years)) => {
            Some(libm::round(daily * 365.0 * years * capacity as f64) as u64)
        }
        (None, Some(_), None) => {
            root.problem(
                per_day,
                format!("`{per_day}` needs `warranty`"),
                "add the warranty in years, over which this rate is allowed",
            );
            None
        }
        (None, None, _) => None,
    }
}
