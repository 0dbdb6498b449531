//! Long-running commands with several clusters: their labels, and the failure of one cluster.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use crate::support::{RANGE, Service, Sink, TAKEN, ends, lines, stderr, stdout, terminate};

#[test]
fn rows_of_all_clusters_have_the_same_columns() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let clusters = [
        ("eu", "labels = { region = \"west\" }"),
        ("us", "labels = { env = \"test\", tier = \"1\" }"),
    ];
    let csv = [&["follow", "--format", "csv"], &RANGE[..]].concat();
    let output = service.clusters(folder.path(), &clusters, &csv).output().unwrap();
    ends(&output, 0);
    let text = stdout(&output);
    let header: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    let places = ["cluster", "region", "env", "tier"]
        .map(|name| header.iter().position(|other| *other == name).unwrap());
    let mut seen = BTreeSet::new();
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), header.len(), "{line}");
        seen.insert(places.map(|place| cells[place].to_owned()));
    }
    let wanted = [["eu", "west", "", ""], ["us", "", "test", "1"]];
    assert_eq!(seen, wanted.map(|row| row.map(str::to_owned)).into_iter().collect());
}

#[test]
fn a_label_named_cluster_is_refused() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let follow = ["follow", "--format", "csv"];
    let push = ["push", "--to", "influx", "http://127.0.0.1:1/write"];
    let serve = ["serve", "--listen", "127.0.0.1:0", "--state", "totals"];
    let flag = ["--label", "cluster=x"];
    for command in [&follow[..], &push, &serve] {
        let all = [command, &RANGE[..]].concat();
        let with_flag = [&all[..], &flag].concat();
        for (more, arguments) in [("", &with_flag), ("labels = { cluster = \"x\" }", &all)] {
            let clusters = [("eu", ""), ("us", more)];
            let output = service.clusters(folder.path(), &clusters, arguments).output().unwrap();
            ends(&output, 2);
            assert!(
                stderr(&output).contains("the label cluster contains the cluster's name"),
                "{}",
                stderr(&output)
            );
        }
    }
}

#[test]
fn the_failure_of_a_cluster_is_reported_while_the_others_continue() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let clusters = [("eu", ""), ("ap", "client_id = \"nobody\"")];
    let follow = ["follow", "--patience", "0s"];
    let sink = Sink::start(vec![], TAKEN);
    let push = ["push", "--to", "influx", &sink.url, "--follow", "--state", "outbox"];
    // Without --until, the cluster that answers is followed until the signal.
    let range = ["--since", "1h"];
    for command in [&follow[..], &push] {
        let all = [command, &range].concat();
        let mut command = service.clusters(folder.path(), &clusters, &all);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let said = lines(child.stderr.take().unwrap());
        let line = said.recv_timeout(Duration::from_secs(120));
        terminate(&child);
        let status = child.wait().unwrap();
        assert!(line.as_ref().is_ok_and(|line| line.starts_with("error: ap: ")), "{line:?}");
        assert_eq!(status.code(), Some(6));
    }
}
