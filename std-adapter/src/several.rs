//! Several limits at once: all, or nothing.

use std::time::Duration;

use tollgate_core::TryAcquireError;

use crate::wait::retry_for;
use crate::{AcquireError, SharedRateLimiter};

/// Why not all limits granted. Nothing was kept from any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotAll {
    /// Which of them refused, counted from 0.
    pub index: usize,
    /// Its refusal.
    pub error: AcquireError,
    /// How long to wait before all of them can grant: the longest of their waits; `None` if they never can.
    pub retry_after: Option<Duration>,
}

impl NotAll {
    /// The same refusal, or that a file is gone if one is: look before you sleep.
    #[must_use]
    pub fn or_gone(self, limits: &[(&SharedRateLimiter, u32)]) -> Self {
        let identities = limits.iter().map(|(limiter, _)| limiter.check_identity()).enumerate();
        let mut gone = identities.filter_map(|(index, outcome)| Some((index, outcome.err()?)));
        gone.next().map_or(self, |(index, error)| Self { index, error, retry_after: None })
    }
}

impl std::fmt::Display for NotAll {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "limit number {} of those asked: {}", self.index + 1, self.error)
    }
}

impl std::error::Error for NotAll {}

/// Takes tokens of each of several limits, or of none: 60 requests a minute *and* 100 000 tokens a minute. A file
/// that is named twice is asked for the sum.
///
/// The limits are taken one after the other. If one refuses, those before it get their tokens back; until then,
/// others find them taken.
///
/// # Errors
///
/// [`NotAll`]: the first refusal, and the longest wait. Nothing was kept.
///
/// # Examples
///
/// ```
/// use tollgate::{Quota, SharedRateLimiter, try_acquire_all};
///
/// # let folder = tempfile::tempdir()?;
/// # let [one, two] = ["requests", "tokens"].map(|name| folder.path().join(name));
/// let requests = SharedRateLimiter::create(&one, Quota::per_minute(60)?)?;
/// let tokens = SharedRateLimiter::create(&two, Quota::per_minute(100_000)?)?;
///
/// try_acquire_all(&[(&requests, 1), (&tokens, 60_000)])?;
/// let refused = try_acquire_all(&[(&requests, 1), (&tokens, 60_000)]).unwrap_err();
/// assert_eq!(refused.index, 1);
/// assert_eq!(requests.available()?, 59); // it got its token back
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn try_acquire_all(limits: &[(&SharedRateLimiter, u32)]) -> Result<(), NotAll> {
    let costs: Vec<u32> = (0..limits.len()).map(|index| cost(limits, index)).collect::<Result<_, _>>()?;
    for (index, ((limiter, _), cost)) in limits.iter().zip(&costs).enumerate() {
        if let Err(error) = limiter.try_acquire(*cost) {
            for ((taken, _), cost) in limits.iter().zip(&costs).take(index) {
                // Where even this fails, the limit is only stricter than it need be.
                let _ = taken.refund(*cost);
            }
            let waits = limits.iter().zip(&costs).map(|((limiter, _), cost)| wait(limiter, *cost));
            // None is never: longer than any.
            let retry_after = waits.chain([error.retry_after()]).try_fold(Duration::ZERO, |a, b| b.map(|b| a.max(b)));
            return Err(NotAll { index, error, retry_after });
        }
    }
    Ok(())
}

/// Takes tokens of each of several limits, as [`try_acquire_all`] does, sleeping until they are there, if that takes
/// no longer than `timeout`.
///
/// # Errors
///
/// [`NotAll`], at once, when the longest wait would end after the timeout, or never.
pub fn acquire_all_timeout(limits: &[(&SharedRateLimiter, u32)], timeout: Duration) -> Result<(), NotAll> {
    retry_for(timeout, || try_acquire_all(limits).map_err(|refused| refused.or_gone(limits)))
}

/// What to take of a limit: all that is asked of its file where it is named first, and nothing after that.
fn cost(limits: &[(&SharedRateLimiter, u32)], index: usize) -> Result<u32, NotAll> {
    let same = |at: &usize| {
        let limit = |at: usize| limits.get(at).map(|(limiter, _)| limiter);
        limit(*at).zip(limit(index)).is_some_and(|(one, two)| one.is_that_of(two))
    };
    if (0..index).any(|at| same(&at)) {
        return Ok(0);
    }
    let asked = (index..limits.len()).filter(same).filter_map(|at| limits.get(at));
    asked.clone().try_fold(0, |sum: u32, (_, n)| sum.checked_add(*n)).ok_or_else(|| {
        let capacity = asked.map(|(limiter, _)| limiter.quota().capacity()).next().unwrap_or_default();
        let never = TryAcquireError::ExceedsCapacity { requested: u32::MAX, capacity };
        NotAll { index, error: AcquireError::Refused(never), retry_after: None }
    })
}

fn wait(limiter: &SharedRateLimiter, n: u32) -> Option<Duration> {
    if limiter.is_read_only() {
        return None;
    }
    match limiter.retry_after(n) {
        Ok(wait) => Some(wait),
        Err(error) => error.retry_after(),
    }
}
