//! The command line as a whole: its flags, its commands, and how it ends.

use std::ffi::OsString;
use std::io;
use std::rc::Rc;

use clap::{ArgAction, Args, Parser, Subcommand};
use tokio::task::LocalSet;

use crate::app::App;
use crate::commands::collect::CollectFlags;
use crate::commands::compare::CompareFlags;
use crate::commands::counts::CountFlags;
use crate::commands::sandbox::SandboxFlags;
use crate::commands::{collect, compare, delivery, ingestion, sandbox};
use crate::config::flags::ServiceFlags;
use crate::config::load::load;
use crate::exit::Exit;
use crate::failure::{Failure, Result};
use crate::host::stop::Stop;
use crate::voice::Voice;

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
  tallyfold delivery --by integration,reason --top 10
  tallyfold doctor                   says what is wrong, and what to do next
  tallyfold init                     writes a configuration with comments
  tallyfold sandbox -- tallyfold delivery      the same, on a made-up service
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

/// What is said on stderr.
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
    #[command(before_help = delivery::EXAMPLES)]
    Delivery(Asking<CountFlags>),
    /// Counts of events received
    #[command(before_help = ingestion::EXAMPLES)]
    Ingestion(Asking<CountFlags>),
    /// Counts of a long range, with a checkpoint
    #[command(before_help = collect::EXAMPLES)]
    Collect(Asking<CollectFlags>),
    /// What has changed since an earlier time
    #[command(before_help = compare::EXAMPLES)]
    Compare(Asking<CompareFlags>),
    /// A replica of the service on this machine, to try things on
    #[command(before_help = sandbox::EXAMPLES)]
    Sandbox(SandboxFlags),
}

/// The flags of a command that asks a service.
#[derive(Args, Debug)]
struct Asking<F: Args> {
    #[command(flatten)]
    flags: F,
    #[command(flatten)]
    service: ServiceFlags,
}

/// Reads the command line, runs the command, and says how it has ended.
pub(crate) fn run() -> Exit {
    let line = match CommandLine::try_parse_from(arguments()) {
        Ok(line) => line,
        Err(error) => {
            // Help and the version go to stdout, mistakes to stderr; a reader that has gone away is no failure.
            let _ = error.print();
            return if error.use_stderr() {
                Exit::Usage
            } else {
                Exit::Fine
            };
        }
    };
    let voice = Rc::new(Voice::new(line.manner.quiet, line.manner.verbose));
    match start(line.command, &voice) {
        Ok(exit) => exit,
        Err(failure) => {
            voice.error(&failure);
            if let Some(help) = &failure.help {
                voice.note(format_args!("try: {help}"));
            }
            failure.exit
        }
    }
}

fn arguments() -> impl Iterator<Item = OsString> {
    std::env::args_os()
}

fn start(command: Command, voice: &Rc<Voice>) -> Result<Exit> {
    let told = |error: io::Error| Failure::usage(format!("can't start: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(told)?;
    LocalSet::new().block_on(&runtime, dispatch(command, voice))
}

async fn dispatch(command: Command, voice: &Rc<Voice>) -> Result<Exit> {
    match command {
        Command::Sandbox(flags) => sandbox::run(&Stop::listen()?, &flags).await,
        Command::Delivery(asking) => {
            let app = app(&asking.service, voice)?;
            until_stopped(&app, delivery::run(&app, &asking.flags)).await
        }
        Command::Collect(asking) => {
            collect::run(&app(&asking.service, voice)?, &asking.flags).await
        }
        Command::Compare(asking) => {
            let app = app(&asking.service, voice)?;
            until_stopped(&app, compare::run(&app, &asking.flags)).await
        }
        Command::Ingestion(asking) => {
            let app = app(&asking.service, voice)?;
            until_stopped(&app, ingestion::run(&app, &asking.flags)).await
        }
    }
}

/// Runs a command that a signal ends at any moment.
async fn until_stopped(app: &App, work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    tokio::select! {
        exit = app.stop.asked() => Ok(exit),
        done = work => done,
    }
}

fn app(service: &ServiceFlags, voice: &Rc<Voice>) -> Result<App> {
    Ok(App {
        settings: load(service)?,
        voice: Rc::clone(voice),
        stop: Stop::listen()?,
    })
}
