//! Drives of the catalogue as JSON, with the field names of `review.json` where it has the same fields.

use catalogue::{DriveSheet, Figure, FigureKind, PoolSheet};
use model::management::LbaFormat;
use model::media::Medium;
use serde_json::{Map, Value, json};
use study::decide::odds::{CutSet, sets_of_pool_and_of_blocks};
use study::ledger::support;
use tier::{DriveConfig, DurabilityPoint, PoolConfig, Target};

use super::pool;

/// Returns the drives (and pools) in one document, an object each; with every figure if `figures` is set.
pub fn json(drives: &[DriveSheet], figures: bool) -> Value {
    let drives: Vec<Value> = drives.iter().map(|drive| object(drive, figures)).collect();
    json!({ "schema": "drivelab drives", "version": 1, "drives": drives })
}

fn object(drive: &DriveSheet, figures: bool) -> Value {
    let known = support::statement(drive);
    let kinds = FigureKind::ALL.map(|kind| {
        let count = super::count(&drive.figures, kind);
        (kind.name().to_owned(), json!(count))
    });
    let formats = drive.management.lba_formats.iter();
    let formats: Vec<String> = formats.map(LbaFormat::to_string).collect();
    let mut fields = json!({
        "id": drive.id,
        "name": drive.name,
        "maker": drive.maker,
        "family": drive.family,
        "medium": drive.medium,
        "form_factor": drive.form_factor,
        "interface": drive.interface,
        "capacity_bytes": drive.capacity,
        "raw_bytes": drive.config.raw_bytes(),
        "io_queues": drive.io_queues,
        "lba_formats": formats,
        "max_transfer_bytes": drive.config.max_transfer(),
        "volatile_write_cache": drive.config.volatile_write_cache(),
        "power_loss_protection": drive.power_loss_protection,
        "power_limit_watts": drive.config.power_limit_watts(),
        "endurance_bytes": drive.endurance_bytes,
        "warranty_years": drive.warranty_years,
        "drive_writes_per_day": drive.drive_writes_per_day(),
        "price_usd": drive.price_usd,
        "price_date": drive.price_date,
        "usd_per_gb": drive.usd_per_gb(),
        "sold_from": drive.sold.as_ref().map(|it| &it.from),
        "sold_until": drive.sold.as_ref().and_then(|it| it.until.as_ref()),
        "support": { "grade": known.grade.name(), "text": known.text },
        "kinds": Map::from_iter(kinds),
    });
    if let (Some(config), Some(sheet)) = (drive.pool_config(), &drive.pool) {
        fields["pool"] = pool(drive, config, sheet, figures);
    }
    if figures {
        let all: Vec<Value> = drive.figures.iter().map(figure).collect();
        fields["figures"] = Value::from(all);
    }
    fields
}

/// Returns the members of a pool, in order.
fn members(drive: &DriveSheet, config: &PoolConfig<DriveConfig>, sheet: &PoolSheet) -> Vec<Value> {
    let members = config.members.iter().zip(&sheet.members);
    let members = members.map(|(member, &of)| {
        json!({
            "name": member.name,
            "drive": drive.members[of].id,
            "capacity_bytes": member.drive.capacity_bytes(),
            "idle_watts": member.drive.idle_watts(),
            "volatile_bytes": member.drive.volatile_bytes(),
            "endurance_bytes": drive.members[of].endurance_bytes,
            "price_usd": drive.members[of].price_usd,
        })
    });
    members.collect()
}

/// Returns the fields that only a pool has; with the sheets of its drives if `figures` is set.
fn pool(
    drive: &DriveSheet,
    config: &PoolConfig<DriveConfig>,
    sheet: &PoolSheet,
    figures: bool,
) -> Value {
    let names = pool::names(config);
    let promises = config.promises();
    let target = |target: &Target| match *target {
        Target::Slice {
            member,
            base,
            bytes,
        } => json!({ "member": names[usize::from(member)], "offset": base, "bytes": bytes }),
        Target::Tier(tier) => json!({ "tier": config.tiers[usize::from(tier)].name }),
    };
    let capacities = config.capacities();
    let tiers = config.tiers.iter().zip(&sheet.tiers).zip(capacities);
    let tiers = tiers.map(|((tier, sheet), capacity)| {
        let settings = sheet.settings.iter();
        let settings = settings.map(|(key, value)| (key.clone(), json!(value)));
        let mut children = tier.children.iter();
        let roles = sheet.roles.iter().map(|role| {
            let of: Vec<Value> = children.by_ref().take(role.children).map(target).collect();
            (role.name.to_owned(), Value::from(of))
        });
        json!({
            "name": tier.name,
            "kind": tier.kind.word(),
            "capacity_bytes": capacity,
            "children": Map::from_iter(roles),
            "settings": Map::from_iter(settings),
        })
    });
    let volumes = config.volumes();
    let volumes = volumes.iter().zip(&config.volumes).map(|(volume, &tier)| {
        let promise = &promises[usize::from(tier)];
        let named = |(members, ram): CutSet| {
            let members = members.iter().map(|&it| names[usize::from(it)].clone());
            let all: Vec<String> = members.chain(ram.then(|| String::from("memory"))).collect();
            all
        };
        let [all, some] = sets_of_pool_and_of_blocks(&promise.loss)
            .map(|sets| sets.into_iter().map(named).collect::<Vec<_>>());
        json!({
            "name": volume.name,
            "offset_bytes": volume.offset,
            "capacity_bytes": volume.bytes,
            "durable": match promise.durable {
                DurabilityPoint::Acknowledged => "acknowledged",
                DurabilityPoint::Flushed => "flushed",
                DurabilityPoint::Later => "later",
            },
            "lost_if": all,
            "some_blocks_lost_if": some,
        })
    });
    let shares = pool::shares(config).into_iter();
    let shares = shares.map(|share| json!({ "what": share.what, "bytes": share.bytes }));
    let mut fields = json!({
        "tiers": tiers.collect::<Vec<_>>(),
        "volumes": volumes.collect::<Vec<_>>(),
        "members": members(drive, config, sheet),
        "capacity": shares.collect::<Vec<_>>(),
        "label_bytes": config.label_bytes,
    });
    if figures {
        let drives = drive.members.iter().map(|member| object(member, true));
        fields["drives"] = drives.collect();
    }
    fields
}

fn figure(figure: &Figure) -> Value {
    json!({
        "key": figure.key,
        "value": figure.value,
        "kind": figure.kind.name(),
        "source": figure.source,
        "note": figure.note,
        "date": figure.date,
        "file": figure.file,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All content of the table and the sheet is in the document, and figures are as the file writes them.
    #[test]
    fn a_drive_is_an_object_with_its_figures() {
        let drive = catalogue::drive("p4800x-375").expect("built in");
        let document = json(std::slice::from_ref(&drive), true);
        let object = &document["drives"][0];
        assert_eq!(object["id"], "p4800x-375");
        assert_eq!(object["capacity_bytes"], 374_999_998_464u64);
        assert_eq!(object["lba_formats"][0], "512");
        let figures = object["figures"].as_array().expect("figures");
        assert_eq!(figures.len(), drive.figures.len());
        let limit = figures.iter().find(|it| it["key"] == "xpoint.power.limit");
        let limit = limit.expect("it has a governor");
        assert_eq!(
            (&limit["value"], &limit["kind"]),
            (&json!("18 W"), &json!("spec"))
        );
        let kinds = object["kinds"].as_object().expect("kinds");
        let counted: u64 = kinds.values().filter_map(Value::as_u64).sum();
        assert_eq!(counted, figures.len() as u64);
    }

    #[test]
    fn the_list_has_every_drive_and_no_figures() {
        let drives = catalogue::drives().expect("built in");
        let document = json(&drives, false);
        let listed = document["drives"].as_array().expect("drives");
        assert_eq!(listed.len(), drives.len());
        assert!(listed.iter().all(|drive| drive.get("figures").is_none()));
    }
}
