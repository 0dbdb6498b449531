//! `tallyfold audit-logs`: a page of the audit logs.

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tallyfold::AuditLogsOptions;

use crate::app::{App, each};
use crate::arguments::declared::{Declared, Flags};
use crate::failure::{Exit, Result};
use crate::output::report::Missing;
use crate::output::sink::{Screen, WriteError, write_to};
use crate::output::unknown::{write_indented, write_paths};

/// What the help begins with.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tallyfold audit-logs
      The first page, as the service sends it.
  tallyfold audit-logs --page 2 --per-page 100 > page-2.json
      Piped, the bytes of the response are unchanged.
  tallyfold audit-logs --format table
      One line for each value of the page: where it is, and what it is.
";

/// What the help ends with.
pub(crate) const ENDING: &str = "\
The service's reference does not show the fields of an audit log, so tallyfold assumes none. Several clusters are asked at
the same time; the result is then one JSON object with a page for each cluster by its name.";

/// Flags of the listing.
#[derive(Args, Clone, Debug)]
pub(crate) struct AuditLogsFlags {
    #[command(flatten)]
    page: Declared<PageFlags>,
    /// The format [default: json]
    #[arg(long, value_enum, default_value_t = PageFormat::Json, hide_default_value = true, help_heading = "Output")]
    format: PageFormat,
    /// Writes into this file, which is replaced only when all is written, in place of stdout
    #[arg(long, short, value_name = "FILE", help_heading = "Output")]
    output: Option<PathBuf>,
}

/// Which page.
#[derive(Clone, Debug)]
struct PageFlags;

impl Flags for PageFlags {
    type Options = AuditLogsOptions;

    const NAMES: &'static [&'static str] = &["page", "per_page", "deadline_ms"];
    const HEADING: &'static str = "Page";
    const IS_COMMON: bool = true;
}

/// The formats of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PageFormat {
    /// As the service sends it; indented on a terminal.
    Json,
    /// One line for each value: its JSON path and the value.
    Table,
}

/// The page of one cluster.
struct Page {
    cluster: String,
    json: Vec<u8>,
}

/// Runs the command.
///
/// # Errors
/// For flags and settings that can't be used, and for an output that can't be written.
pub(crate) async fn run(app: &App, flags: &AuditLogsFlags) -> Result<Exit> {
    let options: AuditLogsOptions = flags.page.given.read()?;
    let sessions = app.sessions()?;
    let (pages, missing) = each(&sessions, |cluster, session| async move {
        let call = session.machine.audit_logs(&options);
        let logs = session.run(call?).await?;
        Ok(Page {
            cluster: cluster.name,
            json: logs.into_json(),
        })
    })
    .await;
    for missing in &missing {
        app.fail(&missing.cluster, &missing.failure);
    }
    if !pages.is_empty() {
        let is_several = sessions.len() > 1;
        write_to(flags.output.as_deref(), |screen, out| {
            write(&pages, is_several, flags.format, screen, out)
        })?;
    }
    Ok(exit(!pages.is_empty(), &missing))
}

/// The exit code: 6 if some pages are missing, or the code of the first failure if all are.
fn exit(has_pages: bool, missing: &[Missing]) -> Exit {
    match missing.first() {
        None => Exit::Fine,
        Some(_) if has_pages => Exit::Missing,
        Some(missing) => missing.failure.exit,
    }
}

fn write(
    pages: &[Page],
    is_several: bool,
    format: PageFormat,
    screen: Screen,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    match format {
        PageFormat::Table => {
            for page in pages {
                let name = is_several.then_some(&*page.cluster);
                write_paths(&page.json, name, out)?;
            }
        }
        PageFormat::Json => {
            let json = match (is_several, pages) {
                (false, [page]) => &page.json,
                _ => &by_cluster(pages),
            };
            match screen.width {
                Some(_) => write_indented(json, out)?,
                None => out.write_all(json)?,
            }
        }
    }
    Ok(())
}

/// One JSON object, with the unchanged page of each cluster by its name.
fn by_cluster(pages: &[Page]) -> Vec<u8> {
    let mut json = b"{".to_vec();
    for (index, page) in pages.iter().enumerate() {
        if index > 0 {
            json.push(b',');
        }
        json.extend(serde_json::Value::from(&*page.cluster).to_string().bytes());
        json.push(b':');
        json.extend(&page.json);
    }
    json.extend(b"}\n");
    json
}

#[cfg(test)]
mod tests {
    use tallyfold::{Code, Error};

    use super::*;

    fn written(pages: &[(&str, &str)], format: PageFormat, width: Option<usize>) -> String {
        let pages: Vec<Page> = pages
            .iter()
            .map(|(cluster, json)| Page {
                cluster: (*cluster).to_owned(),
                json: json.as_bytes().to_vec(),
            })
            .collect();
        let screen = Screen {
            width,
            color: false,
        };
        let mut out = Vec::new();
        write(&pages, pages.len() > 1, format, screen, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_page_that_is_missing_beside_others_is_not_the_end() {
        let missing = [Missing {
            cluster: "eu".to_owned(),
            failure: Error::new(Code::TimedOut, "slow").into(),
        }];
        assert_eq!(exit(true, &[]), Exit::Fine);
        assert_eq!(exit(true, &missing), Exit::Missing);
        assert_eq!(exit(false, &missing), Exit::Service);
    }

    const ODD: &str = " {\"n\": 12345678901234567890123.10,\n\t\"a\":[ ] }\n\n";

    #[test]
    fn a_piped_page_keeps_its_bytes() {
        assert_eq!(written(&[("eu", ODD)], PageFormat::Json, None), ODD);
        let two = written(&[("e\"u", ODD), ("us", "[1]")], PageFormat::Json, None);
        assert_eq!(two, format!("{{\"e\\\"u\":{ODD},\"us\":[1]}}\n"));
        assert!(serde_json::from_str::<serde_json::Value>(&two).is_ok());
    }

    #[test]
    fn a_page_on_a_terminal_is_indented() {
        let text = written(&[("eu", ODD)], PageFormat::Json, Some(80));
        assert_eq!(
            text,
            "{\n  \"n\": 12345678901234567890123.10,\n  \"a\": []\n}\n"
        );
    }

    #[test]
    fn a_table_has_a_line_for_each_value() {
        let text = written(&[("eu", ODD), ("us", "[1]")], PageFormat::Table, None);
        assert_eq!(
            text,
            "eu $.n  12345678901234567890123.10\neu $.a  []\nus $[0]  1\n"
        );
    }
}
