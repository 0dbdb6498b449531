//! `tallyfold completions` in a real shell, `tallyfold man` through the real formatter, and `tallyfold audit-logs`.

use std::fs;
use std::io::ErrorKind;
use std::process::{Command, Output};

fn tallyfold(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tallyfold"));
    command.args(arguments).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The completions that bash offers for the last word of a command line; `None` without bash.
fn offered(words: &str) -> Option<Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("tallyfold");
    fs::write(&script, text(&tallyfold(&["completions", "bash"]))).unwrap();
    let count = words.split(' ').count() - 1;
    let program = format!(
        "compopt() {{ :; }}; source {} || exit; COMP_WORDS=({words}); COMP_CWORD={count}; \
         COMP_LINE='{words}'; COMP_POINT=${{#COMP_LINE}}; \
         _tallyfold tallyfold \"${{COMP_WORDS[COMP_CWORD]}}\" \"${{COMP_WORDS[COMP_CWORD-1]}}\"; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        script.display()
    );
    match Command::new("bash").args(["--norc", "-c", &program]).output() {
        Ok(output) => Some(text(&output).lines().map(str::to_owned).collect()),
        // Other tests of completions need no shell.
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let Some(commands) = offered("tallyfold del") else {
        return;
    };
    assert_eq!(commands, ["delivery"]);
    assert_eq!(offered("tallyfold doctor --js").unwrap(), ["--json"]);
    let dimensions = offered("tallyfold delivery --by ").unwrap();
    assert!(dimensions.contains(&"integration".to_owned()), "{dimensions:?}");
    assert_eq!(offered("tallyfold delivery --where integ").unwrap(), ["integration="]);
    assert!(
        offered("tallyfold follow --window 1").is_some_and(|steps| steps == ["15m", "1h", "1d"])
    );
    assert_eq!(offered("tallyfold collect --keep ").unwrap(), ["windows", "1h", "1d", "total"]);
    assert_eq!(offered("tallyfold delivery --finest 5").unwrap(), ["5m"]);
    let formats = offered("tallyfold audit-logs --format ").unwrap_or_default();
    assert!(formats.is_empty() || formats == ["json", "table"], "{formats:?}");
}

#[test]
fn bash_completes_files_only_where_a_flag_takes_a_path() {
    // Tests run in the folder of the crate, which has a Cargo.toml.
    for takes_none in ["--timeout Car", "--header-env Car", "--cluster-endpoint Car", "--at Car"] {
        let Some(offered) = offered(&format!("tallyfold check {takes_none}")) else {
            return;
        };
        assert_eq!(offered, ["Car"], "{takes_none}");
    }
    for takes_a_file in ["--rules Car", "--state Car", "--output Car"] {
        let offered = offered(&format!("tallyfold check {takes_a_file}")).unwrap();
        assert_eq!(offered, ["Cargo.toml"], "{takes_a_file}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let script = text(&tallyfold(&["completions", shell]));
        for word in ["doctor", "audit-logs", "delivery"] {
            assert!(script.contains(word), "{shell}: {word}");
        }
    }
    let refused = tallyfold(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn every_command_has_a_manual_page_that_the_formatter_accepts() {
    let folder = tempfile::tempdir().unwrap();
    let into = folder.path().join("share/man1");
    text(&tallyfold(&["man", into.to_str().unwrap()]));
    let mut names = Vec::new();
    for entry in fs::read_dir(&into).unwrap() {
        let path = entry.unwrap().path();
        let page = fs::read_to_string(&path).unwrap();
        assert!(page.contains(".SH EXAMPLES") && page.contains(".SH SYNOPSIS"), "{path:?}");
        formatted(&path);
        names.push(path.file_name().unwrap().to_str().unwrap().to_owned());
    }
    let help = text(&tallyfold(&["--help"]));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let commands = commands.take_while(|line| line.starts_with("  "));
    let named = commands.filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
    let named: Vec<&str> = named.filter(|name| !name.is_empty() && *name != "help").collect();
    assert!(named.contains(&"doctor"), "{help}");
    for command in named {
        assert!(names.contains(&format!("tallyfold-{command}.1")), "{command}: {names:?}");
    }
    assert_eq!(text(&tallyfold(&["man"])), fs::read_to_string(into.join("tallyfold.1")).unwrap());
}

/// Formats a page, if there is a formatter, and checks that it prints no warnings.
fn formatted(path: &std::path::Path) {
    let mut groff = Command::new("groff");
    groff.args(["-man", "-ww", "-Tascii", "-rLL=100n"]).arg(path);
    match groff.output() {
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(said.is_empty(), "{path:?}: {said}");
            let shown = text(&output);
            assert!(shown.contains("tallyfold") && shown.lines().count() > 10, "{shown}");
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_file_in_place_of_the_folder_for_pages_is_refused() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = tallyfold(&["man", file.path().to_str().unwrap()]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("can't write"));
}

/// Runs `tallyfold audit-logs` with a sandbox of its own.
fn audit_logs(sandbox: &[&str], arguments: &[&str]) -> Output {
    let this = env!("CARGO_BIN_EXE_tallyfold");
    let words = [&["sandbox"], sandbox, &["--", this, "audit-logs"], arguments].concat();
    tallyfold(&words)
}

#[test]
fn a_page_of_audit_logs_is_printed_unchanged() {
    let body = r#" {"n": 12345678901234567890123.10,  "ids":[1 , 2]}"#;
    let fault =
        serde_json::json!({"kind": "body", "body": body, "endpoint": "audit_logs"}).to_string();
    let output = audit_logs(&["--fault", &fault], &[]);
    assert_eq!(text(&output), body);
    let output = audit_logs(&["--fault", &fault], &["--format", "table"]);
    assert_eq!(text(&output), "$.n       12345678901234567890123.10\n$.ids[0]  1\n$.ids[1]  2\n");
}

#[test]
fn the_page_and_its_size_are_requested() {
    let output = audit_logs(&[], &["--page", "2", "--per-page", "3"]);
    let page: serde_json::Value = serde_json::from_str(&text(&output)).unwrap();
    assert_eq!((&page["page"], &page["perPage"]), (&2.into(), &3.into()));
    let refused = audit_logs(&[], &["--page", "0"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--page"));
}

#[test]
fn only_a_whole_page_of_audit_logs_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.json");
    fs::write(&path, "before").unwrap();
    let name = path.to_str().unwrap();
    let refused = r#"{"kind":"status","status":403,"endpoint":"audit_logs"}"#;
    let output = audit_logs(&["--fault", refused], &["--output", name]);
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stderr).contains("tallyfold doctor"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "before");
    assert!(text(&audit_logs(&[], &["--output", name])).is_empty());
    assert!(fs::read_to_string(&path).unwrap().starts_with("{\"page\""));
}
