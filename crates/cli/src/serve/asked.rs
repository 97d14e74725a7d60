//! Arguments of `serve`: all are read and checked before anything is opened.

use catalogue::{DriveSheet, Settings};
use lab::scripted::of_line;
use live::protocol::{Address, AddressKind, Protocol, Service};
use live::{Setup, StoreChoice};
use model::host::PowerTransition;
use model::management::thermal::COOLER;
use model::media::Medium;
use text::problem::{Place, Problem, Problems};
use workload::faults::{DriveNames, Fault, Target, Timing};

use crate::drive::load;

use super::Args;
use super::address::addresses;
use super::listen::FrontEndArguments;
use super::recorded;
use crate::failure::on_command_line;
use crate::fault::script_of;

/// A front end with its arguments.
pub(super) struct AskedFront {
    pub(super) protocol: &'static Protocol,
    pub(super) addresses: Vec<Address>,
    pub(super) service: Box<dyn Service>,
}

/// The drives to serve, and their front ends.
pub(super) struct ServeRequest {
    /// All front ends, including those without an address.
    pub(super) fronts: Vec<AskedFront>,
    pub(super) setups: Vec<Setup>,
    /// Faults of the script.
    pub(super) faults: Vec<AskedFault>,
}

/// A fault of the script.
#[derive(Clone, Debug)]
pub(super) struct AskedFault {
    /// Line of the script, starting with 1.
    pub(super) line: usize,
    /// Time or count at which it happens.
    pub(super) when: Timing,
    /// Target of the fault.
    pub(super) target: Target,
    /// The fault itself.
    pub(super) fault: Fault,
}

impl ServeRequest {
    /// Reads the arguments.
    ///
    /// # Errors
    /// All problems of the arguments.
    pub(super) fn read(args: &Args) -> Result<ServeRequest, Problems> {
        let mut problems = Problems::default();
        let mut setups = setups(args, &mut problems);
        let names: Vec<String> = setups.iter().map(|setup| setup.name.clone()).collect();
        let wholes = setups.iter().map(|setup| DriveNames {
            name: setup.name.clone(),
            members: setup.members(),
        });
        let faults = faults(args, &wholes.collect::<Vec<_>>(), &mut problems);
        if args.compensate && args.speed == 0.0 {
            problems.0.push(on_command_line(
                "--compensate with --speed 0: replies have no deadlines",
                "leave one of them out",
            ));
        }
        let mut fronts = Vec::new();
        for said in &args.listen.0 {
            let protocol = said.protocol;
            let (texts, remote) = (&said.addresses, args.allow_remote);
            let addresses = addresses(protocol, texts, remote, &mut problems);
            if protocol.places == AddressKind::EachDrive
                && addresses.len() > args.drives.names(&args.arguments).len()
            {
                let help = format!("give --{} at most once for each drive", protocol.option);
                let problem = on_command_line("more sockets than drives", help);
                problems.0.push(problem);
            }
            match (protocol.read)(&said.front_end_options(&names)) {
                Err(all) => problems.0.extend(all.0),
                Ok(service) => {
                    setups.iter_mut().for_each(|setup| service.set_up(setup));
                    fronts.push(AskedFront {
                        protocol,
                        addresses,
                        service,
                    });
                }
            }
        }
        recorded::check(args, setups.len(), &mut problems);
        let none = !args.listen.0.iter().any(FrontEndArguments::serves);
        if none && problems.0.is_empty() {
            problems.0.push(on_command_line(
                "no address to serve at",
                "give --nvme-tcp 127.0.0.1:4420, --nbd 127.0.0.1:10809, or --nbd unix:drive.sock",
            ));
        }
        problems.or(ServeRequest {
            fronts,
            setups,
            faults,
        })
    }
}

/// Returns the drives to serve, with a name and a store for each.
fn setups(args: &Args, problems: &mut Problems) -> Vec<Setup> {
    let names = args.drives.named(&args.arguments, problems);
    if let Some(state) = args.state {
        state.check(&args.drives.settings(), problems);
    }
    let memory = args.store.len() == 1 && args.store[0] == "memory";
    if !memory && args.store.len() != names.len() {
        problems.0.push(on_command_line(
            format!("{} drives, and {} stores", names.len(), args.store.len()),
            "give --store once for each drive, or --store memory",
        ));
    }
    let mut setups: Vec<Setup> = Vec::new();
    for (index, id) in names.iter().enumerate() {
        let found = with_settings(id, args);
        let (sheet, lba_format) = match found {
            Ok(found) => found,
            Err(all) => {
                problems.0.extend(all.0);
                continue;
            }
        };
        let before = setups.iter().filter(|it| it.sheet.id == sheet.id).count();
        let name = match before {
            0 => sheet.id.clone(),
            _ => format!("{}-{}", sheet.id, before + 1),
        };
        let power_transitions = power_transitions(&sheet, args.power_states);
        let power_transitions = power_transitions.unwrap_or_else(|more| {
            problems.0.extend(more.0);
            Vec::new()
        });
        problems.0.extend(too_hot(&sheet));
        let store = args.store.get(index).map_or("memory", String::as_str);
        let setup = Setup {
            serial: sheet.nvme.serial(u64::from(sum_of(&name))),
            sheet,
            name,
            size: args.size,
            store: match store {
                "memory" => StoreChoice::Memory,
                path => StoreChoice::File(path.into()),
            },
            lba_format,
            added_formats: 0,
            precondition: args.state.map(Into::into),
            seed: args.seed.seed + index as u64,
            accept_loss: args.accept_loss,
            power_transitions,
        };
        setups.push(setup);
    }
    setups
}

/// Returns a problem for each drive, or member of a pool, that is at its critical temperature without load.
fn too_hot(sheet: &DriveSheet) -> Vec<Problem> {
    let drives = match &sheet.members[..] {
        [] => core::slice::from_ref(sheet),
        members => members,
    };
    let refused = drives.iter().filter_map(|drive| {
        let idle = drive.config.idle_watts();
        Some(Problem {
            origin: drive.id.clone(),
            place: Place::Whole,
            what: drive.management.thermal.idle_refusal(idle)?,
            help: Some(COOLER.into()),
        })
    });
    refused.collect()
}

/// Returns the power state transitions of a drive on a desktop computer, if they are requested.
fn power_transitions(
    sheet: &DriveSheet,
    requested: bool,
) -> Result<Vec<PowerTransition>, Problems> {
    if !requested {
        return Ok(Vec::new());
    }
    let transitions = sheet.power_transitions(&catalogue::host("linux-desktop")?.config);
    if transitions.is_empty() {
        return Err(Problems(vec![on_command_line(
            format!("--power-states: {} has no power states", sheet.id),
            "a single NVMe drive with [power_states] in its file, such as 970evo-500; or leave the option out",
        )]));
    }
    Ok(transitions)
}

/// Returns the drive with its settings, and the number of its LBA format if one is requested. The drive itself keeps
/// its first format: the server changes formats at the hosts' request.
fn with_settings(name: &str, args: &Args) -> Result<(DriveSheet, Option<usize>), Problems> {
    let settings = args.drives.settings();
    // Checks on a separate copy whether the drive has the format.
    load(name, &settings)?;
    let wanted = settings.lba_format;
    let wanted_first = Settings {
        lba_format: None,
        ..settings
    };
    let sheet = catalogue::drive_as(name, &wanted_first)?;
    let formats = &sheet.management.lba_formats;
    let number = wanted.and_then(|wanted| formats.iter().position(|it| it.same_layout(&wanted)));
    Ok((sheet, number))
}

/// Returns a number derived from the name, for a constant serial number.
fn sum_of(name: &str) -> u32 {
    name.bytes().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    })
}

/// Returns the faults of the script, with the wall-clock time and the drive of each.
fn faults(args: &Args, drives: &[DriveNames], problems: &mut Problems) -> Vec<AskedFault> {
    let Some(path) = &args.fault else {
        return Vec::new();
    };
    let mut faults = Vec::new();
    for (line, planned) in script_of(path, problems) {
        match Target::named(planned.drive.as_deref(), drives) {
            Ok(target) => faults.push(AskedFault {
                line,
                when: planned.when,
                target,
                fault: planned.fault,
            }),
            Err(what) => problems
                .0
                .push(of_line(&path.display().to_string(), line, what)),
        }
    }
    faults
}
