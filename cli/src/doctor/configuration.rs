//! Which settings there are, and whether a client can be made of them.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use tallyfold::{Machine, MachineOptions, Patience};

use super::advice;
use super::diagnosis::{Check, CheckName};
use crate::arguments::given::{Given, Origin};
use crate::config::settings::Cluster;
use crate::failure::{Failure, Result};
use crate::host::network;
use crate::host::session::Session;
use crate::stderr::Stderr;

/// How long a check may take if no setting limits it.
const USUAL_LIMIT: Duration = Duration::from_secs(10);

/// What the other checks need.
pub(crate) struct Prepared {
    /// A client that tries nothing again, so that a check shows what one request has met.
    pub(crate) session: Session,
    /// The addresses that are set.
    pub(crate) addresses: Addresses,
    /// How long a check may take.
    pub(crate) limit: Option<Duration>,
}

/// The addresses of a cluster.
#[derive(Clone, Debug, Default)]
pub(crate) struct Addresses {
    /// Of the Control API and the Event Metrics API.
    pub(crate) cluster_endpoint: Option<String>,
    /// Of the Orchestration API.
    pub(crate) base_url: Option<String>,
    /// Of the authorization server.
    pub(crate) auth_url: Option<String>,
}

/// Makes a client; if that fails, the check holds the reason.
pub(crate) fn prepare(
    cluster: &Cluster,
    stderr: &Rc<Stderr>,
) -> Result<(Check, Prepared), Box<Check>> {
    let seen = settings(&cluster.client);
    match prepared(cluster, stderr) {
        Ok(prepared) => Ok((Check::ok(CheckName::Configuration, seen), prepared)),
        Err(failure) => Err(Box::new(refused(&failure, seen))),
    }
}

/// The check of settings that can't be used.
fn refused(failure: &Failure, seen: String) -> Check {
    const FILE: &str = "Correct the file or setting that is named.";
    let next = failure
        .code
        .map_or(FILE, |code| advice::of_code(code, None));
    let name = CheckName::Configuration;
    Check {
        code: failure.code,
        ..Check::failed(name, failure.exit, seen, failure.text.clone(), next)
    }
}

fn prepared(cluster: &Cluster, stderr: &Rc<Stderr>) -> Result<Prepared> {
    let told = |error| cluster.told(error);
    let mut options: MachineOptions = cluster.client.read()?;
    // As it is set, before anything is changed.
    Machine::new(options.clone()).map_err(told)?;
    options.max_retries = 0;
    let limit = match cluster.client.get("timeout") {
        Some(_) => options.timeout_ms.ms().map(Duration::from_millis),
        None => Some(USUAL_LIMIT),
    };
    if let Some(limit) = limit {
        options.timeout_ms =
            Patience::Milliseconds(limit.as_millis().try_into().unwrap_or(u64::MAX));
    }
    let addresses = Addresses {
        cluster_endpoint: options.cluster_endpoint.clone(),
        base_url: options.base_url.clone(),
        auth_url: options
            .auth_url
            .clone()
            .filter(|_| options.base_url.is_some()),
    };
    let http = network::client(&cluster.network)?;
    let session = Session::new(cluster.name.clone(), options, http, Rc::clone(stderr));
    Ok(Prepared {
        session: session.map_err(told)?,
        addresses,
        limit,
    })
}

/// The names of the settings by where they were written. No value is shown, as one may be a secret.
fn settings(given: &Given) -> String {
    let mut by_origin: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, setting) in given.iter() {
        let origin = match &setting.origin {
            Origin::Flag => "flags".to_owned(),
            Origin::Variable(_) => "environment".to_owned(),
            Origin::File { path, .. } => path.display().to_string(),
        };
        by_origin.entry(origin).or_default().push(name);
    }
    let secret = match given.get("client_secret") {
        Some(_) => "client_secret is set",
        None => "client_secret is not set",
    };
    let parts = by_origin
        .iter()
        .map(|(origin, names)| format!("{origin}: {}; ", names.join(", ")));
    parts.chain([secret.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::diagnosis::Outcome;
    use super::*;
    use crate::arguments::given::Raw;
    use crate::config::settings::NetworkSettings;
    use crate::failure::Exit;

    fn cluster(settings: &[(&str, &str)]) -> Cluster {
        let mut client = Given::default();
        for (name, value) in settings {
            let variable = format!("TALLYFOLD_{}", name.to_ascii_uppercase());
            client.set(
                *name,
                Raw::Text((*value).to_owned()),
                Origin::Variable(variable),
            );
        }
        Cluster {
            name: "default".to_owned(),
            client,
            network: NetworkSettings::default(),
            ..Cluster::default()
        }
    }

    const WHOLE: [(&str, &str); 4] = [
        ("client_id", "id"),
        ("client_secret", "hunter2"),
        ("cluster_endpoint", "http://127.0.0.1:1"),
        ("control_audience", "control"),
    ];

    fn checked(settings: &[(&str, &str)]) -> (Check, Option<Option<Duration>>) {
        let stderr = Rc::new(Stderr::new(true, false));
        match prepare(&cluster(settings), &stderr) {
            Ok((check, prepared)) => (check, Some(prepared.limit)),
            Err(check) => (*check, None),
        }
    }

    #[test]
    fn settings_are_named_and_no_value_is_shown() {
        let (check, limit) = checked(&WHOLE);
        assert_eq!(check.result, Outcome::Ok);
        assert_eq!(
            check.seen,
            "environment: client_id, client_secret, cluster_endpoint, control_audience; client_secret is set"
        );
        assert_eq!(limit, Some(Some(USUAL_LIMIT)));
    }

    #[test]
    fn a_time_limit_that_is_set_is_kept() {
        for (timeout, expected) in [("2s", Some(Duration::from_secs(2))), ("none", None)] {
            let settings = [&WHOLE[..], &[("timeout", timeout)]].concat();
            assert_eq!(checked(&settings).1, Some(expected), "{timeout}");
        }
    }

    #[test]
    fn what_is_missing_is_said() {
        let (check, _) = checked(&[WHOLE[0], WHOLE[2], WHOLE[3]]);
        assert_eq!((check.result, check.exit), (Outcome::Failed, Exit::Usage));
        assert!(check.seen.ends_with("client_secret is not set"));
        assert!(check.problem.unwrap().contains("client-secret"));
        let (check, _) = checked(&[]);
        assert!(check.next.unwrap().contains("tallyfold init"));
        let settings = [&WHOLE[..], &[("max_retries", "many")]].concat();
        let (check, _) = checked(&settings);
        assert!(check.problem.unwrap().contains("TALLYFOLD_MAX_RETRIES"));
    }

    #[test]
    fn a_file_of_authorities_that_is_none_is_a_setting_to_correct() {
        let mut cluster = cluster(&WHOLE);
        cluster.network.ca_file = Some("no such file".into());
        let stderr = Rc::new(Stderr::new(true, false));
        let check = prepare(&cluster, &stderr).err().unwrap();
        assert_eq!(check.exit, Exit::Usage);
        assert!(check.problem.unwrap().contains("no such file"));
        assert_eq!(
            check.next.as_deref(),
            Some("Correct the file or setting that is named.")
        );
    }
}
