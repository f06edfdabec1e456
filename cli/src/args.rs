//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as Group, Parser, Subcommand};

use crate::exit::NOT_IN_TIME;
use crate::rate::Rate;

/// One rate limit for all processes of a machine: what flock(1) is for locks.
///
/// The limit is a token bucket in a file. Every process that names the file shares it; there is no server, and
/// nothing to clean up.
#[derive(Debug, Parser)]
#[command(name = "tollgate", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Wait for tokens, then run a command.
    ///
    /// Exits as the command does, with 128 + N when signal N killed it; 75 when no token came in time; 64 for a wrong
    /// command line; 65 for a file that is not a limit; 73 when the file can't be created; 77 without permission;
    /// 126 or 127 when the command can't be run, which gives the tokens back.
    Run {
        #[command(flatten)]
        take: Cost,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Wait for tokens, and take them.
    ///
    /// Exits with 0 when it has taken them; else as `run` does.
    Take {
        #[command(flatten)]
        take: Cost,
    },
    /// Show the limit, how many tokens there are, and when the next one comes.
    Show {
        #[command(flatten)]
        limit: Limit,
        /// Print a JSON object; times in microseconds.
        #[arg(long)]
        json: bool,
    },
    /// Let several processes hammer one file, and count whether they stay within the limit.
    ///
    /// Exits with 0 only if, together, they were granted no more than burst + rate × time.
    Demo(Hammer),
    #[command(hide = true)]
    DemoWorker {
        #[arg(long)]
        file: PathBuf,
        #[arg(long)]
        seconds: u64,
    },
}

#[derive(Debug, Group)]
pub(crate) struct Limit {
    /// The file that holds the limit.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Group)]
pub(crate) struct Cost {
    #[command(flatten)]
    pub(crate) limit: Limit,
    /// Tokens per unit of time: 10/s, 0.5/s, 5/15s, 5000/h, 1/365d.
    ///
    /// Units are us, ms, s, m, h and d, or a multiple of one. Makes the file if there is none; must be the file's own
    /// rate if there is. Without it, the file must exist.
    #[arg(short, long, value_name = "N/UNIT", allow_hyphen_values = true)]
    pub(crate) rate: Option<Rate>,
    /// The most tokens that can be taken at once, 1 to 4294967295 [default: the tokens of one second, at least 1].
    #[arg(short, long, value_name = "TOKENS", requires = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst: Option<u32>,
    /// How many tokens to take.
    #[arg(short = 'n', long, value_name = "TOKENS", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) cost: u32,
    /// Give up when the tokens won't be there within this time; fractions count [default: wait for ever].
    #[arg(short, long, value_name = "SECONDS", allow_negative_numbers = true, value_parser = seconds)]
    pub(crate) wait: Option<Duration>,
    /// Give up when the tokens are not there now.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// The exit code when no token came in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = NOT_IN_TIME)]
    pub(crate) conflict_exit_code: u8,
}

impl Cost {
    pub(crate) fn timeout(&self) -> Duration {
        if self.no_wait { Duration::ZERO } else { self.wait.unwrap_or(Duration::MAX) }
    }
}

#[derive(Debug, Group)]
pub(crate) struct Hammer {
    /// How many processes.
    #[arg(short, long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) processes: u32,
    /// Tokens per unit of time.
    #[arg(short, long, value_name = "N/UNIT", default_value = "1000/s")]
    pub(crate) rate: Rate,
    /// The most tokens that can be taken at once.
    #[arg(short, long, value_name = "TOKENS", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst: u32,
    /// How long.
    #[arg(short, long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=86400))]
    pub(crate) seconds: u64,
}

fn seconds(text: &str) -> Result<Duration, String> {
    text.parse()
        .ok()
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| "expected seconds, for example 5 or 0.25".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    /// What clap checks of a command line's description, in builds for debugging alone.
    #[test]
    fn the_command_line_is_well_described() {
        super::Args::command().debug_assert();
    }
}
