//! Another quota, and pauses, for everybody.

use std::fs::TryLockError;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tollgate_core::{Quota, TryAcquireError};

use super::SharedRateLimiter;
use crate::error::FileError;
use crate::file;
use crate::generations::{Generation, Unchanged};
use crate::layout::{Flaw, PAUSE};
use crate::wait::{Refusal, retry_for};
use crate::{AcquireError, Policy};

/// How long a change of the quota waits for another one to end.
const PATIENCE: Duration = Duration::from_secs(5);

impl SharedRateLimiter {
    /// Sets another quota, which every process goes by at its next call. The level stays, but for what the new burst
    /// does not hold, and tokens accrue at the old rate until now.
    ///
    /// A process that is killed here has set it or not. Two that do this at the same time take turns.
    ///
    /// # Errors
    ///
    /// [`FileError::ReadOnly`]; [`FileError::Gone`] if the file was removed or replaced; [`FileError::Busy`] if
    /// another process has been at it for five seconds, or holds a lock (flock(2)) on the file;
    /// [`FileError::NotALimiter`] if the file is damaged. Nothing was changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_hour(10)?)?;
    /// let other = SharedRateLimiter::open(&path)?;
    /// limiter.try_acquire(3)?;
    /// limiter.set_quota(Quota::per_hour(1000)?)?;
    /// assert_eq!(other.try_acquire(1)?, 6); // the level stays
    /// assert_eq!(other.quota(), Quota::per_hour(1000)?);
    /// assert!(other.try_acquire(7).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn set_quota(&self, quota: Quota) -> Result<(), FileError> {
        let path = || self.path.clone();
        if self.is_read_only() {
            return Err(FileError::ReadOnly { path: path() });
        }
        let Some(place) = &self.place else { return self.set_quota_in_memory(quota) };
        // A lock is held by an opening of the file, not by a process: this one has its own.
        let file = file::open_again(&self.path, &place.identity)?;
        retry_for(PATIENCE, || file.try_lock()).map_err(|error| match error {
            TryLockError::WouldBlock => FileError::Busy { path: path() },
            TryLockError::Error(error) => FileError::io("locking", &self.path, error),
        })?;
        let outcome = self.succeed(quota);
        // Closing the file is not enough, where a child that was forked meanwhile has it as well.
        let _ = file.unlock();
        outcome
    }

    /// The same for a limiter without a file. A child that was forked while its parent did this finds it busy for ever.
    fn set_quota_in_memory(&self, quota: Quota) -> Result<(), FileError> {
        let lock = || match self.setting.try_lock() {
            Ok(lock) => Ok(lock),
            // Whoever panicked there has set the quota or not.
            Err(std::sync::TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(std::sync::TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
        };
        let _lock = retry_for(PATIENCE, lock).map_err(|_| FileError::Busy { path: self.path.clone() })?;
        self.succeed(quota)
    }

    fn succeed(&self, quota: Quota) -> Result<(), FileError> {
        let path = || self.path.clone();
        match retry_for(PATIENCE, || Generation::succeed(&self.page, self.clock, quota)) {
            Ok(generation) => {
                self.learn(generation);
                Ok(())
            }
            Err(Unchanged::Flaw(flaw)) => Err(FileError::flaw(&self.path, flaw)),
            Err(Unchanged::Refused(TryAcquireError::Contended)) => Err(FileError::Busy { path: path() }),
            Err(Unchanged::Refused(_)) => {
                Err(FileError::flaw(&self.path, Flaw::Content("its state was erased".to_owned())))
            }
        }
    }

    /// Steers the quota by a policy, once the limiter is in a [`SidecarBox`](crate::SidecarBox).
    #[must_use]
    pub fn with_policy(mut self, policy: impl Policy + 'static) -> Self {
        self.policy = Arc::new(policy);
        self
    }

    pub(crate) fn policy(&self) -> &dyn Policy {
        &*self.policy
    }

    /// Makes all processes refuse, or wait, for at least `wait` from now: for example when a server says 429 with
    /// Retry-After to one of them. Tokens accrue meanwhile. It never shortens a longer pause;
    /// [`resume`](Self::resume) ends one.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](AcquireError::ReadOnly), and [`Damaged`](AcquireError::Damaged). Nothing was changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{AcquireError, Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_second(10)?)?;
    /// limiter.pause_for(Duration::from_secs(30))?;
    /// limiter.pause_for(Duration::from_secs(1))?;
    /// assert!(matches!(limiter.try_acquire(1), Err(AcquireError::Paused { .. })));
    /// assert!(limiter.paused() > Duration::from_secs(20));
    /// limiter.resume()?;
    /// assert_eq!(limiter.try_acquire(1)?, 9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn pause_for(&self, wait: Duration) -> Result<(), AcquireError> {
        self.check_writable()?;
        call!(self, bucket => bucket.state())?;
        let micros = u64::try_from(wait.as_nanos().div_ceil(1000)).unwrap_or(u64::MAX);
        self.page.cell(PAUSE).raise(self.now_micros().saturating_add(micros));
        Ok(())
    }

    /// Pauses as [`pause_for`](Self::pause_for) does, until the system's clock shows `time`: by that clock as it is
    /// now.
    ///
    /// # Errors
    ///
    /// As for [`pause_for`](Self::pause_for).
    pub fn pause_until(&self, time: SystemTime) -> Result<(), AcquireError> {
        #[allow(clippy::disallowed_methods, reason = "the time asked for is the system clock's")]
        let now = SystemTime::now();
        self.pause_for(time.duration_since(now).unwrap_or_default())
    }

    /// Ends a pause.
    ///
    /// # Errors
    ///
    /// As for [`pause_for`](Self::pause_for).
    pub fn resume(&self) -> Result<(), AcquireError> {
        self.check_writable()?;
        call!(self, bucket => bucket.state())?;
        self.page.cell(PAUSE).store(0);
        Ok(())
    }

    /// Returns how long a pause still lasts: zero if there is none.
    #[must_use]
    pub fn paused(&self) -> Duration {
        self.pause_left(self.now_micros())
    }
}

/// Another setter is at it: it takes no longer than this, unless it has been stopped.
impl Refusal for TryLockError {
    fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::WouldBlock).then_some(Duration::from_millis(5))
    }
}

/// Others took from the bucket at each attempt.
impl Refusal for Unchanged {
    fn retry_after(&self) -> Option<Duration> {
        matches!(self, Self::Refused(TryAcquireError::Contended)).then_some(Duration::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::State;

    use super::*;
    use crate::layout::{quota_words, slot};

    /// More changes than there are slots, by one of two limiters; the other sleeps through all of them.
    #[test]
    fn quotas_follow_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let limiter = SharedRateLimiter::create(&path, Quota::per_hour(100).unwrap()).unwrap();
        let sleeper = SharedRateLimiter::open(&path).unwrap();
        for change in 1..=40 {
            limiter.set_quota(Quota::per_hour(100 + change).unwrap()).unwrap();
            assert_eq!(limiter.try_acquire(1), Ok(100 - change));
            assert_eq!(limiter.quota(), Quota::per_hour(100 + change).unwrap());
            if change % 17 == 0 {
                assert_eq!(sleeper.available(), Ok(100 - change));
            }
        }
        assert_eq!(sleeper.try_acquire(1), Ok(59));
        assert_eq!(sleeper.refund(1), Ok(()));
        assert_eq!(SharedRateLimiter::open(&path).unwrap().available(), Ok(60));
        // The same again changes nothing.
        sleeper.set_quota(Quota::per_hour(140).unwrap()).unwrap();
        assert_eq!(limiter.available(), Ok(60));
        // A smaller burst takes what is above it; a larger one gives nothing.
        limiter.set_quota(Quota::per_hour(20).unwrap()).unwrap();
        limiter.set_quota(Quota::per_hour(1000).unwrap()).unwrap();
        assert_eq!(sleeper.available(), Ok(20));
    }

    /// A limiter sleeps until its slot is in use again, by another generation.
    #[test]
    fn a_slot_that_is_used_again_is_another() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let limiter = SharedRateLimiter::create(&path, Quota::per_hour(100).unwrap()).unwrap();
        let sleeper = SharedRateLimiter::open(&path).unwrap();
        for change in 1..=16 {
            limiter.set_quota(Quota::per_hour(100 * (1 + change)).unwrap()).unwrap();
        }
        assert_eq!(slot(0).state, slot(16).state);
        limiter.reset().unwrap();
        assert_eq!(sleeper.try_acquire(100), Ok(1600));
        // More than the burst that was known, in the next slot, which was in use before.
        limiter.set_quota(Quota::per_hour(5000).unwrap()).unwrap();
        assert_eq!(sleeper.try_acquire(1500), Ok(100));
        assert!(sleeper.try_acquire(5001).is_err());
    }

    /// A setter that was killed before it sealed the old generation has changed nothing.
    #[test]
    fn half_a_change_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let limiter = SharedRateLimiter::create(&path, Quota::per_hour(100).unwrap()).unwrap();
        let next = limiter.known.get().unwrap().number + 1;
        let slot = slot(next);
        limiter.page.cell(slot.number).store(next);
        let seven = Quota::per_hour(7).unwrap();
        for (at, word) in slot.quota.into_iter().zip(quota_words(&seven)) {
            limiter.page.cell(at).store(word);
        }
        let [state, horizon] = State::new(&seven, 7, seven.moment(0)).to_words();
        limiter.page.cell(slot.state).store(state);
        limiter.page.cell(slot.horizon).store(horizon);
        assert_eq!(limiter.try_acquire(1), Ok(99));
        assert_eq!(SharedRateLimiter::open(&path).unwrap().available(), Ok(99));
        limiter.set_quota(Quota::per_hour(50).unwrap()).unwrap();
        assert_eq!(limiter.available(), Ok(50));
    }
}
