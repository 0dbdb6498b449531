//! Defines the merged settings of all clusters, and computes the labels of their counts in exports.

use std::path::PathBuf;
use std::sync::Arc;

use tallyfold::arguments::{Kind, Options};
use tallyfold::{Code, Error, MachineOptions, Name, Spelling};
use tallyfold_export::{Format, Labels};
use tallyfold_health::ReceiverKind;
use tokio::task::spawn_blocking;

use super::keys::SECRET_KEYS;
use crate::arguments::given::{Given, Origin, Raw, Setting};
use crate::arguments::secret::Source;
use crate::failure::{Failure, Result};

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The file that was read, if any.
    pub(crate) file: Option<PathBuf>,
    /// The clusters to query, in the order of the file. Loaded settings have at least one.
    pub(crate) clusters: Vec<Cluster>,
    /// The destinations of pushed counts, in the order of the file.
    pub(crate) targets: Vec<Target>,
    /// The alert receivers, in the order of the file.
    pub(crate) receivers: Vec<AlertReceiver>,
    /// The paths of the files that `check` reads and writes.
    pub(crate) check: CheckPlaces,
    /// The parts of `tallyfold run` that the file selects.
    pub(crate) run: RunParts,
    /// Whether results show the names of clusters. Clusters have names if they come from a file.
    pub(crate) is_named: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Cluster {
    /// The name of its section in the file, or `default`.
    pub(crate) name: String,
    /// The start of its section, if it comes from a file.
    pub(crate) origin: Option<Origin>,
    /// The options of its client ([`tallyfold::MachineOptions`]). Instead of the secret, they may contain the place of the
    /// secret.
    pub(crate) client: Given,
    pub(crate) network: NetworkSettings,
    /// The labels of its exported counts.
    pub(crate) labels: Vec<(String, String)>,
}

/// The network settings of a service: certificates and a proxy.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkSettings {
    /// A PEM file of CA certificates to trust in addition to the system's.
    pub(crate) ca_file: Option<PathBuf>,
    /// The address of a proxy, which overrides `HTTPS_PROXY` and `HTTP_PROXY`. It may contain a password.
    pub(crate) proxy: Option<Setting>,
}

/// A destination of pushed counts.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    /// The name of its section in the file.
    pub(crate) name: String,
    pub(crate) format: Format,
    /// The options of the push ([`tallyfold_export::PushOptions`]), with the places of secret headers instead of their
    /// values.
    pub(crate) push: Given,
    pub(crate) network: NetworkSettings,
}

/// A receiver of alerts.
#[derive(Clone, Debug)]
pub(crate) struct AlertReceiver {
    /// The name of its section in the file.
    pub(crate) name: String,
    pub(crate) kind: ReceiverKind,
    /// Its options ([`tallyfold_health::ReceiverOptions`]), with the places of secret values instead of the values.
    pub(crate) given: Given,
    /// The file with the template of a webhook's messages.
    pub(crate) template: Option<PathBuf>,
    pub(crate) network: NetworkSettings,
}

/// The paths of the files that `check` reads and writes, if the configuration names them.
#[derive(Clone, Debug, Default)]
pub(crate) struct CheckPlaces {
    /// The file with the rules.
    pub(crate) rules: Option<PathBuf>,
    /// The file with the state that a run saves for the next run, or the folder with a file for each named cluster.
    pub(crate) state: Option<PathBuf>,
    /// The folder with the past counts that rules compare with.
    pub(crate) history: Option<PathBuf>,
}

/// The parts of `tallyfold run` that the configuration selects.
#[derive(Clone, Debug, Default)]
pub(crate) struct RunParts {
    /// The names of the destinations that get each revision.
    pub(crate) push: Vec<String>,
    /// Whether the rules are applied.
    pub(crate) check: bool,
    /// The receivers that are notified of incidents: the kind and the name of each section.
    pub(crate) notify: Vec<(ReceiverKind, String)>,
    /// The address and port of the dashboard.
    pub(crate) dashboard: Option<(String, u16)>,
}

impl Settings {
    /// Reads the secrets of the clusters and of the parts of `run` on another thread, because a command that prints a secret may
    /// take a minute. Later reads return the same secrets, and the same errors.
    pub(crate) async fn read_secrets(&self) {
        let clusters = self.clusters.iter().map(|cluster| &cluster.client);
        let targets = self.targets.iter();
        let targets = targets.filter(|target| self.run.push.contains(&target.name));
        let receivers = self.receivers.iter().filter(|receiver| {
            let mut named = self.run.notify.iter();
            named.any(|(kind, name)| (*kind, name) == (receiver.kind, &receiver.name))
        });
        let parts =
            targets.map(|target| &target.push).chain(receivers.map(|receiver| &receiver.given));
        let sources: Vec<Arc<Source>> = clusters.chain(parts).flat_map(Given::sources).collect();
        let read = move || {
            for source in sources {
                // Ignores an error: the code that needs the secret gets the same error later.
                let _ = source.secret();
            }
        };
        // This fails only if the runtime ends.
        let _ = spawn_blocking(read).await;
    }
}

impl Cluster {
    /// Creates a cluster from the settings of its section.
    pub(super) fn new(name: String, origin: Option<Origin>, mut given: Given) -> Self {
        let (network, labels) = take_network_and_labels(&mut given);
        Self { name, origin, client: given, network, labels }
    }

    /// Converts an error of the core about the client's options, and adds the place of the option. For a missing
    /// option, adds the places where it can be set.
    pub(crate) fn as_failure(&self, error: Error) -> Failure {
        match error.code() {
            Code::MissingArgument => self.missing(error),
            _ => self.client.as_failure(error),
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

/// Removes a setting and returns its path; `None` if the setting is missing or isn't a path.
pub(super) fn take_path(given: &mut Given, name: &str) -> Option<PathBuf> {
    match given.take(name)?.raw {
        Raw::Path(path) => Some(path),
        _ => None,
    }
}

/// Removes the network settings and the labels from the settings of a section, and returns them.
pub(super) fn take_network_and_labels(given: &mut Given) -> (NetworkSettings, Vec<Pair>) {
    let network =
        NetworkSettings { ca_file: take_path(given, "ca_file"), proxy: given.take("proxy") };
    let labels = match given.take("labels").map(|setting| setting.raw) {
        Some(Raw::Table(labels)) => {
            let labels = labels.iter().filter_map(|(name, label)| match &label.raw {
                Raw::Text(text) => Some((name.to_owned(), text.clone())),
                _ => None,
            });
            labels.collect()
        }
        _ => Vec::new(),
    };
    (network, labels)
}

/// The name of the label that contains the name of the cluster.
const CLUSTER: &str = "cluster";

/// A name and a value.
pub(crate) type Pair = (String, String);

/// Returns the labels of each cluster: the labels in its section, and the labels in `flags` (`--label`), which override labels
/// of the same name. If clusters have names, the label `cluster` contains the name. `clusters` has the name of each cluster,
/// and the labels in its section.
///
/// All clusters get the same label names in the same order, so that rows of several clusters have the same columns. If a
/// cluster lacks a label, the label's value is empty.
///
/// # Errors
/// For invalid labels, and for a label named `cluster` if clusters have names. Such a label would replace the cluster's name,
/// and two clusters would then write to the same series.
pub(crate) fn label_pairs(
    clusters: &[(&str, &[Pair])],
    is_named: bool,
    flags: &[String],
) -> Result<Vec<Vec<Pair>>> {
    let flags: Vec<Pair> = flags.iter().map(|text| parsed(text)).collect::<Result<_>>()?;
    // Flags may replace labels of the configuration, but not each other.
    Labels::new(flags.iter().cloned())
        .map_err(|error| error.with_argument(Name::of_caller("--label")))?;
    let own = clusters.iter().flat_map(|(_, labels)| labels.iter());
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in own.chain(&flags) {
        if is_named && name == CLUSTER {
            return Err(Failure::usage(
                "the label cluster contains the cluster's name; want another name for this label",
            ));
        }
        if !names.contains(&name.as_str()) {
            names.push(name);
        }
    }
    let of_cluster = |(cluster, own): &(&str, &[Pair])| {
        let value = |name: &str| {
            let mut all = flags.iter().chain(own.iter());
            all.find(|(other, _)| other == name)
                .map_or_else(String::new, |(_, value)| value.clone())
        };
        let cluster = (CLUSTER.to_owned(), (*cluster).to_owned());
        let cluster = is_named.then_some(cluster);
        let others = names.iter().map(|name| ((*name).to_owned(), value(name)));
        let pairs: Vec<Pair> = cluster.into_iter().chain(others).collect();
        Labels::new(pairs.iter().cloned())?;
        Ok(pairs)
    };
    clusters.iter().map(of_cluster).collect()
}

/// Returns the labels of one cluster.
///
/// # Errors
/// Same as [`label_pairs`].
pub(crate) fn labels_of(
    settings: &Settings,
    cluster: &Cluster,
    flags: &[String],
) -> Result<Labels> {
    let all = settings.clusters.iter();
    let clusters = all.map(|one| (one.name.as_str(), one.labels.as_slice()));
    let pairs = label_pairs(&clusters.collect::<Vec<_>>(), settings.is_named, flags)?;
    let own = settings.clusters.iter().zip(pairs);
    let own = own.filter(|(one, _)| one.name == cluster.name).flat_map(|(_, pairs)| pairs);
    Ok(Labels::new(own)?)
}

fn parsed(text: &str) -> Result<Pair> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => {
            Ok((name.trim().to_owned(), value.to_owned()))
        }
        _ => {
            Err(Failure::usage(format!("--label {text}: want NAME=VALUE, such as env=production")))
        }
    }
}
