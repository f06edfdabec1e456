//! Why a limiter's file can't be made or used.

use std::io;
use std::path::{Path, PathBuf};

use tollgate_core::{Quota, QuotaError};

use crate::layout::{Flaw, version};
use crate::tell;

/// Why a file can't be made, opened or changed. Nothing was created or changed.
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
    /// The file has another quota than was asked for: ask for that, change it, or remove the file.
    QuotaMismatch {
        /// The path.
        path: PathBuf,
        /// The quota of the file.
        found: Quota,
        /// The quota asked for.
        expected: Quota,
    },
    /// The file belongs to another user, who could change the limit: allow it
    /// ([`Options::allow_owner`](crate::Options::allow_owner)), or choose another path.
    OtherOwner {
        /// The path.
        path: PathBuf,
        /// The owner's user id.
        found: u32,
        /// This process's effective user id.
        expected: u32,
    },
    /// Everybody can write to the file, and so change the limit: take that permission away, or choose another path.
    WorldWritable {
        /// The path.
        path: PathBuf,
        /// The permission bits.
        mode: u32,
    },
    /// The mode asked for lets everybody write to the file, or its owner not: give another.
    BadMode {
        /// The mode.
        mode: u32,
    },
    /// The file is on another machine, whose processes can't share memory with this one's: choose a local folder.
    Remote {
        /// The path.
        path: PathBuf,
        /// The kind of file system.
        kind: &'static str,
    },
    /// The file may only be read: get permission to write.
    ReadOnly {
        /// The path.
        path: PathBuf,
    },
    /// The file was removed or replaced since it was opened: open the path again.
    Gone {
        /// The path.
        path: PathBuf,
    },
    /// Another process is changing the quota, or holds a lock (flock(2)) on the file: try again, or end it.
    Busy {
        /// The path.
        path: PathBuf,
    },
    /// This process's time namespace is not its children's, so that its clock's offset can't be known: start a
    /// program in it, which then can.
    TimeNamespace,
}

impl FileError {
    pub(crate) fn io(doing: &'static str, path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, path: path.to_owned(), source: source.into() }
    }

    pub(crate) fn flaw(path: &Path, flaw: Flaw) -> Self {
        let error = match flaw {
            Flaw::Content(found) => Self::NotALimiter { path: path.to_owned(), found },
            Flaw::Version(found) => Self::Version { path: path.to_owned(), found, expected: version() },
            Flaw::Quota(source) => Self::BadQuota { path: path.to_owned(), source },
        };
        tell::unfit(path, &error);
        error
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
                    "{path}: the file's quota is {found}; asked for was {expected}; ask for that, change the file's, or \
                     remove the file"
                )
            }
            Self::OtherOwner { path, found, expected } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: the file belongs to user {found}, not to user {expected}; allow that owner, or choose another path"
                )
            }
            Self::WorldWritable { path, mode } => {
                let path = path.display();
                write!(
                    f,
                    "{path}: everybody can write to the file (mode {mode:04o}); chmod o-w it, or choose another path"
                )
            }
            Self::BadMode { mode } => {
                write!(
                    f,
                    "mode {mode:04o}: the owner must be able to read and write, others not to write; for example 0660"
                )
            }
            Self::Remote { path, kind } => {
                write!(
                    f,
                    "{}: the file is on {kind}, which other machines share; choose a local folder",
                    path.display()
                )
            }
            Self::ReadOnly { path } => write!(f, "{}: no permission to write to the file", path.display()),
            Self::Gone { path } => write!(f, "{}: the file was removed or replaced; open it again", path.display()),
            Self::Busy { path } => {
                write!(f, "{}: another process is changing the quota, or holds a lock on the file", path.display())
            }
            Self::TimeNamespace => {
                f.write_str("this process has left its time namespace and is not yet in another: start a program in it")
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
