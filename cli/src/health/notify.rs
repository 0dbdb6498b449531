//! Notifies the receivers of alerts. Finds the receivers in the flags and in the configuration, and sends messages to
//! them.

use std::mem;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches};
use tallyfold::{Code, Error, Timestamp};
use tallyfold_health::{
    AlertLabels, Check, Found, Notifications, Notified, NotifyOptions, Receiver, ReceiverKind,
    ReceiverOptions, ReceiverOutcome, Rules,
};

use super::files::{Memory, fingerprint};
use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::query::length;
use crate::config::sections::is_name;
use crate::config::settings::{AlertReceiver, NetworkSettings, Settings};
use crate::failure::{Exit, Failure, Result};
use crate::files::read_text;
use crate::host::carry::Carrier;
use crate::host::session::random;
use crate::host::shutdown::Shutdown;
use crate::output::report::Part;
use crate::stderr::Stderr;

/// How long a message and its response may take.
const LIMIT: Duration = Duration::from_secs(10);

/// The heading of these flags in the help.
const HEADING: &str = "Notifications";

/// Returns the names of the flags that name receivers.
pub(crate) fn receiver_flags() -> impl Iterator<Item = &'static str> {
    ReceiverKind::ALL.iter().map(|kind| kind.as_str())
}

/// Flags for the receivers of alerts.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = HEADING)]
pub(crate) struct NotifyFlags {
    #[command(flatten)]
    targets: Targets,
    /// A file with the message of --webhook: JSON with placeholders such as {{sentence}} [default: {"text": "{{message}}"}]
    #[arg(long, value_name = "FILE", requires = "webhook")]
    template: Option<PathBuf>,
    /// How long an Alertmanager keeps an alert that is not sent again [default: four times the longest window of the rules, at least 2h]
    #[arg(long, value_name = "TIME", requires = "alertmanager")]
    alert_for: Option<String>,
    /// A header for a receiver given by its address, with the value in an environment variable: authorization=VARIABLE
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    /// A header for a receiver given by its address, with the value in a file that only its owner can read
    #[arg(long, value_name = "HEADER=FILE")]
    header_file: Vec<String>,
    #[command(flatten)]
    plain: Declared<Plain>,
}

/// The receivers that the flags name, kind by kind. Each kind has its own flag, such as `--webhook`.
#[derive(Clone, Debug, Default)]
struct Targets(Vec<(ReceiverKind, String)>);

impl Args for Targets {
    fn augment_args(command: Command) -> Command {
        ReceiverKind::ALL.iter().fold(command, |command, kind| {
            let (name, about) = (kind.as_str(), kind.about());
            // A section contains the routing key, for which there is no flag.
            let needs_section = kind.own_options().contains(&"routing_key");
            let (value, address) = match needs_section {
                true => ("NAME", ""),
                false => ("URL|NAME", "an address or as "),
            };
            command.arg(
                Arg::new(name)
                    .long(name)
                    .value_name(value)
                    .action(ArgAction::Append)
                    .help_heading(HEADING)
                    .help(format!(
                        "Notifies {about}, given as {address}the NAME of a section [{name}.NAME]; may be repeated"
                    )),
            )
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Targets {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let named = ReceiverKind::ALL.iter().flat_map(|kind| {
            let targets = matches.get_many::<String>(kind.as_str());
            let targets = targets.into_iter().flatten().cloned();
            targets.map(|target| (*kind, target))
        });
        Ok(Self(named.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The flag that allows http.
#[derive(Clone, Debug)]
struct Plain;

impl Flags for Plain {
    type Options = ReceiverOptions;

    const NAMES: &'static [&'static str] = &["allow_http"];
    const HEADING: &'static str = HEADING;
}

/// The receivers that a run notifies.
pub(crate) struct Notifier {
    routes: Vec<Route>,
    alert_for_ms: u64,
}

/// A receiver, and the carrier that sends to it.
struct Route {
    /// The name of the receiver in errors.
    shown: String,
    receiver: Receiver,
    carrier: Carrier,
}

/// A receiver that a flag names, either by a section of the configuration or by its address.
struct Named {
    kind: ReceiverKind,
    /// The name of its section; `None` if the flag contains the address.
    name: Option<String>,
    given: Given,
    /// The file with the template of a webhook's messages.
    template: Option<PathBuf>,
    network: NetworkSettings,
}

impl Notifier {
    /// Checks the receivers that flags name, and reads their secrets.
    ///
    /// # Errors
    /// For flags and settings that can't be used.
    pub(crate) fn new(
        flags: &NotifyFlags,
        settings: &Settings,
        rules: &Rules,
        stderr: &Rc<Stderr>,
    ) -> Result<Self> {
        let targets = &flags.targets.0;
        let mut places = targets.iter().enumerate();
        if let Some((_, (kind, _))) = places.find(|(place, own)| targets[..*place].contains(own)) {
            return Err(Failure::usage(format!("--{kind}: the same receiver is given twice")));
        }
        let named: Vec<Named> = targets
            .iter()
            .map(|(kind, target)| flags.named(*kind, target, settings))
            .collect::<Result<_>>()?;
        let addresses = named.iter().filter(|one| one.name.is_none()).count();
        let has_headers = !(flags.header_env.is_empty() && flags.header_file.is_empty());
        if has_headers && addresses != 1 {
            return Err(Failure::usage(
                "--header-env and --header-file need exactly one receiver that is given as an address; put the headers of other \
                 receivers into the configuration",
            ));
        }
        let alert_for_ms = flags.alert_for_ms(rules)?;
        let routes = named.into_iter().map(|named| named.route(stderr));
        Ok(Self { routes: routes.collect::<Result<_>>()?, alert_for_ms })
    }

    /// Notifies all receivers of the findings in a cluster. If a receiver did not accept a message, returns the exit code; the
    /// next run sends that message again.
    ///
    /// # Errors
    /// If the same receiver was named twice, or if a push fails before it has an outcome.
    pub(crate) async fn notify(
        &mut self,
        app: &App,
        part: &Part<Check>,
        now: Timestamp,
        memory: &mut Memory,
    ) -> Result<Option<Exit>> {
        let options = NotifyOptions::default()
            .cluster(app.settings.is_named.then(|| part.cluster.clone()))
            .labels(AlertLabels(part.labels.clone()));
        let notified = mem::take(&mut memory.notified);
        let (notified, results) = self.send((&part.found).into(), notified, &options, now).await?;
        memory.notified = notified;
        let mut exit = None;
        for mut failure in results.into_iter().filter_map(|(_, result)| result.err()) {
            failure.text.push_str("; the next check sends the missing messages");
            app.fail(&part.cluster, &failure);
            exit = Some(failure.exit);
        }
        Ok(exit)
    }

    /// Sends each receiver its messages about the findings. Returns what the receivers have been notified of. Also returns
    /// for each receiver its name, and how many messages it accepted or why it failed.
    ///
    /// # Errors
    /// Same as [`Notifier::notify`].
    pub(crate) async fn send(
        &mut self,
        found: Found<'_>,
        notified: Notified,
        options: &NotifyOptions,
        now: Timestamp,
    ) -> Result<(Notified, Vec<(String, Result<u64>)>)> {
        let receivers = self.routes.iter().map(|route| route.receiver.clone());
        let options = options.clone().alert_for_ms(self.alert_for_ms).seed(random());
        let mut notifications = Notifications::new(found, receivers, notified, &options, now)?;
        let shutdown = Shutdown::new();
        while let Some((place, push)) = notifications.delivery() {
            let carrier = &mut self.routes[place].carrier;
            let carried = carrier.carry(push, &shutdown, async |_, _| Ok(())).await;
            // If the push has an outcome, the outcome contains the error, and `finish` returns it.
            if let (Err(failure), None) = (carried, push.outcome()) {
                return Err(failure);
            }
        }
        let (notified, outcomes) = notifications.finish();
        let results = self.routes.iter().zip(&outcomes).map(|(route, outcome)| {
            let result = match failure_of(route, outcome) {
                Some(failure) => Err(failure),
                None => Ok(outcome.receipt.messages),
            };
            (route.shown.clone(), result)
        });
        Ok((notified, results.collect()))
    }

    /// Returns whether there is no receiver.
    pub(crate) fn is_empty(&self) -> bool {
        self.routes.is_empty()
    }
}

/// Returns why a receiver did not accept all messages; `None` if it did.
fn failure_of(route: &Route, outcome: &ReceiverOutcome) -> Option<Failure> {
    let error = outcome.error.as_ref()?;
    let answer = match (error.status(), error.excerpt()) {
        (Some(status), Some(excerpt)) => format!(" (status {status}: {excerpt})"),
        (Some(status), None) => format!(" (status {status})"),
        (None, _) => String::new(),
    };
    let text = format!("{}: {}{answer}", route.shown, error.message());
    Some(Failure::new(Exit::Service, text))
}

impl NotifyFlags {
    /// Creates the flags that name these sections of the configuration.
    pub(crate) fn naming(receivers: Vec<(ReceiverKind, String)>) -> Self {
        Self { targets: Targets(receivers), ..Self::default() }
    }

    /// Returns these flags if they name receivers. Otherwise returns flags that name all receivers of the configuration.
    pub(crate) fn or_all_of(&self, settings: &Settings) -> Self {
        let mut flags = self.clone();
        if flags.targets.0.is_empty() {
            let receivers = settings.receivers.iter();
            let receivers = receivers.map(|one| (one.kind, one.name.clone()));
            flags.targets = Targets(receivers.collect());
        }
        flags
    }

    fn named(&self, kind: ReceiverKind, target: &str, settings: &Settings) -> Result<Named> {
        let template = self.template.clone().filter(|_| kind == ReceiverKind::Webhook);
        if target.contains("://") {
            let mut given = Given::default();
            given.set("url", Raw::Text(target.to_owned()), Origin::Flag);
            given.overlay(self.plain.given.clone());
            given.add_headers(&self.header_env, &self.header_file)?;
            let network = NetworkSettings::default();
            return Ok(Named { kind, name: None, given, template, network });
        }
        let is_it = |one: &&AlertReceiver| one.kind == kind && one.name == target;
        let found = settings.receivers.iter().find(is_it).ok_or_else(|| match is_name(target) {
            // An address may be a secret, even without its scheme, so the error does not quote it.
            false => Failure::usage(format!(
                "--{kind}: want the name of a section of the configuration, or an address with http:// or https://"
            )),
            true => Failure::usage(format!(
                "--{kind} {target}: the configuration has no section [{kind}.{target}]; add it, or give an address that begins with https://"
            ))
        })?;
        Ok(Named {
            kind,
            name: Some(found.name.clone()),
            given: found.given.clone(),
            template: found.template.clone().or(template),
            network: found.network.clone(),
        })
    }

    fn alert_for_ms(&self, rules: &Rules) -> Result<u64> {
        let Some(written) = &self.alert_for else {
            let windows = rules.needs().into_iter().map(|need| need.window_s);
            let seconds = windows.max().unwrap_or_default().saturating_mul(4);
            return Ok(seconds.max(7_200).saturating_mul(1_000));
        };
        length("--alert-for", written, "such as 1h", 1)
    }
}

impl Named {
    fn route(self, stderr: &Rc<Stderr>) -> Result<Route> {
        let kind = self.kind;
        let (name, shown) = match &self.name {
            Some(name) => (name.clone(), format!("{kind} {name}")),
            // The state stores the receiver's name, so the name must not contain the address, which may be a secret. A
            // fingerprint replaces this empty name below.
            None => (String::new(), kind.to_string()),
        };
        let mut options = ReceiverOptions::with_defaults(name);
        let template = self.template.as_deref();
        options.template = template.map(|path| read_text(path, "a template")).transpose()?;
        let mut options = self.given.read_over(options)?;
        if let (None, Some(url)) = (&self.name, &options.url) {
            options.name = fingerprint(&kind.completed(url));
        }
        Ok(Route {
            receiver: Receiver::new(kind, &options).map_err(|error| self.as_failure(error))?,
            carrier: Carrier { is_brief: true, ..Carrier::new(&self.network, LIMIT, stderr)? },
            shown,
        })
    }

    /// Converts an error about the options, and adds the flag or the setting that caused it.
    fn as_failure(&self, error: Error) -> Failure {
        let flag = format!("--{}", self.kind);
        match (&self.template, error.argument_name()) {
            (Some(path), Some("template")) => {
                Failure::usage(format!("{}: {}", path.display(), error.message()))
            }
            _ if self.name.is_some() => self.given.as_failure(error),
            _ if error.code() == Code::InsecureBaseAddress => Failure::usage(format!(
                "{flag}: plain http lets the network read messages and the address, which may be a secret; use https, or --allow-http"
            )),
            _ => Failure::usage(format!("{flag}: {}", error.message())),
        }
    }
}
