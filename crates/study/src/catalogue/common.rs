//! The part that all drive files share: identity, capacity, formats, queues, endurance, warranty, price.

use super::section::Section;

/// A logical block format that a drive offers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LbaFormat {
    /// Bytes of data in a block: 512 or 4096.
    pub data: u32,
    /// Bytes of metadata beside them: 0 to 128.
    pub metadata: u16,
}

/// What a drive is, apart from how its medium works.
#[derive(Clone, PartialEq, Debug)]
pub struct Identity {
    /// Full name.
    pub name: String,
    /// Who makes it.
    pub maker: String,
    /// The medium in a reader's words, such as `3D XPoint` or `MLC NAND`.
    pub medium: String,
    /// The family whose file it shares, if any.
    pub family: Option<String>,
    /// Such as `HHHL card` or `M.2 2280`.
    pub form_factor: String,
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Bytes a host can address: what the file says, in whole 4 KiB blocks.
    pub capacity: u64,
    /// The formats it offers; the first is the one in use.
    pub lba_formats: Vec<LbaFormat>,
    /// I/O queue pairs it offers, without the admin queue.
    pub io_queues: u16,
    /// Rated endurance in bytes written, if published.
    pub endurance_bytes: Option<u64>,
    /// Warranty in years, if published.
    pub warranty_years: Option<f64>,
    /// Price in US dollars, if published.
    pub price_usd: Option<f64>,
    /// When that was the price, such as `2017-11`.
    pub price_date: Option<String>,
}

/// Reads the common part from the root of a drive file.
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
    let (price_usd, price_date) = root.maybe("price", |root, key| root.price(key)).unzip();
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
    }
}

fn lba_formats(root: &mut Section<'_>) -> Vec<LbaFormat> {
    let key = "lba_formats";
    let written = root.texts(key);
    let formats: Vec<LbaFormat> = written.iter().filter_map(|text| lba_format(text)).collect();
    if formats.len() < written.len() {
        root.problem(
            key,
            format!("`{key}` has a format that is none"),
            "write bytes of data (512 or 4096), and of metadata if any (up to 128), such as [\"512\", \"4096+8\"]",
        );
    }
    formats
}

fn lba_format(text: &str) -> Option<LbaFormat> {
    let (data, metadata) = text.split_once('+').unwrap_or((text, "0"));
    let data = data
        .parse()
        .ok()
        .filter(|data| matches!(data, 512 | 4096))?;
    let metadata = metadata.parse().ok().filter(|&bytes| bytes <= 128)?;
    Some(LbaFormat { data, metadata })
}

/// Rated endurance as bytes, or as drive writes a day over the warranty.
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
                "add the years over which the drive may be written so often",
            );
            None
        }
        (None, None, _) => None,
    }
}
