//! The way to a service: certificates, proxies, connections.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use reqwest::{Certificate, Client, ClientBuilder, Proxy, redirect};

use crate::arguments::given::{Origin, Setting};
use crate::failure::{Failure, Result};

/// How much of a file of certificates is read; all that a system trusts are a quarter of a megabyte.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// What is said about the way to a service.
#[derive(Clone, Debug, Default)]
pub(crate) struct NetworkSettings {
    /// A file of PEM certificates of authorities that are trusted beside those of the platform.
    pub(crate) ca_file: Option<PathBuf>,
    /// The address of a proxy, in place of the environment's `HTTPS_PROXY` and `HTTP_PROXY`. It may hold a password.
    pub(crate) proxy: Option<Setting>,
}

/// A client that sends what the core says: it follows no redirect, tries nothing again, and decodes nothing.
///
/// # Errors
/// For a file that holds no certificates, and for a proxy's address that can't be used.
pub(crate) fn client(settings: &NetworkSettings) -> Result<Client> {
    let own = settings
        .ca_file
        .as_deref()
        .map_or(Ok(Vec::new()), authorities)?;
    let with_platform = builder(settings)?.tls_certs_merge(own.clone()).build();
    // An empty container has no certificates; then only those of the file are trusted, and http still works.
    let client = match with_platform {
        Err(_) => builder(settings)?.tls_certs_only(own).build(),
        client => client,
    };
    client.map_err(|error| {
        let names = super::trouble::chain(&error).map(ToString::to_string);
        Failure::usage(format!(
            "the network can't be set up: {}",
            names.last().unwrap_or_default()
        ))
    })
}

/// The certificates of a file.
fn authorities(path: &Path) -> Result<Vec<Certificate>> {
    let told = |error: io::Error| Failure::file("read", path, &error);
    if !std::fs::metadata(path).map_err(told)?.is_file() {
        return Err(Failure::usage(format!(
            "{}: want a file of certificates",
            path.display()
        )));
    }
    let mut pem = Vec::new();
    let file = File::open(path).map_err(told)?;
    file.take(MOST_BYTES).read_to_end(&mut pem).map_err(told)?;
    let found = Certificate::from_pem_bundle(&pem)
        .ok()
        .filter(|found| !found.is_empty());
    found.ok_or_else(|| {
        Failure::usage(format!(
            "{}: want PEM certificates of authorities",
            path.display()
        ))
    })
}

fn builder(settings: &NetworkSettings) -> Result<ClientBuilder> {
    // Whoever comes second finds the same provider installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Client::builder()
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // The doctor says until when a certificate is valid.
        .tls_info(true)
        .http1_only();
    if let Some(proxy) = &settings.proxy {
        builder = builder.proxy(proxy_of(proxy)?);
    }
    Ok(builder)
}

/// The proxy of a setting. Its address may hold a password, so no message quotes it.
fn proxy_of(setting: &Setting) -> Result<Proxy> {
    let place = match &setting.origin {
        Origin::Flag => "proxy".to_owned(),
        origin => origin.to_string(),
    };
    let refused = || {
        Failure::usage(format!(
            "{place}: want an address such as http://proxy.example:3128"
        ))
    };
    let address = setting.secret()?.ok_or_else(refused)?;
    Proxy::all(address.expose()).map_err(|_| refused())
}
