//! Why a call took nothing.

use core::fmt;
use core::time::Duration;

use crate::RetryAfter;

/// Why a call on a bucket took nothing.
///
/// "Not now" and "never" are different: only [`Insufficient`](Self::Insufficient) and [`Contended`](Self::Contended)
/// can succeed when tried again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum TryAcquireError {
    /// Fewer tokens are there than were asked for: wait for [`retry_after`](RetryAfter::duration), then try again.
    #[non_exhaustive]
    Insufficient {
        /// The tokens asked for.
        requested: u32,
        /// The tokens that were there.
        available: u32,
        /// How long to wait, worked out when asked.
        retry_after: RetryAfter,
    },
    /// More was asked for than the bucket can ever hold: ask for less, or raise the burst.
    ExceedsCapacity {
        /// The tokens asked for, or `u32::MAX` if that is fewer.
        requested: u32,
        /// The most that the bucket holds.
        capacity: u32,
    },
    /// Others changed the bucket at each of this call's [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) attempts: try again.
    Contended,
    /// Nobody has initialised the words, or something has erased them: they are zeros, or ones. Write
    /// [`State::to_words`](crate::State::to_words) into both first.
    Uninitialized,
    /// The bucket's level was [handed over](crate::TokenBucket::hand_over_at) to another bucket: use that.
    Moved,
}

impl TryAcquireError {
    /// Returns how long to wait before the same call can succeed; `None` if it never can.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use tollgate_core::{Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_second(4)));
    /// assert!(bucket.try_acquire_at(0, 4).is_ok());
    /// assert_eq!(bucket.try_acquire_at(0, 1).unwrap_err().retry_after(), Some(Duration::from_millis(250)));
    /// assert_eq!(bucket.try_acquire_at(0, 5).unwrap_err().retry_after(), None);
    /// ```
    #[inline]
    #[must_use]
    pub const fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Insufficient { retry_after, .. } => Some(retry_after.duration()),
            Self::Contended => Some(Duration::ZERO),
            Self::ExceedsCapacity { .. } | Self::Uninitialized | Self::Moved => None,
        }
    }
}

impl fmt::Display for TryAcquireError {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Insufficient { requested, available, retry_after } => write!(
                f,
                "not enough tokens: {requested} requested, {available} available; retry after {:?}",
                retry_after.duration()
            ),
            Self::ExceedsCapacity { requested, capacity } => {
                write!(f, "{requested} requested, but the bucket never holds more than {capacity}")
            }
            Self::Contended => f.write_str("others changed the bucket at every attempt; try again"),
            Self::Uninitialized => f.write_str("the words hold no bucket: they were not initialised, or were erased"),
            Self::Moved => f.write_str("the bucket was handed over to another"),
        }
    }
}

impl core::error::Error for TryAcquireError {}
