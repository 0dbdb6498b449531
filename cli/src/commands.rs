//! The command line: its flags, its commands and its exit codes. Each command except `completions` has a file in `commands/`, and
//! larger commands also have a folder with the same name. The commands `delivery` and `ingestion` share the file `counts`; `man`
//! and `schema` share `printed`.

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
      The folder must be in zsh's fpath.
  tallyfold completions fish > ~/.config/fish/completions/tallyfold.fish
";

const EXIT_CODES: &str = "\
Exit codes:
  0  success
  1  check found something wrong; with --fail-above, too many events failed, or there were none
  2  invalid arguments, configuration or file
  3  the service refused the credentials or a token
  4  the service or the connection to it failed
  5  the service sent an invalid response
  6  some windows or clusters are missing; the others were written";

const EXAMPLES: &str = "\
Examples:
  tallyfold delivery --since 24h --by integration --format csv
  tallyfold delivery --by integration,event_name --top 10     where the most events are lost
  tallyfold check                                  for cron: exits with 1 if anything is wrong
  tallyfold explain --at 2026-01-31T03:00:00Z      which integration or source explains a change
  tallyfold dashboard                              a dashboard in the browser
  tallyfold serve --state totals.json              a scrape endpoint for Prometheus
  tallyfold doctor                                 diagnoses the set-up and suggests fixes
  tallyfold mcp                                    tools for an AI assistant, over stdin and stdout
  tallyfold init                                   writes a configuration with comments
  tallyfold sandbox -- tallyfold delivery          runs a command against the sandbox
";

/// The layout of the help: what the command does, examples, usage, flags, and a text at the end.
const HELP: &str = "\
{about-with-newline}
{before-help}{usage-heading} {usage}

{all-args}{after-help}";

/// Returns the command line. All commands use the layout [`HELP`], and ignore empty environment variables.
fn command_line() -> clap::Command {
    fn prepared(command: clap::Command) -> clap::Command {
        (command.help_template(HELP).mut_args(without_empty_variable)).mut_subcommands(prepared)
    }
    fn without_empty_variable(arg: Arg) -> Arg {
        let variable = arg.get_env().and_then(std::env::var_os);
        match variable.is_some_and(|value| value.is_empty()) {
            true => arg.env(None::<&'static str>),
            false => arg,
        }
    }
    prepared(CommandLine::command())
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
    /// Counts delivered, failed and filtered events
    #[command(before_help = counts::DELIVERY_EXAMPLES)]
    Delivery(AllFlags<counts::CountFlags>),
    /// Counts the events that arrived at the router
    #[command(before_help = counts::INGESTION_EXAMPLES, mut_arg("by", counts::of_ingestion))]
    Ingestion(AllFlags<counts::CountFlags>),
    /// Counts the events of a long range, and resumes from a checkpoint
    #[command(before_help = collect::EXAMPLES)]
    Collect(AllFlags<collect::CollectFlags>),
    /// Compares the counts of a range and an earlier range
    #[command(before_help = compare::EXAMPLES)]
    Compare(AllFlags<compare::CompareFlags>),
    /// Applies rules to counts, and reports what is wrong
    #[command(before_help = check::EXAMPLES, after_help = check::ENDING)]
    Check(AllFlags<check::CheckFlags>),
    /// Finds the integrations, events, reasons and sources that explain a change
    #[command(before_help = explain::EXAMPLES)]
    Explain(AllFlags<explain::ExplainFlags>),
    /// Shows a page of the audit logs
    #[command(name = "audit-logs", before_help = audit_logs::EXAMPLES, after_help = audit_logs::ENDING)]
    AuditLogs(AllFlags<audit_logs::AuditLogsFlags>),
    /// Diagnoses the set-up and suggests fixes
    #[command(before_help = doctor::EXAMPLES, after_help = doctor::ENDING)]
    Doctor(AllFlags<doctor::DoctorFlags>),
    /// Shows a live view of integrations, ranked by the events that they have lost
    #[command(before_help = watch::EXAMPLES)]
    Watch(AllFlags<watch::WatchFlags>),
    /// Serves a dashboard of event delivery, and opens it in the browser
    #[command(before_help = dashboard::EXAMPLES, after_help = dashboard::ENDING)]
    Dashboard(AllFlags<dashboard::DashboardFlags>),
    /// Prints each window's counts when it has ended, and later corrections
    #[command(before_help = follow::EXAMPLES)]
    Follow(AllFlags<follow::FollowCommand>),
    /// Sends counts to another system, once or whenever a window has ended
    ///
    /// Exits with 3 if the service or the destination refuses the credentials, with 4 if either of them fails, with 5 if the
    /// destination rejected counts or, with --follow, did not acknowledge them, and with 6 if windows or clusters are missing.
    /// After a signal, --follow exits with 0 if no other code applies.
    #[command(before_help = push::EXAMPLES, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
    Push(AllFlags<push::PushCommand>),
    /// Serves running totals to Prometheus, as a scrape endpoint
    #[command(before_help = serve::EXAMPLES)]
    Serve(AllFlags<serve::ServeCommand>),
    /// Serves totals, pushes counts, applies rules and serves the dashboard, in one process
    #[command(before_help = run::EXAMPLES, after_help = run::ENDING)]
    Run(AllFlags<run::RunCommand>),
    /// Serves the sandbox, a fake of the service for trying out commands, on this machine
    #[command(before_help = sandbox::EXAMPLES)]
    Sandbox(sandbox::SandboxFlags),
    /// Serves tools to an AI assistant, by the Model Context Protocol on stdin and stdout
    #[command(before_help = mcp::EXAMPLES, after_help = mcp::ENDING)]
    Mcp(AllFlags<mcp::McpFlags>),
    /// Prints the completion script of a shell
    #[command(before_help = COMPLETIONS)]
    Completions {
        /// The shell that uses the script
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

/// All flags of a command that queries a service.
#[derive(Args, Debug)]
struct AllFlags<F: Args> {
    /// The command's own flags.
    #[command(flatten)]
    own: F,
    #[command(flatten)]
    service: ServiceFlags,
}

/// Parses the command line, runs the command, and returns the exit code.
pub(crate) fn run() -> Exit {
    let matches = command_line().try_get_matches();
    let parsed = matches.and_then(|matches| CommandLine::from_arg_matches(&matches));
    let (stderr, ended) = match parsed {
        Ok(line) => {
            let VerbosityFlags { quiet, verbose } = line.verbosity;
            let stderr = Rc::new(Stderr::new(quiet, verbose));
            let ended = start(line.command, &stderr);
            (stderr, ended)
        }
        Err(error) if error.use_stderr() => {
            // Ignores errors: if stderr is closed, there is nowhere to report them.
            let _ = error.print();
            return Exit::Usage;
        }
        Err(help) => (Rc::new(Stderr::new(false, false)), print_help(&help)),
    };
    ended.unwrap_or_else(|failure| {
        stderr.error(&failure);
        stderr.suggest(&failure);
        failure.exit
    })
}

/// Prints help or the version, which clap returns as an error.
fn print_help(help: &clap::Error) -> Result<Exit> {
    let text = help.render();
    write_to(None, |screen, out| match screen.color {
        true => Ok(write!(out, "{}", text.ansi())?),
        false => Ok(write!(out, "{text}")?),
    })?;
    Ok(Exit::Fine)
}

fn start(command: Command, stderr: &Rc<Stderr>) -> Result<Exit> {
    survive_file_limits()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        // These threads write files and resolve names. Each takes memory, so there are only a few.
        .max_blocking_threads(4)
        .build()
        .map_err(|error| Failure::usage(format!("can't start: {error}")))?;
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
        Mcp(flags) => mcp::run(App::new(&flags.service, stderr)?, &CommandLine::command()).await,
        Init(flags) => init::run(&flags, stderr),
        Trust(flags) => trust::run(&flags, stderr),
        AuditLogs(flags) => until_stopped(&flags, stderr, audit_logs::run).await,
        Doctor(flags) => until_stopped(&flags, stderr, doctor::run).await,
        Delivery(flags) => {
            let run =
                async |app: &App, flags: &_| counts::run(app, Metric::EventDelivery, flags).await;
            until_stopped(&flags, stderr, run).await
        }
        Ingestion(flags) => {
            let run =
                async |app: &App, flags: &_| counts::run(app, Metric::EventIngestion, flags).await;
            until_stopped(&flags, stderr, run).await
        }
        Compare(flags) => until_stopped(&flags, stderr, compare::run).await,
        Check(flags) => match &flags.own.action {
            Some(check::CheckAction::Hold(action)) => {
                let mut service = flags.service.clone();
                action.select(&mut service);
                check::hold::run(&App::new(&service, stderr)?, action).await
            }
            Some(check::CheckAction::TestReceivers(test)) => {
                let own = test.clone();
                let mut service = flags.service;
                own.select(&mut service);
                let flags = AllFlags { own, service };
                until_stopped(&flags, stderr, check::receivers::run).await
            }
            None => until_stopped(&flags, stderr, check::run).await,
        },
        Explain(flags) => until_stopped(&flags, stderr, explain::run).await,
        Watch(flags) => until_stopped(&flags, stderr, watch::run).await,
        Dashboard(flags) => dashboard::run(&App::new(&flags.service, stderr)?, &flags.own).await,
        Collect(flags) => to_a_safe_point(&flags, stderr, collect::run).await,
        Follow(flags) => to_a_safe_point(&flags, stderr, follow::run).await,
        Push(flags) => match &flags.own.action {
            Some(push::PushAction::Drop(flags)) => push::drop_pending(flags, stderr).await,
            None => to_a_safe_point(&flags, stderr, push::run).await,
        },
        Serve(flags) => to_a_safe_point(&flags, stderr, serve::run).await,
        Run(flags) => {
            // Listens for SIGHUP before the configuration is read. Until then, this signal ends the process.
            let hangups = Hangups::listen()?;
            let run = async |app: &App, flags: &_| run::run(app, flags, hangups).await;
            to_a_safe_point(&flags, stderr, run).await
        }
    }
}

/// Runs a command that a signal may interrupt at any time.
async fn until_stopped<F: Args>(
    flags: &AllFlags<F>,
    stderr: &Rc<Stderr>,
    run: impl AsyncFnOnce(&App, &F) -> Result<Exit>,
) -> Result<Exit> {
    let app = App::new(&flags.service, stderr)?;
    app.stop.end_if_blocked()?;
    tokio::select! {
        exit = app.stop.asked() => Ok(exit),
        done = run(&app, &flags.own) => done,
    }
}

/// Runs a command that handles signals itself: it stops at a point from which it can resume.
async fn to_a_safe_point<F: Args>(
    flags: &AllFlags<F>,
    stderr: &Rc<Stderr>,
    run: impl AsyncFnOnce(&App, &F) -> Result<Exit>,
) -> Result<Exit> {
    let app = App::new(&flags.service, stderr)?;
    app.stop.outlive_the_terminal()?;
    run(&app, &flags.own).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, Command};

    /// Returns the texts of a command's help, each with the name of the command or flag that it describes.
    fn texts(command: &Command) -> Vec<(String, String)> {
        let of =
            |what: String, text: Option<&clap::builder::StyledStr>| Some((what, text?.to_string()));
        let name = command.get_name();
        let about = [command.get_about(), command.get_long_about(), command.get_after_help()];
        let about = about.into_iter().filter_map(|text| of(name.to_owned(), text));
        let flags = command.get_arguments().flat_map(|arg: &Arg| {
            let what = format!("{name} --{}", arg.get_id());
            [of(what.clone(), arg.get_help()), of(what, arg.get_long_help())]
        });
        about.chain(flags.flatten()).collect()
    }

    fn commands() -> Vec<Command> {
        let mut whole = command_line();
        whole.build();
        whole.get_subcommands().filter(|command| command.get_name() != "help").cloned().collect()
    }

    #[test]
    fn help_names_only_flags_that_the_command_has() {
        for command in commands() {
            let known: Vec<&str> = command.get_arguments().filter_map(Arg::get_long).collect();
            for (what, text) in texts(&command) {
                let words =
                    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'));
                for flag in words.filter_map(|word| word.strip_prefix("--")) {
                    assert!(flag.is_empty() || known.contains(&flag), "{what}: --{flag} in {text}");
                }
            }
        }
    }

    #[test]
    fn help_uses_no_words_of_the_library() {
        for command in commands() {
            for (what, text) in texts(&command) {
                for word in
                    ["::", "[`", "service reference", "host ", "Some(", "None", "the option"]
                {
                    assert!(!text.contains(word), "{what}: {word:?} in {text}");
                }
                let without_placeholders =
                    text.replace("{{sentence}}", "").replace("{\"text\": \"{{message}}\"}", "");
                assert!(
                    !without_placeholders.contains('{') || what.contains("proxy"),
                    "{what}: {text}"
                );
            }
        }
    }

    #[test]
    fn the_summary_of_a_flag_is_one_sentence() {
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
