//! Defines the result of a check and the diagnosis of all clusters, and prints the diagnosis.

use std::io::{self, Write};
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use schemars::JsonSchema;
use serde::Serialize;
use tallyfold::Code;

use crate::failure::Exit;
use crate::output::safe::wrapped;
use crate::output::sink::Screen;

/// What `tallyfold doctor --json` prints.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "tallyfold doctor")]
pub(crate) struct Diagnosis {
    /// The exit code of the process: 0 if no check failed, 6 if checks failed for some clusters but not for all, and otherwise
    /// the code of the first failed check.
    pub(crate) exit_code: u8,
    /// The clusters, in the order of the configuration.
    pub(crate) clusters: Vec<ClusterDiagnosis>,
}

/// The checks of one cluster.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ClusterDiagnosis {
    /// The cluster's name.
    pub(crate) cluster: String,
    /// The worst result of the checks that were made; `skipped` if none was made.
    pub(crate) result: CheckResult,
    /// The checks, in the order of their execution.
    pub(crate) checks: Vec<Check>,
}

/// One check.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Check {
    /// What was checked.
    pub(crate) name: CheckName,
    /// For a check of the network path to an address: the scheme, host and port of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    /// The result of the check.
    pub(crate) result: CheckResult,
    /// What was seen; for a skipped check, why it was skipped.
    pub(crate) seen: String,
    /// What is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) problem: Option<String>,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) next: Option<String>,
    /// The code of the error, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) code: Option<Code>,
    /// The HTTP status, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    /// How long the check took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) duration_ms: Option<u64>,
    /// The exit code of the process if this is the first failed check.
    #[serde(skip)]
    pub(crate) exit: Exit,
}

/// What is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckName {
    /// Whether the settings can be used.
    Configuration,
    /// Whether a proxy is used.
    Proxy,
    /// Whether the name of the host, or of the proxy, resolves to an address.
    Name,
    /// Whether the host, or the proxy, accepts connections.
    Connection,
    /// Whether the certificate is trusted, and how long it is valid.
    Tls,
    /// Whether there is an HTTP server.
    Http,
    /// Whether this machine's clock agrees with the server's.
    Clock,
    /// Whether a token for the Control API can be obtained.
    ControlToken,
    /// Whether event delivery can be queried.
    EventDelivery,
    /// Whether event ingestion can be queried.
    EventIngestion,
    /// Whether responses are compressed.
    Compression,
    /// Whether the totals that the service reports are the sums of its counts.
    Totals,
    /// Whether the counts of adjacent windows add up.
    Additivity,
    /// Whether a token for the Orchestration API can be obtained.
    OrchestrationToken,
    /// Whether audit logs can be listed.
    AuditLogs,
}

impl CheckName {
    /// Returns the name in text output.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Configuration => "configuration",
            Self::Proxy => "proxy",
            Self::Name => "name",
            Self::Connection => "connection",
            Self::Tls => "TLS",
            Self::Http => "HTTP",
            Self::Clock => "clock",
            Self::ControlToken => "Control API token",
            Self::EventDelivery => "event delivery",
            Self::EventIngestion => "event ingestion",
            Self::Compression => "compression",
            Self::Totals => "totals",
            Self::Additivity => "adjacent windows",
            Self::OrchestrationToken => "Orchestration API token",
            Self::AuditLogs => "audit logs",
        }
    }
}

/// The result of a check, from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CheckResult {
    /// The check passed.
    Ok,
    /// The check was not made; `seen` contains the reason.
    Skipped,
    /// The check passed, but something needs attention.
    Warning,
    /// The check failed.
    Failed,
}

impl Check {
    /// Creates a check that passed.
    pub(crate) fn ok(name: CheckName, seen: impl Into<String>) -> Self {
        Self {
            name,
            address: None,
            result: CheckResult::Ok,
            seen: seen.into(),
            problem: None,
            next: None,
            code: None,
            status: None,
            duration_ms: None,
            exit: Exit::Fine,
        }
    }

    /// Creates a check that was not made.
    pub(crate) fn skipped(name: CheckName, why: impl Into<String>) -> Self {
        Self { result: CheckResult::Skipped, ..Self::ok(name, why) }
    }

    /// Creates a check that passed, with a warning.
    pub(crate) fn warning(
        name: CheckName,
        seen: impl Into<String>,
        problem: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self {
            result: CheckResult::Warning,
            problem: Some(problem.into()),
            next: Some(next.into()),
            ..Self::ok(name, seen)
        }
    }

    /// Creates a check that failed.
    pub(crate) fn failed(
        name: CheckName,
        exit: Exit,
        seen: impl Into<String>,
        problem: impl Into<String>,
        next: impl Into<String>,
    ) -> Self {
        Self { result: CheckResult::Failed, exit, ..Self::warning(name, seen, problem, next) }
    }

    /// Sets the address that the check is about.
    pub(crate) fn of(mut self, address: &str) -> Self {
        self.address = Some(address.to_owned());
        self
    }

    /// Sets the duration of the check.
    pub(crate) fn took(mut self, duration: Duration) -> Self {
        self.duration_ms = u64::try_from(duration.as_millis()).ok();
        self
    }

    /// Returns whether checks that depend on this one can run.
    pub(crate) fn is_passable(&self) -> bool {
        self.result < CheckResult::Failed
    }
}

impl ClusterDiagnosis {
    /// Creates the diagnosis of a cluster from its checks.
    pub(crate) fn new(cluster: String, checks: Vec<Check>) -> Self {
        // Skipped checks do not count, unless all checks were skipped.
        let results = checks.iter().map(|check| check.result);
        let worst = results.filter(|result| *result != CheckResult::Skipped).max();
        Self { cluster, result: worst.unwrap_or(CheckResult::Skipped), checks }
    }

    fn failure(&self) -> Option<&Check> {
        self.checks.iter().find(|check| check.result == CheckResult::Failed)
    }
}

impl Diagnosis {
    /// Creates the diagnosis of all clusters.
    pub(crate) fn new(clusters: Vec<ClusterDiagnosis>) -> Self {
        let exit_code = exit(&clusters).code();
        Self { exit_code, clusters }
    }

    /// Returns the exit code of the process.
    pub(crate) fn exit(&self) -> Exit {
        exit(&self.clusters)
    }
}

fn exit(clusters: &[ClusterDiagnosis]) -> Exit {
    let failures = clusters.iter().map(ClusterDiagnosis::failure);
    let exits: Vec<Option<Exit>> = failures.map(|check| Some(check?.exit)).collect();
    Exit::of_clusters(&exits)
}

/// The width of the widest label.
const LABEL: usize = 23;

/// The column in which labels, problems and advice begin.
const INDENT: usize = 10;

/// Prints the checks of all clusters.
pub(crate) fn print(
    diagnosis: &Diagnosis,
    is_named: bool,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (index, cluster) in diagnosis.clusters.iter().enumerate() {
        if is_named {
            let gap = if index > 0 { "\n" } else { "" };
            writeln!(out, "{gap}{}", cluster.cluster)?;
        }
        print_cluster(cluster, screen, out)?;
    }
    Ok(())
}

fn print_cluster(
    cluster: &ClusterDiagnosis,
    screen: Screen,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut address = None;
    for check in &cluster.checks {
        if check.address != address {
            let heading = check.address.as_deref().unwrap_or("the service");
            writeln!(out, "{heading}")?;
            address.clone_from(&check.address);
        }
        print_check(check, screen, out)?;
    }
    let count = |outcome| {
        let results = cluster.checks.iter().map(|check| check.result);
        results.filter(|result| *result == outcome).count()
    };
    writeln!(
        out,
        "{} ok, {} failed, {} warnings, {} skipped",
        count(CheckResult::Ok),
        count(CheckResult::Failed),
        count(CheckResult::Warning),
        count(CheckResult::Skipped)
    )
}

fn print_check(check: &Check, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let (word, style) = match check.result {
        CheckResult::Ok => ("ok", AnsiColor::Green.on_default()),
        CheckResult::Skipped => ("skipped", Style::new().dimmed()),
        CheckResult::Warning => ("warning", AnsiColor::Yellow.on_default()),
        CheckResult::Failed => ("FAILED", AnsiColor::Red.on_default()),
    };
    let word = match screen.color {
        true => format!("{style}{word:7}{style:#}"),
        false => format!("{word:7}"),
    };
    let took = check.duration_ms.map(|ms| format!(" ({ms} ms)"));
    let label = check.name.label();
    let seen = format!("{}{}", check.seen, took.unwrap_or_default());
    // Without a width, each text is one line.
    let columns = |indent| match screen.width {
        Some(width) => width.saturating_sub(indent).max(20),
        None => usize::MAX,
    };
    let at = INDENT + LABEL + 1;
    let mut lines = wrapped(&seen, columns(at)).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "  {word} {label:LABEL$} {first}")?;
    for line in lines {
        writeln!(out, "{:at$}{line}", "")?;
    }
    let more = [("wrong:", &check.problem), ("next:", &check.next)];
    for (word, text) in more {
        let Some(text) = text else { continue };
        for (index, line) in wrapped(text, columns(INDENT + 7)).into_iter().enumerate() {
            let word = if index == 0 { word } else { "" };
            writeln!(out, "{:INDENT$}{word:6} {line}", "")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn cluster(exits: &[Exit]) -> ClusterDiagnosis {
        let checks = exits.iter().map(|exit| match exit {
            Exit::Fine => Check::ok(CheckName::Http, ""),
            exit => Check::failed(CheckName::Http, *exit, "", "", ""),
        });
        ClusterDiagnosis::new("eu".to_owned(), checks.collect())
    }

    #[test]
    fn the_first_failure_sets_the_exit_code_unless_a_cluster_has_no_failure() {
        let (fine, service, auth) = (Exit::Fine, Exit::Service, Exit::Authentication);
        for (clusters, expected) in [
            (vec![cluster(&[fine])], fine),
            (vec![cluster(&[fine, auth, service])], auth),
            (vec![cluster(&[service]), cluster(&[auth])], service),
            (vec![cluster(&[fine]), cluster(&[auth])], Exit::Missing),
            (vec![cluster(&[service]), cluster(&[fine])], Exit::Missing),
        ] {
            let diagnosis = Diagnosis::new(clusters);
            assert_eq!(diagnosis.exit(), expected);
            assert_eq!(diagnosis.exit_code, expected.code());
        }
    }

    #[test]
    fn warnings_and_skipped_checks_are_not_failures() {
        let skipped = Check::skipped(CheckName::Tls, "plain http");
        let ok = Check::ok(CheckName::Http, "status 404");
        let warning = Check::warning(CheckName::Clock, "", "", "");
        let result = |checks: &[&Check]| {
            let checks = checks.iter().map(|check| (*check).clone()).collect();
            let clusters = vec![ClusterDiagnosis::new("eu".to_owned(), checks)];
            let diagnosis = Diagnosis::new(clusters);
            (diagnosis.clusters[0].result, diagnosis.exit())
        };
        assert_eq!(result(&[&skipped, &ok]), (CheckResult::Ok, Exit::Fine));
        assert_eq!(result(&[&ok, &warning, &skipped]), (CheckResult::Warning, Exit::Fine));
        assert_eq!(result(&[&skipped]), (CheckResult::Skipped, Exit::Fine));
    }

    fn printed(screen: Screen) -> String {
        let name = CheckName::Connection;
        let failed = Check::failed(
            name,
            Exit::Service,
            "no answer",
            "It is refused.",
            "Check the port, and ask its operator.",
        );
        let checks = vec![
            Check::ok(CheckName::Configuration, "set in an environment"),
            failed.of("https://a.example"),
        ];
        let clusters = vec![ClusterDiagnosis::new("eu".to_owned(), checks)];
        let mut out = Vec::new();
        print(&Diagnosis::new(clusters), true, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn without_a_terminal_no_line_is_wrapped() {
        let expected = "\
eu
  ok      configuration           set in an environment
https://a.example
  FAILED  connection              no answer
          wrong: It is refused.
          next:  Check the port, and ask its operator.
1 ok, 1 failed, 0 warnings, 0 skipped
";
        assert_eq!(printed(Screen::PLAIN), expected);
    }

    #[test]
    fn lines_are_wrapped_to_the_width_of_the_terminal() {
        let screen = Screen { width: Some(50), color: false };
        let text = printed(screen);
        assert!(text.lines().all(|line| line.chars().count() <= 50), "{text}");
        let wrapped =
            "configuration           set in an\n                                  environment";
        assert!(text.contains(wrapped), "{text}");
        assert!(
            text.contains("next:  Check the port, and ask its\n                 operator."),
            "{text}"
        );
    }

    #[test]
    fn only_a_terminal_gets_colours() {
        let screen = Screen { width: None, color: true };
        assert!(printed(screen).contains("\x1b[31mFAILED \x1b[0m"));
        assert!(!printed(Screen::PLAIN).contains('\x1b'));
    }
}
