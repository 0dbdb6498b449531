use proptest::prelude::*;
use tallyfold::Secret;

use super::*;
use crate::arguments::given::Raw;
use crate::config::template::template;

fn found(text: impl AsRef<[u8]>) -> Found {
    Found { path: "t.toml".into(), bytes: text.as_ref().to_vec(), distrust: None }
}

fn wrong(text: &str) -> String {
    match read(&found(text)) {
        Ok(_) => panic!("nothing is wrong with {text}"),
        Err(failure) => failure.text,
    }
}

/// Checks that each text is refused with a message that begins as expected and does not contain `canary`.
fn check_all(cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        let wrong = wrong(text);
        assert!(wrong.starts_with(expected), "{text}\n  is:     {wrong}\n  wanted: {expected}");
        assert!(!wrong.contains("canary"), "{wrong}");
    }
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_known_key() {
    check_all(&[
        (
            "[cluster.eu]\n\n  timeut = 'canary'",
            "t.toml:3:3: cluster.eu.timeut: there is no such key; did you mean timeout?",
        ),
        (
            "[cluster.eu]\nclient_sercet_env = 'canary'",
            "t.toml:2:1: cluster.eu.client_sercet_env: there is no such key; did you mean client_secret_env?",
        ),
        (
            "[cluster.eu]\npassword = 'canary'",
            "t.toml:2:1: cluster.eu.password: there is no such key; want one of cluster_endpoint, client_id, client_secret_env,",
        ),
        (
            "[cluster.eu]\nhost_tokens = true",
            "t.toml:2:1: cluster.eu.host_tokens: there is no such key",
        ),
        ("[clusters.eu]", "t.toml:1:2: clusters: there is no such key; did you mean cluster?"),
        (
            "[prometheus]",
            "t.toml:1:2: prometheus: there is no such key; want one of defaults, cluster, push",
        ),
        ("client_secret = 'canary'", "t.toml:1:1: client_secret: this is in no section"),
        (
            "[cluster.eu.limits]\ndepht = 3",
            "t.toml:2:1: cluster.eu.limits.depht: there is no such key; did you mean depth?",
        ),
        (
            "[cluster.eu]\nproxy = { en = 'canary' }",
            "t.toml:2:11: cluster.eu.proxy.en: there is no such key; did you mean env?",
        ),
        (
            "[push.a]\nlabels = { a = 'canary' }",
            "t.toml:2:1: push.a.labels: there is no such key; want one of format, url, headers,",
        ),
        (
            "[defaults]\n\"time\\nout\" = 'canary'",
            "t.toml:2:1: defaults.\"time\\nout\": there is no such key; did you mean timeout?",
        ),
    ]);
}

#[test]
fn values_of_the_wrong_type_are_refused() {
    check_all(&[
        (
            "cluster = 'canary'",
            "t.toml:1:1: cluster: want a section with a name: [cluster.NAME], such as [cluster.eu]",
        ),
        (
            "[cluster]\ntimeout = 'canary'",
            "t.toml:2:1: cluster.timeout: want a section with a name: [cluster.NAME]",
        ),
        ("[[cluster.eu]]\ntimeout = '1s'", "t.toml:1:11: cluster.eu: want a section with a name"),
        (
            "[push]\nurl = 'canary'",
            "t.toml:2:1: push.url: want a section with a name: [push.NAME], such as [push.prometheus]",
        ),
        ("defaults = 3", "t.toml:1:1: defaults: want a section of settings"),
        ("[cluster.\"\"]", "t.toml:1:10: cluster.\"\": want a name of 1 to 64"),
        ("[cluster.'a.b']", "t.toml:1:10: cluster.\"a.b\": want a name of 1 to 64"),
        ("[defaults]\nclient_id = 3", "t.toml:2:1: defaults.client_id: want text"),
        ("[defaults]\nmax_retries = '3'", "t.toml:2:1: defaults.max_retries: want a whole number"),
        ("[defaults]\nmax_retries = 3.0", "t.toml:2:1: defaults.max_retries: want a whole number"),
        (
            "[defaults]\ndangerously_allow_http = 'true'",
            "t.toml:2:1: defaults.dangerously_allow_http: want true or false",
        ),
        ("[defaults]\ntimeout = 30", "t.toml:2:1: defaults.timeout: want a length of time such as"),
        (
            "[defaults]\ndefault_token_lifetime = 30",
            "t.toml:2:1: defaults.default_token_lifetime: want a length of time in whole seconds",
        ),
        (
            "[defaults]\ndefault_token_lifetime = '1ms'",
            "t.toml:2:1: defaults.default_token_lifetime: want a length of time in whole seconds",
        ),
        (
            "[defaults]\ntolerate = 'null_dimension'",
            "t.toml:2:1: defaults.tolerate: want an array of texts",
        ),
        (
            "[defaults]\ntolerate = [1979-05-27]",
            "t.toml:2:1: defaults.tolerate: want an array of texts",
        ),
        ("[defaults]\nheaders = 'canary'", "t.toml:2:1: defaults.headers: want texts by names"),
        (
            "[defaults]\nheaders = { x-team = 3 }",
            "t.toml:2:13: defaults.headers.x-team: want one of { env = ",
        ),
        (
            "[defaults]\nheaders = { x-team = { env = 'A', file = 'b' } }",
            "t.toml:2:13: defaults.headers.x-team: want one of { env = ",
        ),
        (
            "[defaults]\nheaders = { x-team = {} }",
            "t.toml:2:13: defaults.headers.x-team: want one of { env = ",
        ),
        ("[defaults]\nlimits = 3", "t.toml:2:1: defaults.limits: want a table of settings"),
        ("[defaults]\nlabels = { a = 3 }", "t.toml:2:12: defaults.labels.a: want text"),
        ("[defaults]\nca_file = ''", "t.toml:2:1: defaults.ca_file: want the path of a file"),
        ("[defaults]\nproxy = false", "t.toml:2:1: defaults.proxy: want an address"),
        (
            "[defaults]\nclient_secret_command = []",
            "t.toml:2:1: defaults.client_secret_command: want a command",
        ),
        (
            "[defaults]\nclient_secret_command = ' '",
            "t.toml:2:1: defaults.client_secret_command: want a command",
        ),
        (
            "[defaults]\nclient_secret_env = 'the canary'",
            "t.toml:2:1: defaults.client_secret_env: want the name of an environment variable",
        ),
    ]);
}

#[test]
fn errors_of_the_core_are_reported_with_their_place() {
    check_all(&[
        (
            "[defaults]\ntimeout = '30 sec'",
            "t.toml:2:1: defaults.timeout: want a length of time such as",
        ),
        (
            "[cluster.eu]\nmax_retries = -1",
            "t.toml:2:1: cluster.eu.max_retries: want a whole number from 0 to 4294967295",
        ),
        (
            "[cluster.eu]\nmax_retries = 99999999999999999999999999999999999999999999",
            "t.toml:2:1: cluster.eu.max_retries: want a whole number from 0",
        ),
        (
            "[cluster.eu]\nlimits.depth = -1",
            "t.toml:2:8: cluster.eu.limits.depth: want a whole number from 0",
        ),
        (
            "[cluster.eu]\ntolerate = ['canary']",
            "t.toml:2:1: cluster.eu.tolerate: want repeated_combination or null_dimension",
        ),
        (
            "[cluster.eu]\nheaders = { content-type = 'canary' }",
            "t.toml:2:1: cluster.eu.headers: want names of letters",
        ),
        (
            "[cluster.eu.headers]\nx-team = \"canary\\n\"",
            "t.toml:1:13: cluster.eu.headers: want names of letters",
        ),
        (
            "[cluster.eu]\nlabels = { \"a b\" = 'canary' }",
            "t.toml:2:12: cluster.eu.labels.\"a b\": \"a b\" isn't a valid label name",
        ),
        ("[push.a]\nformat = 'otlp'", "t.toml:1:7: push.a: url is missing"),
        (
            "[push.a]\nurl = 'https://a.example'",
            "t.toml:1:7: push.a: format is missing; want one of openmetrics, remote-write,",
        ),
        (
            "[push.a]\nurl = 'https://a.example'\nformat = 'canary'",
            "t.toml:3:1: push.a.format: want one of openmetrics,",
        ),
        (
            "[push.a]\nurl = 'https://a.example'\nformat = 'otlp'\nguarantee = 'canary'",
            "t.toml:4:1: push.a.guarantee: want at_least_once or at_most_once",
        ),
    ]);
}

#[test]
fn secrets_in_the_file_are_refused() {
    check_all(&[
        (
            "[cluster.eu]\nclient_secret = 'canary'",
            "t.toml:2:1: cluster.eu.client_secret: a configuration must not contain secrets; want client_secret_env,",
        ),
        (
            "[cluster.eu]\nclient_secret = { env = 'canary' }",
            "t.toml:2:1: cluster.eu.client_secret: a configuration must not contain secrets",
        ),
        (
            "[push.a.headers]\nAuthorization = 'canary'",
            "t.toml:2:1: push.a.headers.Authorization: by its name, this header contains a secret",
        ),
        (
            "[defaults]\nproxy = 'http://me:canary@proxy.example'",
            "t.toml:2:1: defaults.proxy: an address with a user or a password is a secret",
        ),
        (
            "[push.a]\nurl = 'https://me:canary@a.example/write'",
            "t.toml:2:1: push.a.url: an address with a user or a password",
        ),
        (
            "[defaults]\nclient_secret_env = 'A'\nclient_secret_file = 'canary'",
            "t.toml:3:1: defaults.client_secret_file: another key already names the place of the secret",
        ),
        (
            "[defaults.headers]\nx-key = { env = 'A' }\nX-Key = { env = 'B' }",
            "t.toml:3:1: defaults.headers.X-Key: the same header is written twice",
        ),
        (
            "[defaults]\ncluster_endpoint = 'https://a.example'",
            "t.toml:2:1: defaults.cluster_endpoint: each cluster has its own address",
        ),
    ]);
}

#[test]
fn commands_in_a_file_that_others_can_change_are_not_run() {
    let mut found = found("[defaults]\nclient_secret_command = 'canary'");
    found.distrust = Some("the file belongs to another user".to_owned());
    let wrong = read(&found).unwrap_err().text;
    let expected = "t.toml:2:1: defaults.client_secret_command: commands in this file are not run: the file belongs to another user";
    assert_eq!(wrong, expected);
    found.bytes = b"[defaults]\nclient_secret_env = 'A'".into();
    assert!(read(&found).is_ok());
}

fn of_file(text: &str) -> Written {
    read(&found(text)).unwrap_or_else(|failure| panic!("{failure}"))
}

#[test]
fn clusters_override_the_defaults_and_keep_the_order_of_the_file() {
    let written = of_file(
        "[cluster.us]\nclient_secret_file = 'us'\n\
         [defaults]\nclient_secret_env = 'A'\ntimeout = '1s'\nheaders = { x-a = '1', x-b = '1' }\nlabels = { a = '1' }\n\
         [cluster.eu]\ntimeout = '2s'\nheaders = { X-B = '2' }\nlabels = { b = '2' }\n",
    );
    let names: Vec<&str> = written.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
    assert_eq!(names, ["us", "eu"]);
    let text = |cluster: usize, table: Option<&str>, name: &str| {
        let given = &written.clusters[cluster].given;
        let setting = match table {
            None => given.get(name),
            Some(table) => match given.get(table).map(|setting| &setting.raw) {
                Some(Raw::Table(given)) => given.get(name),
                _ => None,
            },
        };
        let secret = setting.and_then(|setting| setting.secret().unwrap());
        secret.map(|secret| secret.expose().to_owned())
    };
    assert_eq!(text(0, None, "timeout").as_deref(), Some("1s"));
    assert_eq!(text(1, None, "timeout").as_deref(), Some("2s"));
    assert_eq!(text(1, Some("headers"), "x-a").as_deref(), Some("1"));
    assert_eq!(text(1, Some("headers"), "x-b").as_deref(), Some("2"));
    assert_eq!(text(0, Some("labels"), "b"), None);
    assert_eq!(text(1, Some("labels"), "a").as_deref(), Some("1"));
    assert_eq!(text(1, Some("labels"), "b").as_deref(), Some("2"));
    let source = |cluster: usize| {
        let setting = written.clusters[cluster].given.get("client_secret").unwrap();
        setting.origin.to_string()
    };
    assert_eq!(source(0), "t.toml:2:1: cluster.us.client_secret_file");
    assert_eq!(source(1), "t.toml:4:1: defaults.client_secret_env");
}

#[test]
fn a_secret_is_read_only_when_it_is_needed() {
    let written = of_file(
        "[push.a]\nurl = { env = 'CARGO_PKG_NAME' }\nformat = 'otlp'\n\
         headers = { authorization = { env = 'CARGO_PKG_NAME' } }\n\
         [push.b]\nurl = 'https://b.example'\nformat = 'influx'\npatience = '5m'\n\
         headers = { authorization = { env = 'TALLYFOLD_TEST_UNSET' } }\n",
    );
    let options: PushOptions = written.targets[0].push.read().unwrap();
    assert_eq!(options.url, "tallyfold-cli");
    let failure = written.targets[1].push.read::<PushOptions>().unwrap_err();
    let expected = "t.toml:9:13: push.b.headers.authorization: the environment variable that is named here is not set";
    assert_eq!(failure.text, expected);
}

#[cfg(unix)]
#[test]
fn paths_are_relative_to_the_configuration() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "canary\n").unwrap();
    let text = "[defaults]\nca_file = 'ca.pem'\n[cluster.eu]\nclient_secret_file = 'secret'";
    let found = Found { path: folder.path().join("t.toml"), ..found(text) };
    let mode = |mode| std::fs::set_permissions(&secret, std::fs::Permissions::from_mode(mode));
    let client = |written: &Written| {
        let setting = written.clusters[0].given.get("client_secret");
        setting.unwrap().secret().map(Option::<Secret>::unwrap)
    };
    mode(0o600).unwrap();
    let written = read(&found).unwrap();
    assert_eq!(client(&written).unwrap().expose(), "canary");
    let ca_file = &written.clusters[0].given.get("ca_file").unwrap().raw;
    let expected = folder.path().join("ca.pem");
    assert!(matches!(ca_file, Raw::Path(path) if *path == expected));
    mode(0o640).unwrap();
    let failure = client(&read(&found).unwrap()).unwrap_err();
    assert!(
        failure.text.contains("t.toml:4:1: cluster.eu.client_secret_file: other users can access"),
        "{failure}"
    );
    assert!(!failure.text.contains("canary"), "{failure}");
}

#[test]
fn bytes_that_are_not_utf8_are_reported_with_their_place() {
    let path = Path::new("t.toml");
    let failure = text_of(path, b"a = \"\xff\"").unwrap_err();
    assert_eq!(failure.text, "t.toml: byte 5: want UTF-8 text");
    let failure = text_of(path, b"\xef\xbb\xbf\xff").unwrap_err();
    assert_eq!(failure.text, "t.toml: byte 3: want UTF-8 text");
    assert_eq!(text_of(path, b"\xef\xbb\xbfa = 1").unwrap(), "a = 1");
}

// The following tests read hostile and random configurations. Reading must not panic, and no error may contain a
// secret.

/// The text of every secret in these tests.
const CANARY: &str = "canary";

fn message(bytes: &[u8]) -> String {
    match read(&found(bytes)) {
        Ok(_) => String::new(),
        Err(failure) => {
            assert!(failure.text.starts_with("t.toml:"), "{failure}");
            assert!(failure.text.len() < 2_000, "{failure}");
            assert!(!failure.text.contains(char::is_control), "{failure:?}");
            failure.text
        }
    }
}

fn check_hidden(bytes: &[u8]) {
    let message = message(bytes);
    assert!(!message.contains(CANARY), "{message}\n{}", String::from_utf8_lossy(bytes));
}

/// Returns the template with all settings uncommented and a secret in place of each text.
fn secrets() -> String {
    template()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => line,
        })
        .map(|line| match line.split_once(" = \"") {
            Some((name, _)) => format!("{name} = \"{CANARY}\"\n"),
            None => format!("{line}\n"),
        })
        .collect()
}

/// Generates values of all types, and invalid ones. Some contain secrets.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(format!("\"{CANARY}\"")),
        Just(format!("'{CANARY}'")),
        Just(format!("\"https://me:{CANARY}@a.example\"")),
        Just(format!("\"\"\"\n{CANARY}\"\"\"")),
        Just(CANARY.to_owned()),
        Just(format!("\"{CANARY}")),
        Just("3".to_owned()),
        Just("-9999999999999999999999999999999999999999999".to_owned()),
        Just("inf".to_owned()),
        Just("true".to_owned()),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("\"30s\"".to_owned()),
    ];
    leaf.prop_recursive(4, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            prop::collection::vec((name(), inner), 0..4).prop_map(|pairs| {
                let pairs = pairs.iter().map(|(name, value)| format!("{name} = {value}"));
                format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
            }),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "client_id",
        "client_secret",
        "client_secret_env",
        "client_secret_file",
        "client_secret_command",
        "cluster_endpoint",
        "timeout",
        "max_retries",
        "default_token_lifetime",
        "headers",
        "headers.authorization",
        "headers.x-team",
        "labels",
        "labels.a",
        "limits",
        "limits.depth",
        "tolerate",
        "proxy",
        "ca_file",
        "url",
        "format",
        "guarantee",
        "env",
        "file",
        "command",
        "password",
        "\"\\u001b[2J\"",
        "\"\"",
    ])
    .prop_map(str::to_owned)
}

fn section() -> impl Strategy<Value = String> {
    let head = prop::sample::select(vec![
        "[defaults]",
        "[cluster.eu]",
        "[cluster.us]",
        "[push.a]",
        "[cluster.eu.headers]",
        "[[cluster]]",
        "[other]",
        "",
    ]);
    (head, prop::collection::vec((name(), value()), 0..4)).prop_map(|(head, pairs)| {
        let pairs = pairs.iter().map(|(name, value)| format!("{name} = {value}\n"));
        format!("{head}\n{}", pairs.collect::<String>())
    })
}

proptest! {
    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        message(&bytes);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[\\[\\]{}=,.\"'#\\\\ \\n\\ra-z0-9é\\u{0}\\u{1b}]{0,200}") {
        message(text.as_bytes());
    }

    #[test]
    fn no_error_quotes_a_value(sections in prop::collection::vec(section(), 1..4)) {
        check_hidden(sections.concat().as_bytes());
    }

    #[test]
    fn errors_about_changed_bytes_hide_secrets(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = secrets().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check_hidden(&bytes);
    }
}

#[test]
fn errors_about_truncated_configurations_hide_secrets() {
    let secrets = secrets();
    // A text that ends before its first secret has nothing to hide.
    let start = secrets.find(CANARY).unwrap();
    for end in (start..secrets.len()).step_by(3) {
        check_hidden(&secrets.as_bytes()[..end]);
    }
}

#[test]
fn large_configurations_are_read_quickly() {
    let mega = 1_000_000;
    let key = "k".repeat(mega / 2);
    for text in [
        format!("[cluster.eu]\n{}", "#\n".repeat(mega / 2)),
        format!("[cluster.{key}]\n{}", "a=1\n".repeat(mega / 8)),
        (0..mega / 32).map(|at| format!("[cluster.c{at}]\n")).collect(),
        format!(
            "[cluster.eu.labels]\n{}",
            (0..mega / 16).map(|at| format!("l{at} = ''\n")).collect::<String>()
        ),
        format!(
            "[cluster.eu]\nlabels = {{ é{} }}\n",
            (0..mega / 64).map(|at| format!("l{at} = '', ")).collect::<String>()
        )
        .replace('é', "x = 'é', "),
        format!("[cluster.eu.{key}]\n"),
        format!("[cluster.eu]\ntimeout = '{key}'\n"),
        format!("[cluster.eu]\ntolerate = [{}]\n", "'',".repeat(mega / 4)),
        format!("[cluster.eu]\nmax_retries = {}\n", "9".repeat(mega)),
        format!("[cluster.eu]\nlimits = {{ {} }}\n", "a.".repeat(mega / 2)),
    ] {
        let started = std::time::Instant::now();
        if let Err(failure) = read(&found(&text)) {
            assert!(failure.text.len() < 2_000, "{}", failure.text.len());
        }
        // Reading takes far less time than this, but would take far longer if it searched the whole text for each key.
        assert!(started.elapsed().as_secs() < 120);
    }
}
