//! The errors of files, as numbers.

use shared::{AcquireError, FileError};
use tollgate_c_core::tollgate_status;
use tollgate_c_core::tollgate_status::*;

pub(crate) fn of_call(error: AcquireError) -> tollgate_status {
    match error {
        AcquireError::Refused(refusal) => refusal.into(),
        AcquireError::Paused { .. } => TOLLGATE_PAUSED,
        AcquireError::ReadOnly => TOLLGATE_READ_ONLY,
        AcquireError::Damaged => TOLLGATE_DAMAGED,
        AcquireError::Removed => TOLLGATE_REMOVED,
        AcquireError::Replaced => TOLLGATE_REPLACED,
        _ => TOLLGATE_UNKNOWN,
    }
}

pub(crate) fn of_file(error: &FileError) -> tollgate_status {
    match error {
        FileError::NotFound { .. } => TOLLGATE_NOT_FOUND,
        FileError::AlreadyExists { .. } => TOLLGATE_ALREADY_EXISTS,
        FileError::Io { .. } => TOLLGATE_IO,
        FileError::NotAFile { .. } => TOLLGATE_NOT_A_FILE,
        FileError::NotALimiter { .. } => TOLLGATE_NOT_A_LIMITER,
        FileError::Version { .. } => TOLLGATE_VERSION,
        FileError::BadQuota { .. } => TOLLGATE_BAD_QUOTA,
        FileError::QuotaMismatch { .. } => TOLLGATE_QUOTA_MISMATCH,
        FileError::OtherOwner { .. } => TOLLGATE_OTHER_OWNER,
        FileError::WorldWritable { .. } => TOLLGATE_WORLD_WRITABLE,
        FileError::BadMode { .. } => TOLLGATE_BAD_MODE,
        FileError::Remote { .. } => TOLLGATE_REMOTE,
        FileError::ReadOnly { .. } => TOLLGATE_READ_ONLY,
        FileError::Gone { .. } => TOLLGATE_GONE,
        FileError::Busy { .. } => TOLLGATE_BUSY,
        FileError::TimeNamespace => TOLLGATE_TIME_NAMESPACE,
        _ => TOLLGATE_UNKNOWN,
    }
}
