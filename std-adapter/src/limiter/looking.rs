//! What is there, and when there is more.

use std::time::Duration;

use tollgate_core::{Clock, Quota, TryAcquireError};

use super::SharedRateLimiter;
use crate::AcquireError;
use crate::generations::Generation;

/// Looking.
impl SharedRateLimiter {
    /// Returns how many tokens are there. Stale when it returns.
    ///
    /// # Errors
    ///
    /// [`Damaged`](AcquireError::Damaged), and [`Refused`](AcquireError::Refused) if others changed the bucket at
    /// each attempt.
    pub fn available(&self) -> Result<u32, AcquireError> {
        self.available_at(self.now_micros())
    }

    /// Returns how many tokens are there at the time `now`, from [`now_micros`](Self::now_micros).
    ///
    /// # Errors
    ///
    /// As for [`available`](Self::available).
    pub fn available_at(&self, now: u64) -> Result<u32, AcquireError> {
        call!(self, bucket => bucket.available_at(now))
    }

    /// Returns the shortest wait after which [`try_acquire(n)`](Self::try_acquire) can succeed: zero if it can now.
    ///
    /// # Errors
    ///
    /// [`Refused`](AcquireError::Refused) with
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity) if it never can; else as for
    /// [`available`](Self::available).
    pub fn retry_after(&self, n: u32) -> Result<Duration, AcquireError> {
        self.retry_after_at(self.now_micros(), n)
    }

    /// Returns the shortest wait from the time `now`, from [`now_micros`](Self::now_micros).
    ///
    /// # Errors
    ///
    /// As for [`retry_after`](Self::retry_after).
    pub fn retry_after_at(&self, now: u64, n: u32) -> Result<Duration, AcquireError> {
        let wait = call!(self, bucket => bucket.retry_after_at(now, n))?;
        // No tokens are never refused.
        Ok(if n == 0 { wait } else { wait.max(self.pause_left(now)) })
    }

    /// Returns the quota that is in force.
    #[must_use]
    pub fn quota(&self) -> Quota {
        // A damaged file has the quota that it had.
        let latest = Generation::latest(&self.page).ok().or_else(|| self.known.get());
        latest.map_or_else(|| self.known.quota(), |generation| generation.quota)
    }

    /// Returns the time of the file, in microseconds: that of [`MachineClock`](crate::MachineClock), but for
    /// another time namespace, or after a restart.
    #[inline]
    #[must_use]
    pub fn now_micros(&self) -> u64 {
        self.clock.now_micros()
    }
}
