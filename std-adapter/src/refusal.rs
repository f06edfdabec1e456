//! Why a call on a limiter took nothing.

use std::time::Duration;

use tollgate_core::TryAcquireError;

/// Why a call on a [`SharedRateLimiter`](crate::SharedRateLimiter) took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AcquireError {
    /// The bucket refused: it says whether and when to try again.
    Refused(TryAcquireError),
    /// Somebody has paused the limit: wait, it says how long.
    #[non_exhaustive]
    Paused {
        /// How long to wait: for the end of the pause, and for the tokens.
        retry_after: Duration,
    },
    /// The file may only be read: get permission to write.
    ReadOnly,
    /// The file was truncated, overwritten or erased: remove it, create another, and open that.
    Damaged,
    /// There is no file of this name any more: create another, and open that.
    Removed,
    /// Another file has this name now: [`reopen`](crate::SharedRateLimiter::reopen) it.
    Replaced,
}

impl AcquireError {
    /// Returns how long to wait before the same call can succeed; `None` if it never can.
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Refused(refusal) => refusal.retry_after(),
            Self::Paused { retry_after } => Some(*retry_after),
            Self::ReadOnly | Self::Damaged | Self::Removed | Self::Replaced => None,
        }
    }
}

impl From<TryAcquireError> for AcquireError {
    #[inline]
    fn from(error: TryAcquireError) -> Self {
        match error {
            // Other words than this library's.
            TryAcquireError::Uninitialized | TryAcquireError::Moved => Self::Damaged,
            error => Self::Refused(error),
        }
    }
}

impl std::fmt::Display for AcquireError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Refused(refusal) => refusal.fmt(f),
            Self::Paused { retry_after } => write!(f, "the limit is paused; retry after {retry_after:?}"),
            Self::ReadOnly => f.write_str("no permission to write to the file"),
            Self::Damaged => f.write_str("the file was damaged while it was in use; remove it, and create another"),
            Self::Removed => f.write_str("the file was removed while it was in use; create another"),
            Self::Replaced => f.write_str("the file was replaced while it was in use; open it again"),
        }
    }
}

impl std::error::Error for AcquireError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        None
    }
}
