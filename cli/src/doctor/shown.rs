//! Prints a diagnosis for a person.

use std::io::{self, Write};

use super::check::{Check, ClusterDiagnosis, Diagnosis, Outcome};
use crate::output::sink::Screen;

/// The widest label has 23 characters.
const LABEL: usize = 23;

/// Where text that is wrapped begins.
const INDENT: usize = 10;

/// Prints all clusters.
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
        count(Outcome::Ok),
        count(Outcome::Failed),
        count(Outcome::Warning),
        count(Outcome::Skipped)
    )
}

fn print_check(check: &Check, screen: Screen, out: &mut dyn Write) -> io::Result<()> {
    let (word, color) = match check.result {
        Outcome::Ok => ("ok", "32"),
        Outcome::Skipped => ("skipped", "2"),
        Outcome::Warning => ("warning", "33"),
        Outcome::Failed => ("FAILED", "31"),
    };
    let word = match screen.color {
        true => format!("\x1b[{color}m{word:7}\x1b[0m"),
        false => format!("{word:7}"),
    };
    let took = check.duration_ms.map(|ms| format!(" ({ms} ms)"));
    let label = check.name.label();
    let seen = format!("{}{}", check.seen, took.unwrap_or_default());
    let width = screen.width;
    let at = INDENT + LABEL + 1;
    let mut lines = wrapped(&seen, width, at).into_iter();
    let first = lines.next().unwrap_or_default();
    writeln!(out, "  {word} {label:LABEL$} {first}")?;
    for line in lines {
        writeln!(out, "{:at$}{line}", "")?;
    }
    let more = [("wrong:", &check.problem), ("next:", &check.next)];
    for (word, text) in more {
        let Some(text) = text else { continue };
        for (index, line) in wrapped(text, width, INDENT + 7).into_iter().enumerate() {
            let word = if index == 0 { word } else { "" };
            writeln!(out, "{:INDENT$}{word:6} {line}", "")?;
        }
    }
    Ok(())
}

/// A text in lines that fit a terminal; in one line for anything else.
fn wrapped(text: &str, width: Option<usize>, indent: usize) -> Vec<String> {
    let Some(room) = width.map(|width| width.saturating_sub(indent).max(20)) else {
        return vec![text.to_owned()];
    };
    let mut lines = vec![String::new()];
    for piece in text.split_inclusive(' ') {
        let last = lines.last().map_or(0, |line| line.chars().count());
        if last > 0 && last + piece.trim_end().chars().count() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(piece);
        }
    }
    lines
        .iter()
        .map(|line| line.trim_end().to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::check::CheckName;
    use super::*;
    use crate::exit::Exit;

    fn printed(screen: Screen) -> String {
        let name = CheckName::Connection;
        let failed = Check::failed(
            name,
            Exit::Service,
            "no answer",
            "It is refused.",
            "Check the port, and ask whoever runs it.",
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
    fn a_diagnosis_without_a_terminal_has_one_line_for_each_text() {
        let expected = "\
eu
  ok      configuration           set in an environment
https://a.example
  FAILED  connection              no answer
          wrong: It is refused.
          next:  Check the port, and ask whoever runs it.
1 ok, 1 failed, 0 warnings, 0 skipped
";
        assert_eq!(printed(Screen::PLAIN), expected);
    }

    #[test]
    fn a_diagnosis_fits_the_terminal() {
        let screen = Screen {
            width: Some(50),
            color: false,
        };
        let text = printed(screen);
        assert!(
            text.lines().all(|line| line.chars().count() <= 50),
            "{text}"
        );
        let wrapped =
            "configuration           set in an\n                                  environment";
        assert!(text.contains(wrapped), "{text}");
        assert!(
            text.contains("next:  Check the port, and ask whoever\n                 runs it."),
            "{text}"
        );
    }

    #[test]
    fn colours_are_for_terminals() {
        let screen = Screen {
            width: None,
            color: true,
        };
        assert!(printed(screen).contains("\x1b[31mFAILED \x1b[0m"));
        assert!(!printed(Screen::PLAIN).contains('\x1b'));
    }
}
