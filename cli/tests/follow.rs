//! `tallyfold follow` through the binary, with restarts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::support::{
    Draw, RANGE, SLOW, Service, Sums, WINDOWS, ends, lines, stderr, stdout, terminate, truth,
};

/// The rows of NDJSON by their key: start of the window, revision, integration.
type Rows = BTreeMap<(String, u64, String), [i128; 3]>;

fn add_rows(rows: &mut Rows, text: &str) -> usize {
    let mut repeated = 0;
    // The last line of a killed process may be incomplete.
    for line in text.split_inclusive('\n').filter(|line| line.ends_with('\n')) {
        let row: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = |name: &str| row[name].as_str().unwrap().to_owned();
        let key = (text("window_start"), row["revision"].as_u64().unwrap(), text("integration"));
        let counts =
            ["success", "errors", "filtered"].map(|name| row[name].as_i64().unwrap().into());
        if let Some(before) = rows.insert(key, counts) {
            // A row that is written again has the same counts.
            assert_eq!(before, counts);
            repeated += 1;
        }
    }
    repeated
}

fn sums(rows: &Rows) -> Sums {
    let mut sums = Sums::new();
    for ((_, _, integration), counts) in rows {
        let sum = sums.entry(integration.clone()).or_default();
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sums
}

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["follow", "--format", "ndjson"];
    all.extend(RANGE);
    all.extend(more);
    all
}

#[test]
fn the_sums_of_all_revisions_equal_the_counts_of_the_service() {
    let service = Service::start();
    let output = service.tallyfold(&arguments(&[])).output().unwrap();
    ends(&output, 0);
    let mut rows = Rows::new();
    assert_eq!(add_rows(&mut rows, &stdout(&output)), 0);
    assert_eq!(sums(&rows), truth());

    let mut csv = arguments(&[]);
    csv[2] = "csv";
    let output = service.tallyfold(&csv).output().unwrap();
    let text = stdout(&output);
    assert_eq!(text.lines().filter(|line| line.starts_with("window_start,")).count(), 1);
    assert_eq!(text.lines().count(), rows.len() + 1);

    let mut json = arguments(&[]);
    json[2] = "json";
    let output = service.tallyfold(&json).output().unwrap();
    assert_eq!(stdout(&output).lines().count(), WINDOWS);

    let mut table = arguments(&[]);
    table[2] = "table";
    let output = service.tallyfold(&table).output().unwrap();
    let text = stdout(&output);
    assert_eq!(text.lines().filter(|line| line.ends_with("revision 0, settled")).count(), WINDOWS);
}

#[test]
fn kills_at_any_moment_lose_no_revision() {
    let service = Service::with_faults(&[SLOW]);
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let mut draw = Draw(99);
    let mut rows = Rows::new();
    let mut kills = 0;
    loop {
        let mut command = service.tallyfold(&arguments(&["--state", state.to_str().unwrap()]));
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        // Reads some bytes, which may end within a line.
        let mut text = vec![0; 300 + draw.below(9_000) as usize];
        let length = read_up_to(&mut out, &mut text);
        text.truncate(length);
        // Waits for a random time, so that the kill comes anywhere between two revisions.
        thread::sleep(Duration::from_micros(draw.below(12_000)));
        child.kill().unwrap();
        // The pipe still contains what was written before the kill.
        out.read_to_end(&mut text).unwrap();
        let status = child.wait().unwrap();
        add_rows(&mut rows, std::str::from_utf8(&text).unwrap());
        if status.success() {
            break;
        }
        kills += 1;
        assert!(kills < 500);
    }
    assert!(kills >= 3, "{kills}");
    assert_eq!(sums(&rows), truth());
}

fn read_up_to(stream: &mut impl Read, buffer: &mut [u8]) -> usize {
    let mut length = 0;
    while length < buffer.len() {
        match stream.read(&mut buffer[length..]).unwrap() {
            0 => break,
            more => length += more,
        }
    }
    length
}

#[test]
fn after_a_signal_the_next_follow_resumes_without_repetition() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let state = state.to_str().unwrap();
    // Without --until, the follow would run for a long time.
    let from = ["follow", "--format", "ndjson", "--from", crate::support::FROM, "--state", state];
    let mut command = service.tallyfold(&from);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let seen = lines(child.stdout.take().unwrap());
    let mut text = seen.recv().unwrap() + "\n";
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    text.extend(seen.iter().map(|line| line + "\n"));
    let mut rows = Rows::new();
    assert_eq!(add_rows(&mut rows, &text), 0);
    let output = service.tallyfold(&arguments(&["--state", state])).output().unwrap();
    ends(&output, 0);
    // After a graceful stop, nothing is written twice.
    assert_eq!(add_rows(&mut rows, &stdout(&output)), 0);
    rows.retain(|(start, ..), _| start.as_str() < crate::support::UNTIL);
    assert_eq!(sums(&rows), truth());
}

#[test]
fn a_closed_pipe_is_not_an_error() {
    let service = Service::start();
    let mut command = service.tallyfold(&["follow", "--from", crate::support::FROM]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    ends(&output, 0);
    assert_eq!(stderr(&output), "");
}

#[test]
fn a_damaged_state_is_refused() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    let all = arguments(&["--state", path.to_str().unwrap()]);
    ends(&service.tallyfold(&all).output().unwrap(), 0);
    let whole = fs::read(&path).unwrap();
    for place in (0..whole.len()).step_by(whole.len() / 12) {
        let mut bytes = whole.clone();
        bytes[place] ^= 1;
        fs::write(&path, &bytes).unwrap();
        let output = service.tallyfold(&all).output().unwrap();
        ends(&output, 2);
        assert!(stderr(&output).contains("state.json"), "{}", stderr(&output));
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    fs::write(&path, &whole).unwrap();
    let other = arguments(&["--by", "reason", "--state", path.to_str().unwrap()]);
    ends(&service.tallyfold(&other).output().unwrap(), 2);
}

#[test]
fn the_state_of_another_query_is_refused_with_the_flag_to_pass() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let run = |by: &str| {
        let mut command = service.tallyfold(&["follow", "--by", by, "--state"]);
        command.arg(&state).args(RANGE).output().unwrap()
    };
    ends(&run("write_key"), 0);
    let refused = run("integration");
    ends(&refused, 2);
    let said = stderr(&refused);
    let text = "this isn't a state of this query: it was made with --by [\"write_key\"], not [\"integration\"]; to \
                resume it, pass the same --by";
    assert!(said.contains(text), "{said}");
    fs::write(&state, "not a state").unwrap();
    let refused = run("integration");
    ends(&refused, 2);
    assert!(!stderr(&refused).contains("checkpoint, "), "{}", stderr(&refused));
}

#[test]
fn only_one_process_at_a_time_uses_a_state() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    // This follow waits for its first window.
    let from =
        ["follow", "--from", "2199-01-01T00:00:00Z", "--state", path.to_str().unwrap(), "-v"];
    let mut command = service.tallyfold(&from);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    while !path.exists() {
        assert!(child.try_wait().unwrap().is_none());
        thread::sleep(Duration::from_millis(2));
    }
    let output =
        service.tallyfold(&arguments(&["--state", path.to_str().unwrap()])).output().unwrap();
    ends(&output, 2);
    assert!(stderr(&output).contains("another process"), "{}", stderr(&output));
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_full_disk_ends_the_follow_and_keeps_the_state() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state.json");
    // The state contains the counts of windows that are not settled, so it becomes too large for the disk.
    let all = [
        "follow",
        "--since",
        "1h",
        "--state",
        path.to_str().unwrap(),
        "--by",
        "integration,reason,event_name",
    ];
    let output = service.on_full_disk(&all).output().unwrap();
    ends(&output, 2);
    assert!(stderr(&output).contains("can't write"), "{}", stderr(&output));
    assert!(fs::metadata(&path).unwrap().len() < 2048);
    assert!(!folder.path().join("state.json.new").exists());
}

#[test]
fn each_failure_has_its_exit_code() {
    let service = Service::start();
    let mut command = service.tallyfold(&arguments(&[]));
    let output = command.env("TALLYFOLD_CLIENT_SECRET", "wrong").output().unwrap();
    ends(&output, 3);
    assert!(stderr(&output).contains("tallyfold doctor"), "{}", stderr(&output));
    let mut command = service.tallyfold(&arguments(&["--patience", "0s", "--max-retries", "0"]));
    let output = command.env("TALLYFOLD_CLUSTER_ENDPOINT", "http://127.0.0.1:1").output().unwrap();
    ends(&output, 4);
    for wrong in [&["--window", "7m"][..], &["--since", "x"], &["--by", "x"], &["--reread", "0s"]] {
        let mut all = vec!["follow"];
        all.extend(wrong);
        let output = service.tallyfold(&all).output().unwrap();
        ends(&output, 2);
        assert!(stderr(&output).contains(wrong[0]) || wrong[0] == "--by", "{}", stderr(&output));
    }
}

#[test]
fn a_hangup_of_the_terminal_does_not_end_the_follow() {
    let service = Service::start();
    let from = ["follow", "--format", "ndjson", "--from", crate::support::FROM];
    let mut command = service.tallyfold(&from);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let seen = lines(child.stdout.take().unwrap());
    seen.recv().unwrap();
    // The system delivers the signal with the lower number first.
    let sent = Command::new("kill").args(["-HUP", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    terminate(&child);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn appending_to_a_file_keeps_records_whole_and_adds_no_header() {
    let service = Service::start();
    let header = "window_start,window_end,settled,revision,integration,success,errors,filtered\r\n";
    for (format, before) in [("ndjson", ""), ("csv", header)] {
        let folder = tempfile::tempdir().unwrap();
        let state = folder.path().join("state.json");
        let counts = folder.path().join("counts");
        let mut all = arguments(&["--state", state.to_str().unwrap()]);
        all[2] = format;
        let append = || {
            let mut options = fs::OpenOptions::new();
            options.create(true).append(true).open(&counts).unwrap()
        };
        fs::write(&counts, before).unwrap();
        let output = service.on_full_disk(&all).stdout(append()).output().unwrap();
        ends(&output, 2);
        // No incomplete record is left in the file.
        assert_eq!(fs::read_to_string(&counts).unwrap(), before);
        // If a killed process has left an incomplete record, the next record begins on a new line.
        let torn = "2025-03-01T00";
        fs::write(&counts, format!("{before}{torn}")).unwrap();
        let output = service.tallyfold(&all).stdout(append()).output().unwrap();
        ends(&output, 0);
        let text = fs::read_to_string(&counts).unwrap();
        let text = text.strip_prefix(&format!("{before}{torn}\n")).unwrap();
        assert!(!text.contains("window_start,"), "{format}");
        if format == "ndjson" {
            let mut rows = Rows::new();
            add_rows(&mut rows, text);
            assert_eq!(sums(&rows), truth());
        }
    }
}

#[test]
fn a_full_disk_leaves_no_gap_in_a_file_that_several_processes_write() {
    let service = Service::start();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("counts.csv");
    let mut all = arguments(&[]);
    all[2] = "csv";
    // Like the commands of `(follow; follow) > FILE`, both processes write at the same offset.
    let file = fs::File::create(&path).unwrap();
    let mut full = service.on_full_disk(&all);
    let output = full.stdout(file.try_clone().unwrap()).output().unwrap();
    ends(&output, 2);
    assert_eq!(fs::read_to_string(&path).unwrap(), "");
    let output = service.tallyfold(&all).stdout(file).output().unwrap();
    ends(&output, 0);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("window_start,"), "{:?}", text.get(..20));
}
