//! Several limits at once: all, or nothing.

use std::time::Duration;

use tollgate_core::{Clock, TryAcquireError};

use crate::limiter::note_outcome;
use crate::wait::retry_for;
use crate::{AcquireError, MachineClock, SharedRateLimiter};

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
    /// The same refusal, or that a file is gone if one is.
    fn or_gone(self, limits: &[(&SharedRateLimiter, u32)]) -> Self {
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
    let outcome = attempt(limits);
    note(limits, &outcome);
    outcome
}

/// Takes tokens of each of several limits, as [`try_acquire_all`] does, sleeping until they are there, if that takes
/// no longer than `timeout`.
///
/// # Errors
///
/// [`NotAll`], at once, when the longest wait would end after the timeout, or never.
pub fn acquire_all_timeout(limits: &[(&SharedRateLimiter, u32)], timeout: Duration) -> Result<(), NotAll> {
    acquire_all_holding(limits, timeout, || ())
}

/// Takes as [`acquire_all_timeout`] does, and holds something during each attempt, but not while it sleeps; returns what
/// it held when the tokens were taken. So a lock can tell a handler of signals for sure whether they are.
///
/// # Errors
///
/// As for [`acquire_all_timeout`].
///
/// # Examples
///
/// ```
/// use std::sync::Mutex;
/// use std::time::Duration;
/// use tollgate::{Quota, SharedRateLimiter, acquire_all_holding};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limit");
/// let limiter = SharedRateLimiter::create(&path, Quota::per_second(100)?.with_burst(2)?)?;
/// let taken = Mutex::new(false);
/// let mut guard = acquire_all_holding(&[(&limiter, 2)], Duration::from_secs(60), || taken.lock().unwrap())?;
/// *guard = true;
/// drop(guard);
/// assert!(acquire_all_holding(&[(&limiter, 2)], Duration::ZERO, || taken.lock().unwrap()).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn acquire_all_holding<G>(
    limits: &[(&SharedRateLimiter, u32)],
    timeout: Duration,
    hold: impl Fn() -> G,
) -> Result<G, NotAll> {
    let start = MachineClock.now_micros();
    let outcome = retry_for(timeout, || {
        let held = hold();
        // Before it sleeps, since who waits for a file that nobody else has waits in vain.
        attempt(limits).map(|()| held).map_err(|refused| refused.or_gone(limits))
    });
    note(limits, &outcome);
    if outcome.is_ok() {
        let wait = Duration::from_micros(MachineClock.now_micros().saturating_sub(start));
        shares(limits).flatten().for_each(|share| share.limiter.record_wait(wait));
    }
    outcome
}

/// Takes tokens of each limit, or of none, and counts nothing.
fn attempt(limits: &[(&SharedRateLimiter, u32)]) -> Result<(), NotAll> {
    let shares: Vec<Share<'_>> = shares(limits).collect::<Result<_, _>>()?;
    for (position, share) in shares.iter().enumerate() {
        if let Err(error) = share.limiter.take_unnoted(share.limiter.now_micros(), share.cost) {
            for taken in shares.iter().take(position) {
                // Where even this fails, the limit is only stricter than it need be.
                let _ = taken.limiter.give_back_unnoted(taken.cost);
            }
            let waits = shares.iter().map(|share| wait(share.limiter, share.cost));
            // None is never: longer than any.
            let retry_after = waits.chain([error.retry_after()]).try_fold(Duration::ZERO, |a, b| b.map(|b| a.max(b)));
            return Err(NotAll { index: share.index, error, retry_after });
        }
    }
    Ok(())
}

/// Counts a call on several limits: granted by all, or refused by one.
fn note<T>(limits: &[(&SharedRateLimiter, u32)], outcome: &Result<T, NotAll>) {
    match outcome {
        Ok(_) => {
            let granted = shares(limits).flatten();
            granted.for_each(|share| share.limiter.note_call(share.limiter.now_micros(), share.cost, true));
        }
        Err(refusal) => {
            let refused = shares(limits).flatten().find(|share| share.index == refusal.index);
            let refused = refused.map(|share| (share.limiter, share.cost));
            // More than any bucket holds has no share.
            let all = || limits.get(refusal.index).map(|(limiter, _)| (*limiter, u32::MAX));
            if let Some((limiter, cost)) = refused.or_else(all) {
                let outcome: Result<(), _> = Err(refusal.error);
                note_outcome(&outcome, |granted| limiter.note_call(limiter.now_micros(), cost, granted));
            }
        }
    }
}

/// What to take of a limit.
struct Share<'a> {
    /// Where it is named first.
    index: usize,
    limiter: &'a SharedRateLimiter,
    /// All that is asked of its file.
    cost: u32,
}

fn shares<'a>(limits: &'a [(&'a SharedRateLimiter, u32)]) -> impl Iterator<Item = Result<Share<'a>, NotAll>> {
    limits.iter().enumerate().filter_map(|(index, (limiter, _))| {
        if limits.iter().take(index).any(|(other, _)| other.is_that_of(limiter)) {
            return None;
        }
        let mut asked = limits.iter().filter(|(other, _)| other.is_that_of(limiter)).map(|(_, n)| *n);
        let sum = asked.try_fold(0, u32::checked_add);
        Some(sum.map(|cost| Share { index, limiter, cost }).ok_or_else(|| {
            let never = TryAcquireError::ExceedsCapacity { requested: u32::MAX, capacity: limiter.quota().capacity() };
            NotAll { index, error: AcquireError::Refused(never), retry_after: None }
        }))
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
