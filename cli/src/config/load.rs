//! Merges the sources of settings: flags override the environment, which overrides the file.
//!
//! Flags and variables such as `TALLYFOLD_CLIENT_ID` describe one cluster. If a command queries several clusters, it
//! refuses flags and variables for the address or the credentials of a cluster. They would apply to all clusters, and a
//! secret would be sent to the wrong service. A variable that the file names
//! (`client_secret_env = "TALLYFOLD_CLIENT_SECRET"`) is read only where the file names it.

use std::env::{self, VarError};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tallyfold::arguments::{Kind, Options};
use tallyfold::text::nearest;
use tallyfold::{MachineOptions, Spelling};

use super::find::{find, usual_places};
use super::keys::CLIENT_SECRET;
use super::sections::{self, Named, Written};
use super::settings::{Cluster, Settings};
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::secret::{Place, Program, Source};
use crate::failure::{Failure, Result};

/// The name of a cluster without a section in a file.
const UNNAMED: &str = "default";

/// Options that describe one cluster.
const OF_ONE_CLUSTER: [&str; 7] = [
    "cluster_endpoint",
    "client_id",
    CLIENT_SECRET,
    "control_audience",
    "base_url",
    "auth_url",
    "orchestration_audience",
];

/// Flags of every command that queries a service.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceFlags {
    /// The configuration file [default: tallyfold.toml here, if you trust it, or in the user's or system's configuration folder]
    #[arg(long, value_name = "FILE", env = "TALLYFOLD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Asks only this cluster of the configuration; may be repeated [default: all of them]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Vec<String>,
    /// A file that holds the client secret; only its owner may have access to it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// A command for the shell that prints the client secret
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "client_secret_file",
        hide_short_help = true
    )]
    pub(crate) client_secret_command: Option<String>,
    /// A file of certificates (PEM) of authorities to trust beside those of the system
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// The options of the client.
    #[command(flatten)]
    pub(crate) client: Declared<ClientFlags>,
}

/// The client's options that are flags. A secret is not one of them, because `ps` shows arguments.
#[derive(Clone, Debug)]
pub(crate) struct ClientFlags;

impl Flags for ClientFlags {
    type Options = MachineOptions;

    const NAMES: &'static [&'static str] = &[
        "cluster_endpoint",
        "client_id",
        "control_audience",
        "base_url",
        "auth_url",
        "orchestration_audience",
        "dangerously_allow_http",
        "max_retries",
        "longest_retry_wait_ms",
        "timeout_ms",
    ];
    const HEADING: &'static str = "Service";
}

/// Reads and merges all sources.
///
/// # Errors
/// For invalid settings; the error names the place of the setting.
pub(crate) fn load(flags: &ServiceFlags) -> Result<Settings> {
    let found = find(flags.config.as_deref())?;
    let written = found.as_ref().map(sections::read).transpose()?;
    put_together(flags, written, &|name| env::var(name))
}

type Variables<'a> = &'a dyn Fn(&str) -> std::result::Result<String, VarError>;

fn put_together(
    flags: &ServiceFlags,
    written: Option<Written>,
    variables: Variables<'_>,
) -> Result<Settings> {
    let is_from_file = written.is_some();
    let mut written = written.unwrap_or_default();
    let mut over = environment(&written.variables, variables)?;
    over.overlay(of_flags(flags));
    let named = std::mem::take(&mut written.clusters);
    let is_named = !named.is_empty();
    let clusters = match is_named {
        true => named_clusters(asked(flags, named, &written)?, &over)?,
        false => {
            refuse_names(flags, &written, is_from_file)?;
            let cluster = cluster(UNNAMED.to_owned(), None, written.defaults.clone(), &over);
            let is_given = |name: &&str| cluster.client.get(name).is_some();
            if !["cluster_endpoint", "base_url"].iter().any(is_given) {
                return Err(no_address(is_from_file.then_some(&written)));
            }
            vec![cluster]
        }
    };
    Ok(Settings {
        file: is_from_file.then_some(written.path),
        clusters,
        targets: written.targets,
        receivers: written.receivers,
        check: written.check,
        is_named,
    })
}

fn named_clusters(asked: Vec<Named>, over: &Given) -> Result<Vec<Cluster>> {
    if asked.len() > 1 {
        refuse_for_several(over, asked.len())?;
    }
    let clusters = asked
        .into_iter()
        .map(|named| cluster(named.name, Some(named.origin), named.given, over));
    Ok(clusters.collect())
}

fn cluster(name: String, origin: Option<Origin>, mut given: Given, over: &Given) -> Cluster {
    given.overlay(over.clone());
    Cluster::new(name, origin, given)
}

/// The clusters that are queried, in the order of the file.
fn asked(flags: &ServiceFlags, mut clusters: Vec<Named>, written: &Written) -> Result<Vec<Named>> {
    let names: Vec<&str> = clusters
        .iter()
        .map(|cluster| cluster.name.as_str())
        .collect();
    for name in &flags.cluster {
        if !names.contains(&name.as_str()) {
            let near = match nearest(name, &names) {
                Some(near) => format!("did you mean {near}? "),
                None => String::new(),
            };
            let (path, known) = (written.path.display(), names.join(", "));
            return Err(Failure::usage(format!(
                "--cluster {name}: there is no such cluster; {near}{path} has {known}"
            )));
        }
    }
    if !flags.cluster.is_empty() {
        clusters.retain(|cluster| flags.cluster.contains(&cluster.name));
    }
    Ok(clusters)
}

/// Refuses `--cluster` if no configuration names a cluster.
fn refuse_names(flags: &ServiceFlags, written: &Written, is_from_file: bool) -> Result<()> {
    let Some(name) = flags.cluster.iter().find(|name| *name != UNNAMED) else {
        return Ok(());
    };
    let why = match is_from_file {
        true => format!("{} has no section [cluster.{name}]", written.path.display()),
        false => "there is no configuration that could have a cluster with this name".to_owned(),
    };
    Err(Failure::usage(format!("--cluster {name}: {why}")).helped_by("tallyfold init"))
}

/// The environment variables that are set, except the ones that the file names.
fn environment(named: &[String], variables: Variables<'_>) -> Result<Given> {
    let mut given = Given::default();
    for argument in MachineOptions::ARGUMENTS {
        let Some(variable) = argument.variable() else {
            continue;
        };
        if named.contains(&variable) {
            continue;
        }
        let raw = match (variables(&variable), argument.kind) {
            (Err(VarError::NotPresent), _) => continue,
            (Err(VarError::NotUnicode(_)), _) => {
                return Err(Failure::usage(format!(
                    "environment variable {variable}: want UTF-8 text"
                )));
            }
            (Ok(value), Kind::Secret) => Raw::Secret(value.into()),
            (Ok(value), _) => Raw::Text(value),
        };
        given.set(
            argument.spelled(Spelling::Toml),
            raw,
            Origin::Variable(variable),
        );
    }
    Ok(given)
}

/// The settings of the flags.
fn of_flags(flags: &ServiceFlags) -> Given {
    let mut given = flags.client.given.clone();
    let file = flags.client_secret_file.clone().map(Place::File);
    let command = flags
        .client_secret_command
        .clone()
        .map(|text| Place::Command(Program::Shell(text)));
    if let Some(place) = file.or(command) {
        given.set(
            CLIENT_SECRET,
            Raw::Source(Arc::new(Source::new(place))),
            Origin::Flag,
        );
    }
    if let Some(path) = &flags.ca_file {
        given.set(
            "ca_file",
            Raw::Text(path.to_string_lossy().into_owned()),
            Origin::Flag,
        );
    }
    given
}

fn refuse_for_several(over: &Given, count: usize) -> Result<()> {
    for name in OF_ONE_CLUSTER {
        let Some(setting) = over.get(name) else {
            continue;
        };
        let what = match (&setting.origin, &setting.raw) {
            (Origin::Flag, Raw::Source(source)) => source.flag().to_owned(),
            (Origin::Flag, _) => format!("--{}", name.replace('_', "-")),
            (origin, _) => origin.to_string(),
        };
        return Err(Failure::usage(format!(
            "{what}: {count} clusters are asked, and all of them would get this; choose one with --cluster, or write it \
             into the section of the cluster that it belongs to"
        )));
    }
    Ok(())
}

fn no_address(written: Option<&Written>) -> Failure {
    let files = match written {
        Some(written) => format!("{} has no section [cluster.NAME]", written.path.display()),
        None => {
            let places = usual_places();
            let places: Vec<String> = places
                .iter()
                .map(|path| path.display().to_string())
                .collect();
            format!("there is no configuration ({})", places.join(", "))
        }
    };
    Failure::usage(format!(
        "nothing says which service to ask: {files}, and neither --cluster-endpoint nor the environment variable \
         TALLYFOLD_CLUSTER_ENDPOINT is given"
    ))
    .helped_by("tallyfold init")
}

#[cfg(test)]
mod tests;
