//! Waiting for tokens: asleep, never spinning.

use std::time::Duration;

use tollgate_core::{Clock, TryAcquireError};

use crate::{AcquireError, MachineClock, NotAll};

/// The shortest sleep: shorter ones would spin, and the kernel's timers add as much anyway.
const MIN_SLEEP: Duration = Duration::from_micros(50);

/// The longest sleep, so that the caller sees what others give back.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// A refusal that may say when to try again.
pub trait Refusal {
    /// Returns how long to wait before the same call can succeed; `None` if it never can.
    fn retry_after(&self) -> Option<Duration>;
}

impl Refusal for TryAcquireError {
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }
}

impl Refusal for AcquireError {
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }
}

impl Refusal for NotAll {
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Makes an attempt, and while it is refused, sleeps for as long as the refusal says, and makes it again: what
/// [`SharedRateLimiter::acquire_timeout`](crate::SharedRateLimiter::acquire_timeout) does with `try_acquire`, for
/// attempts that do something else besides.
///
/// It never sleeps longer than a second between two attempts. If several wait, any may be first.
///
/// # Errors
///
/// The refusal: at once when it is [final](Refusal::retry_after), or when the wait would end later than
/// `timeout` after the call.
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
/// use std::time::Duration;
/// use tollgate::{Quota, SharedRateLimiter, retry_for};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limit");
/// let limiter = SharedRateLimiter::create(&path, Quota::per_second(100)?.with_burst(2)?)?;
/// let log = Mutex::new(Vec::new());
///
/// // Nobody who holds the lock sees a token taken that is not in the log.
/// let attempt = || {
///     let mut log = log.lock().unwrap();
///     limiter.try_acquire(1).map(|remaining| log.push(remaining))
/// };
/// assert!(retry_for(Duration::from_secs(60), attempt).is_ok());
/// assert!(retry_for(Duration::ZERO, || limiter.try_acquire(3)).is_err()); // never
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn retry_for<T, E: Refusal>(timeout: Duration, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let start = MachineClock.now_micros();
    loop {
        let refusal = match attempt() {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        let Some(wait) = refusal.retry_after() else {
            return Err(refusal);
        };
        let waited = Duration::from_micros(MachineClock.now_micros().saturating_sub(start));
        if waited.saturating_add(wait) > timeout {
            return Err(refusal);
        }
        std::thread::sleep(wait.clamp(MIN_SLEEP, MAX_SLEEP));
    }
}
