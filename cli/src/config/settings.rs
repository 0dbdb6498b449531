//! What is known of the clusters after all sources were read.

use crate::arguments::given::Given;
use crate::host::network::NetworkSettings;

/// All settings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// The clusters to ask, in the order of the file. There is at least one.
    pub(crate) clusters: Vec<Cluster>,
    /// Where counts are pushed to, by the names of the file's sections.
    pub(crate) targets: Vec<Target>,
    /// Whether results say which cluster they are of: the clusters have names, from a file.
    pub(crate) is_named: bool,
}

/// One cluster.
#[derive(Clone, Debug)]
pub(crate) struct Cluster {
    /// Its name: that of the file's section, or `default`.
    pub(crate) name: String,
    /// The options of its client ([`tallyfold::MachineOptions`]), with the secret.
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
    /// The name of the format.
    pub(crate) format: String,
    /// The options of the push ([`tallyfold_export::PushOptions`]), with secret headers.
    pub(crate) push: Given,
    /// The way to it.
    pub(crate) network: NetworkSettings,
}
