//! Whom `check` tells what it has found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::PathBuf;
use std::rc::Rc;

use clap::Args;
use tallyfold::text;
use tallyfold::{Timestamp, Window};
use tallyfold_health::{Finding, Rules, Status};

use crate::app::App;
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::given::{Given, Origin, Raw};
use crate::config::settings::{AlertReceiver, NetworkSettings, ReceiverKind, Settings};
use crate::failure::{Exit, Failure, Result};
use crate::health::alert::{Alert, Alerts, News, Resolved};
use crate::health::memory::Memory;
use crate::health::receiver::{Named, Receiver};
use crate::health::receiver_options::ReceiverOptions;
use crate::output::check::{Verdict, label_name};
use crate::output::report::Part;
use crate::stderr::Stderr;

/// Flags that say whom to tell.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Telling")]
pub(crate) struct TellerFlags {
    /// Tells an Alertmanager, by its address or the NAME of a section [alertmanager.NAME]; may be repeated
    #[arg(long, value_name = "URL|NAME")]
    pub(crate) alertmanager: Vec<String>,
    /// Sends a message when something begins or ends, to an address or the NAME of a section [webhook.NAME]; may be repeated
    #[arg(long, value_name = "URL|NAME")]
    pub(crate) webhook: Vec<String>,
    /// The message of --webhook: JSON with placeholders such as {{sentence}} [default: {"text": "{{sentence}}"}]
    #[arg(long, value_name = "FILE", requires = "webhook")]
    template: Option<PathBuf>,
    /// How long an Alertmanager keeps an alert that no run sends again [default: four windows, and at least 1h]
    #[arg(long, value_name = "TIME", requires = "alertmanager")]
    alert_for: Option<String>,
    /// A header of a receiver that is an address, whose value is in an environment variable: authorization=VARIABLE
    #[arg(long, value_name = "HEADER=VARIABLE")]
    header_env: Vec<String>,
    /// A header of a receiver that is an address, whose value is in a file that only its owner can read
    #[arg(long, value_name = "HEADER=FILE")]
    header_file: Vec<String>,
    #[command(flatten)]
    plain: Declared<Plain>,
}

/// Whether http is allowed.
#[derive(Clone, Debug)]
struct Plain;

impl Flags for Plain {
    type Options = ReceiverOptions;

    const NAMES: &'static [&'static str] = &["allow_http"];
    const HEADING: &'static str = "Telling";
}

/// The receivers of a run.
pub(crate) struct Tellers(Vec<Receiver>);

impl Tellers {
    /// The receivers that flags name.
    ///
    /// # Errors
    /// For what can't be used; nothing was asked or sent then.
    pub(crate) fn new(
        flags: &TellerFlags,
        settings: &Settings,
        rules: &Rules,
        stderr: &Rc<Stderr>,
    ) -> Result<Self> {
        let alertmanagers = flags.alertmanager.iter();
        let alertmanagers = alertmanagers.map(|target| (ReceiverKind::Alertmanager, target));
        let webhooks = flags.webhook.iter();
        let webhooks = webhooks.map(|target| (ReceiverKind::Webhook, target));
        let named = alertmanagers.chain(webhooks);
        let named: Vec<Named> = named
            .map(|(kind, target)| flags.named(kind, target, settings))
            .collect::<Result<_>>()?;
        let addresses = named.iter().filter(|one| one.name.is_none()).count();
        let has_headers = !(flags.header_env.is_empty() && flags.header_file.is_empty());
        if has_headers && addresses != 1 {
            return Err(Failure::usage(
                "--header-env and --header-file are those of one receiver that is given by its address; want a section of the \
                 configuration for each of the others",
            ));
        }
        let lifetime_ms = flags.lifetime_ms(rules)?;
        let all = named
            .iter()
            .map(|one| Receiver::new(one, lifetime_ms, stderr));
        Ok(Self(all.collect::<Result<_>>()?))
    }
}

impl TellerFlags {
    fn named(&self, kind: ReceiverKind, target: &str, settings: &Settings) -> Result<Named> {
        if target.contains("://") {
            let mut given = Given::default();
            given.set("url", Raw::Text(target.to_owned()), Origin::Flag);
            given.overlay(self.plain.given.clone());
            given.add_headers(&self.header_env, &self.header_file)?;
            return Ok(Named {
                name: None,
                kind,
                given,
                template: self.template.clone(),
                network: NetworkSettings::default(),
            });
        }
        let is_it = |one: &&AlertReceiver| one.kind == kind && one.name == target;
        let found = settings.receivers.iter().find(is_it).ok_or_else(|| {
            let kind = kind.as_str();
            Failure::usage(format!(
                "--{kind} {target}: the configuration has no section [{kind}.{target}]; want one, or an address such as http://127.0.0.1:9093"
            ))
        })?;
        if let Some(path) = &found.template {
            File::open(path).map_err(|error| Failure::file("read", path, &error))?;
        }
        Ok(Named {
            name: Some(found.name.clone()),
            kind,
            given: found.given.clone(),
            template: found.template.clone().or_else(|| self.template.clone()),
            network: found.network.clone(),
        })
    }

    fn lifetime_ms(&self, rules: &Rules) -> Result<i64> {
        let Some(written) = &self.alert_for else {
            let windows = rules.needs().into_iter().map(|need| need.window_s);
            let seconds = windows
                .max()
                .unwrap_or_default()
                .saturating_mul(4)
                .max(3_600);
            return Ok(i64::try_from(seconds.saturating_mul(1_000)).unwrap_or(i64::MAX));
        };
        let ms = text::milliseconds(written).filter(|ms| *ms > 0);
        let ms = ms.and_then(|ms| i64::try_from(ms).ok());
        ms.ok_or_else(|| {
            Failure::usage(format!(
                "--alert-for: want a length of time such as 1h, not {written:?}"
            ))
        })
    }
}

/// Tells all receivers what was found in a cluster. Gives how the command is to end if one did not take it: the next run tells
/// it then.
pub(crate) async fn tell(
    app: &App,
    tellers: &Tellers,
    part: &Part<Verdict>,
    now: Timestamp,
    memory: &mut Memory,
) -> Option<Exit> {
    let Verdict::Check(check) = &part.found else {
        return None;
    };
    let mut news = news(app, part, &check.findings, now);
    news.is_cut = check.left_out > 0;
    let mut exit = None;
    for receiver in &tellers.0 {
        let told = memory.told.entry(receiver.key.clone()).or_default();
        if let Err(failure) = receiver.tell(&news, told, &part.cluster).await {
            let failure = failure.helped_by("the same command later: it sends what is missing");
            app.fail(&part.cluster, &failure);
            exit = exit.or(Some(Exit::Service));
        }
    }
    memory.told.retain(|_, told| !told.is_empty());
    exit
}

fn news(app: &App, part: &Part<Verdict>, findings: &[Finding], now: Timestamp) -> News {
    let mut news = News {
        firing: Alerts::new(),
        held: Alerts::new(),
        resolved: BTreeMap::new(),
        silenced: BTreeSet::new(),
        is_cut: false,
        now,
    };
    for finding in findings {
        // Plain values, so this can't fail.
        let json = serde_json::to_string(finding).unwrap_or_default();
        let id = finding.id.clone();
        match finding.status {
            Status::Firing if finding.silenced => {
                news.silenced.insert(id);
            }
            Status::Firing if finding.provisional => {
                news.held.insert(id, alert(app, part, finding, json));
            }
            Status::Firing => {
                news.firing.insert(id, alert(app, part, finding, json));
            }
            Status::Resolved => {
                let resolved = Resolved {
                    at: finding.resolved.unwrap_or(now),
                    sentence: finding.sentence.clone(),
                    finding: json,
                };
                news.resolved.insert(id, resolved);
            }
            Status::Pending => {}
        }
    }
    news
}

fn alert(app: &App, part: &Part<Verdict>, finding: &Finding, json: String) -> Alert {
    let mut labels = BTreeMap::new();
    let mut set = |name: &str, value: &str| {
        // To Prometheus, an empty value is none.
        if !value.is_empty() {
            labels.insert(label_name(name), value.to_owned());
        }
    };
    for (name, value) in &part.labels {
        set(name, value);
    }
    for (name, value) in &finding.labels {
        set(name, value);
    }
    for (dimension, value) in &finding.group {
        set(dimension.as_str(), value);
    }
    if app.settings.is_named {
        set("cluster", &part.cluster);
    }
    set("alertname", &finding.rule);
    set("severity", finding.severity.as_str());
    Alert {
        rule: finding.rule.clone(),
        severity: finding.severity.as_str().to_owned(),
        labels,
        sentence: finding.sentence.clone(),
        query: command(app, part, finding),
        since: finding.since.to_string(),
        finding: json,
    }
}

/// The command that shows a finding.
fn command(app: &App, part: &Part<Verdict>, finding: &Finding) -> String {
    let query = &finding.query;
    let range = Window::new(query.start, query.end);
    let name = match query.metric {
        tallyfold::Metric::EventDelivery => "delivery",
        tallyfold::Metric::EventIngestion => "ingestion",
    };
    let mut words = vec!["tallyfold".to_owned(), name.to_owned()];
    if let Ok(range) = range {
        words.extend(["--from".to_owned(), range.start().to_string()]);
        words.extend(["--to".to_owned(), range.end().to_string()]);
    }
    let by: Vec<&str> = query.dimensions.iter().map(|one| one.as_str()).collect();
    words.extend(["--by".to_owned(), by.join(",")]);
    for (dimension, values) in &query.r#where {
        for value in values {
            words.push("--where".to_owned());
            words.push(quoted(&format!("{dimension}={value}")));
        }
    }
    if app.settings.is_named {
        words.extend(["--cluster".to_owned(), part.cluster.clone()]);
    }
    words.join(" ")
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_=./:,".contains(&byte);
    match word.bytes().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
