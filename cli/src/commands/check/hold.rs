//! `tallyfold check ack`, `silence` and `unsilence`: acknowledge an incident, silence it, or undo either.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use tallyfold::Timestamp;
use tallyfold::text::milliseconds;
use tallyfold_health::IncidentHold;

use crate::app::App;
use crate::config::load::ServiceFlags;
use crate::failure::{Exit, Failure, Result};
use crate::files::cluster_of;
use crate::health::files::{Memory, places};
use crate::host::session::unix_ms;
use crate::host::state::StateFile;
use crate::output::safe::escaped;

/// The examples at the start of the help of `tallyfold check ack`.
const ACK_EXAMPLES: &str = "\
Examples:
  tallyfold check ack 3f2a --note 'the vendor is on it'
      Later runs do not fail because of this incident, and send no messages about it, until it becomes more severe or comes back.
";

/// The examples at the start of the help of `tallyfold check silence`.
const SILENCE_EXAMPLES: &str = "\
Examples:
  tallyfold check silence 3f2a --for 4h --note 'maintenance'
      For four hours, runs do not fail because of this incident, and send no messages about it.
";

/// The examples at the start of the help of `tallyfold check unsilence`.
const UNSILENCE_EXAMPLES: &str = "\
Examples:
  tallyfold check unsilence 3f2a
      If the incident is still open, the next run notifies receivers of it again.
";

/// Acknowledges or silences an incident, or undoes either.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum HoldAction {
    /// Acknowledges an incident: until it becomes more severe or comes back, check neither fails nor sends messages because of it
    #[command(before_help = ACK_EXAMPLES)]
    Ack(HoldFlags),
    /// Silences an incident for a time, even if it becomes more severe
    #[command(before_help = SILENCE_EXAMPLES)]
    Silence {
        #[command(flatten)]
        hold: HoldFlags,
        /// How long: 30m, 4h, 2d
        #[arg(long = "for", value_name = "TIME")]
        length: String,
    },
    /// Removes an acknowledgement or a silence
    #[command(before_help = UNSILENCE_EXAMPLES)]
    Unsilence(IncidentFlags),
}

/// The incident to acknowledge or to silence, and a note.
#[derive(Args, Clone, Debug)]
pub(crate) struct HoldFlags {
    #[command(flatten)]
    incident: IncidentFlags,
    /// Who handles it, or what is being done about it
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

/// An incident, and the place of the state that contains it.
#[derive(Args, Clone, Debug)]
pub(crate) struct IncidentFlags {
    /// The incident's identifier as check prints it, or the beginning of the identifier
    #[arg(value_name = "ID")]
    incident: String,
    /// The state of check [default: as in the configuration, or next to the rules, such as health.state]
    #[arg(long, value_name = "PATH")]
    state: Option<PathBuf>,
    /// The configuration file [default: the same as for check]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The cluster of the incident; needed if several clusters have an incident with this ID
    #[arg(long, value_name = "NAME")]
    cluster: Vec<String>,
}

/// Acknowledges or silences an incident, or undoes either.
///
/// # Errors
/// If no cluster or more than one has the incident, for flags and settings that can't be used, and for a state that can't be read
/// or written, or that a running check uses.
pub(crate) async fn run(app: &App, action: &HoldAction) -> Result<Exit> {
    let (flags, hold) = (action.flags(), action.hold()?);
    let state = match &flags.state {
        // With `--state`, the command needs no configuration.
        Some(state) => state.clone(),
        None => places((&None, &None, &None), &app.loaded()?.check).state,
    };
    let nothing =
        || Failure::usage(format!("{}: no check has written a state here", state.display()));
    if !state.exists() {
        return Err(nothing());
    }
    let (mut found, mut refused) = (Vec::new(), None);
    for cluster in clusters(&state, &flags.cluster)? {
        let file = StateFile::existing(&state, cluster.as_deref())?;
        let Some(bytes) = file.read()? else {
            continue;
        };
        let mut memory = Memory::parse(&bytes, None).map_err(|error| file.as_failure(error))?;
        match memory.rules.hold(&flags.incident, hold.clone()) {
            Ok(incident) => {
                let sentence = incident.sentence.clone();
                found.push((cluster, file, memory, sentence));
            }
            Err(error) => refused = Some(error),
        }
    }
    let refused = refused.map_or_else(nothing, |error| {
        let name = match error.argument_name() {
            Some("note") => "--note",
            _ => "ID",
        };
        Failure::usage(format!("{name}: {}", error.message()))
    });
    let [(cluster, file, memory, sentence)] = &found[..] else {
        let names = found.iter().flat_map(|(cluster, ..)| cluster);
        let names: Vec<String> = names.map(|name| escaped(name)).collect();
        return Err(match names.is_empty() {
            true => refused,
            false => Failure::usage(format!(
                "ID: {} have such an incident; want --cluster NAME, too",
                names.join(" and ")
            )),
        });
    };
    file.replace(memory.to_json()).await?;
    let mut text = match &hold {
        Some(IncidentHold { until: None, .. }) => "acknowledged".to_owned(),
        Some(IncidentHold { until: Some(until), .. }) => format!("silenced until {until}"),
        None => "no longer acknowledged or silenced".to_owned(),
    };
    if let Some(cluster) = cluster {
        text.push_str(&format!(": {}", escaped(cluster)));
    }
    app.stderr.note(format_args!("{text}: {}", escaped(sentence)));
    Ok(Exit::Fine)
}

/// Returns the names of the clusters whose states to search: the names in `named`, or else all clusters that have a file in the
/// folder `state`. If `state` is a file, returns `None` for the only cluster, which has no name.
fn clusters(state: &Path, named: &[String]) -> Result<Vec<Option<String>>> {
    if !named.is_empty() {
        return Ok(named.iter().cloned().map(Some).collect());
    }
    if !state.is_dir() {
        return Ok(vec![None]);
    }
    let files = state.read_dir().map_err(|error| Failure::file("read", state, &error))?;
    let names = files.flatten().filter_map(|file| {
        let name = file.file_name().into_string().ok()?;
        cluster_of(name.strip_suffix(".json")?)
    });
    let names: BTreeSet<String> = names.collect();
    Ok(names.into_iter().map(Some).collect())
}

impl HoldAction {
    fn flags(&self) -> &IncidentFlags {
        match self {
            Self::Ack(flags) | Self::Silence { hold: flags, .. } => &flags.incident,
            Self::Unsilence(flags) => flags,
        }
    }

    /// Selects the configuration that the flags name. The clusters come from the files of the state.
    pub(crate) fn select(&self, service: &mut ServiceFlags) {
        let flags = self.flags();
        if flags.config.is_some() {
            service.config.clone_from(&flags.config);
        }
    }

    /// Returns the acknowledgement or the silence to store; `None` to remove it.
    fn hold(&self) -> Result<Option<IncidentHold>> {
        Ok(match self {
            Self::Ack(flags) => Some(IncidentHold::acknowledged(flags.note.clone())),
            Self::Silence { hold, length } => {
                let ms = milliseconds(length).and_then(|ms| i64::try_from(ms).ok());
                let until = ms
                    .filter(|ms| *ms > 0)
                    .and_then(|ms| (unix_ms() / 1000 * 1000).checked_add(ms));
                let until = until.and_then(Timestamp::from_unix_ms).ok_or_else(|| {
                    Failure::usage(format!(
                        "--for: want a length of time such as 4h, not {length:?}"
                    ))
                })?;
                Some(IncidentHold::silenced(until, hold.note.clone()))
            }
            Self::Unsilence(_) => None,
        })
    }
}
