//! `tallyfold collect` through the binary: what a checkpoint keeps, and when a file is replaced.

use std::fs::{self, File};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, SystemTime};

use crate::support::{FROM, Service, UNTIL, ends, stderr};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;

fn collect<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["collect", "--from", FROM, "--to", UNTIL, "--format", "csv"];
    all.extend(more);
    all
}

/// The size of all segments of a checkpoint, in bytes.
fn size(folder: &Path) -> u64 {
    let files = fs::read_dir(folder).unwrap();
    files.map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn a_checkpoint_keeps_the_steps_that_are_shown() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let run = |checkpoint: &str, more: &[&str]| {
        let path = folder.path().join(checkpoint);
        let all = [&["--by-window", "1h", "--checkpoint", path.to_str().unwrap()], more].concat();
        let output = service.tallyfold(&collect(&all)).output().unwrap();
        ends(&output, 0);
        (output.stdout, size(&path))
    };
    let (all, of_all) = run("windows", &["--keep", "windows"]);
    let (hours, of_hours) = run("hours", &[]);
    assert_eq!(all, hours);
    assert!(of_hours * 2 < of_all, "{of_hours} {of_all}");
    assert_eq!(run("hours", &["--keep", "1h"]).0, hours);
    // A checkpoint with every window can be used, too.
    assert_eq!(run("windows", &[]).0, hours);
}

/// Both kinds of checkpoints: with every window, and with the steps that are shown.
#[test]
fn the_damaged_segment_of_a_checkpoint_is_named() {
    let service = Service::start();
    for keep in [&[][..], &["--keep", "windows"]] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap();
        let own = ["collect", "--window", "15m", "--by-window", "1h", "--checkpoint", path];
        let run = |more: &[&str]| service.tallyfold(&[&own, more].concat()).output().unwrap();
        let middle = [&["--from", FROM, "--to", "2025-03-01T03:00:00Z"], keep].concat();
        ends(&run(&middle), 0);
        let whole = [&["--from", FROM, "--to", UNTIL], keep].concat();
        ends(&run(&whole), 0);
        for damaged in ["segment-00001.json", "segment-00000.json"] {
            let damaged = folder.path().join(damaged);
            let text = fs::read_to_string(&damaged).unwrap();
            fs::write(&damaged, &text[..text.len() / 2]).unwrap();
            let refused = run(&["--from", FROM, "--to", UNTIL]);
            ends(&refused, 2);
            let error = stderr(&refused);
            assert!(error.contains(damaged.to_str().unwrap()), "{error}");
            assert!(!error.contains("--keep"), "{error}");
        }
    }
}

#[test]
fn a_checkpoint_that_is_a_file_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let service = Service::start();
    let output = service.tallyfold(&["collect", "--checkpoint", path]).output().unwrap();
    ends(&output, 2);
    let wanted = format!("error: {path}: want the path of a folder; this is a file\n");
    assert_eq!(stderr(&output), wanted);
}

#[test]
fn wrong_flags_are_refused_before_anything_is_requested() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let range = ["--from", "2025-02-28", "--to", UNTIL, "--patience", "0s"];
    let refused = |command: &str, flags: &[&str], said: &str| {
        let all = [&[command][..], &range, flags].concat();
        let mut command = service.tallyfold(&all);
        command.current_dir(folder.path()).env("TALLYFOLD_CLUSTER_ENDPOINT", "http://127.0.0.1:1");
        let output = command.output().unwrap();
        ends(&output, 2);
        assert!(stderr(&output).contains(said), "{}", stderr(&output));
    };
    for (flags, said) in [
        (
            &["--keep", "total", "--by-window", "1h"][..],
            "--keep total: --by-window needs the counts of shorter windows; want windows, or a step that divides 1h",
        ),
        (&["--keep", "2h", "--by-window", "1h"], "--keep 2h: "),
        (
            &["--keep", "total", "--by-date", "lake", "--format", "csv"],
            "--keep total: --by-date needs the counts of shorter windows; want windows, or a step that divides 1d",
        ),
        (
            &["--by-date", "/dev/null/lake", "--format", "csv"],
            "can't make the folder /dev/null/lake",
        ),
    ] {
        refused("collect", flags, said);
    }
    for (flags, said) in [
        (&["--by-window", "20m"][..], "--by-window 20m: want a --window that divides 20m, not 15m"),
        (&["--format", "openmetrics", "--name", "1-bad"], "--name"),
    ] {
        refused("collect", flags, said);
        refused("delivery", flags, said);
    }
    let column = "this format uses the name";
    for command in ["collect", "delivery", "compare"] {
        refused(command, &["--label", "x"], "--label x: want NAME=VALUE");
        refused(command, &["-o", "none/x.csv"], "can't write none/x.csv: ");
        refused(command, &["-o", "."], "can't write .: ");
        let own = match command {
            "compare" => "presence=x",
            _ => "settled=x",
        };
        for label in ["integration=x", own] {
            let said = match (command, label) {
                ("compare", _) | (_, "settled=x") => column,
                _ => "integration is the name of a dimension",
            };
            refused(command, &["--format", "csv", "--label", label], said);
        }
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn windows_are_shortened_to_the_steps_that_are_shown() {
    let service = Service::start();
    let counts = |command| {
        let all = [command, "--from", FROM, "--to", UNTIL, "--window", "1h", "--by-window", "15m"];
        let output = service.tallyfold(&all).output().unwrap();
        ends(&output, 0);
        output.stdout
    };
    assert_eq!(counts("collect"), counts("delivery"));
}

#[test]
fn totals_that_contradict_the_counts_are_reported_for_each_kind_of_result() {
    let fault = r#"{"kind":"wrong_total","amount":7,"endpoint":"event_delivery","every":1}"#;
    let service = Service::with_faults(&[fault]);
    for command in ["collect", "delivery"] {
        for steps in [&[][..], &["--by-window", "1h"]] {
            let run = |format: &str| {
                let all = [command, "--from", FROM, "--to", UNTIL, "--format", format];
                let output = service.tallyfold(&[&all[..], steps].concat()).output();
                let output = output.unwrap();
                ends(&output, 0);
                output
            };
            let said = stderr(&run("csv"));
            assert!(said.contains("the totals that the service reports differ"), "{said}");
            let document: serde_json::Value = serde_json::from_slice(&run("json").stdout).unwrap();
            let found = &document["clusters"][0]["reconciliation"];
            assert_eq!(found["verdict"], "unbalanced", "{found}");
        }
    }
}

#[test]
fn a_file_is_replaced_only_by_a_whole_result() {
    let folder = tempfile::tempdir().unwrap();
    let (file, partial) =
        (folder.path().join("counts.csv"), folder.path().join("counts.csv.partial"));
    let all = collect(&["--concurrency", "1", "-o", file.to_str().unwrap()]);
    let fault = r#"{"kind":"status","status":400,"endpoint":"event_delivery","every":3}"#;
    let faulty = Service::with_faults(&[fault]);
    fs::write(&file, "earlier").unwrap();
    let output = faulty.tallyfold(&all).output().unwrap();
    ends(&output, 6);
    assert_eq!(fs::read_to_string(&file).unwrap(), "earlier");
    assert!(fs::read_to_string(&partial).unwrap().starts_with("window_start,window_end,"));
    assert!(stderr(&output).contains("counts.csv.partial"), "{}", stderr(&output));
    let output = Service::start().tallyfold(&all).output().unwrap();
    ends(&output, 0);
    assert!(fs::read_to_string(&file).unwrap().starts_with("window_start,window_end,"));
    assert!(!partial.exists());
}

/// The lines of all files below a folder, without headers and in order of the days, and the names of the days.
fn days(folder: &Path) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|day| day.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let lines = names.iter().flat_map(|name| {
        let file = folder.join(name).join("counts.csv");
        let text = fs::read_to_string(file).unwrap();
        let lines: Vec<String> = text.lines().skip(1).map(str::to_owned).collect();
        lines
    });
    (lines.collect(), names)
}

#[test]
fn a_folder_has_a_file_for_each_whole_day() {
    let folder = tempfile::tempdir().unwrap();
    let lake = folder.path().join("lake");
    let to = ["--by-date", lake.to_str().unwrap()];
    let [from, until] = ["2025-03-01T06:00:00Z", "2025-03-05T09:00:00Z"];
    let range = |from, until| {
        let asking = ["--by", "integration", "--by-window", "6h", "--window", "6h"];
        let asked = ["collect", "--from", from, "--to", until, "--format", "csv"];
        [&asked[..], &asking].concat()
    };
    let service = Service::start();
    let output = service.tallyfold(&[&range(from, until)[..], &to].concat()).output().unwrap();
    ends(&output, 0);
    let said = stderr(&output);
    for day in ["2025-03-01", "2025-03-05"] {
        let left_out = format!("{day} is not written: the range covers only part of it");
        assert!(said.contains(&left_out), "{said}");
    }
    let whole = range("2025-03-02T00:00:00Z", "2025-03-05T00:00:00Z");
    let expected = service.tallyfold(&whole).output().unwrap();
    let expected = String::from_utf8(expected.stdout).unwrap();
    let mut expected: Vec<String> = expected.lines().skip(1).map(str::to_owned).collect();
    let (mut found, names) = days(&lake);
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    let dates = ["date=2025-03-02", "date=2025-03-03", "date=2025-03-04"];
    assert_eq!(names, dates);

    // A day that was read only in part keeps its file.
    let earlier = |day: &str| lake.join(day).join("counts.csv");
    for day in dates {
        fs::write(earlier(day), "earlier").unwrap();
    }
    let fault = r#"{"kind":"status","status":400,"endpoint":"event_delivery","every":9}"#;
    let faulty = Service::with_faults(&[fault]);
    let more = ["--concurrency", "1"];
    let output = faulty.tallyfold(&[&whole[..], &to, &more].concat()).output().unwrap();
    ends(&output, 6);
    let is_earlier = |day: &&&str| fs::read_to_string(earlier(day)).unwrap() == "earlier";
    let kept: Vec<&&str> = dates.iter().filter(is_earlier).collect();
    assert_eq!(kept.len(), 1, "{}", stderr(&output));
    let why = format!("{} is not written: windows are missing", &kept[0][5..]);
    assert!(stderr(&output).contains(&why), "{}", stderr(&output));
    assert!(!lake.join(kept[0]).join("counts.csv.partial").exists());

    // Old temporary files of killed processes are removed. A new one may belong to a process that is still writing.
    let [old, young] =
        ["old", "young"].map(|name| lake.join(dates[0]).join(format!(".tallyfold-{name}.tmp")));
    let day_ago = SystemTime::now() - Duration::from_secs(86_400);
    File::create(&old).unwrap().set_modified(day_ago).unwrap();
    File::create(&young).unwrap();

    // Without steps, a row has the counts of a day.
    let asked = ["collect", "--from", "2025-03-02T00:00:00Z", "--to", "2025-03-05T00:00:00Z"];
    let more = ["--by", "integration", "--window", "6h", "--format", "csv"];
    let output = service.tallyfold(&[&asked[..], &more, &to].concat()).output().unwrap();
    ends(&output, 0);
    let (found, _) = days(&lake);
    let is_of_a_day =
        |line: &&String| line.starts_with("2025-03-03T00:00:00Z,2025-03-04T00:00:00Z,");
    assert!(found.iter().filter(is_of_a_day).count() > 3, "{found:?}");
    assert_eq!([old.exists(), young.exists()], [false, true]);
}

/// A command of the guide, without `tallyfold`.
fn of_the_guide(beginning: &str) -> &str {
    let guide = include_str!("../../docs/guides/backfill.md");
    let beginning = format!("```sh\ntallyfold {beginning}");
    let place = guide.find(&beginning).unwrap() + "```sh\ntallyfold ".len();
    guide[place..].split_once("\n```").unwrap().0
}

/// The output of a command that runs in a folder and exits with 0.
fn output_in(folder: &Path, service: &Service, command: &str) -> Output {
    let mut command = service.tallyfold(&command.split(' ').collect::<Vec<_>>());
    let output = command.current_dir(folder).output().unwrap();
    ends(&output, 0);
    output
}

/// The guide's command for a year, here for two days, has the same counts as a single query.
#[test]
fn the_guides_command_for_a_year_writes_a_folder_of_days() {
    let command = of_the_guide("collect --from").replace("2026-01-01", "2025-01-03");
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &str| output_in(folder.path(), &service, command);
    run(&command);
    let days = ["2025-01-01", "2025-01-02"];
    let files = days.map(|day| {
        let path = format!("lake/date={day}/counts.parquet");
        SerializedFileReader::new(File::open(folder.path().join(path)).unwrap()).unwrap()
    });
    let mut sums = [0; 3];
    for row in files.iter().flat_map(|file| file.get_row_iter(None).unwrap()) {
        for (name, field) in row.unwrap().get_column_iter() {
            let place = ["success", "errors", "filtered"].iter().position(|one| one == name);
            if let (Some(place), Field::ULong(count)) = (place, field) {
                sums[place] += count;
            }
        }
    }
    let range = "--from 2025-01-01 --to 2025-01-03 --window 1h --format json";
    let document = run(&format!("delivery --by integration {range}"));
    let document: serde_json::Value = serde_json::from_slice(&document.stdout).unwrap();
    let totals = &document["clusters"][0]["totals"];
    let totals = ["success", "errors", "filtered"].map(|name| totals[name].as_u64().unwrap());
    assert_eq!(sums, totals);
}

/// The guide's command for each night continues the folder of the year, prints nothing, and replaces the last three days.
#[test]
fn the_guides_command_for_each_night_continues_the_folder() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let run = |command: &str| {
        let output = output_in(folder.path(), &service, command);
        assert_eq!(output.stdout, b"");
        // In the first hour of a day, the last window is not settled.
        let lines = stderr(&output);
        assert!(lines.lines().all(|line| line.contains("may still change")), "{lines}");
    };
    let files = || {
        let mut days: Vec<_> = fs::read_dir(folder.path().join("lake"))
            .unwrap()
            .map(|day| day.unwrap().path().join("counts.parquet"))
            .collect();
        days.sort();
        days
    };
    run(&of_the_guide("collect --from").replace("2026-01-01", "2025-01-02"));
    let year = files();
    assert_eq!(year.len(), 1);
    let night = of_the_guide("collect --since");
    run(night);
    let days = files();
    assert_eq!(days.len(), 4, "{days:?}");
    let schema = |file: &Path| {
        let reader = SerializedFileReader::new(File::open(file).unwrap()).unwrap();
        let metadata = reader.metadata().file_metadata();
        metadata.schema_descr().root_schema().clone()
    };
    assert!(days.iter().all(|day| schema(day) == schema(&year[0])));
    let before: Vec<_> = days.iter().map(|day| fs::read(day).unwrap()).collect();
    for day in &days[1..] {
        fs::write(day, "older").unwrap();
    }
    run(night);
    let after: Vec<_> = days.iter().map(|day| fs::read(day).unwrap()).collect();
    assert_eq!(before, after);
}

#[test]
fn days_need_a_format_with_rows() {
    let service = Service::start();
    let output = service.tallyfold(&["collect", "--by-date", "lake"]).output().unwrap();
    ends(&output, 2);
    let wanted = "error: --by-date: want --format parquet, csv or ndjson\n";
    assert_eq!(stderr(&output), wanted);
}
