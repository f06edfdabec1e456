//! The limiter that processes share.

use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::{MAX_ATTEMPTS, TryAcquireError, Word};

use crate::clock::FileClock;
use crate::counting::Table;
use crate::generations::{Bucket, Generation, Known};
use crate::layout::PAUSE;
use crate::mapping::Mapping;
use crate::tell::{self, Damage};
use crate::{AcquireError, Policy};

/// Makes a call on the bucket of the generation that is known, in line; if it has moved, on that of the latest.
macro_rules! call {
    ($limiter:ident, $bucket:ident => $call:expr) => {{
        let first = match $limiter.known_bucket() {
            Some($bucket) => $call,
            None => Err(TryAcquireError::Moved),
        };
        match first {
            // More than the burst is refused unread: it may not be more than that of the latest.
            Err(TryAcquireError::Moved | TryAcquireError::ExceedsCapacity { .. }) => {
                $limiter.call_the_latest(|$bucket| $call)
            }
            outcome => outcome.map_err(|error| $limiter.refusal(error)),
        }
    }};
}

mod looking;
mod opening;
mod place;
mod steering;
mod taking;
mod watching;

use place::Place;
pub(crate) use taking::note_outcome;
pub use watching::{Event, Events, Outcome, Process};

/// What a limiter may do with its file.
#[derive(Debug)]
enum Access {
    /// Take, and count what is taken.
    Counted(Box<Table>),
    /// Take.
    Uncounted,
    /// Look.
    ReadOnly,
}

/// A rate limit in a file, which all processes that open the file share: together they never exceed it.
///
/// The file is mapped into memory; after it is opened, taking a token makes no system call, but for the first one of a thread. Any
/// number of threads may use one limiter, any number of processes one file. A process that dies, at whatever moment, leaves
/// nothing to clean up. A child that is forked shares the limit.
///
/// Whoever can write to the file can change the limit; put it where only those can who should share it. What happens
/// to the file while it is open, whatever it is, becomes an [`AcquireError`], and never a signal.
///
/// # Memory ordering
///
/// The limiter publishes nothing but itself: a call that succeeds does not make other memory visible to anyone.
///
/// # Progress
///
/// [`try_acquire`](Self::try_acquire), [`available`](Self::available) and [`refund`](Self::refund) are lock-free and
/// take a bounded number of steps; they can't be held up by a stopped process. [`acquire`](Self::acquire) and
/// [`acquire_timeout`](Self::acquire_timeout) sleep; of several that wait, any may be first.
///
/// # Examples
///
/// ```
/// use tollgate::{AcquireError, Quota, SharedRateLimiter};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("api.limit");
/// let limiter = SharedRateLimiter::open_or_create(&path, Quota::per_hour(5000)?.with_burst(2)?)?;
/// assert_eq!(limiter.try_acquire(1)?, 1);
///
/// // What another process would see:
/// let other = SharedRateLimiter::open(&path)?;
/// assert_eq!(other.try_acquire(1)?, 0);
/// assert!(matches!(limiter.try_acquire(1), Err(AcquireError::Refused(_))));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedRateLimiter {
    page: Mapping,
    known: Known,
    clock: FileClock,
    access: Access,
    /// `None` in memory.
    place: Option<Place>,
    path: PathBuf,
    /// Held while the quota of one in memory is set.
    setting: Mutex<()>,
    policy: Arc<dyn Policy>,
    /// What it is called, if not by its path.
    name: Option<String>,
    damage: Damage,
}

/// The way to the bucket.
impl SharedRateLimiter {
    #[inline]
    fn known_bucket(&self) -> Option<Bucket<'_>> {
        Some(self.known.get()?.bucket(&self.page, self.clock))
    }

    /// Makes a call on the bucket of the latest generation, which it looks for.
    #[cold]
    #[inline(never)]
    fn call_the_latest<T>(&self, call: impl Fn(&Bucket<'_>) -> Result<T, TryAcquireError>) -> Result<T, AcquireError> {
        for _ in 0..MAX_ATTEMPTS {
            let latest = Generation::latest(&self.page).map_err(|_| self.damaged())?;
            self.learn(latest);
            match call(&latest.bucket(&self.page, self.clock)) {
                Ok(answer) => return Ok(answer),
                Err(TryAcquireError::Moved) => {}
                Err(error) => return Err(self.refusal(error)),
            }
        }
        Err(TryAcquireError::Contended.into())
    }

    fn learn(&self, latest: Generation) {
        if self.known.learn(latest) {
            tell::quota_changed(&self.name(), &latest.quota);
        }
    }

    fn refusal(&self, error: TryAcquireError) -> AcquireError {
        match AcquireError::from(error) {
            AcquireError::Damaged => self.damaged(),
            refusal => refusal,
        }
    }

    #[cold]
    fn damaged(&self) -> AcquireError {
        self.damage.found(&self.name());
        AcquireError::Damaged
    }

    #[inline]
    fn check_writable(&self) -> Result<(), AcquireError> {
        if matches!(self.access, Access::ReadOnly) { Err(AcquireError::ReadOnly) } else { Ok(()) }
    }

    #[inline]
    fn check_pause(&self, now: u64, n: u32) -> Result<(), AcquireError> {
        if self.page.cell(PAUSE).load(Relaxed) > now { self.paused_at(now, n) } else { Ok(()) }
    }

    /// Refuses tokens while the limit is paused, unless something else is in their way for ever: more than the burst,
    /// or what somebody has written over the whole file.
    #[cold]
    fn paused_at(&self, now: u64, n: u32) -> Result<(), AcquireError> {
        let retry_after = self.retry_after_at(now, n)?;
        if n == 0 { Ok(()) } else { Err(AcquireError::Paused { retry_after }) }
    }

    fn pause_left(&self, now: u64) -> Duration {
        Duration::from_micros(self.page.cell(PAUSE).load(Relaxed).saturating_sub(now))
    }
}
