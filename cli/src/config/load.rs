//! Puts the sources together: flags over the environment over a file.

use std::env;

use tallyfold::arguments::Options;
use tallyfold::{MachineOptions, Spelling};

use super::flags::ServiceFlags;
use super::settings::{Cluster, Settings};
use crate::arguments::given::{Given, Origin, Raw};
use crate::failure::Result;
use crate::host::network::NetworkSettings;

/// Reads all sources.
///
/// # Errors
/// Say where the setting at fault was written.
pub(crate) fn load(flags: &ServiceFlags) -> Result<Settings> {
    let mut client = environment();
    client.overlay(flags.client.given.clone());
    let network = NetworkSettings {
        ca_file: flags.ca_file.clone(),
        proxy: None,
    };
    let cluster = Cluster {
        name: "default".to_owned(),
        client,
        network,
        labels: Vec::new(),
    };
    Ok(Settings {
        clusters: vec![cluster],
        ..Settings::default()
    })
}

fn environment() -> Given {
    let mut given = Given::default();
    for argument in MachineOptions::ARGUMENTS {
        let Some(variable) = argument.variable() else {
            continue;
        };
        if let Ok(value) = env::var(&variable) {
            let raw = Raw::Text(value);
            given.set(
                argument.spelled(Spelling::Toml),
                raw,
                Origin::Variable(variable),
            );
        }
    }
    given
}
