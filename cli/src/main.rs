//! The `tollgate` command: what flock(1) is for locks, for rates.

mod args;
mod demo;
mod exit;
mod limit;
mod rate;
mod run;
mod show;
mod signals;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::exit::Failure;

fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Nothing is left to tell where even this can't be printed.
            let _ = error.print();
            return if error.use_stderr() { exit::USAGE.into() } else { ExitCode::SUCCESS };
        }
    };
    let outcome = match args.command {
        Command::Run { take, command } => run::run(&take, &command),
        Command::Take { take } => run::take(&take),
        Command::Show { limit, json } => show::show(&limit, json),
        Command::Demo(demo) => demo::demo(&demo),
        Command::DemoWorker { file, seconds } => demo::work(&file, seconds),
    };
    outcome.unwrap_or_else(Failure::report)
}
