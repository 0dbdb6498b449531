//! Contains what all commands that query a service share: settings, stderr, signals, and a client for each cluster.

use std::cell::OnceCell;
use std::fmt::Display;
use std::future::Future;
use std::rc::Rc;

use futures_util::future::join_all;
use tallyfold::{Code, Revision, Window};

use crate::config::load::{ServiceFlags, load};
use crate::config::settings::{Cluster, Settings};
use crate::failure::{Exit, Failure, Result};
use crate::host::network::Http;
use crate::host::ranges::{FollowEvent, Following};
use crate::host::session::Session;
use crate::host::shutdown::{Shutdown, Stop};
use crate::host::state::StateFile;
use crate::output::report::{Missing, Part, Report, contradiction};
use crate::output::safe::escaped;
use crate::stderr::Stderr;

/// What all commands that query a service share.
#[derive(Clone)]
pub(crate) struct App {
    /// The flags that select the clusters and their settings.
    pub(crate) service: ServiceFlags,
    /// All settings, or the defaults if the configuration is invalid.
    pub(crate) settings: Settings,
    /// Why the configuration is invalid. A command checks its own flags before it calls [`App::loaded`], which returns
    /// this error.
    pub(crate) unusable: Option<Failure>,
    /// Prints messages to the user.
    pub(crate) stderr: Rc<Stderr>,
    /// Listens for Ctrl-C and SIGTERM.
    pub(crate) stop: Rc<Stop>,
    /// The sessions, once they have been created.
    pub(crate) sessions: OnceCell<Vec<Opened>>,
}

/// A cluster, and its session or the reason why its secret can't be read.
pub(crate) type Opened = (Cluster, Result<Rc<Session>>);

impl App {
    /// Loads the settings that the flags select, and begins to listen for signals.
    ///
    /// # Errors
    /// If the system does not allow the process to listen for signals.
    pub(crate) fn new(service: &ServiceFlags, stderr: &Rc<Stderr>) -> Result<Self> {
        let (settings, unusable) = match load(service) {
            Ok(settings) => (settings, None),
            Err(failure) => (Settings::default(), Some(failure)),
        };
        if let Some(file) = &settings.file {
            stderr.detail(format_args!("configuration: {}", file.display()));
        }
        Ok(Self {
            service: service.clone(),
            settings,
            unusable,
            stderr: Rc::clone(stderr),
            stop: Rc::new(Stop::listen()?),
            sessions: OnceCell::new(),
        })
    }

    /// Reads the settings again, and returns a copy of this value with the new settings.
    ///
    /// # Errors
    /// If the settings can't be used; the error names where they were set.
    pub(crate) fn reloaded(&self) -> Result<Self> {
        Ok(Self {
            settings: load(&self.service)?,
            unusable: None,
            sessions: OnceCell::new(),
            ..self.clone()
        })
    }

    /// Returns the settings, or why they can't be used.
    ///
    /// # Errors
    /// If the settings can't be used; the error names where they were set.
    pub(crate) fn loaded(&self) -> Result<&Settings> {
        match &self.unusable {
            Some(failure) => Err(failure.clone()),
            None => Ok(&self.settings),
        }
    }

    /// Returns a session for each cluster of the configuration. Later calls return the same sessions, which keep their
    /// tokens.
    ///
    /// # Errors
    /// If the settings can't be used, or a secret can't be read; the error names where they were set.
    pub(crate) fn sessions(&self) -> Result<Vec<(Cluster, Rc<Session>)>> {
        let opened = self.sessions_of(&[])?.into_iter();
        opened.map(|(cluster, session)| Ok((cluster, session?))).collect()
    }

    /// Returns the sessions of the clusters with these names, or of all clusters if `names` is empty. If a cluster's secret
    /// can't be read, returns the reason in place of its session, so that the command can still query the other clusters.
    ///
    /// # Errors
    /// If the settings can't be used; the error names where they were set. Also for a name that no cluster has.
    pub(crate) fn sessions_of(&self, names: &[String]) -> Result<Vec<Opened>> {
        let sessions = match self.sessions.get() {
            Some(sessions) => sessions,
            None => {
                let clusters = self.loaded()?.clusters.iter();
                let sessions = clusters.map(|cluster| {
                    let session = self.session(cluster).map(Rc::new);
                    let sources = cluster.client.sources();
                    match sources.iter().any(|source| source.secret().is_err()) {
                        true => Ok((cluster.clone(), session)),
                        false => Ok((cluster.clone(), Ok(session?))),
                    }
                });
                let sessions = sessions.collect::<Result<Vec<_>>>()?;
                self.sessions.get_or_init(|| sessions)
            }
        };
        let known: Vec<&str> = sessions.iter().map(|(one, _)| one.name.as_str()).collect();
        if let Some(name) = names.iter().find(|name| !known.contains(&name.as_str())) {
            let known = known.join(", ");
            return Err(Failure::usage(format!(
                "--cluster: no cluster is named {name:?}; want one of {known}"
            )));
        }
        let mut sessions = sessions.clone();
        sessions.retain(|(cluster, _)| names.is_empty() || names.contains(&cluster.name));
        Ok(sessions)
    }

    /// Creates a session for one cluster.
    ///
    /// # Errors
    /// If the settings can't be used, or a secret can't be read; the error names where they were set.
    pub(crate) fn session(&self, cluster: &Cluster) -> Result<Session> {
        let options = cluster.client.read()?;
        let http = Http::new(&cluster.network)?;
        let session = Session::new(cluster.name.clone(), options, http, Rc::clone(&self.stderr));
        session.map_err(|error| {
            let is_missing = error.code() == Code::MissingArgument;
            let failure = cluster.as_failure(error);
            match is_missing {
                true => failure.helped_by("tallyfold init"),
                // The text already names the setting to change.
                false => failure,
            }
        })
    }

    /// Runs `work` at the same time for all clusters with these names, or for every cluster if `names` is empty. Returns the
    /// results as a report.
    ///
    /// # Errors
    /// Same as [`App::sessions_of`].
    pub(crate) async fn report<A, T, F: Future<Output = Result<Part<T>>>>(
        &self,
        asked: A,
        names: &[String],
        work: impl Fn(Cluster, Rc<Session>) -> F,
    ) -> Result<Report<A, T>> {
        let sessions = self.sessions_of(names)?;
        let (parts, missing) = each(&sessions, work).await;
        Ok(Report { asked, parts, missing, is_named: self.settings.is_named })
    }

    /// Writes a warning about a cluster.
    pub(crate) fn warn(&self, cluster: &str, text: impl Display) {
        self.stderr.warning(self.named(cluster, text));
    }

    /// Writes a note about a cluster.
    pub(crate) fn note(&self, cluster: &str, text: impl Display) {
        self.stderr.note(self.named(cluster, text));
    }

    /// Puts the name of the cluster before a text about it, if clusters have names.
    fn named(&self, cluster: &str, text: impl Display) -> String {
        match self.settings.is_named {
            true => format!("{}: {text}", escaped(cluster)),
            false => text.to_string(),
        }
    }

    /// Waits for the next revision of a follow. `file` contains the state of the follow. Warns if a window could not be read,
    /// and if a window's reported totals differ from the sums of its counts. Returns `None` when all windows are settled or the
    /// shutdown begins.
    ///
    /// # Errors
    /// If the state is from the future, and if reading a window fails before the follow has read any other window.
    pub(crate) async fn next_revision(
        &self,
        following: &mut Following,
        file: Option<&StateFile>,
        shutdown: &Shutdown,
    ) -> Result<Option<Box<Revision>>> {
        while let Some(found) = shutdown.unless_begun(following.next()).await {
            let cluster = &following.session.name;
            match found {
                FollowEvent::Done => break,
                FollowEvent::Ahead(error) => {
                    return Err(match file {
                        Some(file) => file.as_failure(error),
                        None => error.into(),
                    });
                }
                FollowEvent::Failed(window, error) => {
                    let failure = Failure::from(error);
                    if !following.has_read {
                        return Err(failure.of_cluster(cluster));
                    }
                    self.warn_unread(cluster, window, &failure);
                }
                FollowEvent::Revision(revision) => {
                    self.warn_contradiction(cluster, &revision);
                    return Ok(Some(revision));
                }
            }
        }
        Ok(None)
    }

    /// Warns that a window could not be read and will be read again later.
    pub(crate) fn warn_unread(&self, cluster: &str, window: Window, failure: &Failure) {
        let end = window.end();
        let text = &failure.text;
        self.warn(cluster, format_args!("the window until {end} will be read again later: {text}"));
    }

    /// Warns if a window is settled and its reported totals differ from the sums of its counts. Returns whether it
    /// warned.
    pub(crate) fn warn_contradiction(&self, cluster: &str, revision: &Revision) -> bool {
        let text = contradiction(revision.table.reconciliation());
        let text = text.filter(|_| revision.settled);
        if let Some(text) = &text {
            let window = revision.window;
            self.warn(cluster, format_args!("{window:?}: {text}"));
        }
        text.is_some()
    }

    /// Writes why a cluster has failed, and what the user can try.
    pub(crate) fn fail(&self, cluster: &str, failure: &Failure) {
        self.stderr.error(self.named(cluster, failure));
        self.stderr.suggest(failure);
    }

    /// If a cluster has failed, writes why and returns the exit code for that failure.
    pub(crate) fn fail_if(&self, cluster: &str, result: Result<()>) -> Option<Exit> {
        let failure = result.err()?;
        self.fail(cluster, &failure);
        Some(failure.exit)
    }

    /// Writes why parts of a report are missing, and what the user can try.
    pub(crate) fn fail_missing<A, F>(&self, report: &Report<A, F>) {
        for part in &report.parts {
            if let Some(failure) = &part.failure {
                self.fail(&part.cluster, failure);
            }
        }
        for missing in &report.missing {
            self.fail(&missing.cluster, &missing.failure);
        }
    }
}

/// Runs `work` for all clusters at the same time. Returns the results and the failures, each in the order of the
/// configuration.
pub(crate) async fn each<T, F: Future<Output = Result<T>>>(
    sessions: &[Opened],
    work: impl Fn(Cluster, Rc<Session>) -> F,
) -> (Vec<T>, Vec<Missing>) {
    let work = &work;
    let under_way = sessions
        .iter()
        .map(|(cluster, session)| async move { work(cluster.clone(), session.clone()?).await });
    let (mut results, mut missing) = (Vec::new(), Vec::new());
    for ((cluster, _), result) in sessions.iter().zip(join_all(under_way).await) {
        match result {
            Ok(result) => results.push(result),
            Err(failure) => missing.push(Missing {
                cluster: cluster.name.clone(),
                labels: cluster.labels.clone(),
                failure: failure.of_cluster(&cluster.name),
            }),
        }
    }
    (results, missing)
}
