//! Asks several clusters at the same time.

use std::future::Future;
use std::rc::Rc;

use futures_util::future::join_all;

use crate::app::App;
use crate::config::settings::Cluster;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::host::network;
use crate::host::session::Session;
use crate::output::report::Missing;

/// A session for each cluster of the configuration.
///
/// # Errors
/// For settings that can't be used; they say where they were written.
pub(crate) fn sessions(app: &App) -> Result<Vec<(Cluster, Rc<Session>)>> {
    let clusters = app.settings.clusters.iter();
    clusters
        .map(|cluster| Ok((cluster.clone(), Rc::new(session(app, cluster)?))))
        .collect()
}

/// The session of one cluster.
///
/// # Errors
/// For settings that can't be used; they say where they were written.
pub(crate) fn session(app: &App, cluster: &Cluster) -> Result<Session> {
    let options = cluster.client.read()?;
    let http = network::client(&cluster.network)?;
    let session = Session::new(cluster.name.clone(), options, http, Rc::clone(&app.voice));
    session.map_err(|error| cluster.told(error).helped_by("tallyfold init"))
}

/// Does the same with each cluster at the same time. Gives what worked and what did not, in the order of the configuration.
pub(crate) async fn each<T, F: Future<Output = Result<T>>>(
    sessions: &[(Cluster, Rc<Session>)],
    ask: impl Fn(Cluster, Rc<Session>) -> F,
) -> (Vec<T>, Vec<Missing>) {
    let asked = sessions
        .iter()
        .map(|(cluster, session)| ask(cluster.clone(), Rc::clone(session)));
    let answers = join_all(asked).await;
    let mut found = Vec::new();
    let mut missing = Vec::new();
    for ((cluster, _), answer) in sessions.iter().zip(answers) {
        match answer {
            Ok(answer) => found.push(answer),
            Err(failure) => missing.push(Missing {
                cluster: cluster.name.clone(),
                failure: with_doctor(failure, &cluster.name),
            }),
        }
    }
    (found, missing)
}

/// A failure of a cluster, with the command that looks at it more closely.
pub(crate) fn with_doctor(failure: Failure, cluster: &str) -> Failure {
    match failure.help {
        Some(_) => failure,
        // What is to be changed here, the failure itself says.
        None if failure.exit == Exit::Usage => failure,
        None => failure.helped_by(format!("tallyfold doctor --cluster {cluster}")),
    }
}
