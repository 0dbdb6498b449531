//! The keys that the sections of a configuration have. Those of the core's options come from its declarations.

use tallyfold::arguments::{Argument, Kind, Options};
use tallyfold::{MachineOptions, Spelling};
use tallyfold_export::PushOptions;

use crate::health::receiver_options::ReceiverOptions;

/// Options of a client that no configuration has: they are for pages, and for programs that get tokens by themselves.
const NOT_IN_FILES: [&str; 4] = [
    "host_tokens",
    "tokenless",
    "in_browser",
    "dangerously_allow_browser",
];

/// A section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// `[defaults]`, for all clusters.
    Defaults,
    /// `[cluster.NAME]`.
    Cluster,
    /// `[push.NAME]`.
    Push,
    /// `[check]`.
    Check,
    /// `[alertmanager.NAME]`.
    Alertmanager,
    /// `[webhook.NAME]`.
    Webhook,
}

/// A key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key {
    /// As it is written.
    pub(crate) name: &'static str,
    /// What is written under it.
    pub(crate) form: Form,
}

/// What is written under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// An option that the core declares.
    Declared(&'static Argument),
    /// The same, in a section that must not have it, with the reason.
    Refused(&'static str),
    /// Where a secret is.
    Secret(SecretIn),
    /// The place of a file.
    Path,
    /// An address.
    Address,
    /// Text.
    Text,
    /// Texts by names, none of which is a secret.
    Labels,
}

/// Where a secret is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SecretIn {
    /// `client_secret_env`.
    Variable,
    /// `client_secret_file`.
    File,
    /// `client_secret_command`.
    Command,
}

/// The option that the three keys of a secret set.
pub(crate) const CLIENT_SECRET: &str = "client_secret";

/// The keys that say where the client secret is.
pub(crate) const SECRET_KEYS: [(&str, SecretIn); 3] = [
    ("client_secret_env", SecretIn::Variable),
    ("client_secret_file", SecretIn::File),
    ("client_secret_command", SecretIn::Command),
];

const NO_SECRET: &str = "a secret is not written into a configuration; want client_secret_env, client_secret_file or \
     client_secret_command, which say where it is";

const NO_DEFAULT: &str =
    "each cluster has its own address; write it into its section [cluster.NAME]";

/// The keys of a section, in the order in which manuals show them.
pub(crate) fn keys(section: Section) -> Vec<Key> {
    let mut keys = Vec::new();
    match section {
        Section::Push => {
            keys.push(key("format", Form::Text));
            keys.extend(declared::<PushOptions>());
        }
        Section::Defaults | Section::Cluster => keys.extend(declared::<MachineOptions>()),
        Section::Check => {
            return ["rules", "state", "history"]
                .map(|name| key(name, Form::Path))
                .into();
        }
        Section::Alertmanager => keys.extend(declared::<ReceiverOptions>()),
        Section::Webhook => {
            keys.extend(declared::<ReceiverOptions>());
            keys.push(key("template", Form::Path));
        }
    }
    if section == Section::Defaults {
        for key in &mut keys {
            if key.name == "cluster_endpoint" {
                key.form = Form::Refused(NO_DEFAULT);
            }
        }
    }
    keys.push(key("ca_file", Form::Path));
    keys.push(key("proxy", Form::Address));
    if matches!(section, Section::Defaults | Section::Cluster) {
        keys.push(key("labels", Form::Labels));
    }
    keys
}

fn key(name: &'static str, form: Form) -> Key {
    Key { name, form }
}

fn declared<T: Options>() -> Vec<Key> {
    let mut keys = Vec::new();
    for argument in T::ARGUMENTS {
        match argument.kind {
            Kind::Host => {}
            _ if NOT_IN_FILES.contains(&argument.name) => {}
            Kind::Secret => {
                keys.push(key(CLIENT_SECRET, Form::Refused(NO_SECRET)));
                let places = SECRET_KEYS.map(|(name, place)| key(name, Form::Secret(place)));
                keys.extend(places);
            }
            _ => keys.push(key(toml_name(argument), Form::Declared(argument))),
        }
    }
    keys
}

/// The name in a file: times have a unit in their value, not in their name.
pub(crate) fn toml_name(argument: &'static Argument) -> &'static str {
    let spelled = argument.spelled(Spelling::Toml);
    argument.name.get(..spelled.len()).unwrap_or(argument.name)
}

impl Key {
    /// Whether the key may be written at all.
    pub(crate) fn is_allowed(&self) -> bool {
        !matches!(self.form, Form::Refused(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_option_of_a_client_is_a_key_or_is_known_to_be_none() {
        let keys = keys(Section::Cluster);
        for argument in MachineOptions::ARGUMENTS {
            let name = argument.spelled(Spelling::Toml);
            assert_eq!(name, toml_name(argument));
            let is_key = keys.iter().any(|key| key.name == name);
            let is_none =
                matches!(argument.kind, Kind::Host) || NOT_IN_FILES.contains(&argument.name);
            assert_ne!(is_key, is_none, "{name}");
        }
        for name in NOT_IN_FILES {
            assert!(
                MachineOptions::ARGUMENTS
                    .iter()
                    .any(|argument| argument.name == name)
            );
        }
    }

    #[test]
    fn the_only_secret_is_that_of_a_client() {
        let secrets = |arguments: &'static [Argument]| {
            let secrets = arguments
                .iter()
                .filter(|argument| matches!(argument.kind, Kind::Secret));
            secrets.map(|argument| argument.name).collect::<Vec<_>>()
        };
        assert_eq!(secrets(MachineOptions::ARGUMENTS), [CLIENT_SECRET]);
        assert_eq!(secrets(PushOptions::ARGUMENTS), [""; 0]);
        assert_eq!(secrets(ReceiverOptions::ARGUMENTS), [""; 0]);
    }
}
