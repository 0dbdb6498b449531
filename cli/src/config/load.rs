//! Merges the sources of settings: flags override the environment, which overrides the file.
//!
//! Flags and variables such as `TALLYFOLD_CLIENT_ID` describe one cluster. If a command queries several clusters, it refuses
//! flags and variables for the address or the credentials of a cluster. They would apply to all clusters, and so send a secret
//! to the wrong service. If the file names such a variable (`client_secret_env = "TALLYFOLD_CLIENT_SECRET"`), the variable sets
//! only the option of that key.

use std::env::{self, VarError};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use tallyfold::arguments::{Kind, Options};
use tallyfold::text::nearest;
use tallyfold::{MachineOptions, Spelling};

use super::find::{find, usual_places};
use super::keys::CLIENT_SECRET;
use super::sections::{self, Named, Written};
use super::settings::{Cluster, Settings};
use crate::arguments::declared::{Declared, Flags};
use crate::arguments::given::{Given, Origin, Raw};
use crate::arguments::secret::{Place, Program, Source};
use crate::failure::{Failure, Result};

/// The name of a cluster without a section in a file.
const UNNAMED: &str = "default";

/// Options that describe one cluster.
const OF_ONE_CLUSTER: [&str; 8] = [
    "cluster_endpoint",
    "client_id",
    CLIENT_SECRET,
    "control_audience",
    "base_url",
    "auth_url",
    "orchestration_audience",
    "identity",
];

/// Flags of every command that queries a service.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Service")]
pub(crate) struct ServiceFlags {
    /// The configuration file [default: ./tallyfold.toml, which you must trust, or else the user's or the system's]
    #[arg(long, value_name = "FILE", env = "TALLYFOLD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Queries only this cluster of the configuration; may be repeated [default: all clusters]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Vec<String>,
    /// A file with the client secret; only its owner may have access to it
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) client_secret_file: Option<PathBuf>,
    /// A shell command that prints the client secret
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "client_secret_file",
        hide_short_help = true
    )]
    pub(crate) client_secret_command: Option<String>,
    /// A PEM file of CA certificates to trust in addition to the system's
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub(crate) ca_file: Option<PathBuf>,
    /// The options of the client.
    #[command(flatten)]
    pub(crate) client: Declared<ClientFlags>,
}

/// The client's options that are flags. The secret has no such flag, because `ps` shows the arguments of a process.
#[derive(Clone, Debug)]
pub(crate) struct ClientFlags;

impl Flags for ClientFlags {
    type Options = MachineOptions;

    const NAMES: &'static [&'static str] = &[
        "cluster_endpoint",
        "client_id",
        "control_audience",
        "base_url",
        "auth_url",
        "orchestration_audience",
        "identity",
        "dangerously_allow_http",
        "max_retries",
        "longest_retry_wait_ms",
        "timeout_ms",
    ];
    const HEADING: &'static str = "Service";
}

/// Reads and merges all sources.
///
/// # Errors
/// For a configuration that can't be read or used, for invalid settings, for a cluster in `--cluster` that does not exist, and if
/// no service is configured. The error names the place of an invalid setting.
pub(crate) fn load(flags: &ServiceFlags) -> Result<Settings> {
    let found = find(flags.config.as_deref())?;
    let written = found.as_ref().map(sections::read).transpose()?;
    put_together(flags, written, &|name| env::var(name))
}

type Variables<'a> = &'a dyn Fn(&str) -> std::result::Result<String, VarError>;

fn put_together(
    flags: &ServiceFlags,
    written: Option<Written>,
    variables: Variables<'_>,
) -> Result<Settings> {
    let is_from_file = written.is_some();
    let mut written = written.unwrap_or_default();
    let mut over = environment(&written.variables, variables)?;
    over.overlay(of_flags(flags));
    let named = std::mem::take(&mut written.clusters);
    let is_named = !named.is_empty();
    let clusters = match is_named {
        true => named_clusters(selected(flags, named, &written)?, &over)?,
        false => {
            refuse_names(flags, &written, is_from_file)?;
            let cluster = cluster(UNNAMED.to_owned(), None, written.defaults.clone(), &over);
            let is_given = |name: &&str| cluster.client.get(name).is_some();
            if !["cluster_endpoint", "base_url"].iter().any(is_given) {
                return Err(no_address(is_from_file.then_some(&written)));
            }
            vec![cluster]
        }
    };
    Ok(Settings {
        file: is_from_file.then_some(written.path),
        clusters,
        targets: written.targets,
        receivers: written.receivers,
        check: written.check,
        run: written.run,
        is_named,
    })
}

fn named_clusters(selected: Vec<Named>, over: &Given) -> Result<Vec<Cluster>> {
    if selected.len() > 1 {
        refuse_for_several(over, selected.len())?;
    }
    let clusters = selected
        .into_iter()
        .map(|named| cluster(named.name, Some(named.origin), named.given, over));
    Ok(clusters.collect())
}

fn cluster(name: String, origin: Option<Origin>, mut given: Given, over: &Given) -> Cluster {
    given.overlay(over.clone());
    Cluster::new(name, origin, given)
}

/// Returns the clusters that the flags select, in the order of the file.
fn selected(
    flags: &ServiceFlags,
    mut clusters: Vec<Named>,
    written: &Written,
) -> Result<Vec<Named>> {
    let names: Vec<&str> = clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    for name in &flags.cluster {
        if !names.contains(&name.as_str()) {
            let near = match nearest(name, &names) {
                Some(near) => format!("did you mean {near}? "),
                None => String::new(),
            };
            let (path, known) = (written.path.display(), names.join(", "));
            return Err(Failure::usage(format!(
                "--cluster {name}: there is no such cluster; {near}{path} has {known}"
            )));
        }
    }
    if !flags.cluster.is_empty() {
        clusters.retain(|cluster| flags.cluster.contains(&cluster.name));
    }
    Ok(clusters)
}

/// Refuses `--cluster` if no configuration names a cluster. In this case, only the name `default` is accepted.
fn refuse_names(flags: &ServiceFlags, written: &Written, is_from_file: bool) -> Result<()> {
    let Some(name) = flags.cluster.iter().find(|name| *name != UNNAMED) else {
        return Ok(());
    };
    let why = match is_from_file {
        true => format!("{} has no section [cluster.{name}]", written.path.display()),
        false => "there is no configuration file that could define this cluster".to_owned(),
    };
    Err(Failure::usage(format!("--cluster {name}: {why}")).helped_by("tallyfold init"))
}

/// Returns the settings from environment variables, except variables that the file names.
fn environment(named: &[String], variables: Variables<'_>) -> Result<Given> {
    let mut given = Given::default();
    for argument in MachineOptions::ARGUMENTS {
        let Some(variable) = argument.variable() else {
            continue;
        };
        if named.contains(&variable) {
            continue;
        }
        let raw = match (variables(&variable), argument.kind) {
            (Err(VarError::NotPresent), _) => continue,
            (Err(VarError::NotUnicode(_)), _) => {
                return Err(Failure::usage(format!(
                    "environment variable {variable}: want UTF-8 text"
                )));
            }
            (Ok(value), Kind::Secret) => Raw::Secret(value.into()),
            (Ok(value), _) => Raw::Text(value),
        };
        given.set(argument.spelled(Spelling::Toml), raw, Origin::Variable(variable));
    }
    Ok(given)
}

/// Returns the settings from flags.
fn of_flags(flags: &ServiceFlags) -> Given {
    let mut given = flags.client.given.clone();
    let file = flags.client_secret_file.clone().map(Place::File);
    let command =
        flags.client_secret_command.clone().map(|text| Place::Command(Program::Shell(text)));
    if let Some(place) = file.or(command) {
        given.set(CLIENT_SECRET, Raw::Source(Arc::new(Source::new(place))), Origin::Flag);
    }
    if let Some(path) = &flags.ca_file {
        given.set("ca_file", Raw::Path(path.clone()), Origin::Flag);
    }
    given
}

/// Refuses flags and environment variables that describe one cluster, if several clusters are queried.
fn refuse_for_several(over: &Given, count: usize) -> Result<()> {
    for name in OF_ONE_CLUSTER {
        let Some(setting) = over.get(name) else {
            continue;
        };
        let what = match (&setting.origin, &setting.raw) {
            (Origin::Flag, Raw::Source(source)) => source.flag().to_owned(),
            (Origin::Flag, _) => format!("--{}", name.replace('_', "-")),
            (origin, _) => origin.to_string(),
        };
        return Err(Failure::usage(format!(
            "{what}: {count} clusters are queried, and all of them would get this; choose one with --cluster, or write it \
             into the section of the cluster that it belongs to"
        )));
    }
    Ok(())
}

fn no_address(written: Option<&Written>) -> Failure {
    let files = match written {
        Some(written) => format!("{} has no section [cluster.NAME]", written.path.display()),
        None => {
            let places = usual_places();
            let places: Vec<String> =
                places.iter().map(|path| path.display().to_string()).collect();
            format!("there is no configuration ({})", places.join(", "))
        }
    };
    Failure::usage(format!(
        "no service is configured: {files}, and neither --cluster-endpoint nor the environment variable \
         TALLYFOLD_CLUSTER_ENDPOINT is set"
    ))
    .helped_by("tallyfold init")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::path::PathBuf;

    use clap::{CommandFactory, FromArgMatches, Parser};
    use tallyfold::Machine;

    use super::*;
    use crate::config::find::Found;

    const TWO: &str = "\
[cluster.eu]
cluster_endpoint = 'https://eu.example'
client_id = 'eu-id'
client_secret_env = 'CARGO_PKG_NAME'
control_audience = 'eu-audience'
[cluster.us]
cluster_endpoint = 'https://us.example'
client_id = 'us-id'
client_secret_env = 'CARGO_PKG_VERSION'
";

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        service: ServiceFlags,
    }

    fn loaded(file: Option<&str>, variables: &[(&str, &str)], flags: &[&str]) -> Result<Settings> {
        let command = Line::command().mut_args(|arg| arg.env(None::<&str>));
        let matches = command.get_matches_from([&["tallyfold"], flags].concat());
        let line = Line::from_arg_matches(&matches).unwrap();
        let found = |text: &str| Found {
            path: PathBuf::from("t.toml"),
            bytes: text.into(),
            distrust: None,
        };
        let written = file.map(|text| sections::read(&found(text)).unwrap());
        let variables: HashMap<&str, &str> = variables.iter().copied().collect();
        put_together(&line.service, written, &|name| {
            let value = variables.get(name);
            value.map(|value| (*value).to_owned()).ok_or(VarError::NotPresent)
        })
    }

    fn wrong(file: Option<&str>, variables: &[(&str, &str)], flags: &[&str]) -> Failure {
        loaded(file, variables, flags).unwrap_err()
    }

    fn client(settings: &Settings, at: usize) -> MachineOptions {
        settings.clusters[at].client.read().unwrap()
    }

    #[test]
    fn flags_override_the_environment_which_overrides_the_file() {
        let id = |variables: &[(&str, &str)], flags: &[&str]| {
            let flags = [&["--cluster", "eu"] as &[&str], flags].concat();
            let settings = loaded(Some(TWO), variables, &flags).unwrap();
            assert_eq!(settings.clusters.len(), 1);
            client(&settings, 0).client_id.unwrap()
        };
        let variable: &[(&str, &str)] = &[("TALLYFOLD_CLIENT_ID", "id-of-variable")];
        assert_eq!(id(&[], &[]), "eu-id");
        assert_eq!(id(variable, &[]), "id-of-variable");
        assert_eq!(id(variable, &["--client-id", "id-of-flag"]), "id-of-flag");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_in_a_flag_need_not_be_utf8() {
        use std::os::unix::ffi::OsStrExt;

        let path = std::ffi::OsStr::from_bytes(b"ca-\xff.pem");
        let command = Line::command().mut_args(|arg| arg.env(None::<&str>));
        let address = "--cluster-endpoint=https://a.example".as_ref();
        let matches =
            command.get_matches_from(["tallyfold".as_ref(), address, "--ca-file".as_ref(), path]);
        let line = Line::from_arg_matches(&matches).unwrap();
        let settings = put_together(&line.service, None, &|_| Err(VarError::NotPresent)).unwrap();
        assert_eq!(settings.clusters[0].network.ca_file.as_deref(), Some(path.as_ref()));
    }

    #[test]
    fn without_a_file_the_environment_and_flags_describe_one_cluster() {
        let variables = [
            ("TALLYFOLD_CLUSTER_ENDPOINT", "https://a.example"),
            ("TALLYFOLD_CLIENT_SECRET", "canary"),
        ];
        for flags in [&[] as &[&str], &["--cluster", "default"]] {
            let settings = loaded(None, &variables, flags).unwrap();
            assert!(!settings.is_named);
            assert_eq!(settings.clusters[0].name, "default");
            assert_eq!(settings.file, None);
            assert!(!format!("{settings:?}").contains("canary"), "{settings:?}");
            assert_eq!(client(&settings, 0).client_secret.unwrap().expose(), "canary");
        }
        // `[defaults]` of a file without clusters applies, too.
        let settings = loaded(Some("[defaults]\nmax_retries = 7"), &variables, &[]).unwrap();
        assert_eq!(client(&settings, 0).max_retries, 7);
        assert_eq!(settings.file, Some(PathBuf::from("t.toml")));
    }

    #[test]
    fn settings_of_one_cluster_are_refused_for_several() {
        for argument in MachineOptions::ARGUMENTS {
            let Some(variable) = argument.variable() else {
                continue;
            };
            let failure = wrong(Some(TWO), &[(&variable, "canary")], &[]);
            let expected = format!(
                "environment variable {variable}: 2 clusters are queried, and all of them would get this;"
            );
            assert!(failure.text.starts_with(&expected), "{failure}");
            assert!(!failure.text.contains("canary"), "{failure}");
        }
        for (flag, value) in [
            ("--cluster-endpoint", "https://a.example"),
            ("--client-id", "a"),
            ("--client-secret-file", "a"),
            ("--client-secret-command", "a"),
            ("--control-audience", "a"),
        ] {
            let failure = wrong(Some(TWO), &[], &[flag, value]);
            assert!(
                failure.text.starts_with(&format!("{flag}: 2 clusters are queried")),
                "{failure}"
            );
            loaded(Some(TWO), &[], &["--cluster", "us", flag, value]).unwrap();
        }
        let settings = loaded(Some(TWO), &[], &["--timeout", "9s", "--ca-file", "ca.pem"]).unwrap();
        for cluster in &settings.clusters {
            let options: MachineOptions = cluster.client.read().unwrap();
            assert_eq!(options.timeout_ms, tallyfold::Patience::Milliseconds(9_000));
            assert_eq!(cluster.network.ca_file, Some(PathBuf::from("ca.pem")));
        }
    }

    #[test]
    fn a_variable_that_the_file_names_sets_only_that_key() {
        let text = "[cluster.eu]\nclient_id = 'eu-id'\nclient_secret_env = 'TALLYFOLD_CLIENT_SECRET'\n\
                [cluster.us]\nclient_secret_env = 'CARGO_PKG_NAME'\n";
        let variables = [("TALLYFOLD_CLIENT_SECRET", "canary")];
        let settings = loaded(Some(text), &variables, &[]).unwrap();
        assert_eq!(settings.clusters.len(), 2);
        let settings = loaded(Some(text), &variables, &["--cluster", "us"]).unwrap();
        assert_eq!(client(&settings, 0).client_secret.unwrap().expose(), "tallyfold-cli");
    }

    #[test]
    fn clusters_are_chosen_by_name() {
        let names = |flags: &[&str]| {
            let settings = loaded(Some(TWO), &[], flags).unwrap();
            assert!(settings.is_named);
            let names = settings.clusters.iter().map(|cluster| cluster.name.clone());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(&[]), ["eu", "us"]);
        assert_eq!(names(&["--cluster", "us"]), ["us"]);
        assert_eq!(names(&["--cluster", "us", "--cluster", "eu", "--cluster", "us"]), ["eu", "us"]);
        for (name, expected) in [
            ("ue", "--cluster ue: there is no such cluster; did you mean eu? t.toml has eu, us"),
            ("asia", "--cluster asia: there is no such cluster; t.toml has eu, us"),
            ("default", "--cluster default: there is no such cluster; t.toml has eu, us"),
        ] {
            assert_eq!(wrong(Some(TWO), &[], &["--cluster", name]).text, expected);
        }
        let failure = wrong(None, &[], &["--cluster", "eu"]);
        assert!(failure.text.starts_with("--cluster eu: there is no configuration"), "{failure}");
        let failure = wrong(Some(""), &[], &["--cluster", "eu"]);
        assert_eq!(failure.text, "--cluster eu: t.toml has no section [cluster.eu]");
    }

    #[test]
    fn without_a_service_the_error_suggests_init() {
        for (file, expected) in [
            (None, "no service is configured: there is no configuration (tallyfold.toml, "),
            (
                Some("[defaults]\n"),
                "no service is configured: t.toml has no section [cluster.NAME], and neither",
            ),
        ] {
            let failure = wrong(file, &[("TALLYFOLD_CLIENT_ID", "a")], &[]);
            assert!(failure.text.starts_with(expected), "{failure}");
            assert_eq!(failure.help.as_deref(), Some("tallyfold init"));
            assert_eq!(failure.exit, crate::failure::Exit::Usage);
        }
    }

    #[test]
    fn an_error_about_a_setting_names_its_place() {
        let as_failure = |settings: &Settings, at: usize| {
            let cluster = &settings.clusters[at];
            let error = Machine::new(cluster.client.read().unwrap()).err().unwrap();
            cluster.as_failure(error).text
        };
        let settings = loaded(Some(TWO), &[], &[]).unwrap();
        let expected = "t.toml:6:10: cluster.us: control_audience is missing; want control_audience here, or the environment \
                    variable TALLYFOLD_CONTROL_AUDIENCE";
        assert_eq!(as_failure(&settings, 1), expected);
        let endpoint = ("TALLYFOLD_CLUSTER_ENDPOINT", "https://a.example");
        let settings = loaded(None, &[endpoint, ("TALLYFOLD_CLIENT_ID", "a")], &[]).unwrap();
        let expected = "client_secret is missing; want --client-secret-file or --client-secret-command, or the environment \
                    variable TALLYFOLD_CLIENT_SECRET";
        assert_eq!(as_failure(&settings, 0), expected);
        let settings = loaded(None, &[endpoint, ("TALLYFOLD_CLIENT_ID", "")], &[]).unwrap();
        let expected = "environment variable TALLYFOLD_CLIENT_ID: this is empty; is an environment variable unset?";
        assert_eq!(as_failure(&settings, 0), expected);
        let text = "[cluster.eu]\ncluster_endpoint = 'ftp://eu.example'";
        let settings = loaded(Some(text), &[], &[]).unwrap();
        assert!(
            as_failure(&settings, 0).starts_with("t.toml:2:1: cluster.eu.cluster_endpoint: "),
            "{}",
            as_failure(&settings, 0)
        );
    }
}
