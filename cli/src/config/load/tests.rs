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
        value
            .map(|value| (*value).to_owned())
            .ok_or(VarError::NotPresent)
    })
}

fn wrong(file: Option<&str>, variables: &[(&str, &str)], flags: &[&str]) -> Failure {
    loaded(file, variables, flags).unwrap_err()
}

fn client(settings: &Settings, at: usize) -> MachineOptions {
    settings.clusters[at].client.read().unwrap()
}

#[test]
fn flags_are_over_the_environment_over_the_file() {
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
        assert_eq!(
            client(&settings, 0).client_secret.unwrap().expose(),
            "canary"
        );
    }
    // The defaults of a file without clusters hold, too.
    let settings = loaded(Some("[defaults]\nmax_retries = 7"), &variables, &[]).unwrap();
    assert_eq!(client(&settings, 0).max_retries, 7);
    assert_eq!(settings.file, Some(PathBuf::from("t.toml")));
}

#[test]
fn what_describes_one_cluster_is_refused_for_several() {
    for argument in MachineOptions::ARGUMENTS {
        let Some(variable) = argument.variable() else {
            continue;
        };
        let failure = wrong(Some(TWO), &[(&variable, "canary")], &[]);
        let expected = format!(
            "environment variable {variable}: 2 clusters are asked, and all of them would get this;"
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
            failure
                .text
                .starts_with(&format!("{flag}: 2 clusters are asked")),
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
fn a_variable_that_the_file_names_is_read_only_there() {
    let text = "[cluster.eu]\nclient_id = 'eu-id'\nclient_secret_env = 'TALLYFOLD_CLIENT_SECRET'\n\
                [cluster.us]\nclient_secret_env = 'CARGO_PKG_NAME'\n";
    let variables = [("TALLYFOLD_CLIENT_SECRET", "canary")];
    let settings = loaded(Some(text), &variables, &[]).unwrap();
    assert_eq!(settings.clusters.len(), 2);
    let settings = loaded(Some(text), &variables, &["--cluster", "us"]).unwrap();
    assert_eq!(
        client(&settings, 0).client_secret.unwrap().expose(),
        "tallyfold-cli"
    );
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
    assert_eq!(
        names(&["--cluster", "us", "--cluster", "eu", "--cluster", "us"]),
        ["eu", "us"]
    );
    for (name, expected) in [
        (
            "ue",
            "--cluster ue: there is no such cluster; did you mean eu? t.toml has eu, us",
        ),
        (
            "asia",
            "--cluster asia: there is no such cluster; t.toml has eu, us",
        ),
        (
            "default",
            "--cluster default: there is no such cluster; t.toml has eu, us",
        ),
    ] {
        assert_eq!(wrong(Some(TWO), &[], &["--cluster", name]).text, expected);
    }
    let failure = wrong(None, &[], &["--cluster", "eu"]);
    assert!(
        failure
            .text
            .starts_with("--cluster eu: there is no configuration"),
        "{failure}"
    );
    let failure = wrong(Some(""), &[], &["--cluster", "eu"]);
    assert_eq!(
        failure.text,
        "--cluster eu: t.toml has no section [cluster.eu]"
    );
}

#[test]
fn if_nothing_is_configured_the_way_to_do_it_is_said() {
    for (file, expected) in [
        (
            None,
            "nothing says which service to ask: there is no configuration (tallyfold.toml, ",
        ),
        (
            Some("[defaults]\n"),
            "nothing says which service to ask: t.toml has no section [cluster.NAME], and neither",
        ),
    ] {
        let failure = wrong(file, &[("TALLYFOLD_CLIENT_ID", "a")], &[]);
        assert!(failure.text.starts_with(expected), "{failure}");
        assert_eq!(failure.help.as_deref(), Some("tallyfold init"));
        assert_eq!(failure.exit, crate::failure::Exit::Usage);
    }
}

#[test]
fn what_is_missing_is_said_with_the_place_where_it_belongs() {
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
