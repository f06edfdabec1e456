//! The limiter that processes share.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_core::{Clock, Quota, State, TokenBucket, TryAcquireError, Words};

use crate::clock::{BootId, MachineClock, check_time_namespace};
use crate::error::FileError;
use crate::layout::Header;
use crate::mapping::{MappedWord, map};
use crate::wait::retry_for;
use crate::{file, layout};

/// How often a file may vanish between two attempts to open or create it.
const OPEN_ATTEMPTS: u32 = 100;

/// A rate limit in a file, which all processes that open the file share: together they never exceed it.
///
/// The file is one page, mapped into memory; after it is opened, no call makes a system call, except to sleep. Any
/// number of threads may use one limiter, any number of processes one file. A process that dies, at whatever moment,
/// leaves nothing to clean up.
///
/// Processes that can write the file can change the limit; put it where only those can who should share it. A file
/// that another process truncates while it is open kills the processes that use it by SIGBUS.
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
/// use tollgate::{Quota, SharedRateLimiter, TryAcquireError};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("api.limit");
/// let limiter = SharedRateLimiter::open_or_create(&path, Quota::per_hour(5000)?.with_burst(2)?)?;
/// assert_eq!(limiter.try_acquire(1)?, 1);
///
/// // What another process would see:
/// let other = SharedRateLimiter::open(&path)?;
/// assert_eq!(other.try_acquire(1)?, 0);
/// assert!(matches!(limiter.try_acquire(1), Err(TryAcquireError::Insufficient { .. })));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedRateLimiter {
    bucket: TokenBucket<MachineClock, Words<MappedWord>>,
    path: PathBuf,
}

impl SharedRateLimiter {
    /// Creates the file at `path`, mode 0600, with a full bucket.
    ///
    /// # Errors
    ///
    /// [`FileError::AlreadyExists`] if anything has that name; [`FileError::Io`] if the folder is missing or not
    /// writable, or the disk full; [`FileError::TimeNamespace`] in a time namespace.
    pub fn create(path: impl AsRef<Path>, quota: Quota) -> Result<Self, FileError> {
        let now = quota.moment(MachineClock.now_micros());
        Self::create_holding(path.as_ref(), quota, State::new(&quota, quota.capacity(), now))
    }

    /// Opens the file at `path`; its quota is in it.
    ///
    /// # Errors
    ///
    /// [`FileError::NotFound`] if there is none; an error of its own for everything that makes it unfit.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        let path = path.as_ref();
        check_time_namespace()?;
        let (file, header) = file::open(path)?;
        let boot = BootId::of_this_boot()?;
        if header.boot != boot {
            let (found, expected) = (header.boot.to_string(), boot.to_string());
            return Err(FileError::OtherBoot { path: path.to_owned(), found, expected });
        }
        let limiter = Self::over(&file, header.quota, path)?;
        match limiter.available() {
            Err(TryAcquireError::Uninitialized) => {
                let found = "its state was erased".to_owned();
                Err(FileError::NotALimiter { path: path.to_owned(), found })
            }
            _ => Ok(limiter),
        }
    }

    /// Opens the file at `path`, or creates it if there is none. Of several processes that do, one creates it and the
    /// others open the same.
    ///
    /// # Errors
    ///
    /// [`FileError::QuotaMismatch`] if it exists with another quota; else as for [`open`](Self::open) and
    /// [`create`](Self::create).
    pub fn open_or_create(path: impl AsRef<Path>, quota: Quota) -> Result<Self, FileError> {
        let path = path.as_ref();
        let mut attempts = OPEN_ATTEMPTS;
        loop {
            match Self::open(path) {
                Ok(limiter) if *limiter.quota() == quota => return Ok(limiter),
                Ok(limiter) => {
                    let found = *limiter.quota();
                    return Err(FileError::QuotaMismatch { path: path.to_owned(), found, expected: quota });
                }
                Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            attempts -= 1;
            match Self::create(path, quota) {
                // Somebody else was first; unless that was removed again, it can be opened.
                Err(FileError::AlreadyExists { .. }) if attempts > 0 => {}
                outcome => return outcome,
            }
        }
    }

    fn create_holding(path: &Path, quota: Quota, state: State) -> Result<Self, FileError> {
        check_time_namespace()?;
        let page: layout::Page = Header { quota, boot: BootId::of_this_boot()? }.page(state.to_words());
        let file = file::create(path, &page)?;
        Self::over(&file, quota, path)
    }

    fn over(file: &std::fs::File, quota: Quota, path: &Path) -> Result<Self, FileError> {
        let words = map(file).map_err(|error| FileError::io("mapping", path, error))?;
        Ok(Self { bucket: TokenBucket::over(quota, words, MachineClock), path: path.to_owned() })
    }

    /// Returns the quota that the file was created with.
    #[must_use]
    pub fn quota(&self) -> &Quota {
        self.bucket.quota()
    }

    /// Returns the path that the file was opened at.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes `n` tokens and returns how many remain, or takes nothing. Never waits.
    ///
    /// The tokens that remain may have changed by the time the call returns.
    ///
    /// # Errors
    ///
    /// [`Insufficient`](TryAcquireError::Insufficient): wait for as long as it says.
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity): never. [`Contended`](TryAcquireError::Contended):
    /// try again. [`Uninitialized`](TryAcquireError::Uninitialized): somebody has erased the file; remove it and
    /// create another. Nothing was taken.
    #[inline]
    pub fn try_acquire(&self, n: u32) -> Result<u32, TryAcquireError> {
        self.bucket.try_acquire(n)
    }

    /// Takes as [`try_acquire`](Self::try_acquire) does, at the time `now`, in microseconds of [`MachineClock`]: one
    /// reading for several calls.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_at(&self, now: u64, n: u32) -> Result<u32, TryAcquireError> {
        self.bucket.try_acquire_at(now, n)
    }

    /// Takes `n` tokens, sleeping until they are there; returns how many remain.
    ///
    /// # Errors
    ///
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity) at once if they never will be;
    /// [`Uninitialized`](TryAcquireError::Uninitialized) if somebody has erased the file. Nothing was taken.
    pub fn acquire(&self, n: u32) -> Result<u32, TryAcquireError> {
        self.acquire_timeout(n, Duration::MAX)
    }

    /// Takes `n` tokens, sleeping until they are there, if that takes no longer than `timeout`; returns how many
    /// remain.
    ///
    /// # Errors
    ///
    /// [`Insufficient`](TryAcquireError::Insufficient), at once, when the wait would end after the timeout: when it
    /// is called, or later, when others have taken the tokens. Else as for [`acquire`](Self::acquire), and
    /// [`Contended`](TryAcquireError::Contended) at the timeout.
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
    pub fn acquire_timeout(&self, n: u32, timeout: Duration) -> Result<u32, TryAcquireError> {
        retry_for(timeout, || self.try_acquire(n))
    }

    /// Gives `n` tokens back that were not used. What would rise above the capacity is forfeited.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended): try again. [`Uninitialized`](TryAcquireError::Uninitialized): the
    /// file was erased. Nothing was given back.
    pub fn refund(&self, n: u32) -> Result<(), TryAcquireError> {
        self.bucket.refund(n)
    }

    /// Returns how many tokens are there. Stale when it returns.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended): try again. [`Uninitialized`](TryAcquireError::Uninitialized): the
    /// file was erased.
    pub fn available(&self) -> Result<u32, TryAcquireError> {
        self.bucket.available()
    }

    /// Returns how many tokens are there at the time `now`, in microseconds of [`MachineClock`].
    ///
    /// # Errors
    ///
    /// As for [`available`](Self::available).
    pub fn available_at(&self, now: u64) -> Result<u32, TryAcquireError> {
        self.bucket.available_at(now)
    }

    /// Returns the shortest wait after which [`try_acquire(n)`](Self::try_acquire) can succeed: zero if it can now.
    ///
    /// # Errors
    ///
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity) if it never can; else as for
    /// [`available`](Self::available).
    pub fn retry_after(&self, n: u32) -> Result<Duration, TryAcquireError> {
        self.bucket.retry_after(n)
    }

    /// Returns the same wait from the time `now`, in microseconds of [`MachineClock`].
    ///
    /// # Errors
    ///
    /// As for [`retry_after`](Self::retry_after).
    pub fn retry_after_at(&self, now: u64, n: u32) -> Result<Duration, TryAcquireError> {
        self.bucket.retry_after_at(now, n)
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;
    use tollgate_conformance::{Outcome, Subject, cases, check};

    use super::*;

    /// The bucket in a file, with the case's time for the clock.
    struct Mapped {
        limiter: SharedRateLimiter,
        _folder: TempDir,
    }

    impl Subject for Mapped {
        fn start(quota: Quota, level: u32, at: u64) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let state = State::new(&quota, level, quota.moment(at));
            let path = folder.path().join("limit");
            SharedRateLimiter::create_holding(&path, quota, state).unwrap();
            Self { limiter: SharedRateLimiter::open(&path).unwrap(), _folder: folder }
        }

        fn take(&mut self, now: u64, n: u32) -> Outcome {
            self.limiter.try_acquire_at(now, n).into()
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
        check::<Mapped>(&cases().unwrap()).unwrap();
    }

    #[test]
    fn a_file_of_another_boot_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let quota = Quota::per_second(1).unwrap();
        let header = Header { quota, boot: BootId([7; 16]) };
        file::create(&path, &header.page(State::full(&quota).to_words())).unwrap();
        let error = SharedRateLimiter::open(&path).unwrap_err();
        assert!(matches!(error, FileError::OtherBoot { .. }), "{error}");
        assert!(error.to_string().contains("07070707070707070707070707070707"), "{error}");
    }

    #[test]
    fn a_file_whose_state_was_erased_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("limit");
        let header = Header { quota: Quota::per_second(1).unwrap(), boot: BootId::of_this_boot().unwrap() };
        file::create(&path, &header.page([0, 0])).unwrap();
        let error = SharedRateLimiter::open(&path).unwrap_err();
        assert!(error.to_string().contains("erased"), "{error}");
    }
}
