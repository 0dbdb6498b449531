//! `tallyfold doctor`: reports problems with the set-up, and how to fix them.

use std::cell::Cell;
use std::rc::Rc;

use clap::Args;
use futures_util::future::join_all;
use tallyfold::{Api, Metric, Secret, Window};

use crate::app::App;
use crate::config::settings::Cluster;
use crate::doctor::configuration::{Addresses, Place, Prepared, Proxies, prepare};
use crate::doctor::diagnosis::{Check, CheckName, ClusterDiagnosis, Diagnosis, print};
use crate::doctor::path::{Looker, PathChecks, clock_ahead};
use crate::doctor::service::{
    self, additivity, audit_logs, compare_tokens, compression, metrics, settled, totals,
};
use crate::failure::{Exit, Result};
use crate::host::session::{Session, unix_ms};
use crate::output::documented::write_document;
use crate::output::sink::write_to;
use crate::stderr::Stderr;

/// The examples at the start of the help.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold doctor
      Checks the settings, the connection to each address, both tokens, and one query of each kind.
  tallyfold doctor --cluster eu --timeout 30s
      Checks one cluster of the configuration; no check takes longer than 30 seconds.
  tallyfold doctor --json > diagnosis.json
      JSON for a script or a support request. It contains no secrets.
";

/// The text at the end of the help.
pub(crate) const ENDING: &str = "\
Each check takes at most 10 seconds, unless you set --timeout. Nothing is retried.
Exit codes: 0 if no check failed, even with warnings; else the code of the first failed check (2
settings or clock, 3 credentials or tokens, 4 the service or the connection to it, 5 its responses);
6 if checks failed for some clusters, but not for all.";

/// Flags of the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct DoctorFlags {
    /// Prints one JSON document, described by a JSON Schema (tallyfold schema doctor)
    #[arg(long)]
    json: bool,
}

/// Checks all clusters, and writes the diagnosis.
///
/// # Errors
/// For settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, flags: &DoctorFlags) -> Result<Exit> {
    let clusters = app.loaded()?.clusters.iter();
    let examined = clusters.map(|cluster| examine(cluster, &app.stderr));
    let diagnosis = Diagnosis::new(join_all(examined).await);
    write_to(None, |screen, out| {
        match flags.json {
            true => write_document(&diagnosis, true, out)?,
            false => print(&diagnosis, app.settings.is_named, screen, out)?,
        }
        Ok(())
    })?;
    Ok(diagnosis.exit())
}

/// Checks a cluster.
async fn examine(cluster: &Cluster, stderr: &Rc<Stderr>) -> ClusterDiagnosis {
    let (check, prepared) = match prepare(cluster, stderr) {
        Ok(prepared) => prepared,
        Err(check) => return ClusterDiagnosis::new(cluster.name.clone(), vec![*check]),
    };
    let mut checks = vec![check];
    let paths = paths(cluster, &prepared).await;
    checks.extend(paths.iter().flat_map(|path| path.checks.clone()));
    let addresses = &prepared.addresses;
    let clock = watch_clock(&prepared.session);
    checks.extend(control(&prepared, &paths).await);
    correct_clock(&mut checks, addresses.cluster_endpoint.as_ref(), clock.take());
    checks.extend(orchestration(&prepared, &paths).await);
    let address = addresses.base_url.as_ref().or(addresses.auth_url.as_ref());
    correct_clock(&mut checks, address, clock.take());
    compare_tokens(&mut checks);
    ClusterDiagnosis::new(cluster.name.clone(), checks)
}

/// Checks the connections to all addresses at the same time.
async fn paths(cluster: &Cluster, prepared: &Prepared) -> Vec<PathChecks> {
    // Setting up the network has already read the proxy, so reading the proxy again does not fail.
    let proxy = cluster.network.proxy.as_ref();
    let proxy = proxy.and_then(|setting| setting.secret().ok().flatten());
    let proxies = Proxies::of(proxy.as_ref().map(Secret::expose));
    let looker = Looker {
        http: &prepared.session.http,
        proxies: &proxies,
        ca_file: cluster.network.ca_file.as_deref(),
        limit: prepared.limit,
    };
    let places = places(&prepared.addresses);
    join_all(places.iter().map(|place| looker.look(place))).await
}

/// Returns the largest clock difference that the responses to a client's calls have shown, in milliseconds. It is positive if the
/// local clock is ahead of the service's. Later responses update the value.
fn watch_clock(session: &Session) -> Rc<Cell<i64>> {
    let largest = Rc::new(Cell::new(0_i64));
    let noted = Rc::clone(&largest);
    session.watch(Box::new(move |attempt| {
        let ahead_ms = attempt.clock.as_ref().map_or(0, |clock| clock.ahead_ms);
        if ahead_ms.unsigned_abs() > noted.get().unsigned_abs() {
            noted.set(ahead_ms);
        }
    }));
    largest
}

/// Replaces the check of an address's clock if the clock difference in later responses gives a worse result than the first
/// response. A gateway in front of the service may have sent the first response.
fn correct_clock(checks: &mut [Check], address: Option<&String>, ahead_ms: i64) {
    let origin = address.and_then(|address| Place::of(address)).map(|place| place.origin);
    let found = clock_ahead(ahead_ms);
    let is_of = |check: &&mut Check| check.name == CheckName::Clock && check.address == origin;
    if let (Some(origin), Some(check)) = (&origin, checks.iter_mut().find(is_of))
        && check.result < found.result
    {
        *check = found.of(origin);
    }
}

/// Returns the places of all addresses, one for each origin.
fn places(addresses: &Addresses) -> Vec<Place> {
    let Addresses { cluster_endpoint, base_url, auth_url } = addresses;
    let mut places: Vec<Place> = Vec::new();
    for address in [cluster_endpoint, auth_url, base_url].into_iter().flatten() {
        if let Some(place) = Place::of(address)
            && places.iter().all(|known| known.origin != place.origin)
        {
            places.push(place);
        }
    }
    places
}

/// Returns why an address can't be reached; `None` if it can be reached or is not set.
fn unreachable(address: Option<&String>, paths: &[PathChecks]) -> Option<String> {
    let origin = Place::of(address?)?.origin;
    let path = paths.iter().find(|path| path.origin == origin)?;
    (!path.is_open()).then(|| format!("{origin} can't be reached"))
}

/// The checks that need a token of the Control API.
const METRICS: [CheckName; 5] = [
    CheckName::EventDelivery,
    CheckName::Compression,
    CheckName::Totals,
    CheckName::EventIngestion,
    CheckName::Additivity,
];

/// Checks the Control API and the Event Metrics API.
async fn control(prepared: &Prepared, paths: &[PathChecks]) -> Vec<Check> {
    let address = prepared.addresses.cluster_endpoint.as_ref();
    let absent = address.is_none().then(|| not_set("cluster_endpoint"));
    let mut checks = Vec::new();
    if let Some(why) = absent.or_else(|| unreachable(address, paths)) {
        skip(&mut checks, &[CheckName::ControlToken], &why);
        skip(&mut checks, &METRICS, &why);
        return checks;
    }
    let token = service::token(prepared, Api::Control).await;
    let is_granted = token.is_passable();
    checks.push(token);
    match settled(unix_ms()) {
        _ if !is_granted => skip(&mut checks, &METRICS, "there is no token"),
        None => {
            skip(&mut checks, &METRICS, "this machine's clock is outside of the years 0 to 9999")
        }
        Some(windows) => checks.extend(counts(prepared, windows).await),
    }
    checks
}

/// Checks the Event Metrics API. The caller has already obtained a token.
async fn counts(prepared: &Prepared, windows: [Window; 2]) -> Vec<Check> {
    const UNREAD: &str = "event delivery can't be read";
    let [_, last] = windows;
    let (delivery, table, seen) = metrics(prepared, Metric::EventDelivery, last).await;
    let mut checks = vec![delivery];
    match &table {
        Some(table) => {
            checks.push(compression(&seen));
            checks.push(totals(table.reconciliation()));
        }
        None => skip(&mut checks, &METRICS[1..3], UNREAD),
    }
    checks.push(metrics(prepared, Metric::EventIngestion, last).await.0);
    match table {
        Some(_) => checks.push(additivity(prepared, windows).await),
        None => skip(&mut checks, &METRICS[4..], UNREAD),
    }
    checks
}

/// Checks the Orchestration API.
async fn orchestration(prepared: &Prepared, paths: &[PathChecks]) -> Vec<Check> {
    let addresses = &prepared.addresses;
    let (base_url, auth_url) = (addresses.base_url.as_ref(), addresses.auth_url.as_ref());
    let mut checks = Vec::new();
    let absent = base_url.is_none().then(|| not_set("base_url"));
    if let Some(why) = absent.or_else(|| unreachable(auth_url, paths)) {
        let both = [CheckName::OrchestrationToken, CheckName::AuditLogs];
        skip(&mut checks, &both, &why);
        return checks;
    }
    let token = service::token(prepared, Api::Orchestration).await;
    let absent = (!token.is_passable()).then(|| "there is no token".to_owned());
    checks.push(token);
    match absent.or_else(|| unreachable(base_url, paths)) {
        Some(why) => skip(&mut checks, &[CheckName::AuditLogs], &why),
        None => checks.push(audit_logs(prepared).await),
    }
    checks
}

fn not_set(setting: &str) -> String {
    format!("not configured: {setting} is not set")
}

fn skip(checks: &mut Vec<Check>, names: &[CheckName], why: &str) {
    checks.extend(names.iter().map(|name| Check::skipped(*name, why)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_origin_is_checked_once() {
        let set = |address: &str| Some(address.to_owned());
        let addresses = Addresses {
            cluster_endpoint: set("https://a.example/x"),
            base_url: set("https://a.example"),
            auth_url: set("https://b.example"),
        };
        let origins: Vec<String> =
            places(&addresses).into_iter().map(|place| place.origin).collect();
        assert_eq!(origins, ["https://a.example", "https://b.example"]);
    }
}
