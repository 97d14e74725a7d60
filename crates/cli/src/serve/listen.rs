//! The options of the front ends, generated from their table: no front end is named here.

use clap::builder::PossibleValue;
use clap::{Arg, ArgAction, ArgMatches, Command};
use live::PROTOCOLS;
use live::protocol::{AddressKind, Clients, FrontEndOptions, Protocol};

/// Arguments of one front end.
#[derive(Clone, Debug)]
pub(super) struct FrontEndArguments {
    pub(super) protocol: &'static Protocol,
    /// Addresses as given.
    pub(super) addresses: Vec<String>,
    settings: Vec<(&'static str, String)>,
}

impl FrontEndArguments {
    /// Returns the parameters for the front end, which serves drives with these names.
    pub(super) fn front_end_options(&self, names: &[String]) -> FrontEndOptions {
        FrontEndOptions {
            addresses: self.addresses.len(),
            names: names.to_vec(),
            settings: self.settings.clone(),
        }
    }

    /// Checks whether clients of drives can connect to it.
    pub(super) fn serves(&self) -> bool {
        self.protocol.clients != Clients::Watchers && !self.addresses.is_empty()
    }
}

/// Arguments of all front ends, in the order of the table.
#[derive(Clone, Debug)]
pub(super) struct Listen(pub(super) Vec<FrontEndArguments>);

fn options(mut command: Command) -> Command {
    for protocol in PROTOCOLS {
        let action = match protocol.places {
            AddressKind::File => ArgAction::Set,
            AddressKind::Addresses { .. } | AddressKind::EachDrive => ArgAction::Append,
        };
        command = command.arg(
            Arg::new(protocol.option)
                .long(protocol.option)
                .value_name(protocol.value)
                .help(protocol.help)
                .action(action),
        );
        for setting in protocol.settings {
            let mut arg = Arg::new(setting.name)
                .long(setting.name)
                .help(setting.help)
                .requires_if_given(setting.requires);
            arg = match setting.value {
                None => arg.action(ArgAction::SetTrue),
                Some(value) => arg.value_name(value),
            };
            if let Some((first, _)) = setting.values.first() {
                let values = setting.values.iter();
                let values = values.map(|(name, help)| PossibleValue::new(*name).help(*help));
                arg = arg
                    .value_parser(values.collect::<Vec<_>>())
                    .default_value(*first);
            }
            command = command.arg(arg);
        }
    }
    command
}

/// Adds the option that another option requires, if any.
trait Requires {
    fn requires_if_given(self, other: Option<&'static str>) -> Self;
}

impl Requires for Arg {
    fn requires_if_given(self, other: Option<&'static str>) -> Arg {
        match other {
            Some(other) => self.requires(other),
            None => self,
        }
    }
}

fn front_end_arguments(protocol: &'static Protocol, matches: &ArgMatches) -> FrontEndArguments {
    let all = |name: &str| -> Vec<String> {
        let values = matches.get_many::<String>(name);
        values.into_iter().flatten().cloned().collect()
    };
    let mut settings = Vec::new();
    for setting in protocol.settings {
        let given = match setting.value {
            None => matches.get_flag(setting.name).then(String::new),
            Some(_) => all(setting.name).pop(),
        };
        settings.extend(given.map(|value| (setting.name, value)));
    }
    FrontEndArguments {
        protocol,
        addresses: all(protocol.option),
        settings,
    }
}

impl clap::FromArgMatches for Listen {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Listen, clap::Error> {
        Ok(Listen(
            PROTOCOLS
                .iter()
                .map(|it| front_end_arguments(it, matches))
                .collect(),
        ))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Listen::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for Listen {
    fn augment_args(command: Command) -> Command {
        options(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        options(command)
    }
}
