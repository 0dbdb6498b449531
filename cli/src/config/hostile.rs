//! Configurations that somebody else has written, or nobody: no panic, and no secret in a message.

use proptest::prelude::*;

use super::find::Found;
use super::sections::read;
use super::template::template;

/// What stands for every secret.
const CANARY: &str = "canary";

fn message(bytes: &[u8]) -> String {
    let found = Found {
        path: "t.toml".into(),
        bytes: bytes.to_vec(),
        distrust: None,
    };
    match read(&found) {
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
    assert!(
        !message.contains(CANARY),
        "{message}\n{}",
        String::from_utf8_lossy(bytes)
    );
}

/// A configuration in which every text is a secret.
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

/// Values of all types, with secrets in them.
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
                let pairs = pairs
                    .iter()
                    .map(|(name, value)| format!("{name} = {value}"));
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
        let pairs = pairs
            .iter()
            .map(|(name, value)| format!("{name} = {value}\n"));
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
    fn no_message_quotes_a_value(sections in prop::collection::vec(section(), 1..4)) {
        check_hidden(sections.concat().as_bytes());
    }

    #[test]
    fn a_changed_configuration_hides_its_secrets(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = secrets().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        check_hidden(&bytes);
    }
}

#[test]
fn a_configuration_that_is_cut_hides_its_secrets() {
    let secrets = secrets();
    // From where the first value is on; before that there are comments.
    let start = secrets.find(CANARY).unwrap();
    for end in (start..secrets.len()).step_by(3) {
        check_hidden(&secrets.as_bytes()[..end]);
    }
}

#[test]
fn large_documents_are_read_in_little_time_and_room() {
    let mega = 1_000_000;
    let key = "k".repeat(mega / 2);
    for text in [
        format!("[cluster.eu]\n{}", "#\n".repeat(mega / 2)),
        format!("[cluster.{key}]\n{}", "a=1\n".repeat(mega / 8)),
        (0..mega / 32)
            .map(|at| format!("[cluster.c{at}]\n"))
            .collect(),
        format!(
            "[cluster.eu.labels]\n{}",
            (0..mega / 16)
                .map(|at| format!("l{at} = ''\n"))
                .collect::<String>()
        ),
        format!(
            "[cluster.eu]\nlabels = {{ é{} }}\n",
            (0..mega / 64)
                .map(|at| format!("l{at} = '', "))
                .collect::<String>()
        )
        .replace('é', "x = 'é', "),
        format!("[cluster.eu.{key}]\n"),
        format!("[cluster.eu]\ntimeout = '{key}'\n"),
        format!("[cluster.eu]\ntolerate = [{}]\n", "'',".repeat(mega / 4)),
        format!("[cluster.eu]\nmax_retries = {}\n", "9".repeat(mega)),
        format!("[cluster.eu]\nlimits = {{ {} }}\n", "a.".repeat(mega / 2)),
    ] {
        let started = std::time::Instant::now();
        let found = Found {
            path: "t.toml".into(),
            bytes: text.into_bytes(),
            distrust: None,
        };
        if let Err(failure) = read(&found) {
            assert!(failure.text.len() < 2_000, "{}", failure.text.len());
        }
        // Far from what it takes, and far below what a search through the whole text for each key would take.
        assert!(started.elapsed().as_secs() < 20);
    }
}
