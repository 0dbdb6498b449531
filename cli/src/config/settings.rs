//! What is known of the clusters after all sources were read.

use std::path::PathBuf;

use tallyfold::arguments::{Kind, Options};
use tallyfold::{Code, Error, MachineOptions, Spelling};

use super::keys::SECRET_KEYS;
use crate::arguments::given::{Given, Origin, Raw};
use crate::failure::Failure;
use crate::host::network::NetworkSettings;

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The file that was read, if any.
    pub(crate) file: Option<PathBuf>,
    /// The clusters to ask, in the order of the file. There is at least one.
    pub(crate) clusters: Vec<Cluster>,
    /// Where counts are pushed to, by the names of the file's sections.
    pub(crate) targets: Vec<Target>,
    /// Where alerts are sent, by the names of the file's sections.
    pub(crate) receivers: Vec<AlertReceiver>,
    /// Where `check` finds its rules and keeps its files.
    pub(crate) check: CheckPlaces,
    /// Whether results say which cluster they are of: the clusters have names, from a file.
    pub(crate) is_named: bool,
}

/// One cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// Its name: that of the file's section, or `default`.
    pub(crate) name: String,
    /// Where the file's section begins, if it is from a file.
    pub(crate) origin: Option<Origin>,
    /// The options of its client ([`tallyfold::MachineOptions`]), with where the secret is.
    pub(crate) client: Given,
    /// The way to it.
    pub(crate) network: NetworkSettings,
    /// Labels that exported counts of it get.
    pub(crate) labels: Vec<(String, String)>,
}

/// A place to push to.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of the file's section.
    pub(crate) name: String,
    /// The name of the format ([`tallyfold_export::Format`]), which exists.
    pub(crate) format: String,
    /// The options of the push ([`tallyfold_export::PushOptions`]), with where secret headers are.
    pub(crate) push: Given,
    /// The way to it.
    pub(crate) network: NetworkSettings,
}

/// A place that alerts are sent to.
#[derive(Clone, Debug)]
pub(crate) struct AlertReceiver {
    /// The name of the file's section.
    pub(crate) name: String,
    /// What takes them there.
    pub(crate) kind: ReceiverKind,
    /// Its address and headers ([`ReceiverOptions`](crate::health::receiver_options::ReceiverOptions)), with where they are.
    pub(crate) given: Given,
    /// The file with the template of a webhook's messages.
    pub(crate) template: Option<PathBuf>,
    /// The way to it.
    pub(crate) network: NetworkSettings,
}

/// What takes alerts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReceiverKind {
    /// An Alertmanager.
    Alertmanager,
    /// Any address that takes JSON.
    Webhook,
}

impl ReceiverKind {
    /// The name of its sections, and of its flag.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Alertmanager => "alertmanager",
            Self::Webhook => "webhook",
        }
    }
}

/// Where `check` finds its rules and keeps its files, if the configuration says it.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckPlaces {
    /// The file with the rules.
    pub(crate) rules: Option<PathBuf>,
    /// What a run leaves to the next one.
    pub(crate) state: Option<PathBuf>,
    /// The counts that rules look back on.
    pub(crate) history: Option<PathBuf>,
}

impl Cluster {
    /// A cluster with all of these settings.
    pub(super) fn new(name: String, origin: Option<Origin>, mut given: Given) -> Self {
        let (network, labels) = network_of(&mut given);
        Self {
            name,
            origin,
            client: given,
            network,
            labels,
        }
    }

    /// An error of the core about these options, with the place at which the option was written, or could be.
    pub(crate) fn told(&self, error: Error) -> Failure {
        match error.code() {
            Code::MissingArgument => self.missing(error),
            _ => self.client.told(error),
        }
    }

    fn missing(&self, error: Error) -> Failure {
        let mut arguments = MachineOptions::ARGUMENTS.iter();
        let name = error.argument_name();
        let Some(argument) = arguments.find(|argument| Some(argument.name) == name) else {
            return error.into();
        };
        let flag = argument.spelled(Spelling::Flag);
        let (keys, flags) = match argument.kind {
            Kind::Secret => (
                SECRET_KEYS.map(|(name, _)| name).join(" or "),
                format!("{flag}-file or {flag}-command"),
            ),
            _ => (argument.spelled(Spelling::Toml), flag),
        };
        let variable = argument.variable().unwrap_or_default();
        let name = argument.name;
        let mut failure = Failure::from(error);
        failure.text = match &self.origin {
            Some(origin) => format!(
                "{origin}: {name} is missing; want {keys} here, or the environment variable {variable}"
            ),
            None => {
                format!("{name} is missing; want {flags}, or the environment variable {variable}")
            }
        };
        failure
    }
}

/// Takes the settings of the network and the labels out of those of a section.
pub(super) fn network_of(given: &mut Given) -> (NetworkSettings, Vec<(String, String)>) {
    let text = |raw: &Raw| match raw {
        Raw::Text(text) => Some(text.clone()),
        _ => None,
    };
    let ca_file = given.take("ca_file").and_then(|setting| text(&setting.raw));
    let network = NetworkSettings {
        ca_file: ca_file.map(PathBuf::from),
        proxy: given.take("proxy"),
    };
    let labels = match given.take("labels").map(|setting| setting.raw) {
        Some(Raw::Table(labels)) => {
            let labels = labels.iter();
            let labels =
                labels.filter_map(|(name, label)| Some((name.to_owned(), text(&label.raw)?)));
            labels.collect()
        }
        _ => Vec::new(),
    };
    (network, labels)
}
