//! The way to a service: certificates, proxies, connections.

use std::path::PathBuf;

use reqwest::{Certificate, Client, Proxy, redirect};

use crate::failure::{Failure, Result};

/// What is said about the way to a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkSettings {
    /// A file of PEM certificates of authorities that are trusted beside those of the platform.
    pub(crate) ca_file: Option<PathBuf>,
    /// The address of a proxy, in place of the environment's `HTTPS_PROXY` and `HTTP_PROXY`. It may hold a password.
    pub(crate) proxy: Option<String>,
}

/// A client that sends what the core says: it follows no redirect, tries nothing again, and decodes nothing.
///
/// # Errors
/// For a file that holds no certificates, and for a proxy's address that can't be used.
pub(crate) fn client(settings: &NetworkSettings) -> Result<Client> {
    // Whoever comes second finds the same provider installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        .http1_only();
    if let Some(path) = &settings.ca_file {
        let pem = std::fs::read(path).map_err(|error| Failure::file("read", path, &error))?;
        let refused = || {
            Failure::usage(format!(
                "{}: want PEM certificates of authorities",
                path.display()
            ))
        };
        let authorities = Certificate::from_pem_bundle(&pem).map_err(|_| refused())?;
        if authorities.is_empty() {
            return Err(refused());
        }
        builder = builder.tls_certs_merge(authorities);
    }
    if let Some(address) = &settings.proxy {
        // The address may hold a password, so no message quotes it.
        let refused =
            |_| Failure::usage("proxy: want an address such as http://proxy.example:3128");
        builder = builder.proxy(Proxy::all(address.as_str()).map_err(refused)?);
    }
    builder.build().map_err(|error| {
        let names = super::trouble::chain(&error).map(|link| link.to_string());
        Failure::usage(format!(
            "the network can't be set up: {}",
            names.last().unwrap_or_default()
        ))
    })
}
