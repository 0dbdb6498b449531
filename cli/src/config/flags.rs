//! Flags that say which clusters are asked, and how.

use std::path::PathBuf;

use clap::Args;
use tallyfold::MachineOptions;

use crate::arguments::declared::{Declared, Flags};

/// Flags that every command has which asks a service.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceFlags {
    /// The configuration file [default: tallyfold.toml here or in the user's or system's configuration folder]
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

/// The client's options that are flags. A secret is none, because `ps` shows arguments.
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
