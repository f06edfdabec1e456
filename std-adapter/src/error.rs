//! Why a limiter's file can't be made or used.

use std::io;
use std::path::{Path, PathBuf};

use tollgate_core::{Quota, QuotaError};

/// Why a file can't be made or used as a limiter. Nothing was created or changed.
#[derive(Debug)]
#[non_exhaustive]
pub enum FileError {
    /// There is no such file: create it, or correct the path.
    NotFound {
        /// The path.
        path: PathBuf,
    },
    /// Something has this name already: open it, or choose another path.
    AlreadyExists {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused: the source says why.
    Io {
        /// What was being done, to be followed by the path.
        doing: &'static str,
        /// The path.
        path: PathBuf,
        /// The refusal.
        source: io::Error,
    },
    /// The path names something else than a regular file, for example a symbolic link: name the file itself.
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it names.
        found: &'static str,
    },
    /// The file was not made by tollgate, or was damaged since: choose another path, or remove it.
    NotALimiter {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        found: String,
    },
    /// The file has another version of the format: use one version of tollgate for all its users.
    Version {
        /// The path.
        path: PathBuf,
        /// The version of the file.
        found: u32,
        /// The version of this library.
        expected: u32,
    },
    /// The file's quota is none: it was damaged; remove it.
    BadQuota {
        /// The path.
        path: PathBuf,
        /// What is wrong with it.
        source: QuotaError,
    },
    /// The file has another quota than was asked for: ask for that, or remove the file.
    QuotaMismatch {
        /// The path.
        path: PathBuf,
        /// The quota of the file.
        found: Quota,
        /// The quota asked for.
        expected: Quota,
    },
    /// The file counts its time from an earlier start of the machine, or another machine's: remove it.
    OtherBoot {
        /// The path.
        path: PathBuf,
        /// The boot id of the file.
        found: String,
        /// The boot id of this machine.
        expected: String,
    },
    /// This process is in a time namespace, where the clock differs from that of the machine's other processes: leave
    /// it.
    TimeNamespace {
        /// Seconds and nanoseconds by which the clock differs.
        offset: String,
    },
}

impl FileError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }
}

impl std::fmt::Display for FileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotFound { path } => write!(f, "{}: there is no such file", path.display()),
            Self::AlreadyExists { path } => write!(f, "{}: the file exists already", path.display()),
            Self::Io { doing, path, .. } => write!(f, "{doing} {}", path.display()),
            Self::NotAFile { path, found } => {
                write!(f, "{}: expected a regular file, found {found}; name the file itself", path.display())
            }
            Self::NotALimiter { path, found } => {
                write!(f, "{}: not a limiter's file: {found}; choose another path, or remove it", path.display())
            }
            Self::Version { path, found, expected } => {
                let path = path.display();
                write!(f, "{path}: the file's format is version {found}, this tollgate's is {expected}")
            }
            Self::BadQuota { path, source } => {
                write!(f, "{}: the file's quota is damaged: {source}; remove the file", path.display())
            }
            Self::QuotaMismatch { path, found, expected } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: the file's quota is {found}; asked for was {expected}; ask for that, or remove the file"
                )
            }
            Self::OtherBoot { path, found, expected } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: the file is from boot {found} of a machine, this is boot {expected}; remove the file"
                )
            }
            Self::TimeNamespace { offset } => {
                write!(f, "this time namespace's clock differs from the machine's by {offset} (seconds, nanoseconds)")
            }
        }
    }
}

impl std::error::Error for FileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
