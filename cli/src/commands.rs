//! The command line: its flags, its commands and its exit codes. Each command has a file in `commands/`, and larger commands
//! also have a folder with the same name. The commands `delivery` and `ingestion` share the file `counts`; `man` and `schema`
//! share `printed`.

mod audit_logs;
mod check;
mod collect;
mod compare;
mod counts;
mod dashboard;
mod doctor;
mod explain;
mod follow;
mod init;
mod mcp;
mod printed;
mod push;
mod run;
mod sandbox;
mod serve;
mod trust;
mod watch;

use std::io;
use std::rc::Rc;

use clap::{Arg, ArgAction, Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint};
use clap_complete::{Shell, generate};
use tallyfold::Metric;
use tokio::task::LocalSet;

use crate::app::App;
use crate::config::load::ServiceFlags;
use crate::failure::{Exit, Failure, Result};
use crate::host::shutdown::{Hangups, Stop, survive_file_limits};
use crate::output::sink::write_to;
use crate::stderr::Stderr;

const ABOUT: &str = "Exact, grouped counts from an event router's metrics API";

/// The examples at the start of the help of `tallyfold completions`.
const COMPLETIONS: &str = "\
Examples:
  tallyfold completions bash > ~/.local/share/bash-completion/completions/tallyfold
  tallyfold completions zsh > ~/.zfunc/_tallyfold
      That folder has to be in zsh's fpath.
  tallyfold completions fish > ~/.config/fish/completions/tallyfold.fish
";

const EXIT_CODES: &str = "\
Exit codes:
  0  success                               4  the service or the connection to it failed
  1  the check failed                      5  invalid response
  2  invalid arguments, configuration      6  some windows or clusters are missing; the
     or file                                  others were written
  3  credentials or tokens were refused";

const EXAMPLES: &str = "\
Examples:
  tallyfold delivery --since 24h --by integration --format csv
  tallyfold delivery --by integration,event_name --top 10     where most events are lost
  tallyfold check                                  for cron: exits with 1 if anything is wrong
  tallyfold explain --at 2026-01-31T03:00:00Z      which integration or source explains a change
  tallyfold dashboard                              a dashboard in the browser
  tallyfold serve --state totals.json              a scrape endpoint for Prometheus
  tallyfold doctor                                 diagnoses the set-up and suggests fixes
  tallyfold mcp                                    tools for an assistant, over stdin and stdout
  tallyfold init                                   writes a configuration with comments
  tallyfold sandbox -- tallyfold delivery          runs a command against a simulated service
";

/// The layout of the help: what the command does, examples, usage, flags, and text at the end.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Returns the command line with the texts of its help.
fn command_line() -> clap::Command {
    fn in_order(command: clap::Command) -> clap::Command {
        (command.help_template(HELP).mut_args(without_empty_variable)).mut_subcommands(in_order)
    }
    // An empty environment variable counts as unset, for all flags.
    fn without_empty_variable(arg: Arg) -> Arg {
        let variable = arg.get_env().and_then(std::env::var_os);
        match variable.is_some_and(|value| value.is_empty()) {
            true => arg.env(None::<&'static str>),
            false => arg,
        }
    }
    in_order(CommandLine::command())
}

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "tallyfold", version, about = ABOUT, before_help = EXAMPLES, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    verbosity: VerbosityFlags,
    #[command(subcommand)]
    command: Command,
}

/// How much is written to stderr.
#[derive(Args, Clone, Copy, Debug)]
struct VerbosityFlags {
    /// Print only errors to stderr: no warnings, notes or progress
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Log each request and its outcome
    #[arg(long, short, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Counts of delivered, failed and filtered events
    #[command(before_help = counts::DELIVERY_EXAMPLES)]
    Delivery(Asking<counts::CountFlags>),
    /// Counts of events that arrived at the router
    #[command(before_help = counts::INGESTION_EXAMPLES, mut_arg("by", counts::of_ingestion))]
    Ingestion(Asking<counts::CountFlags>),
    /// Counts of a long range, with a checkpoint
    #[command(before_help = collect::EXAMPLES)]
    Collect(Asking<collect::CollectFlags>),
    /// Compares a range with an earlier one
    #[command(before_help = compare::EXAMPLES)]
    Compare(Asking<compare::CompareFlags>),
    /// Applies rules to counts, and reports what is wrong
    #[command(before_help = check::EXAMPLES, after_help = check::ENDING)]
    Check(Asking<check::CheckFlags>),
    /// Explains a change by integration, event, reason and source
    #[command(before_help = explain::EXAMPLES)]
    Explain(Asking<explain::ExplainFlags>),
    /// A page of the audit logs
    #[command(name = "audit-logs", before_help = audit_logs::EXAMPLES, after_help = audit_logs::ENDING)]
    AuditLogs(Asking<audit_logs::AuditLogsFlags>),
    /// Diagnoses the set-up and suggests fixes
    #[command(before_help = doctor::EXAMPLES, after_help = doctor::ENDING)]
    Doctor(Asking<doctor::DoctorFlags>),
    /// A live view: integrations ranked by the events they have lost
    #[command(before_help = watch::EXAMPLES)]
    Watch(Asking<watch::WatchFlags>),
    /// Serves a dashboard of event delivery, and opens it in the browser
    #[command(before_help = dashboard::EXAMPLES, after_help = dashboard::ENDING)]
    Dashboard(Asking<dashboard::DashboardFlags>),
    /// Counts of windows as they close, and their corrections
    #[command(before_help = follow::EXAMPLES)]
    Follow(Asking<follow::FollowCommand>),
    /// Sends counts to another system, once or as windows close
    ///
    /// Exits with 3 if the destination refuses the credentials, with 4 if it fails, and with 5 if it rejected counts or
    /// did not acknowledge them. After a signal, --follow exits with 0.
    #[command(before_help = push::EXAMPLES, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
    Push(Asking<push::PushCommand>),
    /// Serves running totals to Prometheus, as a scrape endpoint
    #[command(before_help = serve::EXAMPLES)]
    Serve(Asking<serve::ServeCommand>),
    /// Serves totals, pushes counts, applies rules and serves the dashboard, in one process
    #[command(before_help = run::EXAMPLES, after_help = run::ENDING)]
    Run(Asking<run::RunCommand>),
    /// Serves a simulated service on this machine, to try things out
    #[command(before_help = sandbox::EXAMPLES)]
    Sandbox(sandbox::SandboxFlags),
    /// Tools for an assistant: a server of the Model Context Protocol on stdin and stdout
    #[command(before_help = mcp::EXAMPLES, after_help = mcp::ENDING)]
    Mcp(Asking<mcp::McpFlags>),
    /// Prints the completion script of a shell
    #[command(before_help = COMPLETIONS)]
    Completions {
        /// The shell
        shell: Shell,
    },
    /// Prints or writes the manual pages
    #[command(before_help = printed::MAN_EXAMPLES)]
    Man(printed::ManFlags),
    /// Prints the JSON Schema of a command's JSON output
    #[command(before_help = printed::SCHEMA_EXAMPLES)]
    Schema(printed::SchemaFlags),
    /// Writes a configuration with comments
    #[command(before_help = init::EXAMPLES)]
    Init(init::InitFlags),
    /// Lets commands use the configuration of a working folder
    ///
    /// A configuration decides which secrets are read and where they are sent. Commands therefore use the tallyfold.toml of the
    /// working folder only if you trust it. After each change to the file, you have to trust it again. A file that you name
    /// on the command line needs no trust.
    #[command(before_help = trust::EXAMPLES)]
    Trust(trust::TrustFlags),
}

/// The flags of a command that queries a service.
#[derive(Args, Debug)]
struct Asking<F: Args> {
    #[command(flatten)]
    flags: F,
    #[command(flatten)]
    service: ServiceFlags,
}

/// Parses the command line, runs the command, and returns the exit code.
pub(crate) fn run() -> Exit {
    let matches = command_line().try_get_matches();
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => {
            // Help and version go to stdout, usage errors to stderr. Ignore the error of a closed pipe.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Fine
            };
        }
    };
    let stderr = Rc::new(Stderr::new(line.verbosity.quiet, line.verbosity.verbose));
    match start(line.command, &stderr) {
        Ok(exit) => exit,
        Err(failure) => {
            stderr.error(&failure);
            stderr.suggest(&failure);
            failure.exit
        }
    }
}

fn start(command: Command, stderr: &Rc<Stderr>) -> Result<Exit> {
    survive_file_limits()?;
    let as_failure = |error: io::Error| Failure::usage(format!("can't start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // These threads write files and resolve names. Each takes memory, so there are only a few.
        .max_blocking_threads(4)
        .build()
        .map_err(as_failure)?;
    let ended = LocalSet::new().block_on(&runtime, dispatch(command, stderr));
    // A DNS lookup may still be running. Don't wait for it.
    runtime.shutdown_background();
    ended
}

/// Prints the completion script of a shell.
fn print_completions(shell: Shell) -> Result<Exit> {
    let mut script = Vec::new();
    let mut command = completing_file_names_only_for_paths(CommandLine::command());
    generate(shell, &mut command, "tallyfold", &mut script);
    write_to(None, |_, out| Ok(out.write_all(&script)?))?;
    Ok(Exit::Fine)
}

/// Keeps shells from completing file names for values that aren't paths. By default, shells complete file names for every value
/// whose kind clap does not know. A command (`COMMAND`) keeps this completion, because it may begin with the path of a program.
fn completing_file_names_only_for_paths(command: clap::Command) -> clap::Command {
    let completing = |arg: Arg| {
        let is_command = (arg.get_value_names()).is_some_and(|names| names == ["COMMAND"]);
        match arg.get_value_hint() {
            ValueHint::Unknown if !is_command && arg.get_action().takes_values() => {
                arg.value_hint(ValueHint::Other)
            }
            _ => arg,
        }
    };
    (command.mut_args(completing)).mut_subcommands(completing_file_names_only_for_paths)
}

async fn dispatch(command: Command, stderr: &Rc<Stderr>) -> Result<Exit> {
    use Command::*;
    match command {
        Sandbox(flags) => sandbox::run(&Stop::listen_to_all()?, &flags).await,
        Completions { shell } => print_completions(shell),
        Man(flags) => printed::run_man(&flags, CommandLine::command()),
        Schema(flags) => printed::run_schema(&flags),
        Mcp(asking) => mcp::run(App::new(&asking.service, stderr)?, &CommandLine::command()).await,
        Init(flags) => init::run(&flags, stderr),
        Trust(flags) => trust::run(&flags, stderr),
        AuditLogs(asking) => until_stopped(&asking, stderr, audit_logs::run).await,
        Doctor(asking) => until_stopped(&asking, stderr, doctor::run).await,
        Delivery(asking) => {
            let run =
                async |app: &App, flags: &_| counts::run(app, Metric::EventDelivery, flags).await;
            until_stopped(&asking, stderr, run).await
        }
        Ingestion(asking) => {
            let run =
                async |app: &App, flags: &_| counts::run(app, Metric::EventIngestion, flags).await;
            until_stopped(&asking, stderr, run).await
        }
        Compare(asking) => until_stopped(&asking, stderr, compare::run).await,
        Check(asking) => match &asking.flags.action {
            Some(check::CheckAction::Hold(action)) => {
                let mut service = asking.service.clone();
                action.select(&mut service);
                check::hold::run(&App::new(&service, stderr)?, action).await
            }
            Some(check::CheckAction::TestReceivers(flags)) => {
                let flags = flags.clone();
                let mut service = asking.service;
                flags.select(&mut service);
                let asking = Asking { flags, service };
                until_stopped(&asking, stderr, check::receivers::run).await
            }
            None => until_stopped(&asking, stderr, check::run).await,
        },
        Explain(asking) => until_stopped(&asking, stderr, explain::run).await,
        Watch(asking) => until_stopped(&asking, stderr, watch::run).await,
        Dashboard(asking) => {
            dashboard::run(&App::new(&asking.service, stderr)?, &asking.flags).await
        }
        Collect(asking) => to_a_safe_point(&asking, stderr, collect::run).await,
        Follow(asking) => to_a_safe_point(&asking, stderr, follow::run).await,
        Push(asking) => match &asking.flags.action {
            Some(push::PushAction::Drop(flags)) => push::drop_pending(flags, stderr).await,
            None => to_a_safe_point(&asking, stderr, push::run).await,
        },
        Serve(asking) => to_a_safe_point(&asking, stderr, serve::run).await,
        Run(asking) => {
            // Listens for SIGHUP before the configuration is read. Until then, this signal ends the process.
            let hangups = Hangups::listen()?;
            let run = async |app: &App, flags: &_| run::run(app, flags, hangups).await;
            to_a_safe_point(&asking, stderr, run).await
        }
    }
}

/// Runs a command that a signal may interrupt at any time.
async fn until_stopped<F: Args>(
    asking: &Asking<F>,
    stderr: &Rc<Stderr>,
    run: impl AsyncFnOnce(&App, &F) -> Result<Exit>,
) -> Result<Exit> {
    let app = App::new(&asking.service, stderr)?;
    app.stop.end_if_blocked()?;
    tokio::select! {
        exit = app.stop.asked() => Ok(exit),
        done = run(&app, &asking.flags) => done,
    }
}

/// Runs a command that handles signals itself: it stops at a point from which it can resume.
async fn to_a_safe_point<F: Args>(
    asking: &Asking<F>,
    stderr: &Rc<Stderr>,
    run: impl AsyncFnOnce(&App, &F) -> Result<Exit>,
) -> Result<Exit> {
    let app = App::new(&asking.service, stderr)?;
    app.stop.outlive_the_terminal()?;
    run(&app, &asking.flags).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    /// Returns all texts of the help about a command's flags, each with the flag or command that it describes.
    fn texts(command: &Command) -> Vec<(String, String)> {
        let of =
            |what: String, text: Option<&clap::builder::StyledStr>| Some((what, text?.to_string()));
        let name = command.get_name();
        let about = [
            command.get_about(),
            command.get_long_about(),
            command.get_after_help(),
        ];
        let about = about
            .into_iter()
            .filter_map(|text| of(name.to_owned(), text));
        let flags = command.get_arguments().flat_map(|arg: &Arg| {
            let what = format!("{name} --{}", arg.get_id());
            [
                of(what.clone(), arg.get_help()),
                of(what, arg.get_long_help()),
            ]
        });
        about.chain(flags.flatten()).collect()
    }

    fn commands() -> Vec<Command> {
        let mut whole = command_line();
        whole.build();
        whole
            .get_subcommands()
            .filter(|command| command.get_name() != "help")
            .cloned()
            .collect()
    }

    #[test]
    fn help_names_flags_that_the_command_has() {
        for command in commands() {
            let known: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            for (what, text) in texts(&command) {
                let words =
                    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
                for flag in words.filter_map(|word| word.strip_prefix("--")) {
                    assert!(
                        flag.is_empty() || known.contains(&flag),
                        "{what}: --{flag} in {text}"
                    );
                }
            }
        }
    }

    #[test]
    fn help_is_in_words_of_the_command() {
        for command in commands() {
            for (what, text) in texts(&command) {
                for word in [
                    "::",
                    "[`",
                    "service reference",
                    "host ",
                    "Some(",
                    "None",
                    "the option",
                ] {
                    assert!(!text.contains(word), "{what}: {word:?} in {text}");
                }
                let braces = text
                    .replace("{{sentence}}", "")
                    .replace("{\"text\": \"{{message}}\"}", "");
                assert!(
                    !braces.contains('{') || what.contains("proxy"),
                    "{what}: {text}"
                );
            }
        }
    }

    #[test]
    fn a_summary_is_one_sentence() {
        for command in commands() {
            for arg in command.get_arguments() {
                let text = arg.get_help().map(ToString::to_string).unwrap_or_default();
                let sentence = text.split(" [default").next().unwrap_or_default();
                let what = format!("{} --{}: {text}", command.get_name(), arg.get_id());
                assert!(!sentence.is_empty(), "{what}");
                assert!(!sentence.contains(". "), "{what}");
            }
        }
    }
}
