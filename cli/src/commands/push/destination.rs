//! The destination of `tallyfold push`: a section of the configuration, or a format and an address.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use clap::builder::PossibleValuesParser;
use hyper::Uri;
use tallyfold::{Name, text};
use tallyfold_export::{ExportOptions, Format, Labels, PushOptions};

use crate::arguments::declared::{Declared, Flags};
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::query::length;
use crate::config::sections::is_name;
use crate::config::settings::{NetworkSettings, Settings};
use crate::failure::{Failure, Result};
use crate::health::files::fingerprint;
use crate::host::carry::Carrier;
use crate::host::session::{random, unix_ms};
use crate::stderr::Stderr;

/// The default timeout of a message and its response.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);

/// Returns the names of the formats that can be sent.
fn formats() -> Vec<&'static str> {
    let sent = Format::ALL.iter().filter(|format| format.is_sent());
    sent.map(|format| format.as_str()).collect()
}

/// Flags for the destination of counts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Destination")]
pub(crate) struct DestinationFlags {
    /// With --to, the whole address of the destination; otherwise the NAME of a section [push.NAME] of the
    /// configuration
    #[arg(value_name = "URL|NAME", help_heading = None, required = true)]
    target: Option<String>,
    /// The format of the destination; dogstatsd and statsd have addresses such as udp://127.0.0.1:8125
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(formats()))]
    to: Option<String>,
    /// A header whose value is in an environment variable, such as authorization=VARIABLE; may be repeated
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    /// A header whose value is in a file that only its owner can read; may be repeated
    #[arg(long, value_name = "HEADER=FILE")]
    header_file: Vec<String>,
    /// A PEM file of CA certificates to trust for the destination in addition to the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    receiver_ca_file: Option<PathBuf>,
    /// How long a message and its response may take [default: --timeout, or 30s]
    #[arg(long, value_name = "TIME", hide_short_help = true)]
    message_timeout: Option<String>,
    #[command(flatten)]
    push: Declared<PushFlags>,
    #[command(flatten)]
    export: Declared<ExportFlags>,
}

/// The flags for the delivery of messages.
#[derive(Clone, Debug)]
struct PushFlags;

impl Flags for PushFlags {
    type Options = PushOptions;

    const NAMES: &'static [&'static str] = &["patience_ms", "guarantee", "allow_http"];
    const HEADING: &'static str = "Destination";
}

/// The flags for the content of messages.
#[derive(Clone, Debug)]
struct ExportFlags;

impl Flags for ExportFlags {
    type Options = ExportOptions;

    const NAMES: &'static [&'static str] = &["name", "exact", "windows", "max_bytes"];
    const HEADING: &'static str = "Destination";
}

/// A destination, and the options for sending counts to it.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) format: Format,
    /// The name of the format's setting in errors: the flag, or the key of the configuration.
    pub(crate) named: Name,
    push: PushOptions,
    export: ExportOptions,
    network: NetworkSettings,
    timeout: Duration,
}

impl DestinationFlags {
    /// Returns flags that name a section `[push.NAME]`.
    pub(crate) fn named(name: &str) -> Self {
        Self { target: Some(name.to_owned()), ..Self::default() }
    }

    /// Combines the flags with the section that they name.
    ///
    /// # Errors
    /// For flags and settings that can't be used.
    pub(crate) fn destination(
        &self,
        settings: &Settings,
        is_cumulative: bool,
    ) -> Result<Destination> {
        let (format, mut given, mut network) = self.place(settings)?;
        if !format.is_sent() {
            return Err(no_format(format.as_str()));
        }
        given.overlay(self.push.given.clone());
        given.add_headers(&self.header_env, &self.header_file)?;
        network.ca_file = self.receiver_ca_file.clone().or(network.ca_file);
        let export = ExportOptions::with_defaults(format);
        let timeout = self.timeout(settings)?;
        let push: PushOptions = given.read()?;
        let delivery = match is_cumulative {
            true => format.totals_delivery().map_err(|_| {
                let text =
                    format!("--cumulative: {format} has no running totals; want otlp or otlp-json");
                Failure::usage(text)
            })?,
            false => format.delivery()?,
        };
        push.check(delivery)?;
        let named = match (&self.to, &self.target) {
            (None, Some(name)) => Name::of_caller(&format!("push.{name}.format")),
            _ => Name::of_caller("--to"),
        };
        Ok(Destination {
            format,
            named,
            push,
            export: self.export.given.read_over(export)?,
            network,
            timeout,
        })
    }

    /// Returns the timeout of a message and its response.
    fn timeout(&self, settings: &Settings) -> Result<Duration> {
        let Some(text) = &self.message_timeout else {
            // `--timeout` is the same for all clusters, so read it from the first.
            let cluster = settings.clusters.first();
            let flag = cluster.and_then(|cluster| cluster.client.flag("timeout"));
            let ms = flag.and_then(text::milliseconds).filter(|ms| *ms > 0);
            return Ok(ms.map_or(MESSAGE_TIMEOUT, Duration::from_millis));
        };
        let ms = length("--message-timeout", text, "such as 30s", 1)?;
        Ok(Duration::from_millis(ms))
    }

    /// Returns the format, the options of the push, and the network settings.
    fn place(&self, settings: &Settings) -> Result<(Format, Given, NetworkSettings)> {
        // The target is required, except for `push drop`.
        let wanted = self.target.clone().unwrap_or_default();
        if let Some(name) = &self.to {
            let format = Format::from_name(name).ok_or_else(|| no_format(name))?;
            let mut given = Given::default();
            given.set("url", Raw::Text(wanted), Origin::Flag);
            return Ok((format, given, NetworkSettings::default()));
        }
        let found = settings.targets.iter().find(|target| target.name == wanted);
        let unknown = || match is_name(&wanted) {
            // An address may contain a secret, even if it has no scheme, so the error does not quote it.
            false => Failure::usage("push: an address needs --to FORMAT, such as --to otlp"),
            true => Failure::usage(format!(
                "push: the configuration has no section [push.{}]{}; without one, want --to FORMAT URL",
                wanted,
                known(settings)
            )),
        };
        let target = found.ok_or_else(unknown)?;
        Ok((target.format, target.push.clone(), target.network.clone()))
    }
}

fn no_format(name: &str) -> Failure {
    Failure::usage(format!("push: {name:?} isn't a format; want one of {}", formats().join(", ")))
}

fn known(settings: &Settings) -> String {
    let names: Vec<&str> = settings.targets.iter().map(|target| target.name.as_str()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" (it has only {})", names.join(", ")),
    }
}

impl Destination {
    /// Returns a text that identifies the destination: its format, its server, and a fingerprint of its path and query, which
    /// may contain secrets.
    pub(crate) fn text(&self) -> String {
        let (format, url) = (self.format, &self.push.url);
        let uri: Option<Uri> = url.parse().ok();
        let place = uri.as_ref().and_then(|uri| {
            let rest = uri.path_and_query().map_or("", |rest| rest.as_str());
            Some((uri.scheme_str()?, uri.host()?, uri.port(), rest))
        });
        let Some((scheme, host, port, rest)) = place else {
            return format!("{format} at {}", fingerprint(url));
        };
        let port = port.map_or_else(String::new, |port| format!(":{port}"));
        let path = match rest {
            "" | "/" => String::new(),
            rest => format!(" (path {})", fingerprint(rest)),
        };
        format!("{format} at {scheme}://{host}{port}{path}")
    }

    /// Returns the options of an export with these labels.
    pub(crate) fn export(&self, labels: &Labels) -> ExportOptions {
        self.export.clone().labels(labels.clone()).now_ms(unix_ms())
    }

    /// Returns the options of a push that resumes after `finished` samples.
    pub(crate) fn push(&self, finished: u64) -> PushOptions {
        self.push.clone().finished(finished).seed(random())
    }

    /// Returns how long a destination may fail; `None` for no limit.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.push.patience_ms.ms().map(Duration::from_millis)
    }

    /// Creates the carrier that sends messages to this destination.
    ///
    /// # Errors
    /// For certificates and proxies that can't be used.
    pub(crate) fn carrier(&self, stderr: &Rc<Stderr>) -> Result<Carrier> {
        Carrier::new(&self.network, self.timeout, stderr)
    }
}
