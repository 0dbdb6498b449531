//! Creates the configuration that `tallyfold init` writes. The descriptions and defaults of most keys come from the
//! declarations in the library crates.

use tallyfold::arguments::{Argument, Kind, Options, Value};
use tallyfold::{MachineOptions, Spelling};
use tallyfold_export::PushOptions;
use tallyfold_health::{ReceiverKind, ReceiverOptions};
use toml_writer::ToTomlValue;

use super::keys::{Form, Key, Section, example_of, keys, toml_name};
use crate::arguments::declared::{described, written};

/// The maximum width of wrapped descriptions, without the `# ` in front.
const WIDTH: usize = 100;

const HEAD: &str = r#"# The configuration of the command tallyfold. The command reads the file in --config or TALLYFOLD_CONFIG. If neither is set,
# it reads the first of these files that exists:
#   ./tallyfold.toml, ~/.config/tallyfold/tallyfold.toml (or below XDG_CONFIG_HOME), /etc/tallyfold/tallyfold.toml.
# It refuses a ./tallyfold.toml that you have not trusted (tallyfold trust).
# To use a setting that has a # in front, remove the #. Lengths of time have a unit: "500ms", "30s", "15m", "24h".
#
# Flags override environment variables, which override this file. Variables such as TALLYFOLD_CLIENT_ID and flags such as
# --client-id describe one cluster. A command that queries several clusters refuses them: choose a cluster with --cluster.
# A variable that this file refers to (client_secret_env = "NAME") is used only there.
#
# Do not put secrets here. A secret comes from an environment variable, from a file that only its owner can read, or from
# the output of a command. Relative paths start at the folder of this file.
"#;

const CLUSTER: &str = r"
# A section for each cluster. A command queries all clusters at the same time, and shows the cluster of each count.
[cluster.main]
";

const DEFAULTS: &str = r"
# Defaults for all clusters; the section of a cluster overrides them. Every key of a cluster is allowed here except
# cluster_endpoint.
[defaults]
";

const SECOND: &str = r#"
# Another cluster.
#[cluster.other]
#cluster_endpoint = "https://other-cluster.example"
#client_id = "your-other-client-id"
#client_secret_env = "OTHER_CLIENT_SECRET"
#control_audience = "your-other-control-audience"
"#;

const PUSH: &str = r"
# A destination for pushed counts. To push to it, run: tallyfold push collector
#[push.collector]
";

const CHECK: &str = r"
# Files that tallyfold check uses. Without a rules file, the command uses the standard rules, which
# tallyfold init --rules health.toml writes to a file.
#[check]
";

const RUN: &str = r"
# What tallyfold run does, in addition to serving totals.
#[run]
";

/// Keys of `[cluster.main]` that the user has to set. All other keys are commented out.
const TO_FILL_IN: [&str; 4] =
    ["cluster_endpoint", "client_id", "client_secret_env", "control_audience"];

/// Keys that are shown in the section of a cluster; all others are shown in `[defaults]`.
const OF_A_CLUSTER: [&str; 12] = [
    "cluster_endpoint",
    "client_id",
    "client_secret_env",
    "client_secret_file",
    "client_secret_command",
    "control_audience",
    "base_url",
    "auth_url",
    "orchestration_audience",
    "identity",
    "headers",
    "labels",
];

/// Returns the text of the configuration.
pub(crate) fn template() -> String {
    let mut text = HEAD.to_owned();
    let of_cluster = |key: &Key| OF_A_CLUSTER.contains(&key.name);
    text.push_str(CLUSTER);
    for key in shown(Section::Cluster).filter(of_cluster) {
        let mark = match TO_FILL_IN.contains(&key.name) {
            true => "",
            false => "#",
        };
        add(&mut text, &key, mark, (Section::Cluster, MachineOptions::ARGUMENTS));
    }
    text.push_str(SECOND);
    text.push_str(DEFAULTS);
    for key in shown(Section::Defaults).filter(|key| !of_cluster(key)) {
        add(&mut text, &key, "#", (Section::Defaults, MachineOptions::ARGUMENTS));
    }
    add_all(&mut text, PUSH, (Section::Push, PushOptions::ARGUMENTS));
    add_all(&mut text, CHECK, (Section::Check, &[]));
    add_all(&mut text, RUN, (Section::Run, &[]));
    for kind in ReceiverKind::ALL {
        let section = (Section::Receiver(*kind), ReceiverOptions::ARGUMENTS);
        add_all(&mut text, &head_of(*kind), section);
    }
    text
}

/// Adds a section whose keys are all commented out.
fn add_all(text: &mut String, head: &str, section: (Section, &[Argument])) {
    text.push_str(head);
    for key in shown(section.0) {
        add(text, &key, "#", section);
    }
}

/// Returns the first lines of a receiver's section.
fn head_of(kind: ReceiverKind) -> String {
    let (about, name) = (kind.about(), example_of(kind));
    let about = about.replacen('a', "A", 1);
    format!("\n# {about}. To notify it, run: tallyfold check --{kind} {name}\n#[{kind}.{name}]\n")
}

fn shown(section: Section) -> impl Iterator<Item = Key> {
    keys(section).into_iter().filter(Key::is_allowed)
}

/// Adds a key with its description.
fn add(text: &mut String, key: &Key, mark: &str, (section, known): (Section, &[Argument])) {
    let (doc, default) = match key.form {
        Form::Declared(argument) => {
            let (paragraphs, _) = described(argument, known, Spelling::Toml);
            (paragraphs.join(" "), default_of(argument))
        }
        _ => (about(key.name).to_owned(), None),
    };
    let default = default.or_else(|| match (section, key.name) {
        (Section::Receiver(kind), "url") => kind.usual_url().map(|url| url.to_toml_value()),
        _ => None,
    });
    wrap(text, &doc);
    let value = default.unwrap_or_else(|| example_in(section, key.name).to_owned());
    text.push_str(&format!("{mark}{} = {value}\n", key.name));
}

/// Returns the default of an option as a TOML value; `None` if the option has no default.
fn default_of(argument: &Argument) -> Option<String> {
    if let Kind::Nested(arguments) = argument.kind {
        let pairs = arguments.iter().filter_map(|inner| {
            let default = default_of(inner)?;
            Some(format!("{} = {default}", toml_name(inner)))
        });
        return Some(format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", ")));
    }
    let default = argument.surface?.default.and_then(|default| default())?;
    Some(match default {
        Value::Flag(flag) => flag.to_toml_value(),
        Value::Whole(number) if argument.unit().is_none() => number.to_toml_value(),
        _ => written(&default, argument)?.to_toml_value(),
    })
}

/// Returns the description of a key whose form isn't [`Form::Declared`].
fn about(name: &str) -> &'static str {
    match name {
        "client_secret_env" => {
            "The environment variable with the client secret. Set exactly one of client_secret_env, client_secret_file and \
            client_secret_command."
        }
        "client_secret_file" => {
            "A file with the client secret. Only its owner may have access to it (mode 0600 or 0400), except for \
            secrets from systemd (LoadCredential=) and Kubernetes."
        }
        "client_secret_command" => {
            "A command that prints the client secret: an array of the program and its arguments, or a text for the shell. It has one minute."
        }
        "ca_file" => "A PEM file of CA certificates to trust in addition to the system's.",
        "proxy" => {
            "A proxy, instead of the one in HTTPS_PROXY. An address with a user or a password is a secret, so write it as \
            { env = \"NAME\" }."
        }
        "labels" => "Labels for the exported counts of the cluster.",
        "format" => {
            "The format: openmetrics, remote-write, otlp, influx, dogstatsd, datadog and others."
        }
        "push" => {
            "Where to push the counts of each window, and their corrections: names of sections such as [push.collector]."
        }
        "check" => "Whether the rules of [check] are applied to each window.",
        "notify" => "The receivers of alerts: names of sections such as [slack.oncall].",
        "dashboard" => "The address and port of the dashboard.",
        "rules" => "The file with the rules.",
        "state" => {
            "The state that a run leaves for the next one: findings, and who was notified of them. The clusters of \
            this file have names, so this is a folder; without names, it is a file."
        }
        "history" => "A folder with earlier counts, which the rules compare new counts with.",
        "template" => {
            "A file with the message, which is JSON with placeholders such as {{sentence}}."
        }
        _ => "",
    }
}

/// Returns an example value for a key without a default. The value may differ between sections.
fn example_in(section: Section, name: &str) -> &'static str {
    match (section, name) {
        (Section::Run, "push") => r#"["collector"]"#,
        (Section::Run, "check") => "true",
        (Section::Run, "notify") => r#"["alertmanager.main"]"#,
        (Section::Run, _) => r#""127.0.0.1:9465""#,
        (Section::Receiver(ReceiverKind::Alertmanager), "url") => r#""http://127.0.0.1:9093""#,
        (Section::Receiver(_), "url") => r#"{ env = "CHAT_URL" }"#,
        _ => example(name),
    }
}

/// Returns the example value of a key that has the same example in all sections.
fn example(name: &str) -> &'static str {
    match name {
        "cluster_endpoint" => r#""https://cluster.example""#,
        "client_id" => r#""your-client-id""#,
        "client_secret_env" => r#""TALLYFOLD_CLIENT_SECRET""#,
        "client_secret_file" => r#""client-secret""#,
        "client_secret_command" => r#"["pass", "show", "tallyfold"]"#,
        "control_audience" => r#""your-control-audience""#,
        "identity" => r#""production""#,
        "base_url" => r#""https://orchestration.example""#,
        "auth_url" => r#""https://auth.example""#,
        "orchestration_audience" => r#""your-orchestration-audience""#,
        "headers" => r#"{ x-team = "data", x-gateway-key = { env = "GATEWAY_KEY" } }"#,
        "labels" => r#"{ region = "eu" }"#,
        "tolerate" => r#"["repeated_combination", "null_dimension"]"#,
        "ca_file" => r#""ca.pem""#,
        "proxy" => r#""http://proxy.example:3128""#,
        "format" => r#""otlp""#,
        "url" => r#""https://collector.example/v1/metrics""#,
        "guarantee" => r#""at_most_once""#,
        "rules" => r#""health.toml""#,
        "state" => r#""/var/lib/tallyfold/check""#,
        "history" => r#""/var/lib/tallyfold/history""#,
        "template" => r#""chat.json""#,
        "routing_key" => r#"{ env = "PAGERDUTY_KEY" }"#,
        _ => r#""""#,
    }
}

/// Wraps a text, and adds it as comment lines.
fn wrap(text: &mut String, doc: &str) {
    let mut line = String::new();
    for word in doc.split_whitespace() {
        if !line.is_empty() && line.chars().count() + word.chars().count() > WIDTH {
            text.push_str(&format!("#{line}\n"));
            line.clear();
        }
        line.push(' ');
        line.push_str(word);
    }
    text.push_str(&format!("#{line}\n"));
}

#[cfg(test)]
mod tests {
    use super::super::sections::{Written, read};
    use super::*;
    use crate::config::find::Found;

    fn written(text: &str) -> Written {
        let found = Found { path: "tallyfold.toml".into(), bytes: text.into(), distrust: None };
        read(&found).unwrap_or_else(|failure| panic!("{failure}\n{text}"))
    }

    /// Returns the template with all settings uncommented, but only one of the keys for the client secret.
    fn in_use(secret: &str) -> String {
        let template = template();
        let lines = template.lines().map(|line| match line.strip_prefix('#') {
            Some(rest)
                if rest.starts_with(|first: char| first.is_ascii_lowercase() || first == '[') =>
            {
                rest
            }
            _ => line,
        });
        let kept =
            lines.filter(|line| !line.starts_with("client_secret") || line.starts_with(secret));
        kept.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_template_loads_unchanged() {
        let written = written(&template());
        let names: Vec<&str> =
            written.clusters.iter().map(|cluster| cluster.name.as_str()).collect();
        assert_eq!(names, ["main"]);
        assert_eq!(written.variables, ["TALLYFOLD_CLIENT_SECRET"]);
    }

    #[test]
    fn the_template_loads_with_every_setting_in_use() {
        for secret in ["client_secret_env", "client_secret_file", "client_secret_command"] {
            let written = written(&in_use(secret));
            assert_eq!(written.clusters.len(), 2);
            assert_eq!(written.targets.len(), 1);
            assert_eq!(written.targets[0].format.as_str(), "otlp");
            assert_eq!(written.receivers.len(), ReceiverKind::ALL.len());
            assert!(written.check.history.is_some());
        }
    }

    #[test]
    fn the_template_has_every_key_once_with_a_value_and_a_comment() {
        let text = template().replace(SECOND, "");
        let (clusters, rest) = text.split_once(PUSH).unwrap();
        let (pushes, rest) = rest.split_once(CHECK).unwrap();
        let mut sections = vec![(clusters, Section::Cluster), (pushes, Section::Push)];
        let (check, rest) = rest.split_once(RUN).unwrap();
        sections.push((check, Section::Check));
        let mut section = Section::Run;
        let mut rest = rest;
        for kind in ReceiverKind::ALL {
            let (before, after) = rest.split_once(&head_of(*kind)).unwrap();
            sections.push((before, section));
            (section, rest) = (Section::Receiver(*kind), after);
        }
        sections.push((rest, section));
        for (text, section) in sections {
            let lines: Vec<&str> = text.lines().collect();
            for key in shown(section) {
                let setting = format!("{} = ", key.name);
                let is_setting = |line: &&str| line.trim_start_matches('#').starts_with(&setting);
                let at: Vec<usize> =
                    (0..lines.len()).filter(|at| is_setting(&lines[*at])).collect();
                assert_eq!(at.len(), 1, "{}", key.name);
                assert!(!lines[at[0]].ends_with("\"\""), "{}", lines[at[0]]);
                assert!(lines[at[0] - 1].starts_with("# "), "{}", key.name);
            }
        }
        let comments = text.lines().filter(|line| line.starts_with("# "));
        assert!(comments.map(|line| line.chars().count()).max() <= Some(125));
    }

    #[test]
    fn defaults_in_the_template_equal_the_core_defaults() {
        let text = in_use("client_secret_env");
        let mut given = written(&text).clusters.remove(0).given;
        for name in ["ca_file", "proxy", "labels", "headers", "client_secret"] {
            given.take(name);
        }
        let options: MachineOptions = given.read().unwrap();
        let usual = MachineOptions::default();
        assert_eq!(options.limits, usual.limits);
        assert_eq!(options.timeout_ms, usual.timeout_ms);
        assert_eq!(options.max_retries, usual.max_retries);
        assert_eq!(options.longest_retry_wait_ms, usual.longest_retry_wait_ms);
        assert_eq!(options.default_token_lifetime_s, usual.default_token_lifetime_s);
        assert!(!options.dangerously_allow_http);
    }

    #[test]
    fn the_example_in_the_documentation_loads() {
        let page =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/cli/configuration.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, example) = page.split_once("```toml\n").unwrap();
        let written = written(example.split_once("```").unwrap().0);
        assert_eq!(written.clusters.len(), 2);
        assert_eq!(written.targets.len(), 1);
    }
}
