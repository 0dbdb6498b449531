//! `tallyfold collect` through the binary: what a checkpoint keeps, and when a file is replaced.

#![allow(clippy::unwrap_used, reason = "a test says so when it fails")]

mod support;

use std::fs;
use std::path::Path;

use support::{FROM, Service, UNTIL, ends, stderr};

fn collect<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["collect", "--from", FROM, "--to", UNTIL, "--format", "csv"];
    all.extend(more);
    all
}

/// The bytes of all segments of a checkpoint.
fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files
        .map(|file| file.unwrap().metadata().unwrap().len())
        .sum()
}

#[test]
fn a_checkpoint_keeps_the_steps_that_are_shown() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let run = |checkpoint: &str, more: &[&str]| {
        let path = folder.path().join(checkpoint);
        let all = [
            &["--by-window", "1h", "--checkpoint", path.to_str().unwrap()],
            more,
        ]
        .concat();
        let output = service.tallyfold(&collect(&all)).output().unwrap();
        ends(&output, 0);
        (output.stdout, size(&path))
    };
    let (all, of_all) = run("windows", &["--keep", "windows"]);
    let (hours, of_hours) = run("hours", &[]);
    assert_eq!(all, hours);
    assert!(of_hours * 2 < of_all, "{of_hours} {of_all}");
    assert_eq!(run("hours", &["--keep", "1h"]).0, hours);
    // A checkpoint that holds every window is taken as it is.
    assert_eq!(run("windows", &[]).0, hours);
}

#[test]
fn a_checkpoint_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let service = Service::start();
    let output = service
        .tallyfold(&["collect", "--checkpoint", path])
        .output()
        .unwrap();
    ends(&output, 2);
    let wanted = format!("error: {path}: want the path of a folder; this is a file\n");
    assert_eq!(stderr(&output), wanted);
}

#[test]
fn a_file_is_replaced_only_by_a_whole_result() {
    let folder = tempfile::tempdir().unwrap();
    let (file, partial) = (
        folder.path().join("counts.csv"),
        folder.path().join("counts.csv.partial"),
    );
    let all = collect(&["--concurrency", "1", "-o", file.to_str().unwrap()]);
    let fault = r#"{"kind":"status","status":400,"endpoint":"event_delivery","every":3}"#;
    let faulty = Service::with_faults(&[fault]);
    fs::write(&file, "earlier").unwrap();
    let output = faulty.tallyfold(&all).output().unwrap();
    ends(&output, 6);
    assert_eq!(fs::read_to_string(&file).unwrap(), "earlier");
    assert!(
        fs::read_to_string(&partial)
            .unwrap()
            .starts_with("window_start,window_end,")
    );
    assert!(
        stderr(&output).contains("counts.csv.partial"),
        "{}",
        stderr(&output)
    );
    let output = Service::start().tallyfold(&all).output().unwrap();
    ends(&output, 0);
    assert!(
        fs::read_to_string(&file)
            .unwrap()
            .starts_with("window_start,window_end,")
    );
    assert!(!partial.exists());
}
