//! `tallyfold mcp` through the binary: the protocol, the limits of what an agent can do, and ten questions of an on-call engineer.
//! The tools must give the same answers as the commands.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::support::{Service, lines, stdout};
use serde_json::{Value, json};
use tempfile::TempDir;

const RULES: &str = r#"
dimensions = ["integration"]

[[rule]]
name = "integrations fail"
kind = "threshold"
measure = "error_rate"
by = ["integration"]
above = "10%"
severity = "critical"
"#;

/// A range around the incident, a time during it, and a time after it.
const NIGHT: [(&str, &str); 2] = [("from", "2026-11-22T20:00:00Z"), ("to", "2026-11-22T22:00:00Z")];
const DURING: &str = "2026-11-22T21:16:00Z";
const AFTER: &str = "2026-11-22T23:01:00Z";

/// A client of the server, in a folder with rules.
struct Assistant {
    process: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
    asked: u64,
    tools: Value,
}

impl Assistant {
    fn start(mut command: impl std::borrow::BorrowMut<Command>) -> Self {
        let process = command.borrow_mut().stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = process.spawn().unwrap();
        let mut new = Self {
            stdin: process.stdin.take(),
            lines: lines(process.stdout.take().unwrap()),
            process,
            asked: 0,
            tools: Value::Null,
        };
        let client = json!({"name": "test", "version": "1"});
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let answer = new.ask("initialize", hello);
        assert_eq!(answer["result"]["serverInfo"]["name"], "tallyfold");
        new.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        new.tools = new.ask("tools/list", json!({}))["result"]["tools"].take();
        new
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn answer(&self) -> Value {
        let line = self.lines.recv_timeout(Duration::from_secs(120)).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answer = self.answer();
        assert_eq!(answer["id"], id);
        answer
    }

    /// Calls a tool, and returns its result. Checks that the result fits the tool's schema.
    fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        let found = &answer["result"]["structuredContent"];
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let tools = self.tools.as_array().unwrap();
        let schema = &tools.iter().find(|one| one["name"] == tool).unwrap()["outputSchema"];
        jsonschema::validate(schema, found).unwrap();
        assert!(found.to_string().len() <= 64_000);
        found.clone()
    }

    /// Calls a tool that fails, and returns the error's code, message and argument.
    fn refused(&mut self, tool: &str, arguments: Value) -> (String, String, Value) {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments}));
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        let error: Value = serde_json::from_str(text).unwrap();
        let text = |name: &str| error[name].as_str().unwrap().to_owned();
        (text("code"), text("message"), error["argument"].clone())
    }

    /// Closes stdin, and returns the exit code.
    fn end(mut self) -> Option<i32> {
        drop(self.stdin.take());
        self.process.wait().unwrap().code()
    }
}

#[test]
fn tools_describe_their_arguments_and_only_the_structure_of_their_results() {
    let (service, folder) = world();
    let assistant = Assistant::start(&mut command(&service, &folder, &["mcp"]));
    let tools = assistant.tools.as_array().unwrap();
    for tool in tools {
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        let is_described = |argument: &Value| argument["description"].is_string();
        assert!(arguments.values().all(is_described), "{}", tool["name"]);
        let result = tool["outputSchema"].to_string();
        assert!(!result.contains("\"description\":\""), "{}", tool["name"]);
    }
    // An agent reads the whole list, so it must be short.
    let bytes = assistant.tools.to_string().len();
    assert!(bytes < 55_000, "{bytes} bytes");
    assert_eq!(assistant.end(), Some(0));
}

/// A service, and a folder with rules.
fn world() -> (Service, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("health.toml"), RULES).unwrap();
    (Service::start(), folder)
}

fn command(service: &Service, folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = service.tallyfold(arguments);
    command.current_dir(folder.path());
    command
}

/// Runs a query with the tool and with the command, checks that both print the same, and returns the result of the tool.
fn both(
    assistant: &mut Assistant,
    (service, folder): (&Service, &TempDir),
    tool: &str,
    arguments: &[(&str, &str)],
) -> Value {
    let mut flags = vec![tool.to_owned(), "--format=json".to_owned()];
    let mut given = json!({});
    for (name, value) in arguments {
        flags.push(format!("--{}={value}", name.replace('_', "-")));
        given[*name] = match *name {
            "top" => value.parse::<u64>().unwrap().into(),
            "where" => json!([value]),
            _ => Value::from(*value),
        };
    }
    let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
    let own = tempfile::tempdir().unwrap();
    fs::copy(folder.path().join("health.toml"), own.path().join("health.toml")).unwrap();
    let output = command(service, &own, &flags).output().unwrap();
    let truth: Value = serde_json::from_str(&stdout(&output)).unwrap();
    let mut found = assistant.call(tool, given);
    let answer = found.clone();
    if let Some(members) = found.as_object_mut() {
        members.remove("left_out_counts");
    }
    assert_eq!(found, truth, "{tool}");
    answer
}

#[test]
fn tools_answer_ten_questions_as_the_commands_do() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let at = (&service, &folder);
    let night = |more: &[(&'static str, &'static str)]| [&NIGHT[..], more].concat();

    // 1. Is anything wrong? 2. What broke? 3. Since when?
    let check = both(&mut assistant, at, "check", &[("at", DURING)]);
    assert_eq!(check["healthy"], false);
    let incidents = check["clusters"][0]["incidents"].as_array().unwrap();
    assert_eq!(incidents.len(), 1, "{incidents:?}");
    let sentence = incidents[0]["sentence"].as_str().unwrap();
    assert!(sentence.contains("Push Notifications"), "{sentence}");
    assert_eq!(incidents[0]["since"], "2026-11-22T20:45:00Z");
    // 4. Is it over?
    let over = both(&mut assistant, at, "check", &[("at", AFTER)]);
    assert_eq!(over["healthy"], true);
    // 5. Who is affected?
    let only = ("where", "integration=Push Notifications");
    let asked = night(&[only, ("by", "write_key"), ("top", "1000")]);
    let sources = both(&mut assistant, at, "delivery", &asked);
    let rows = sources["clusters"][0]["rows"].as_array().unwrap();
    assert!(!rows.is_empty());
    // 6. How many events were lost? The rows contain all of them.
    let errors = |rows: &[Value]| {
        let errors = rows.iter().map(|row| row["errors"].as_u64().unwrap());
        errors.sum::<u64>()
    };
    assert_eq!(errors(rows), sources["clusters"][0]["totals"]["errors"].as_u64().unwrap());
    // 7. When was it worst?
    let asked = night(&[only, ("by_window", "15m"), ("top", "1000")]);
    let windows = both(&mut assistant, at, "delivery", &asked);
    let rows = windows["clusters"][0]["rows"].as_array().unwrap();
    let worst = rows.iter().max_by_key(|row| row["errors"].as_u64().unwrap());
    let worst = worst.unwrap()["start"].as_str().unwrap();
    assert!(("2026-11-22T20:45:00Z".."2026-11-22T21:45:00Z").contains(&worst), "{worst}");
    // 8. What explains it?
    let causes = both(&mut assistant, at, "explain", &[("at", "2026-11-22T20:50:00Z")]);
    let cause = &causes["clusters"][0]["causes"][0];
    assert_eq!(cause["where"], json!({"integration": "Push Notifications"}));
    // 9. Do sources send as much as yesterday?
    let asked = night(&[
        ("metric", "ingestion"),
        ("against", "yesterday"),
        ("by", "write_key"),
        ("top", "1000"),
    ]);
    both(&mut assistant, at, "compare", &asked);
    // 10. Has somebody changed something?
    let page = assistant.call("audit_logs", json!({"per_page": 5}));
    let output = command(&service, &folder, &["audit-logs", "--per-page", "5"]).output().unwrap();
    let truth: Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(page["clusters"][0]["page"], truth);
    assert_eq!(assistant.end(), Some(0));
    // No tool has written a file to the folder.
    let files: Vec<_> = fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[test]
fn counts_of_rows_that_are_left_out_are_included() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    for more in [
        json!({"by": "write_key,event_name,integration,reason", "top": 100_000}),
        json!({"top": 3, "by_window": "1h"}),
    ] {
        let mut asked = more;
        for (name, value) in NIGHT {
            asked[name] = value.into();
        }
        let found = assistant.call("delivery", asked);
        let cluster = &found["clusters"][0];
        assert!(found["left_out"].as_u64().unwrap() > 0);
        for name in ["success", "errors", "filtered"] {
            let rows = cluster["rows"].as_array().unwrap();
            let shown: u64 = rows.iter().map(|row| row[name].as_u64().unwrap()).sum();
            let left = found["left_out_counts"][0]["counts"][name].as_u64().unwrap();
            assert_eq!(cluster["totals"][name], shown + left, "{name}");
        }
    }
    let (code, text, argument) = assistant.refused(
        "delivery",
        json!({"from": "2026-11-01", "to": "2026-11-08", "by_window": "5m", "top": 1}),
    );
    assert_eq!((&*code, &argument), ("invalid_argument", &"by_window".into()));
    assert!(text.contains("64000"), "{text}");
}

#[test]
fn tools_only_read_and_refuse_arguments_of_the_command() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let tools = assistant.tools.as_array().unwrap().clone();
    let mut names = BTreeSet::new();
    for tool in &tools {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
        let arguments = tool["inputSchema"]["properties"].as_object().unwrap();
        for (name, argument) in arguments {
            let text = argument["description"].as_str().unwrap();
            assert!(!text.is_empty() && !text.contains("--"), "{name}: {text}");
            names.insert(name.clone());
        }
    }
    assert_eq!(tools.len(), 8);
    let known = [
        "against",
        "at",
        "by",
        "by_window",
        "cluster",
        "deadline",
        "from",
        "keep_unusual",
        "length",
        "measure",
        "metric",
        "most",
        "order",
        "others",
        "page",
        "per_page",
        "replay",
        "settle",
        "since",
        "to",
        "top",
        "where",
        "window",
        "zone",
    ];
    assert_eq!(names, known.map(str::to_owned).into());
    for (arguments, argument) in [
        (json!({"output": "x"}), "output"),
        (json!({"cluster_endpoint": "http://127.0.0.1"}), "cluster_endpoint"),
        (json!({"config": "x"}), "config"),
        (json!({"since": "x"}), "since"),
        (json!({"since": 5}), "since"),
        (json!({"order": "--output=x"}), "order"),
        (json!({"where": ["x"]}), "where"),
        (json!({"cluster": ["x"]}), "cluster"),
        (json!({"since": "1h", "from": "today"}), "from"),
    ] {
        let (code, text, named) = assistant.refused("delivery", arguments.clone());
        assert_eq!(named, argument, "{arguments}: {code}: {text}");
        // Errors don't mention flags, except in what they quote from the client.
        assert!(!text.replace("'--output=x'", "").contains("--"), "{text}");
    }
    let answer = assistant.ask("tools/call", json!({"name": "push", "arguments": {}}));
    let text = answer["error"]["message"].as_str().unwrap();
    assert!(text.contains("want one of delivery, "), "{text}");
    // Errors about files don't contain their names.
    fs::write(folder.path().join("health.toml"), "nonsense").unwrap();
    let (_, text, _) = assistant.refused("check", json!({}));
    assert!(text.contains("stderr") && !text.contains("health.toml"), "{text}");
}

#[test]
fn an_error_quotes_the_argument_and_is_short() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    for (arguments, argument, said) in [
        (json!({"__proto__": 1}), "__proto__", "__proto__: unknown"),
        (json!({"since": "--config=x"}), "since", "\"--config=x\""),
        (json!({"top": 1e30}), "top", "top: want a whole number of at most 64 bits"),
        (json!({"since": "999999999d"}), "since", "would begin before the year 0"),
        (json!({"since": "a".repeat(10_000)}), "since", "aaaa…"),
        (
            json!({"where": [format!("integration={}", "a".repeat(3_000_000))]}),
            "where",
            "where: want at most 16000 bytes",
        ),
    ] {
        let (code, text, named) = assistant.refused("delivery", arguments.clone());
        assert_eq!(named, argument, "{arguments}: {code}: {text}");
        assert!(text.contains(said), "{text}");
        assert!(text.chars().count() <= 2_001);
    }
    for (method, params, code, said) in [
        ("tools/call", json!({"name": 5}), -32602, "want a text `name`"),
        ("resources/read", json!({}), -32602, "want a text `uri`"),
        ("nothing/list", json!({}), -32601, "unknown method \"nothing/list\""),
    ] {
        let error = assistant.ask(method, params)["error"].take();
        assert_eq!(error["code"], code, "{error}");
        assert!(error["message"].as_str().unwrap().contains(said), "{error}");
    }
}

#[test]
fn a_line_that_is_not_json_is_ignored() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    for line in ["{\"jsonrpc\": \"2.0\", \"id\": 7, \"method\"", "hello", ""] {
        writeln!(assistant.stdin.as_mut().unwrap(), "{line}").unwrap();
    }
    assert_eq!(assistant.ask("ping", json!({}))["result"], json!({}));
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn messages_that_are_not_requests_are_refused_or_ignored() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let line_of = |assistant: &mut Assistant, line: &str| {
        writeln!(assistant.stdin.as_mut().unwrap(), "{line}").unwrap();
    };
    for line in [
        "[]",
        "{}",
        r#"{"jsonrpc": "1.0", "id": 7, "method": "ping"}"#,
        r#"{"jsonrpc": "2.0", "id": null, "method": "ping"}"#,
        r#"{"jsonrpc": "2.0", "id": 7, "method": "ping", "result": {}}"#,
        r#"{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": []}"#,
    ] {
        line_of(&mut assistant, line);
        let answer = assistant.answer();
        assert_eq!(answer["error"]["code"], -32600, "{line}: {answer}");
        assert_eq!(answer.get("id"), None, "{line}: {answer}");
    }
    let long = format!(r#"{{"jsonrpc": "2.0", "id": 7, "method": "{}"}}"#, "a".repeat(17 << 20));
    for line in [
        r#"{"jsonrpc": "2.0", "id": 7, "result": {}}"#,
        r#"{"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "x"}}"#,
        r#"{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}"#,
        r#"{"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}"#,
        &long,
    ] {
        line_of(&mut assistant, line);
    }
    assert_eq!(assistant.ask("ping", json!({}))["result"], json!({}));
    // A message may begin with a byte order mark.
    line_of(&mut assistant, "\u{feff}{\"jsonrpc\": \"2.0\", \"id\": \"x\", \"method\": \"ping\"}");
    assert_eq!(assistant.answer(), json!({"jsonrpc": "2.0", "id": "x", "result": {}}));
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn requests_of_clients_of_any_version_are_answered() {
    let (service, folder) = world();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let templates = assistant.ask("resources/templates/list", json!({}))["result"].take();
    assert_eq!(templates["resourceTemplates"], json!([]), "{templates}");
    let error = assistant.ask("prompts/list", json!({}))["error"].take();
    assert_eq!(error["code"], -32601, "{error}");
    // Clients of the newest version don't initialize a session: each request names its client.
    let newest = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }});
    let found = assistant.ask("server/discover", newest.clone())["result"].take();
    let versions = found["supportedVersions"].as_array().unwrap();
    for version in ["2024-11-05", "2025-06-18", "2026-07-28"] {
        assert!(versions.contains(&version.into()), "{found}");
    }
    let found = assistant.ask("resources/list", newest)["result"].take();
    assert_eq!(found["resources"].as_array().unwrap().len(), 2, "{found}");
    assert_eq!(found["resultType"], "complete", "{found}");
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn a_session_that_cannot_begin_ends_with_the_reason() {
    let (service, folder) = world();
    let first = |message: &Value, stdout: Stdio| {
        let mut process = command(&service, &folder, &["mcp"])
            .stdin(Stdio::piped())
            .stdout(stdout)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        writeln!(process.stdin.as_mut().unwrap(), "{message}").unwrap();
        let output = process.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let early = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(
        first(&early, Stdio::null()),
        "error: stdin: want messages of the Model Context Protocol: want the request initialize first\n"
    );
    if cfg!(target_os = "linux") {
        let full = fs::OpenOptions::new().write(true).open("/dev/full");
        let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
        assert_eq!(
            first(&ping, full.unwrap().into()),
            "error: stdout: can't be written: No space left on device (os error 28)\n"
        );
    }
}

#[test]
fn the_temporary_copies_of_a_check_are_removed_at_the_end() {
    let (service, folder) = world();
    let own = tempfile::tempdir().unwrap();
    let mut command = command(&service, &folder, &["mcp"]);
    let mut assistant = Assistant::start(command.env("TMPDIR", own.path()));
    assistant.call("check", json!({"at": DURING}));
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 1);
    // The end of stdin ends the process while a call is under way.
    assistant.begin("tools/call", json!({"name": "check", "arguments": {"at": AFTER}}));
    assert_eq!(assistant.end(), Some(0));
    assert_eq!(fs::read_dir(own.path()).unwrap().count(), 0);
}

/// The paths of all files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let entries = entries.map(|entry| entry.unwrap().path());
    let files = entries.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    files.collect()
}

#[test]
fn a_check_copies_only_the_counts_of_the_history() {
    let (service, folder) = world();
    let run = command(&service, &folder, &["check", "--at", AFTER]).output();
    assert_eq!(run.unwrap().status.code(), Some(0));
    let history = folder.path().join("health.history");
    let query = fs::read_dir(&history).unwrap().next().unwrap();
    let query = query.unwrap().path();
    let answers = history.join("default/pages");
    fs::create_dir_all(&answers).unwrap();
    // An answer that the dashboard has stored, and a page that another process is writing.
    fs::write(answers.join("0123456789abcdef.gz"), "").unwrap();
    fs::write(query.join("2026-11-22.page.new"), "").unwrap();
    let own = tempfile::tempdir().unwrap();
    let mut command = command(&service, &folder, &["mcp"]);
    let mut assistant = Assistant::start(command.env("TMPDIR", own.path()));
    assistant.call("check", json!({"at": AFTER}));
    let copies = files(own.path());
    let names = |end: &str| {
        let names = copies.iter().filter(|path| path.to_str().unwrap().ends_with(end));
        names.count()
    };
    assert!(names(".page") > 0, "{copies:?}");
    assert_eq!((names(".gz"), names(".new")), (0, 0), "{copies:?}");
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn a_file_that_a_check_cannot_use_is_named_only_on_stderr() {
    let (service, folder) = world();
    let run = command(&service, &folder, &["check", "--at", AFTER]).output();
    assert_eq!(run.unwrap().status.code(), Some(0));
    for page in files(&folder.path().join("health.history")) {
        if page.extension().is_some_and(|end| end == "page") {
            let whole = fs::read(&page).unwrap();
            let later = [b"tallyfold-page/2\n", &whole[17..]].concat();
            fs::write(&page, later).unwrap();
        }
    }
    let mut command = command(&service, &folder, &["mcp"]);
    let mut assistant = Assistant::start(command.stderr(Stdio::piped()));
    let said = lines(assistant.process.stderr.take().unwrap());
    let (_, text, _) = assistant.refused("check", json!({"at": AFTER}));
    assert!(text.contains("stderr contains the reason") && !text.contains(".page"), "{text}");
    let said = said.recv_timeout(Duration::from_secs(120)).unwrap();
    assert!(said.contains(".page: a later version has written this"), "{said}");
    assert_eq!(assistant.end(), Some(0));
}

#[test]
fn a_check_at_an_earlier_time_works_after_a_later_check() {
    let (service, folder) = world();
    let later = command(&service, &folder, &["check", "--at", AFTER]).output();
    assert_eq!(later.unwrap().status.code(), Some(0));
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let found = assistant.call("check", json!({"at": DURING}));
    let finding = &found["clusters"][0]["findings"][0];
    assert_eq!(finding["status"], "firing", "{found}");
}

#[test]
fn rules_and_the_last_check_are_resources() {
    let (service, folder) = world();
    let output = command(&service, &folder, &["check", "--at", DURING, "--format=json"]).output();
    let check: Value = serde_json::from_str(&stdout(&output.unwrap())).unwrap();
    let mut assistant = Assistant::start(command(&service, &folder, &["mcp"]));
    let found = assistant.call("incidents", json!({}));
    let id = &check["clusters"][0]["incidents"][0]["id"];
    assert_eq!(&found["clusters"][0]["incidents"][0]["id"], id);
    let mut read = |uri: &str| {
        let answer = assistant.ask("resources/read", json!({"uri": uri}));
        answer["result"]["contents"][0]["text"].clone()
    };
    assert_eq!(read("tallyfold://rules"), RULES);
    let last = read("tallyfold://check/last");
    let last: Value = serde_json::from_str(last.as_str().unwrap()).unwrap();
    assert_eq!(last, found);
    assert_eq!(read("file:///etc/passwd"), Value::Null);
}

#[test]
fn concurrent_calls_share_one_token() {
    let (service, folder) = world();
    let mut assistant = Assistant::start({
        let mut command = command(&service, &folder, &["mcp", "-v"]);
        command.stderr(Stdio::piped());
        command
    });
    let said = lines(assistant.process.stderr.take().unwrap());
    for _ in 0..5 {
        assistant.begin("tools/call", json!({"name": "delivery", "arguments": {}}));
    }
    for _ in 0..5 {
        assert_eq!(assistant.answer()["result"]["isError"], false);
    }
    assert_eq!(assistant.end(), Some(0));
    let said: Vec<String> = said.iter().collect();
    let tokens = said.iter().filter(|line| line.contains("token")).count();
    assert_eq!(tokens, 1, "{said:?}");
}

#[test]
fn a_missing_setting_of_one_tool_is_named_only_on_stderr() {
    let (service, folder) = world();
    // The audit logs need the setting base_url.
    let mut command = service.clusters(folder.path(), &[("eu", "# base_url")], &["mcp"]);
    let mut assistant = Assistant::start(command.stderr(Stdio::piped()));
    let said = lines(assistant.process.stderr.take().unwrap());
    let (_, text, _) = assistant.refused("audit_logs", json!({}));
    assert!(
        text.contains("stderr contains the reason") && !text.contains("tallyfold.toml"),
        "{text}"
    );
    let said = said.recv_timeout(Duration::from_secs(120)).unwrap();
    assert!(said.contains("tallyfold.toml") && said.contains("base_url"), "{said}");
    let (_, text, _) = assistant.refused("audit_logs", json!({"page": 0}));
    assert!(text.contains("page: want 1 or more"), "{text}");
    assert_eq!(assistant.end(), Some(0));
}
