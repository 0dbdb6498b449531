//! Commands that query several clusters while one cluster is down.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// Two clusters that answer, and between them a cluster that refuses connections.
struct World {
    folder: TempDir,
    _services: [Service; 2],
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let services = [Service::start("7"), Service::start("8")];
        let section = |name: &str, url: &str| {
            format!(
                "[cluster.{name}]\ncluster_endpoint = \"{url}\"\nbase_url = \"{url}\"\nauth_url = \"{url}\"\nclient_id = \"sandbox-client\"\n\
                 control_audience = \"sandbox-control\"\norchestration_audience = \"sandbox-orchestration\"\nclient_secret_env = \"SECRET_OF_THE_TEST\"\nmax_retries = 0\n"
            )
        };
        let text = [
            section("eu", &services[0].url),
            section("ap", "http://127.0.0.1:1"),
            section("us", &services[1].url),
        ];
        fs::write(folder.path().join("tallyfold.toml"), text.concat()).unwrap();
        Self { folder, _services: services }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let range =
            ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:15:00Z", "--by", "reason"];
        self.tallyfold(&[arguments, &range].concat())
    }

    fn tallyfold(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        command.args(arguments);
        for variable in ["CLUSTER_ENDPOINT", "CLIENT_ID", "CLIENT_SECRET", "CONTROL_AUDIENCE"] {
            command.env_remove(format!("TALLYFOLD_{variable}"));
        }
        let command = command
            .current_dir(self.folder.path())
            .env("TALLYFOLD_CONFIG", "tallyfold.toml")
            .env("SECRET_OF_THE_TEST", "sandbox-secret");
        command.output().unwrap()
    }
}

struct Service {
    process: Child,
    url: String,
}

impl Service {
    fn start(seed: &str) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
        let mut process =
            command.args(["sandbox", "--seed", seed]).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim().rsplit(' ').next().unwrap().to_owned();
        Self { process, url }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

#[test]
fn the_other_clusters_are_written_and_the_missing_one_is_reported() {
    let world = World::new();
    for command in ["delivery", "collect", "compare"] {
        let mut arguments = vec![command, "--format", "csv"];
        if command == "collect" {
            arguments.extend(["--patience", "0s"]);
        }
        let done = world.run(&arguments);
        let (out, said) = (text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(6), "{command}: {said}");
        let header = out.lines().next().unwrap();
        let place = header.split(',').position(|name| name == "cluster").unwrap();
        let mut clusters: Vec<&str> =
            out.lines().skip(1).map(|line| line.split(',').nth(place).unwrap()).collect();
        clusters.sort_unstable();
        clusters.dedup();
        assert_eq!(clusters, ["eu", "us"], "{command}: {out}");
        assert!(
            said.contains("error: ap: ") && said.contains("try: tallyfold doctor --cluster ap"),
            "{said}"
        );
        assert!(!said.contains("sandbox-secret"));
    }
}

#[test]
fn every_format_names_the_clusters() {
    let world = World::new();
    for format in ["table", "ndjson", "openmetrics", "otlp-json", "influx", "dogstatsd"] {
        let done = world.run(&["delivery", "--format", format]);
        let out = text(&done.stdout);
        assert_eq!(done.status.code(), Some(6), "{format}");
        assert!(
            out.contains("eu") && out.contains("us") && !out.contains("ap\""),
            "{format}: {out}"
        );
        let ends = out.lines().filter(|line| *line == "# EOF").count();
        assert_eq!(ends, usize::from(format == "openmetrics"), "{format}");
    }
    let done = world.run(&["delivery", "--format", "json"]);
    let report: Value = serde_json::from_slice(&done.stdout).unwrap();
    let names: Vec<&Value> =
        report["clusters"].as_array().unwrap().iter().map(|part| &part["cluster"]).collect();
    assert_eq!(names, ["eu", "us"]);
    assert_eq!(report["missing"][0]["cluster"], "ap");
}

#[test]
fn an_incomplete_result_is_written_next_to_the_file_until_a_complete_one() {
    let world = World::new();
    let path = |name: &str| world.folder.path().join(name);
    for command in ["delivery", "audit-logs"] {
        let run = |more: &[&str]| match command {
            "delivery" => world.run(&[&[command, "-o", "result"], more].concat()),
            _ => world.tallyfold(&[&[command, "-o", "result"], more].concat()),
        };
        fs::write(path("result"), "earlier").unwrap();
        let done = run(&[]);
        assert_eq!(done.status.code(), Some(6), "{command}");
        assert_eq!(fs::read_to_string(path("result")).unwrap(), "earlier");
        assert!(!fs::read(path("result.partial")).unwrap().is_empty());
        let note = "result.partial contains what could be read; result is replaced only by a complete result";
        assert!(text(&done.stderr).contains(note), "{command}");
        let done = run(&["--cluster", "eu", "--cluster", "us"]);
        assert_eq!(done.status.code(), Some(0), "{command}");
        assert_ne!(fs::read_to_string(path("result")).unwrap(), "earlier");
        assert!(!path("result.partial").exists(), "{command}");
    }
}

#[test]
fn a_cluster_that_is_not_selected_has_no_influence_on_the_exit_code() {
    let world = World::new();
    assert_eq!(world.run(&["delivery", "--cluster", "us"]).status.code(), Some(0));
    let dead = world.run(&["delivery", "--cluster", "ap"]);
    assert_eq!((dead.status.code(), text(&dead.stdout)), (Some(4), ""));
    assert_eq!(
        world.run(&["delivery", "--cluster", "eu", "--cluster", "us"]).status.code(),
        Some(0)
    );
}

#[test]
fn each_cluster_has_its_own_checkpoint() {
    let world = World::new();
    let arguments = ["collect", "--checkpoint", "kept", "--patience", "0s", "--format", "csv"];
    let first = world.run(&arguments);
    assert_eq!(first.status.code(), Some(6));
    let kept = |name: &str| {
        Path::new(world.folder.path()).join("kept").join(name).join("segment-00000.json").exists()
    };
    assert!(kept("eu") && kept("us") && !kept("ap"));
    assert_eq!(world.run(&arguments).stdout, first.stdout);
}

#[test]
fn the_doctor_reports_the_cluster_that_is_down() {
    let world = World::new();
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
    let done = command
        .arg("doctor")
        .current_dir(world.folder.path())
        .env("TALLYFOLD_CONFIG", "tallyfold.toml")
        .env("SECRET_OF_THE_TEST", "sandbox-secret");
    let done = done.output().unwrap();
    assert_eq!(done.status.code(), Some(6), "{}", text(&done.stdout));
    assert!(text(&done.stdout).contains("ap"));
}
