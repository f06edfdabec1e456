//! Exit codes, as in sysexits.h, timeout(1) and the shell.

use std::io::{self, Write};
use std::process::ExitCode;

use tollgate::{AcquireError, FileError, TryAcquireError};

/// The command line was wrong, or asks for what can never be: EX_USAGE.
pub(crate) const USAGE: u8 = 64;
/// The file is not a limiter's, or damaged: EX_DATAERR.
const DATA: u8 = 65;
/// There is no such file: EX_NOINPUT.
const NO_INPUT: u8 = 66;
/// This place can't use the file: EX_UNAVAILABLE.
const UNAVAILABLE: u8 = 69;
/// The file can't be created: EX_CANTCREAT.
const CANT_CREATE: u8 = 73;
/// Reading or writing failed: EX_IOERR.
const IO: u8 = 74;
/// No token came in time: EX_TEMPFAIL.
pub(crate) const NOT_IN_TIME: u8 = 75;
/// Permission was refused: EX_NOPERM.
const NO_PERMISSION: u8 = 77;
/// The command exists, but can't be run; as a shell says.
const NOT_EXECUTABLE: u8 = 126;
/// The command was not found; as a shell says.
const NOT_FOUND: u8 = 127;

/// What to say and how to exit.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: u8,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into() }
    }

    pub(crate) fn permission(message: impl Into<String>) -> Self {
        Self { code: NO_PERMISSION, message: message.into() }
    }

    pub(crate) fn io(doing: &str, error: &io::Error) -> Self {
        Self { code: IO, message: format!("{doing}: {error}") }
    }

    /// What was read makes no sense.
    pub(crate) fn data(message: impl Into<String>) -> Self {
        Self { code: DATA, message: message.into() }
    }

    /// A file that can't be read.
    pub(crate) fn input(name: &str, error: &io::Error) -> Self {
        let code = match error.kind() {
            io::ErrorKind::NotFound => NO_INPUT,
            io::ErrorKind::PermissionDenied => NO_PERMISSION,
            _ => IO,
        };
        Self { code, message: format!("{name}: {error}") }
    }

    /// A file that can't be made.
    pub(crate) fn creation(name: &str, error: &dyn std::error::Error) -> Self {
        Self { code: CANT_CREATE, message: format!("{name}: {error}") }
    }

    /// An address that can't be served at.
    pub(crate) fn address(address: &str, error: &io::Error) -> Self {
        let (code, remedy) = match error.kind() {
            io::ErrorKind::InvalidInput => (USAGE, "write for example 127.0.0.1:9090"),
            io::ErrorKind::PermissionDenied => (NO_PERMISSION, "choose a port above 1023"),
            _ => (UNAVAILABLE, "choose an address of this machine, and a port that is free, or 0 for any"),
        };
        Self { code, message: format!("serving at {address}: {error}; {remedy}") }
    }

    /// A command that can't be started.
    pub(crate) fn command(name: &str, error: &io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        Self { code, message: format!("{name}: {error}") }
    }

    pub(crate) fn report(self) -> ExitCode {
        say(&plain(&self.message));
        self.code.into()
    }
}

/// Says something to whoever reads the standard error.
pub(crate) fn say(text: &str) {
    // Nothing is left to tell where even this can't be said.
    let _ = writeln!(io::stderr(), "tollgate: {text}");
}

/// Prints what was asked for; that nobody reads it all is no failure.
pub(crate) fn print(text: &str) -> Result<ExitCode, Failure> {
    let mut out = io::stdout();
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::io("writing", &error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// One line of text that does nothing to a terminal but to be seen: names may have anything in them.
pub(crate) fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        let code = match &error {
            FileError::NotFound { .. } => NO_INPUT,
            FileError::AlreadyExists { .. } => CANT_CREATE,
            FileError::QuotaMismatch { .. } | FileError::BadMode { .. } => USAGE,
            FileError::TimeNamespace | FileError::Remote { .. } | FileError::Busy { .. } | FileError::Gone { .. } => {
                UNAVAILABLE
            }
            FileError::OtherOwner { .. } | FileError::WorldWritable { .. } | FileError::ReadOnly { .. } => {
                NO_PERMISSION
            }
            FileError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => NO_PERMISSION,
            FileError::Io { doing: "creating", .. } => CANT_CREATE,
            FileError::Io { .. } => IO,
            _ => DATA,
        };
        let message = match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        };
        Self { code, message }
    }
}

/// A refusal of the limiter in `file`; `not_in_time` is the code of one that is not final.
pub(crate) fn refused(file: &std::path::Path, error: &AcquireError, not_in_time: u8) -> Failure {
    let code = match error {
        AcquireError::Refused(TryAcquireError::ExceedsCapacity { .. }) => USAGE,
        AcquireError::Refused(_) | AcquireError::Paused { .. } => not_in_time,
        AcquireError::ReadOnly => NO_PERMISSION,
        AcquireError::Removed | AcquireError::Replaced => UNAVAILABLE,
        _ => DATA,
    };
    Failure { code, message: format!("{}: {error}", file.display()) }
}
