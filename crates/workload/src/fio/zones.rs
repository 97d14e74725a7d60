//! Options of zones (`zonemode` and its companions), of sizes in zones, of passthrough commands and of NUMA nodes.

use crate::blocks::limits;
use crate::job::{BlockSizes, CpuNodes, Extent, Mix, WriteMode, ZonedMode};

use super::apply::ApplyResult;
use super::settings::{OptionMessage, Settings};
use super::value::{OptionError, OptionValue, SizeValue};
use super::zone_options::ZoneMode;

/// Zone size of `zonemode=zbd` if the job does not state one: that of many zoned hard disks.
const ZONE: u64 = 256 << 20;

/// Options that store a number of the zones.
macro_rules! zone_numbers {
    ($($name:ident: $($place:ident).+ = |$given:ident| $read:expr;)+) => {
        $(pub(super) fn $name(settings: &mut Settings, $given: &OptionValue) -> ApplyResult {
            settings.zones.$($place).+ = $read?;
            Ok(())
        })+
    };
}

zone_numbers! {
    zonesize: strided.size = |given| given.number(0, u64::MAX >> 2);
    zonerange: strided.range = |given| given.number(0, u64::MAX >> 2);
    zoneskip: strided.skip = |given| given.number(0, u64::MAX >> 2);
    zonecapacity: capacity = |given| given.number(0, u64::MAX >> 2);
    max_open_zones: max_open = |given| given.number32(0, u32::MAX);
    job_max_open_zones: job_max_open = |given| given.number32(0, u32::MAX);
    read_beyond_wp: read_beyond_wp = |given| given.boolean();
    zone_reset_threshold: reset_threshold = |given| share(given);
    zone_reset_frequency: reset_frequency = |given| share(given);
}

fn share(given: &OptionValue) -> Result<f64, OptionError> {
    super::value::float(given.text()?, 0.0, 1.0)
}

pub(super) fn zonemode(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let modes = [
        ("none", ZoneMode::None),
        ("strided", ZoneMode::Strided),
        ("zbd", ZoneMode::Zbd),
    ];
    settings.zones.mode = given.word(&modes)?.0;
    Ok(())
}

/// Reads a size or place, which may be a number of zones (`8z`).
fn extent(
    settings: &mut Settings,
    given: &OptionValue,
    index: usize,
) -> Result<Extent, OptionError> {
    let zones = &mut settings.zones.in_zones[index];
    *zones = None;
    match given.quantity()? {
        SizeValue::Count(bytes) => Ok(Extent::Bytes(bytes)),
        SizeValue::Zones(count) => {
            *zones = Some(count);
            Ok(Extent::Bytes(0))
        }
        SizeValue::Percent(percent) if percent <= 100 => Ok(Extent::Percent(percent as f64)),
        SizeValue::Percent(percent) => Err(OptionError::new(
            format!("{percent}% is more than the whole drive"),
            "at most 100%",
        )),
    }
}

/// 0 is fio's default: the whole file or drive.
pub(super) fn size(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let size = extent(settings, given, 0)?;
    settings.job.size = Some(size).filter(|size| *size != Extent::Bytes(0));
    Ok(())
}

pub(super) fn io_size(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let size = extent(settings, given, 1)?;
    settings.job.io_size = Some(size).filter(|size| *size != Extent::Bytes(0));
    Ok(())
}

pub(super) fn offset(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.offset = extent(settings, given, 2)?;
    Ok(())
}

pub(super) fn offset_increment(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    settings.job.offset_increment = extent(settings, given, 3)?;
    Ok(())
}

pub(super) fn num_range(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    // The limit of fio's option.
    settings.trim_ranges = given.number32(1, 256)?;
    Ok(())
}

pub(super) fn write_mode(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let modes = [
        ("write", WriteMode::Write),
        ("uncor", WriteMode::Uncorrectable),
        ("zeroes", WriteMode::Zeroes),
        ("verify", WriteMode::Verify),
        ("zone_append", WriteMode::ZoneAppend),
    ];
    let mut drawn: Vec<(WriteMode, Option<u32>)> = Vec::new();
    for part in given.text()?.split(':') {
        let (name, percent) = part.split_once('/').unwrap_or((part, ""));
        let name = OptionValue {
            text: Some(name.trim()),
            ..*given
        };
        let mode = name.word(&modes)?.0;
        let percent = match percent.trim() {
            "" => None,
            percent => Some(percent.parse::<u32>().map_err(|_| {
                OptionError::new(
                    format!("`{percent}` is not a percentage"),
                    "such as write_mode=write/60:zeroes/40",
                )
            })?),
        };
        drawn.push((mode, percent));
    }
    let open = drawn
        .iter()
        .filter(|(_, percent)| percent.is_none())
        .count() as u32;
    let sum = drawn.iter().fold(0u32, |sum, (_, percent)| {
        sum.saturating_add(percent.unwrap_or(0))
    });
    if sum > 100 || open == 0 && sum != 100 {
        return Err(OptionError::new(
            format!("the shares sum to {sum}, not 100"),
            "percent of the writes, such as write_mode=write/60:zeroes/40",
        ));
    }
    let each = (100 - sum).checked_div(open).unwrap_or(0);
    let modes = drawn
        .into_iter()
        .map(|(mode, percent)| (mode, percent.unwrap_or(each)));
    settings.job.write_modes = modes.collect();
    if settings
        .job
        .write_modes
        .iter()
        .all(|(mode, _)| *mode == WriteMode::Write)
    {
        settings.job.write_modes.clear();
    }
    Ok(())
}

pub(super) fn numa_cpu_nodes(settings: &mut Settings, given: &OptionValue) -> ApplyResult {
    let text = given.text()?.trim();
    if text == "all" {
        settings.job.cpu_nodes = CpuNodes::All;
        return Ok(());
    }
    let wrong = |part: &str| {
        OptionError::new(
            format!("`{part}` is not a node or a range of nodes"),
            "node numbers such as 0, 0,1 or 0-1, or all",
        )
    };
    let mut nodes: Vec<u16> = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| text.trim().parse::<u8>().map_err(|_| wrong(part));
        let (first, last) = (number(first)?, number(last)?);
        if first > last {
            return Err(wrong(part));
        }
        nodes.extend((first..=last).map(u16::from));
    }
    nodes.sort_unstable();
    nodes.dedup();
    settings.job.cpu_nodes = CpuNodes::List(nodes);
    Ok(())
}

impl Settings {
    /// Combines `zonemode`, `zonesize` and the other options of zones, as fio does.
    pub(super) fn finish_zones(
        &mut self,
        wrong: &mut Vec<OptionMessage<OptionError>>,
        notes: &mut Vec<String>,
    ) {
        let mut add = |option, what, help| wrong.push(OptionMessage::problem(option, what, help));
        let strided = &mut self.zones.strided;
        let unit = match strided.size {
            0 => ZONE,
            size => size,
        };
        match self.zones.mode {
            ZoneMode::None if strided.size > 0 => add(
                "zonesize",
                "has no meaning in zonemode=none, and fio refuses the two together",
                "zonemode=strided and zonesize, or neither",
            ),
            ZoneMode::None => {}
            ZoneMode::Strided if strided.size == 0 => add(
                "zonemode",
                "strided needs zonesize, the bytes to transfer in a zone",
                "such as zonesize=256m",
            ),
            ZoneMode::Strided => {
                if strided.range == 0 {
                    strided.range = strided.size;
                }
                self.job.strided = Some(*strided);
            }
            ZoneMode::Zbd if strided.skip > 0 => add(
                "zoneskip",
                "must be 0 with zonemode=zbd, as in fio",
                "zonemode=strided skips parts of the range",
            ),
            ZoneMode::Zbd if self.zones.capacity > unit => add(
                "zonecapacity",
                "is larger than zonesize",
                "at most zonesize",
            ),
            ZoneMode::Zbd => self.finish_emulated_zones(notes),
        }
        let used = self.zones.in_zones.iter().position(Option::is_some);
        if let (Some(index), false) = (used, self.zones.mode == ZoneMode::Zbd) {
            let options = ["size", "io_size", "offset", "offset_increment"];
            wrong.push(OptionMessage::problem(
                options[index],
                "counts zones, and only zonemode=zbd has zones of one size",
                "a size in bytes, such as 4k, 1g or 10%, or zonemode=zbd and zonesize",
            ));
        }
        let bytes = |zones: u64| Extent::Bytes(zones.saturating_mul(unit));
        let whole = |size: &Extent| *size != Extent::Bytes(0);
        let [size, io_size, offset, increment] = self.zones.in_zones.map(|zones| zones.map(bytes));
        let job = &mut self.job;
        job.size = size.filter(whole).or(job.size);
        job.io_size = io_size.filter(whole).or(job.io_size);
        job.offset = offset.unwrap_or(job.offset);
        job.offset_increment = increment.unwrap_or(job.offset_increment);
    }

    fn finish_emulated_zones(&mut self, notes: &mut Vec<String>) {
        let given = self.zones.strided.size;
        let size = if given > 0 { given } else { ZONE };
        notes.push(match given {
            0 => "zonemode=zbd without zonesize: fio asks a zoned drive for its zones and refuses other drives; zones of 256 MiB are emulated".into(),
            _ => "zonemode=zbd: zones are emulated on a drive that has none. fio starts there with empty zones, so it reads nothing before it writes; here all zones are full at the start".into(),
        });
        // Limits of all copies of a job are divided among them.
        let each = self.zones.max_open.div_ceil(self.job.numjobs.max(1));
        let max_open = match (each, self.zones.job_max_open) {
            (0, own) => own,
            (each, 0) => each,
            (each, own) => each.min(own),
        };
        let reset_every = match self.zones.reset_frequency {
            frequency if frequency > 0.0 => (1.0 / frequency) as u32,
            _ => 0,
        };
        self.job.zoned = Some(ZonedMode {
            size,
            capacity: match self.zones.capacity {
                0 => size,
                capacity => capacity.min(size),
            },
            max_open,
            read_beyond_wp: self.zones.read_beyond_wp,
            reset_threshold: self.zones.reset_threshold,
            reset_every,
        });
        // Write pointers and resets replace the random map.
        self.job.norandommap = true;
    }

    /// Combines the options of passthrough commands with the blocks.
    pub(super) fn finish_commands(
        &mut self,
        wrong: &mut Vec<OptionMessage<OptionError>>,
        notes: &mut Vec<String>,
    ) {
        let writes = matches!(self.job.mix, Mix::Write | Mix::ReadWrite | Mix::TrimWrite);
        let mut add = |option, what, help| wrong.push(OptionMessage::problem(option, what, help));
        let trims = matches!(self.job.mix, Mix::Trim | Mix::TrimWrite);
        let (least, most) = limits(&self.job.block_sizes[2]);
        let is_zone = |zone: u64| [least, most].iter().all(|&bytes| u64::from(bytes) == zone);
        if let Some(zones) = self.job.zoned
            && trims
            && !is_zone(zones.size)
        {
            add(
                "bs",
                "trims with zonemode=zbd reset whole zones, so fio requires blocks of zonesize",
                "for trims, bs equal to zonesize (bs=,,256m)",
            );
        }
        let modes = &self.job.write_modes;
        let has = |wanted: WriteMode| modes.iter().any(|(mode, _)| *mode == wanted);
        if has(WriteMode::ZoneAppend) && self.job.zoned.is_none() {
            add(
                "write_mode",
                "zone_append requires zonemode=zbd, as in fio",
                "zonemode=zbd",
            );
        }
        if writes && has(WriteMode::Uncorrectable) {
            notes.push(
                "write_mode: Write Uncorrectable is simulated as Write Zeroes: neither moves data"
                    .into(),
            );
        }
        if writes && has(WriteMode::Verify) {
            notes.push("write_mode: Verify is simulated as a read, which also moves its data over the link".into());
        }
        if self.trim_ranges > 1 {
            self.combine_trim_ranges(wrong, notes);
        }
    }

    /// Makes the ranges of a trim one range of their length.
    fn combine_trim_ranges(
        &mut self,
        wrong: &mut Vec<OptionMessage<OptionError>>,
        notes: &mut Vec<String>,
    ) {
        let ranges = self.trim_ranges;
        let mut add = |what, help| wrong.push(OptionMessage::problem("num_range", what, help));
        if self.job.zoned.is_some() {
            return add(
                "with zonemode=zbd, a trim resets one zone",
                "no num_range, or no zonemode=zbd",
            );
        }
        if self.job.mix != Mix::Trim {
            return add(
                "is for trims only, as in fio",
                "rw=trim or rw=randtrim, or no num_range",
            );
        }
        if self.job.random {
            notes.push(format!(
                "num_range={ranges}: the ranges of a trim are simulated as one range of that length"
            ));
        }
        let mut longest = 0u64;
        let mut times = |bytes: &mut u32| {
            longest = longest.max(u64::from(*bytes) * u64::from(ranges));
            *bytes = bytes.saturating_mul(ranges);
        };
        match &mut self.job.block_sizes[2] {
            BlockSizes::Fixed(bytes) => times(bytes),
            BlockSizes::Range { min, max, step } => [min, max, step].into_iter().for_each(times),
            BlockSizes::Split(shares) => shares.iter_mut().for_each(|share| times(&mut share.0)),
        }
        if longest > u64::from(u32::MAX) {
            add("makes trims longer than 4 GiB", "a smaller num_range or bs");
        }
    }
}
