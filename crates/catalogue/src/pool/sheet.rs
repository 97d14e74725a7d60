//! A pool as a drive of the catalogue: the properties that subcommands need of any drive, derived from its members.

use model::management::LbaFormat;
use model::media::Medium;
use tier::{DriveConfig, DurabilityPoint, PoolConfig, PoolVolume, Target};

use super::outline::ParsedPool;
use crate::administration::NvmeIdentity;
use crate::locate::CatalogueFile;
use crate::section::Findings;
use crate::{DriveSheet, common_administration};
use text::problem::Problems;

/// Properties of a pool beyond the model's configuration.
#[derive(Clone, PartialEq, Debug)]
pub struct PoolSheet {
    /// By member: the index of its sheet in [`DriveSheet::members`].
    pub members: Vec<usize>,
    /// In the order of the configuration's tiers.
    pub tiers: Vec<TierSheet>,
}

/// Properties of a tier, for display.
#[derive(Clone, PartialEq, Debug)]
pub struct TierSheet {
    /// Kind as in files.
    pub kind: &'static str,
    /// Roles of its children, in order.
    pub roles: Vec<ChildRole>,
    /// Chosen or default settings: key, and value as text.
    pub settings: Vec<(String, String)>,
    /// Allowed words of the settings that are one of a few words: key and words.
    pub words: Vec<(String, Vec<String>)>,
}

/// Children of a tier that have one role.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChildRole {
    /// Name, such as `main`.
    pub name: &'static str,
    /// Number of children.
    pub children: usize,
}

/// Builds the sheet of a pool; the sheets of its members are in the findings.
pub(super) fn pool_sheet(
    located: &CatalogueFile,
    outline: &ParsedPool,
    config: PoolConfig<DriveConfig>,
    pool: PoolSheet,
    findings: &Findings,
) -> Result<DriveSheet, Problems> {
    let members = findings.members.borrow().clone();
    let each = || pool.members.iter().map(|&member| &members[member]);
    let lba_formats = formats(each());
    let common = common_administration(lba_formats)?;
    let prices: Option<Vec<f64>> = each().map(|it| it.price_usd).collect();
    let dates = each().filter_map(|it| it.price_date.clone());
    let protected = config.promise().durable == DurabilityPoint::Acknowledged;
    let name = outline.name.clone().unwrap_or_else(|| located.id.clone());
    let shown = name.chars().map(|c| match c {
        ' '..='~' => c,
        _ => '?',
    });
    Ok(DriveSheet {
        id: located.id.clone(),
        maker: words(each().map(|it| &*it.maker)),
        medium: words(each().map(|it| &*it.medium)),
        family: None,
        form_factor: match config.members.len() {
            1 => String::from("one drive"),
            count => format!("{count} drives"),
        },
        interface: words(each().map(|it| &*it.interface)),
        capacity: config.capacity_bytes(),
        management: common.management,
        nvme: NvmeIdentity {
            model_number: shown.take(40).collect(),
            ..common.nvme
        },
        power_loss_protection: Some(protected),
        power_states: Vec::new(),
        io_queues: each().map(|it| it.io_queues).min().unwrap_or(1),
        endurance_bytes: None,
        warranty_years: None,
        price_date: prices.is_some().then(|| dates.max()).flatten(),
        price_usd: prices.map(|prices| prices.iter().sum()),
        fit: None,
        sheet: None,
        sold: None,
        ratings: None,
        free: &[],
        figures: findings.figures.borrow().clone(),
        config: DriveConfig::Pool(Box::new(config)),
        pool: Some(pool),
        name,
        members,
    })
}

/// Joins distinct names in order, with commas.
fn words<'a>(all: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for one in all {
        if !known.contains(&one) {
            known.push(one);
        }
    }
    known.join(" and ")
}

/// Returns the formats that all members offer, without metadata. The first is in use: the largest block size in use
/// by any member, so that no command ends inside a block.
fn formats<'a>(members: impl Iterator<Item = &'a DriveSheet> + Clone) -> Vec<LbaFormat> {
    let offered = |sheet: &DriveSheet, data: u32| {
        let formats = sheet.management.lba_formats.iter();
        formats
            .clone()
            .find(|it| it.data == data && it.metadata == 0)
            .copied()
    };
    let in_use = members
        .clone()
        .filter_map(|it| it.management.lba_formats.first());
    let block = in_use.map(|it| it.data).max().unwrap_or(512);
    let of_all = |data: u32| {
        let each: Option<Vec<LbaFormat>> = members.clone().map(|it| offered(it, data)).collect();
        each?.first().copied()
    };
    let first = of_all(block).unwrap_or(LbaFormat::plain(block));
    let others = [512, 4096].into_iter().filter(|&data| data != block);
    [first]
        .into_iter()
        .chain(others.filter_map(of_all))
        .collect()
}

impl DriveSheet {
    /// Returns the volumes, if this is a pool.
    pub fn volumes(&self) -> Vec<PoolVolume> {
        self.pool_config()
            .map(PoolConfig::volumes)
            .unwrap_or_default()
    }

    /// Keeps one existing volume of a pool: all drives stay, tiers of other volumes are removed. No effect if this is
    /// not a pool.
    pub(crate) fn keep_volume(&mut self, name: &str) {
        let (DriveConfig::Pool(config), Some(pool)) = (&mut self.config, &mut self.pool) else {
            return;
        };
        let served = config.volumes.iter().copied();
        let mut named = served.filter(|&it| config.tiers[usize::from(it)].name == name);
        let Some(top) = named.next() else {
            return;
        };
        // A tier comes after the tiers below it.
        let mut kept = vec![false; config.tiers.len()];
        kept[usize::from(top)] = true;
        for index in (0..config.tiers.len())
            .rev()
            .filter(|&it| it <= usize::from(top))
        {
            for target in &config.tiers[index].children {
                if let (true, Target::Tier(below)) = (kept[index], target) {
                    kept[usize::from(*below)] = true;
                }
            }
        }
        let number = |tier: u16| kept[..usize::from(tier)].iter().filter(|&&it| it).count() as u16;
        let numbered = |target: &mut Target| {
            if let Target::Tier(tier) = target {
                *tier = number(*tier);
            }
        };
        config.volumes = vec![number(top)];
        let mut each = kept.iter();
        config.tiers.retain(|_| each.next() == Some(&true));
        let mut each = kept.iter();
        pool.tiers.retain(|_| each.next() == Some(&true));
        let targets = config.tiers.iter_mut().flat_map(|tier| &mut tier.children);
        targets.for_each(numbered);
        self.capacity = config.capacity_bytes();
        self.power_loss_protection =
            Some(config.promise().durable == DurabilityPoint::Acknowledged);
        self.id = format!("{}/{name}", self.id);
    }

    /// Returns the model's pool configuration, if this is a pool.
    pub fn pool_config(&self) -> Option<&PoolConfig<DriveConfig>> {
        match &self.config {
            DriveConfig::Pool(config) => Some(config),
            _ => None,
        }
    }
}
