//! The command line.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args as Group, Parser, Subcommand};

use crate::exit::NOT_IN_TIME;
use crate::rate::{Rate, span};

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
        take: Take,
        /// The command and its arguments.
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Wait for tokens, and take them.
    ///
    /// Exits with 0 when it has taken them; else as `run` does.
    Take {
        #[command(flatten)]
        take: Take,
    },
    /// Copy the standard input to the standard output, one line a token.
    ///
    /// Each line is written as soon as its token is there; their order stays.
    Pipe {
        #[command(flatten)]
        limit: Limit,
        #[command(flatten)]
        quota: Quota,
        /// Take a token for each byte of a line, instead of one for the line.
        #[arg(long)]
        bytes: bool,
    },
    /// Show the limit, how many tokens there are, and when the next one comes.
    Show {
        #[command(flatten)]
        limit: Limit,
        /// Print a JSON object; times in microseconds.
        #[arg(long)]
        json: bool,
    },
    /// Show the level, grants, refusals and processes, live; without a name, of all limits in the folder.
    ///
    /// On what is no terminal, or with --json, the object of `show --json` again and again, one a line for each limit.
    Watch {
        #[command(flatten)]
        limits: Limits,
        /// How often to look: 250ms, 1, 10s; at least 10ms.
        #[arg(long, value_name = "TIME", default_value = "250ms", value_parser = wait, allow_negative_numbers = true)]
        every: Duration,
        /// Print JSON objects, on a terminal as well.
        #[arg(long)]
        json: bool,
    },
    /// Print what was counted as a page for Prometheus; without a name, of all limits in the folder.
    Metrics {
        #[command(flatten)]
        limits: Limits,
        /// Serve the page over HTTP, under /metrics, until a signal; port 0 is any that is free.
        #[arg(long, value_name = "ADDRESS:PORT")]
        serve: Option<String>,
    },
    /// Set another rate and burst, for all processes from their next call on; or create the limit.
    ///
    /// The tokens that are there stay, as far as the new burst holds them.
    Set {
        #[command(flatten)]
        limit: Limit,
        /// Tokens per unit of time: 10/s, 0.5/s, 5/15s, 5000/h, 1/365d.
        #[arg(short, long, value_name = "N/UNIT", allow_hyphen_values = true)]
        rate: Rate,
        /// The most tokens that can be taken at once [default: the tokens of one second, at least 1].
        #[arg(short, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
        burst: Option<u32>,
    },
    /// Make all processes wait, or refuse, for some time from now.
    ///
    /// It never shortens a longer pause: `resume` ends one.
    Pause {
        #[command(flatten)]
        limit: Limit,
        /// How long: 30s, 1.5m, 2h; seconds if there is no unit.
        #[arg(value_name = "TIME", value_parser = wait, allow_negative_numbers = true)]
        time: Duration,
    },
    /// End a pause.
    Resume {
        #[command(flatten)]
        limit: Limit,
    },
    /// Give tokens back that were not used.
    Refund {
        #[command(flatten)]
        limit: Limit,
        /// How many tokens.
        #[arg(short = 'n', long, value_name = "TOKENS", default_value_t = 1, allow_negative_numbers = true)]
        cost: u32,
    },
    /// Fill the bucket.
    Reset {
        #[command(flatten)]
        limit: Limit,
    },
    /// Say what a quota would have granted and refused of the requests in a log.
    ///
    /// To choose a quota from real traffic before it is in force. Each line is a request of one token; its time stamp is the
    /// first field, in RFC 3339 or as seconds since 1970, or in brackets, as in the common log format of web servers.
    Replay(Replay),
    /// Let several processes hammer one file, and count whether they stay within the limit.
    ///
    /// Exits with 0 only if, together, they were granted no more than burst + rate × time.
    Demo(Hammer),
    /// Print the completions of a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Man {
        /// The folder.
        #[arg(default_value = ".")]
        folder: PathBuf,
    },
    #[command(hide = true)]
    DemoWorker {
        #[arg(long)]
        file: PathBuf,
        #[arg(long)]
        seconds: u64,
        #[arg(long)]
        fast_clock: bool,
    },
}

/// Where limits are, and whose they may be.
#[derive(Clone, Debug, Group)]
pub(crate) struct Where {
    /// The folder of named limits [default: tollgate in XDG_RUNTIME_DIR, or else tollgate-UID in /dev/shm].
    #[arg(long, value_name = "FOLDER", env = "TOLLGATE_DIR", hide_env_values = true)]
    pub(crate) dir: Option<PathBuf>,
    /// Use the limit of this user as well, by number; may be repeated. Yours and root's are used anyway.
    #[arg(long, value_name = "UID")]
    pub(crate) allow_owner: Vec<u32>,
    /// The permissions of a file that is created, in octal, whatever the umask.
    #[arg(long, value_name = "MODE", default_value = "0600", value_parser = octal)]
    pub(crate) mode: u32,
}

/// One limit.
#[derive(Debug, Group)]
#[group(skip)]
pub(crate) struct Limit {
    /// The file that holds the limit.
    #[arg(short, long, value_name = "FILE", required_unless_present = "name", conflicts_with = "name")]
    pub(crate) file: Option<PathBuf>,
    /// The name of a limit, in the folder of named limits.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// Some limits, or all that are in the folder of named limits.
#[derive(Clone, Debug, Group)]
#[group(skip)]
pub(crate) struct Limits {
    /// The file that holds a limit; may be repeated.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) file: Vec<PathBuf>,
    /// The name of a limit, in the folder of named limits; may be repeated.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    #[command(flatten)]
    pub(crate) place: Where,
}

/// The quota of a limit that may be created.
#[derive(Debug, Group)]
#[group(skip)]
pub(crate) struct Quota {
    /// Tokens per unit of time: 10/s, 0.5/s, 5/15s, 5000/h, 1/365d.
    ///
    /// Units are us, ms, s, m, h and d, or a multiple of one. Makes the file if there is none; must be the file's own
    /// rate if there is. Without it, the file must exist.
    #[arg(short, long, value_name = "N/UNIT", allow_hyphen_values = true)]
    pub(crate) rate: Option<Rate>,
    /// The most tokens that can be taken at once, 1 to 4294967295 [default: the tokens of one second, at least 1].
    #[arg(short, long, value_name = "TOKENS", requires = "rate", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst: Option<u32>,
}

/// What to take, and how long to wait for it.
#[derive(Debug, Group)]
#[group(skip)]
pub(crate) struct Take {
    /// The file that holds the limit.
    #[arg(short, long, value_name = "FILE", conflicts_with = "name", required_unless_present_any = ["name", "limit"])]
    pub(crate) file: Option<PathBuf>,
    /// The name of a limit, in the folder of named limits.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// A limit that exists, by name or by a path with a slash in it, and how many tokens to take of it; may be
    /// repeated: all are granted, or none.
    #[arg(long, value_name = "LIMIT=TOKENS", conflicts_with_all = ["file", "name", "rate", "burst", "cost"])]
    pub(crate) limit: Vec<LimitCost>,
    #[command(flatten)]
    pub(crate) quota: Quota,
    #[command(flatten)]
    pub(crate) place: Where,
    /// How many tokens to take.
    #[arg(short = 'n', long, value_name = "TOKENS", default_value_t = 1, allow_negative_numbers = true)]
    pub(crate) cost: u32,
    /// Give up when the tokens won't be there within this time: 5, 0.25, 30s, 2m [default: wait for ever].
    #[arg(short, long, value_name = "TIME", allow_negative_numbers = true, value_parser = wait)]
    pub(crate) wait: Option<Duration>,
    /// Give up when the tokens are not there now.
    #[arg(long, conflicts_with = "wait")]
    pub(crate) no_wait: bool,
    /// The exit code when no token came in time.
    #[arg(short = 'E', long, value_name = "CODE", default_value_t = NOT_IN_TIME)]
    pub(crate) conflict_exit_code: u8,
}

impl Take {
    pub(crate) fn timeout(&self) -> Duration {
        if self.no_wait { Duration::ZERO } else { self.wait.unwrap_or(Duration::MAX) }
    }
}

/// A limit and what to take of it.
#[derive(Clone, Debug)]
pub(crate) struct LimitCost {
    pub(crate) limit: String,
    pub(crate) cost: u32,
}

impl FromStr for LimitCost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts = text.rsplit_once('=').filter(|(limit, _)| !limit.is_empty());
        let (limit, cost) = parts.ok_or("expected a limit and a number of tokens, for example requests=1")?;
        let cost = cost.parse().map_err(|_| format!("{cost:?} is not a number of tokens up to {}", u32::MAX))?;
        Ok(Self { limit: limit.to_owned(), cost })
    }
}

/// A log, and the quota to try on it.
#[derive(Debug, Group)]
pub(crate) struct Replay {
    /// The logs [default: the standard input, also by the name -].
    #[arg(value_name = "LOG")]
    pub(crate) logs: Vec<PathBuf>,
    /// Tokens per unit of time: 10/s, 0.5/s, 5/15s, 5000/h, 1/365d.
    #[arg(short, long, value_name = "N/UNIT", allow_hyphen_values = true)]
    pub(crate) rate: Rate,
    /// The most tokens that can be taken at once [default: the tokens of one second, at least 1].
    #[arg(short, long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) burst: Option<u32>,
    /// Leave out lines without a time stamp, and count them, instead of giving up.
    #[arg(long)]
    pub(crate) skip: bool,
    /// Draw a chart into this file.
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    /// Print a JSON object; times in microseconds.
    #[arg(long)]
    pub(crate) json: bool,
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
    /// Read the time by the processor's counter: faster, and off by up to 50 µs, which the bound allows for.
    #[arg(long)]
    pub(crate) fast_clock: bool,
}

fn wait(text: &str) -> Result<Duration, String> {
    let seconds = || Duration::try_from_secs_f64(text.parse().ok()?).ok();
    seconds()
        .or_else(|| span(text))
        .ok_or_else(|| "expected seconds or a time with its unit, for example 5, 0.25, 30s or 2m".to_owned())
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8).map_err(|_| "expected an octal number, for example 0660".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    /// What clap checks of a command line's description, in builds for debugging alone.
    #[test]
    fn the_command_line_is_well_described() {
        super::Args::command().debug_assert();
    }

    #[test]
    fn times_have_units_or_are_seconds() {
        let millis = |text| wait(text).map(|time| time.as_millis());
        for (text, expected) in
            [("5", 5000), ("0.25", 250), ("30s", 30_000), ("1.5m", 90_000), ("2h", 7_200_000), ("0", 0), ("250ms", 250)]
        {
            assert_eq!(millis(text), Ok(expected), "{text}");
        }
        for text in ["", "-1", "s", "1y", "1e99", "nan", "-5s", "1 s"] {
            assert!(wait(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_limit_has_a_cost() {
        let parsed = |text: &str| text.parse::<LimitCost>().map(|limit| (limit.limit, limit.cost));
        assert_eq!(parsed("rpm=1"), Ok(("rpm".to_owned(), 1)));
        assert_eq!(parsed("/a=b/c=8"), Ok(("/a=b/c".to_owned(), 8)));
        for text in ["rpm", "rpm=", "=1", "rpm=-1", "rpm=4294967296", "rpm=1.5"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
