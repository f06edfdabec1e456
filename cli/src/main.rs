//! The `tollgate` command: what flock(1) is for locks, for rates.

mod args;
mod demo;
mod exit;
mod generate;
mod limit;
mod look;
mod metrics;
mod pipe;
mod place;
mod rate;
mod replay;
mod run;
mod seen;
mod show;
mod signals;
mod steer;
mod watch;

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
        Command::Pipe { limit, quota, bytes } => pipe::pipe(&limit, &quota, bytes),
        Command::Show { limit, json } => show::show(&limit, json),
        Command::Watch { limits, every, json } => watch::watch(&limits, every, json),
        Command::Metrics { limits, serve } => metrics::metrics(&limits, serve.as_deref()),
        Command::Set { limit, rate, burst } => steer::set(&limit, rate, burst),
        Command::Pause { limit, time } => steer::pause(&limit, time),
        Command::Resume { limit } => steer::resume(&limit),
        Command::Refund { limit, cost } => steer::refund(&limit, cost),
        Command::Reset { limit } => steer::reset(&limit),
        Command::Replay(replay) => replay::replay(&replay),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { folder } => generate::man(&folder),
        Command::Demo(demo) => demo::demo(&demo),
        Command::DemoWorker { file, seconds, fast_clock } => demo::work(&file, seconds, fast_clock),
    };
    outcome.unwrap_or_else(Failure::report)
}
