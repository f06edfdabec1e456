//! The limiter that processes share.

use std::borrow::Cow;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::{Clock, Count, GiveBack, MAX_ATTEMPTS, Permit, Quota, TryAcquireError, Word};

use crate::clock::FileClock;
use crate::counting::Table;
use crate::file::Identity;
use crate::generations::{Bucket, Generation, Known};
use crate::layout::PAUSE;
use crate::mapping::Mapping;
use crate::tell::{self, Damage};
use crate::wait::retry_for;
use crate::{AcquireError, Options, Policy};

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

mod opening;
mod steering;
mod watching;

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

/// Where a limiter's file is.
#[derive(Debug)]
struct Place {
    /// Kept open, so that its number means this file and no later one.
    _file: File,
    identity: Identity,
    options: Options,
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

    /// Returns the path that the file was opened at, absolute; an empty one in memory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Calls it something else than its path in metrics and events, for example for one in memory.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Returns what it is called in metrics and events: its path, unless it has another [name](Self::with_name).
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        match &self.name {
            Some(name) => name.into(),
            None => self.path.to_string_lossy(),
        }
    }

    /// Tells whether the file may only be read.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        !self.page.is_writable()
    }

    /// Checks that the path still names the file that is open. [`acquire`](Self::acquire) does this whenever it
    /// sleeps; a program that never sleeps may do it now and then.
    ///
    /// # Errors
    ///
    /// [`Removed`](AcquireError::Removed) and [`Replaced`](AcquireError::Replaced).
    pub fn check_identity(&self) -> Result<(), AcquireError> {
        let Some(place) = &self.place else { return Ok(()) };
        match Identity::named(&self.path) {
            Ok(found) if found == place.identity => Ok(()),
            Ok(_) => Err(AcquireError::Replaced),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(AcquireError::Removed),
            // Whatever it is, it does not say that the file is another.
            Err(_) => Ok(()),
        }
    }

    /// Whether both are the same limit.
    pub(crate) fn is_that_of(&self, other: &Self) -> bool {
        match (&self.place, &other.place) {
            (Some(one), Some(two)) => one.identity == two.identity,
            _ => std::ptr::eq(self, other),
        }
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

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tollgate_conformance::{Outcome, Subject, cases, check};
    use tollgate_core::State;

    use super::*;
    use crate::clock::Origin;
    use crate::error::FileError;
    use crate::file;
    use crate::layout::page;

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

    /// A file with these words and this epoch.
    fn file_with(words: [u64; 2], epoch: u64) -> (TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        file::create(&path, &page(&Quota::per_second(10).unwrap(), words, epoch, 0), 0o600).unwrap();
        (folder, path)
    }

    fn state(tokens: u32, micros: u64) -> [u64; 2] {
        let quota = Quota::per_second(10).unwrap();
        State::new(&quota, tokens, quota.moment(micros)).to_words()
    }

    /// The level of another boot is kept, from whatever time; and the first who opens the file decides on its time.
    #[test]
    fn a_restart_keeps_the_level() {
        let now = Origin::of_this_process().unwrap().clock_of_new().now_micros();
        for stamp in [now, now + 86_400_000_000_000] {
            let (_folder, path) = file_with(state(4, stamp), 0);
            let limiter = SharedRateLimiter::open(&path).unwrap();
            let level = limiter.available().unwrap();
            assert!((4..10).contains(&level), "{level}");
            assert!(limiter.now_micros() >= stamp);
            assert!(limiter.retry_after(10).unwrap() <= Duration::from_secs(1));
            let other = SharedRateLimiter::open(&path).unwrap();
            let (earlier, later) = (limiter.now_micros(), other.now_micros());
            assert!((0..60_000_000).contains(&(later - earlier)));
            limiter.try_acquire(level).unwrap();
            assert!(limiter.pause_for(Duration::from_secs(60)).is_ok());
            assert!(matches!(other.try_acquire(1), Err(AcquireError::Paused { .. })));
        }
    }

    #[test]
    fn a_state_that_cannot_be_is_refused() {
        let origin = Origin::of_this_process().unwrap();
        let now = origin.clock_of_new().now_micros();
        let [word, horizon] = state(4, now);
        let cases = [
            ([0, 0], "its state was erased"),
            ([1, horizon], "none of its slots is in use"),
            // The complemented tokens.
            ([word ^ (1 << 63), horizon], "it holds 2147483652 tokens, and its burst is 10"),
            (state(4, now + 10_000_000), "in the future"),
        ];
        for (words, text) in cases {
            let (_folder, path) = file_with(words, origin.first_epoch());
            let error = SharedRateLimiter::open(&path).unwrap_err();
            assert!(matches!(error, FileError::NotALimiter { .. }), "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }

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
        assert_eq!(crate::layout::slot(0).state, crate::layout::slot(16).state);
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
        let slot = crate::layout::slot(next);
        limiter.page.cell(slot.number).store(next);
        for (at, word) in slot.quota.into_iter().zip(crate::layout::quota_words(&Quota::per_hour(7).unwrap())) {
            limiter.page.cell(at).store(word);
        }
        let [state, horizon] = state(7, 0);
        limiter.page.cell(slot.state).store(state);
        limiter.page.cell(slot.horizon).store(horizon);
        assert_eq!(limiter.try_acquire(1), Ok(99));
        assert_eq!(SharedRateLimiter::open(&path).unwrap().available(), Ok(99));
        limiter.set_quota(Quota::per_hour(50).unwrap()).unwrap();
        assert_eq!(limiter.available(), Ok(50));
    }
}
