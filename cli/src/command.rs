//! The whole command line: its flags, its commands, and its exit codes.

use std::ffi::OsString;
use std::io;
use std::rc::Rc;

use clap::{ArgAction, Args, CommandFactory, Parser, Subcommand};
use tallyfold::Metric;
use tokio::task::LocalSet;

use crate::app::App;
use crate::commands::audit_logs::AuditLogsFlags;
use crate::commands::check::CheckFlags;
use crate::commands::collect::CollectFlags;
use crate::commands::compare::CompareFlags;
use crate::commands::completions::CompletionsFlags;
use crate::commands::counts::CountFlags;
use crate::commands::doctor::DoctorFlags;
use crate::commands::explain::ExplainFlags;
use crate::commands::follow::FollowCommand;
use crate::commands::man::ManFlags;
use crate::commands::push::{PushAction, PushCommand};
use crate::commands::sandbox::SandboxFlags;
use crate::commands::schema::SchemaFlags;
use crate::commands::serve::ServeCommand;
use crate::commands::watch::{self, WatchFlags};
use crate::commands::{
    audit_logs, check, collect, compare, completions, counts, doctor, explain, follow, init, man,
    push, sandbox, schema, serve, trust,
};
use crate::config::load::{ServiceFlags, load};
use crate::failure::{Exit, Failure, Result};
use crate::host::shutdown::Stop;
use crate::stderr::Stderr;

const ABOUT: &str = "Exact, grouped counts from an event router's metrics API";

const EXIT_CODES: &str = "\
Exit codes:
  0  all that was asked for was done       4  the service, or the way to it, failed
  1  what was checked is not well          5  the service sent what can't be counted
  2  arguments, configuration or a file    6  some windows or clusters are missing; the
     have to be changed here                  others were written
  3  credentials or tokens were refused";

const EXAMPLES: &str = "\
Examples:
  tallyfold delivery --since 24h --by integration --format csv
  tallyfold delivery --by integration,event_name --top 10     where most events are lost
  tallyfold check                                  a cron job: says what is wrong, and ends with 1
  tallyfold explain --at 2026-01-31T03:00:00Z      which integration or source explains a change
  tallyfold serve --state totals.json              a scrape endpoint for Prometheus
  tallyfold doctor                                 says what is wrong, and what to do next
  tallyfold init                                   writes a configuration with comments
  tallyfold sandbox -- tallyfold delivery          the same, on a made-up service
";

/// The command line.
#[derive(Debug, Parser)]
#[command(name = "tallyfold", version, about = ABOUT, before_help = EXAMPLES, after_help = EXIT_CODES, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    manner: MannerFlags,
    #[command(subcommand)]
    command: Command,
}

/// How much is written to stderr.
#[derive(Args, Clone, Copy, Debug)]
struct MannerFlags {
    /// Says nothing on stderr but errors
    #[arg(long, short, global = true, conflicts_with = "verbose")]
    quiet: bool,
    /// Says on stderr what each request has led to
    #[arg(long, short, global = true, action = ArgAction::SetTrue)]
    verbose: bool,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Counts of events sent to integrations
    #[command(before_help = counts::DELIVERY_EXAMPLES)]
    Delivery(Asking<CountFlags>),
    /// Counts of events received
    #[command(before_help = counts::INGESTION_EXAMPLES)]
    Ingestion(Asking<CountFlags>),
    /// Counts of a long range, with a checkpoint
    #[command(before_help = collect::EXAMPLES)]
    Collect(Asking<CollectFlags>),
    /// What has changed since an earlier time
    #[command(before_help = compare::EXAMPLES)]
    Compare(Asking<CompareFlags>),
    /// Applies rules to counts, and tells what is wrong
    #[command(before_help = check::EXAMPLES, after_help = check::ENDING)]
    Check(Asking<CheckFlags>),
    /// Which integration, event, reason or source explains a change
    #[command(before_help = explain::EXAMPLES)]
    Explain(Asking<ExplainFlags>),
    /// A page of the audit logs
    #[command(name = "audit-logs", before_help = audit_logs::EXAMPLES, after_help = audit_logs::ENDING)]
    AuditLogs(Asking<AuditLogsFlags>),
    /// Says what is wrong, and what to do next
    #[command(before_help = doctor::EXAMPLES, after_help = doctor::ENDING)]
    Doctor(Asking<DoctorFlags>),
    /// A live view: integrations ranked by the events they have lost
    #[command(before_help = watch::EXAMPLES)]
    Watch(Asking<WatchFlags>),
    /// Counts of windows as they close, and their corrections
    #[command(before_help = follow::EXAMPLES)]
    Follow(Asking<FollowCommand>),
    /// Sends counts to another system, once or as windows close
    ///
    /// Ends with 3 if the receiver refuses the credentials, with 4 if it fails, and with 5 if it has rejected counts, or if nobody
    /// knows whether it took them. After a signal, --follow ends with 0.
    #[command(before_help = push::EXAMPLES, subcommand_negates_reqs = true, args_conflicts_with_subcommands = true)]
    Push(Asking<PushCommand>),
    /// Serves running totals to Prometheus, as a scrape endpoint
    #[command(before_help = serve::EXAMPLES)]
    Serve(Asking<ServeCommand>),
    /// A replica of the service on this machine, to try things on
    #[command(before_help = sandbox::EXAMPLES)]
    Sandbox(SandboxFlags),
    /// What a shell needs to complete the command line
    #[command(before_help = completions::EXAMPLES)]
    Completions(CompletionsFlags),
    /// Manual pages
    #[command(before_help = man::EXAMPLES)]
    Man(ManFlags),
    /// Prints the JSON Schema of what a command prints as JSON
    #[command(before_help = schema::EXAMPLES)]
    Schema(SchemaFlags),
    /// Writes a configuration with comments
    #[command(before_help = init::EXAMPLES)]
    Init(init::InitFlags),
    /// Lets commands use the configuration of a working folder
    ///
    /// A configuration names secrets and the addresses that they are sent to. So a tallyfold.toml that commands find in the
    /// working folder is used only if you have trusted it. After any change, it has to be trusted again. A file named with
    /// --config needs no trust.
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
    let line = match CommandLine::try_parse_from(arguments()) {
        Ok(line) => line,
        Err(error) => {
            // Help and the version go to stdout, usage errors to stderr. A closed pipe is not a failure.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Fine
            };
        }
    };
    let stderr = Rc::new(Stderr::new(line.manner.quiet, line.manner.verbose));
    match start(line.command, &stderr) {
        Ok(exit) => exit,
        Err(failure) => {
            stderr.error(&failure);
            if let Some(help) = &failure.help {
                stderr.note(format_args!("try: {help}"));
            }
            failure.exit
        }
    }
}

fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

fn start(command: Command, stderr: &Rc<Stderr>) -> Result<Exit> {
    let as_failure = |error: io::Error| Failure::usage(format!("can't start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(as_failure)?;
    let ended = LocalSet::new().block_on(&runtime, dispatch(command, stderr));
    // A DNS lookup may still be running; this does not wait for it.
    runtime.shutdown_background();
    ended
}

async fn dispatch(command: Command, stderr: &Rc<Stderr>) -> Result<Exit> {
    match command {
        Command::Sandbox(flags) => sandbox::run(&Stop::listen()?, &flags).await,
        Command::Completions(flags) => completions::run(flags, CommandLine::command()),
        Command::Man(flags) => man::run(&flags, CommandLine::command()),
        Command::AuditLogs(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, audit_logs::run(&app, &asking.flags)).await
        }
        Command::Doctor(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, doctor::run(&app, &asking.flags)).await
        }
        Command::Delivery(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(
                &app,
                counts::run(&app, Metric::EventDelivery, &asking.flags),
            )
            .await
        }
        Command::Collect(asking) => {
            collect::run(&app(&asking.service, stderr)?, &asking.flags).await
        }
        Command::Compare(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, compare::run(&app, &asking.flags)).await
        }
        Command::Check(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, check::run(&app, &asking.flags)).await
        }
        Command::Explain(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, explain::run(&app, &asking.flags)).await
        }
        Command::Ingestion(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(
                &app,
                counts::run(&app, Metric::EventIngestion, &asking.flags),
            )
            .await
        }
        Command::Watch(asking) => {
            let app = app(&asking.service, stderr)?;
            until_stopped(&app, watch::run(&app, &asking.flags)).await
        }
        Command::Schema(flags) => schema::run(&flags),
        Command::Init(flags) => init::run(&flags, stderr),
        Command::Trust(flags) => trust::run(&flags, stderr),
        // After a signal, these stop by themselves at a point from which they can resume.
        Command::Follow(asking) => follow::run(&app(&asking.service, stderr)?, &asking.flags).await,
        Command::Push(asking) => match &asking.flags.action {
            Some(PushAction::Drop(flags)) => push::drop::run(flags, stderr).await,
            None => push::run(&app(&asking.service, stderr)?, &asking.flags).await,
        },
        Command::Serve(asking) => serve::run(&app(&asking.service, stderr)?, &asking.flags).await,
    }
}

/// Runs a command that a signal can end at any moment.
async fn until_stopped(app: &App, work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    tokio::select! {
        exit = app.stop.asked() => Ok(exit),
        done = work => done,
    }
}

fn app(service: &ServiceFlags, stderr: &Rc<Stderr>) -> Result<App> {
    let settings = load(service)?;
    if let Some(file) = &settings.file {
        stderr.detail(format_args!("configuration: {}", file.display()));
    }
    Ok(App {
        settings,
        stderr: Rc::clone(stderr),
        stop: Stop::listen()?,
    })
}
