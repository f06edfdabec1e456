//! Taking and giving back.

use std::time::Duration;

use tollgate_core::{Count, GiveBack, Permit, TryAcquireError};

use super::{Access, SharedRateLimiter};
use crate::AcquireError;
use crate::wait::retry_for;

/// Taking and giving back.
impl SharedRateLimiter {
    /// Takes `n` tokens and returns how many remain, or takes nothing. Never waits.
    ///
    /// The tokens that remain may have changed by the time the call returns.
    ///
    /// # Errors
    ///
    /// [`Refused`](AcquireError::Refused): it says whether and when to try again. [`Paused`](AcquireError::Paused):
    /// it says when. [`ReadOnly`](AcquireError::ReadOnly) and [`Damaged`](AcquireError::Damaged): never. Nothing
    /// was taken.
    #[inline(always)]
    pub fn try_acquire(&self, n: u32) -> Result<u32, AcquireError> {
        self.try_acquire_at(self.now_micros(), n)
    }

    /// Takes as [`try_acquire`](Self::try_acquire) does, at the time `now`, from [`now_micros`](Self::now_micros):
    /// one reading for several calls.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline(always)]
    pub fn try_acquire_at(&self, now: u64, n: u32) -> Result<u32, AcquireError> {
        match &self.access {
            Access::Counted(table) => self.attempt(now, n, |granted| self.note(table, now, n, granted)),
            Access::Uncounted => self.attempt(now, n, |_| {}),
            Access::ReadOnly => Err(AcquireError::ReadOnly),
        }
    }

    /// Takes, and notes whether it was granted.
    #[inline(always)]
    fn attempt(&self, now: u64, n: u32, note: impl Fn(bool)) -> Result<u32, AcquireError> {
        if let Err(error) = self.check_pause(now, n) {
            note_outcome(&Err::<(), _>(error), note);
            return Err(error);
        }
        // The first attempt in line, on a bucket that need not be anywhere in memory.
        let first = match self.known_bucket() {
            Some(bucket) => bucket.try_acquire_once_at(now, n),
            None => Err(TryAcquireError::Moved),
        };
        match first {
            Ok(left) => {
                note(true);
                Ok(left)
            }
            Err(refusal @ TryAcquireError::Insufficient { .. }) => {
                note(false);
                Err(AcquireError::Refused(refusal))
            }
            Err(first) => {
                if first == TryAcquireError::Contended {
                    self.count(Count::ContendedCalls, 1);
                }
                let outcome = self.try_acquire_again(now, n);
                note_outcome(&outcome, note);
                outcome
            }
        }
    }

    /// Takes, and counts nothing: for a call that is counted by [`note_call`](Self::note_call) when it ends.
    pub(crate) fn take_unnoted(&self, now: u64, n: u32) -> Result<u32, AcquireError> {
        self.check_writable()?;
        self.attempt(now, n, |_| {})
    }

    /// Gives back what a call took that is not counted.
    pub(crate) fn give_back_unnoted(&self, n: u32) -> Result<(), AcquireError> {
        call!(self, bucket => bucket.refund(n))
    }

    /// Counts a call for `n` tokens.
    pub(crate) fn note_call(&self, now: u64, n: u32, granted: bool) {
        if let Access::Counted(table) = &self.access {
            self.note(table, now, n, granted);
        }
    }

    /// Goes on from a first attempt that could not tell.
    #[cold]
    #[inline(never)]
    fn try_acquire_again(&self, now: u64, n: u32) -> Result<u32, AcquireError> {
        call!(self, bucket => bucket.try_acquire_at(now, n))
    }

    /// Takes `n` tokens, sleeping until they are there; returns how many remain.
    ///
    /// # Errors
    ///
    /// Those of [`try_acquire`](Self::try_acquire) that are final; [`Removed`](AcquireError::Removed) or
    /// [`Replaced`](AcquireError::Replaced) if somebody does that to the file while this waits. Nothing was taken.
    pub fn acquire(&self, n: u32) -> Result<u32, AcquireError> {
        self.acquire_timeout(n, Duration::MAX)
    }

    /// Takes `n` tokens, sleeping until they are there, if that takes no longer than `timeout`; returns how many
    /// remain.
    ///
    /// # Errors
    ///
    /// [`Refused`](AcquireError::Refused) or [`Paused`](AcquireError::Paused), at once, when the wait would end after
    /// the timeout: when it is called, or later, when others have taken the tokens. Else as for
    /// [`acquire`](Self::acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_second(100)?.with_burst(1)?)?;
    /// assert!(limiter.acquire(1).is_ok());
    /// assert!(limiter.acquire_timeout(1, Duration::ZERO).is_err());
    /// assert!(limiter.acquire_timeout(1, Duration::from_secs(60)).is_ok()); // 10 ms later
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_timeout(&self, n: u32, timeout: Duration) -> Result<u32, AcquireError> {
        self.check_writable()?;
        let start = self.now_micros();
        let mut now = start;
        let outcome = retry_for(timeout, || {
            now = self.now_micros();
            self.attempt(now, n, |_| {}).or_else(|refusal| {
                // Before it sleeps, since who waits for a file that nobody else has waits in vain.
                self.check_identity()?;
                Err(refusal)
            })
        });
        note_outcome(&outcome, |granted| self.note_call(now, n, granted));
        if outcome.is_ok() {
            self.record_wait(Duration::from_micros(now.saturating_sub(start)));
        }
        outcome
    }

    /// Takes what there is, at most `n` tokens, and returns how many.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    pub fn acquire_up_to(&self, n: u32) -> Result<u32, AcquireError> {
        let now = self.now_micros();
        self.check_writable()?;
        let outcome =
            self.check_pause(now, n.min(1)).and_then(|()| call!(self, bucket => bucket.acquire_up_to_at(now, n)));
        match outcome {
            Ok(0) if n > 0 => self.note_call(now, n, false),
            Ok(granted) => self.note_call(now, granted, true),
            Err(_) => note_outcome(&outcome, |granted| self.note_call(now, n, granted)),
        }
        outcome
    }

    /// Takes as [`try_acquire`](Self::try_acquire) does; what is not [spent](Permit::spend) goes back when the permit
    /// is dropped.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_hour(10)?)?;
    /// let mut permit = limiter.try_acquire_permit(8)?;
    /// permit.spend(5)?;
    /// drop(permit); // three go back
    /// assert_eq!(limiter.available()?, 5);
    /// assert!(limiter.try_acquire_permit(6).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_acquire_permit(&self, n: u32) -> Result<Permit<'_, Self>, AcquireError> {
        self.try_acquire(n).map(|_| Permit::new(self, n.into()))
    }

    /// Takes what there is, at most `n` tokens, for one thread to spend one by one: a nanosecond each, without
    /// touching the file. What it does not spend goes back when the lease is dropped; of a process that is
    /// killed, it is lost.
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    pub fn lease(&self, n: u32) -> Result<Permit<'_, Self>, AcquireError> {
        self.acquire_up_to(n).map(|granted| Permit::new(self, granted.into()))
    }

    /// Gives `n` tokens back that were not used. What would rise above the capacity is forfeited.
    ///
    /// # Errors
    ///
    /// [`ReadOnly`](AcquireError::ReadOnly), [`Damaged`](AcquireError::Damaged), and
    /// [`Refused`](AcquireError::Refused) if others changed the bucket at each attempt. Nothing was given back.
    pub fn refund(&self, n: u32) -> Result<(), AcquireError> {
        self.check_writable()?;
        self.give_back_unnoted(n)?;
        self.count(Count::RefundedTokens, n.into());
        Ok(())
    }

    /// Corrects an estimate: of the `taken` tokens, `actual` were used. Gives the rest back, or takes the difference,
    /// even if it is not there: then nobody gets a token until it has accrued. Even while the limit is paused.
    ///
    /// At most one capacity can be owed.
    ///
    /// # Errors
    ///
    /// [`Refused`](AcquireError::Refused) if more would be owed: it says when it would not. Else as for
    /// [`refund`](Self::refund). Nothing was changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// let limiter = SharedRateLimiter::create(&path, Quota::per_hour(1000)?)?;
    /// limiter.try_acquire(800)?; // an estimate
    /// limiter.settle(800, 500)?;
    /// assert_eq!(limiter.available()?, 500);
    /// limiter.try_acquire(400)?;
    /// limiter.settle(400, 600)?; // a hundred are owed
    /// assert!(limiter.retry_after(1)? > std::time::Duration::from_secs(359));
    /// assert!(limiter.settle(0, 1000).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn settle(&self, taken: u32, actual: u32) -> Result<(), AcquireError> {
        self.check_writable()?;
        match actual.checked_sub(taken) {
            None => self.refund(taken.saturating_sub(actual)),
            Some(0) => Ok(()),
            Some(more) => {
                let now = self.now_micros();
                call!(self, bucket => bucket.overdraw_at(now, more).map(|_| ()))?;
                self.count(Count::GrantedTokens, more.into());
                Ok(())
            }
        }
    }

    /// Fills the bucket, whatever was taken. What is owed stays so: the bucket is full, and nothing accrues until it
    /// is paid.
    ///
    /// # Errors
    ///
    /// As for [`refund`](Self::refund). Nothing was changed.
    pub fn reset(&self) -> Result<(), AcquireError> {
        self.check_writable()?;
        call!(self, bucket => bucket.reset())
    }
}

/// Notes a call that was granted or refused. That the file is damaged or gone is neither.
pub(crate) fn note_outcome<T>(outcome: &Result<T, AcquireError>, note: impl Fn(bool)) {
    match outcome {
        Ok(_) => note(true),
        Err(AcquireError::Refused(_) | AcquireError::Paused { .. }) => note(false),
        Err(_) => {}
    }
}

/// What can't be given back, because the file is damaged or changed all the time, is forfeited: the limit is only
/// stricter then.
impl GiveBack for SharedRateLimiter {
    fn give_back(&self, n: u64) {
        let _ = self.refund(u32::try_from(n).unwrap_or(u32::MAX));
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tollgate_conformance::{Outcome, Subject, cases, check};
    use tollgate_core::{Quota, State};

    use super::*;

    /// The bucket in a file, with the case's time for the clock.
    struct Mapped {
        limiter: SharedRateLimiter,
        _folder: TempDir,
    }

    impl Subject for Mapped {
        fn start(quota: Quota, level: u32, at: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let limiter = SharedRateLimiter::create(folder.path().join("limit"), quota).unwrap();
            // The case's time is not the file's, and its stamp would be refused.
            let [state, horizon] = State::new(&quota, level, quota.moment(at)).to_words();
            limiter.page.cell(crate::layout::slot(0).horizon).store(horizon);
            limiter.page.cell(crate::layout::slot(0).state).store(state);
            Self { limiter, _folder: folder }
        }

        fn take(&mut self, now: u64, n: u32) -> Outcome {
            match self.limiter.try_acquire_at(now, n) {
                Ok(remaining) => Ok(remaining).into(),
                Err(AcquireError::Refused(refusal)) => Err(refusal).into(),
                Err(error) => panic!("{error}"),
            }
        }

        fn available(&mut self, now: u64) -> u32 {
            self.limiter.available_at(now).unwrap()
        }

        fn refund(&mut self, n: u32) {
            self.limiter.refund(n).unwrap();
        }
    }

    #[test]
    fn the_bucket_in_a_file_passes_the_cases() {
        check::<Mapped>(cases().unwrap()).unwrap();
    }
}
