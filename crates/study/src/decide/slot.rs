//! Whether a drive fits the slot of another one: protocol and form.
//!
//! Both are read from `interface` and `form_factor` of the catalogue; a drive with several forms (`HHHL card or 2.5 inch
//! U.2`) fits if one of them does. The rules are from memory of the SAS, SFF-TA-1001 and M.2 specifications, not checked.
//! A SAS slot takes SATA drives. A slot for U.2 takes U.3 drives, and not the reverse. A bay of 3.5 inch takes 2.5 inch
//! in a tray. An M.2 slot takes shorter modules. Not covered: adapter cards, PCIe generations and lanes, the height of a
//! drive, and pools.

use catalogue::DriveSheet;
use serde::Serialize;

use super::life::is_assumed;

/// Protocol and forms of a drive, as in the catalogue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Slot {
    /// Such as `PCIe 3.0 x4, NVMe`.
    pub interface: String,
    /// Such as `M.2 2280`.
    pub form_factor: String,
    /// Whether the form is assumed: that in which most drives of this family are sold. Others may be sold too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_form_assumed: bool,
}

/// Protocols that a slot takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protocol {
    Sata,
    Sas,
    Nvme,
    Other,
}

impl Slot {
    /// Returns the slot of a drive; `None` for a pool.
    pub fn from_drive(drive: &DriveSheet) -> Option<Slot> {
        let known = drive.pool_config().is_none();
        known.then(|| Slot {
            interface: drive.interface.clone(),
            form_factor: drive.form_factor.clone(),
            is_form_assumed: drive
                .figure("form_factor")
                .is_some_and(|figure| is_assumed(figure.kind.name())),
        })
    }

    fn protocol(&self) -> Protocol {
        let known = [
            ("SATA", Protocol::Sata),
            ("SAS", Protocol::Sas),
            ("NVMe", Protocol::Nvme),
        ];
        let mut known = known.into_iter();
        let found = known.find(|(name, _)| self.interface.contains(name));
        found.map_or(Protocol::Other, |(_, protocol)| protocol)
    }

    fn forms(&self) -> impl Iterator<Item = &str> {
        self.form_factor.split(" or ")
    }

    /// Returns protocol and form as text: `NVMe, M.2 2280`.
    fn words(&self) -> String {
        let protocol = match self.protocol() {
            Protocol::Sata => "SATA",
            Protocol::Sas => "SAS",
            Protocol::Nvme => "NVMe",
            Protocol::Other => self.interface.as_str(),
        };
        format!("{protocol}, {}", self.form_words())
    }

    /// Returns the form as text; a drive of an assumed form may also be sold in another.
    fn form_words(&self) -> String {
        match self.is_form_assumed {
            true => format!("{} (assumed)", self.form_factor),
            false => self.form_factor.clone(),
        }
    }

    /// Returns why a drive does not fit this slot: `is NVMe, M.2 2280, not SATA, 2.5 inch`, or only the forms if the
    /// protocol fits; `None` if it does.
    pub fn refuses(&self, other: &Slot) -> Option<String> {
        let takes = match (self.protocol(), other.protocol()) {
            (Protocol::Other, _) | (_, Protocol::Other) => self.interface == other.interface,
            (Protocol::Sas, Protocol::Sata) => true,
            (slot, drive) => slot == drive,
        };
        let fits = self
            .forms()
            .any(|slot| other.forms().any(|form| takes_form(slot, form)));
        match (takes, fits) {
            (true, true) => None,
            (true, false) => Some(format!(
                "is {}, not {}",
                other.form_words(),
                self.form_words()
            )),
            (false, _) => Some(format!("is {}, not {}", other.words(), self.words())),
        }
    }
}

/// Checks whether a slot of one form takes a drive of another.
fn takes_form(slot: &str, drive: &str) -> bool {
    // `M.2` without a length is of any length.
    let module = |form: &str| {
        let length = form.strip_prefix("M.2")?.trim();
        // The first two digits are the width: 2280, 22110.
        Some(length.get(2..).and_then(|it| it.parse::<u32>().ok()))
    };
    if let (Some(slot), Some(drive)) = (module(slot), module(drive)) {
        return slot.zip(drive).is_none_or(|(slot, drive)| drive <= slot);
    }
    match (slot, drive) {
        ("2.5 inch U.2", "2.5 inch U.3") => true,
        ("3.5 inch", "2.5 inch") => true,
        (slot, drive) => slot == drive,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(name: &str) -> Slot {
        Slot::from_drive(&catalogue::drive(name).expect("built in")).expect("no pool")
    }

    #[test]
    fn a_module_does_not_fit_a_bay() {
        let fits = |old: &str, new: &str| slot(old).refuses(&slot(new)).is_none();
        for (old, new, expected) in [
            // SATA bays take neither modules nor U.2 drives.
            ("850pro-1000", "860evo-1000", true),
            ("850pro-1000", "s4510-960", true),
            ("850pro-1000", "990evo-1000", false),
            ("850pro-1000", "pm9a3-960", false),
            ("990evo-1000", "850pro-1000", false),
            // Modules of 80 mm fit slots of 110 mm, and not the reverse.
            ("p4801x-375", "980pro-1000", true),
            ("980pro-1000", "p4801x-375", false),
            // A card or U.2.
            ("p4800x-375", "d7-p5600-1600", true),
            ("p4800x-375", "980pro-1000", false),
        ] {
            assert_eq!(fits(old, new), expected, "{new} in the slot of {old}");
        }
        assert_eq!(
            slot("850pro-1000").refuses(&slot("990evo-1000")).as_deref(),
            Some("is NVMe, M.2 2280 (assumed), not SATA, 2.5 inch (assumed)")
        );
        assert_eq!(
            slot("980pro-1000").refuses(&slot("p4801x-375")).as_deref(),
            Some("is M.2 22110, not M.2 2280 (assumed)")
        );
        let pool = catalogue::drive("mirror(2*p4801x-100)").expect("an expression");
        assert_eq!(Slot::from_drive(&pool), None);
    }

    #[test]
    fn newer_connectors_fit_older_slots() {
        for (slot, drive, takes) in [
            ("2.5 inch U.2", "2.5 inch U.3", true),
            ("2.5 inch U.3", "2.5 inch U.2", false),
            ("3.5 inch", "2.5 inch", true),
            ("2.5 inch", "3.5 inch", false),
            ("M.2", "M.2 2280", true),
            ("M.2 2280", "M.2", true),
            ("HHHL card", "2.5 inch U.2", false),
        ] {
            assert_eq!(takes_form(slot, drive), takes, "{drive} in {slot}");
        }
        let of = |interface: &str| Slot {
            interface: String::from(interface),
            form_factor: String::from("2.5 inch"),
            is_form_assumed: false,
        };
        assert_eq!(of("SAS 12 Gb/s").refuses(&of("SATA 6 Gb/s")), None);
        assert!(of("SATA 6 Gb/s").refuses(&of("SAS 12 Gb/s")).is_some());
    }
}
