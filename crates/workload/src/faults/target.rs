//! Target of a fault: a drive, or one member of a pool, found by its name.

/// A drive with the names that fault scripts can use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DriveNames {
    /// Name of the drive or pool.
    pub name: String,
    /// Names of its members, if they can fail individually.
    pub members: Vec<String>,
}

/// Target of a fault.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Target {
    /// Index of the drive.
    pub drive: usize,
    /// Index of the member; `None` means the whole drive.
    pub member: Option<u16>,
}

impl From<usize> for Target {
    /// Targets the whole drive.
    fn from(drive: usize) -> Target {
        Target {
            drive,
            member: None,
        }
    }
}

impl Target {
    /// Finds the target with this name; `None` means the first drive.
    ///
    /// # Errors
    /// No target or several targets have this name; the message lists the names.
    pub fn named(name: Option<&str>, drives: &[DriveNames]) -> Result<Target, String> {
        let Some(name) = name else {
            return Ok(Target::from(0));
        };
        if let Some(drive) = drives.iter().position(|it| it.name == name) {
            return Ok(Target::from(drive));
        }
        let mut found = Vec::new();
        for (drive, whole) in drives.iter().enumerate() {
            for (member, known) in (0..).zip(&whole.members) {
                let rest = name.strip_suffix(known.as_str());
                let path = rest.and_then(|rest| rest.strip_suffix('/'));
                if known == name || path == Some(&whole.name) {
                    found.push(Target {
                        drive,
                        member: Some(member),
                    });
                }
            }
        }
        match found[..] {
            [one] => Ok(one),
            [] => Err(format!("there is no drive `{name}`; {}", all(drives))),
            _ => Err(format!(
                "`{name}` is a member of several pools: write POOL/{name}; {}",
                all(drives)
            )),
        }
    }
}

fn all(drives: &[DriveNames]) -> String {
    let names: Vec<&str> = drives.iter().map(|it| &*it.name).collect();
    let mut text = format!("there are {}", names.join(", "));
    for whole in drives.iter().filter(|it| !it.members.is_empty()) {
        text.push_str(&format!(
            "; members of {} are {}",
            whole.name,
            whole.members.join(", ")
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_by_name_or_path() {
        let whole = |name: &str, members: &[&str]| DriveNames {
            name: name.into(),
            members: members.iter().map(ToString::to_string).collect(),
        };
        let drives = [
            whole("a", &[]),
            whole("p", &["x.0", "x.1"]),
            whole("q", &["x.0"]),
        ];
        let found = |name| Target::named(Some(name), &drives).map(|it| (it.drive, it.member));
        assert_eq!(found("q"), Ok((2, None)));
        assert_eq!(found("x.1"), Ok((1, Some(1))));
        assert_eq!(found("q/x.0"), Ok((2, Some(0))));
        let several = found("x.0").expect_err("two have it");
        assert!(several.contains("write POOL/x.0"), "{several}");
        let nobody = found("y").expect_err("none has it");
        assert_eq!(
            nobody,
            "there is no drive `y`; there are a, p, q; members of p are x.0, x.1; members of q are x.0"
        );
        assert_eq!(Target::named(None, &drives), Ok(Target::from(0)));
    }
}
