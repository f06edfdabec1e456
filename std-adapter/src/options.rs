//! How a file is created and opened, where the defaults don't do.

use std::path::Path;

use tollgate_core::Quota;

use crate::{FileError, SharedRateLimiter};

/// How a limiter's file is created and opened.
///
/// # Examples
///
/// A limit for all users of a group, who find the file in a folder that only they can write:
///
/// ```
/// use tollgate::{Options, Quota};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("limit");
/// let quota = Quota::per_second(10)?;
/// let limiter = Options::new().mode(0o660).allow_owner(1000).open_or_create(&path, quota)?;
/// assert_eq!(limiter.try_acquire(10)?, 0);
/// assert!(limiter.try_acquire(1).is_err());
/// assert!(Options::new().mode(0o666).create(&path, quota).is_err()); // everybody could change it
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    pub(crate) mode: u32,
    pub(crate) owners: Vec<u32>,
    pub(crate) guard: bool,
    pub(crate) fast_clock: bool,
    pub(crate) counters: bool,
    pub(crate) any_quota: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self::new()
    }
}

impl Options {
    /// The defaults: mode 0600, no other owner than this user and root, guarded.
    pub const fn new() -> Self {
        Self { mode: 0o600, owners: Vec::new(), guard: true, fast_clock: false, counters: true, any_quota: false }
    }

    /// Creates files with these permission bits, whatever the umask. The owner must be able to read and write; others
    /// must not write.
    pub const fn mode(mut self, mode: u32) -> Self {
        self.mode = mode;
        self
    }

    /// Opens files of this user, too, by user id. Who owns a file can change the limit.
    pub fn allow_owner(mut self, user: u32) -> Self {
        self.owners.push(user);
        self
    }

    /// Whether a file that is truncated while it is open is an error
    /// ([`Damaged`](crate::AcquireError::Damaged)), which takes a handler of SIGBUS for this process; it passes any
    /// other SIGBUS on to the handler before it. Without it, such a file kills the process. Guarded by default.
    pub const fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Whether to read the time by the [`FastClock`](crate::FastClock), which takes half the time of a call, and is
    /// off by up to 50 µs: as many tokens more may be granted as accrue in that. Processes with either clock can
    /// share a file. Off by default.
    pub const fn fast_clock(mut self, fast: bool) -> Self {
        self.fast_clock = fast;
        self
    }

    /// Whether this process's calls are counted in the file, for [`counts`](SharedRateLimiter::counts) and
    /// [`attached`](SharedRateLimiter::attached): some twenty instructions a call. On by default.
    pub const fn counters(mut self, counters: bool) -> Self {
        self.counters = counters;
        self
    }

    /// Whether [`open_or_create`](Self::open_or_create) opens a file that has another quota, and leaves it as it is: for
    /// a limit that is steered, or set from outside. Off by default, which makes it a
    /// [`QuotaMismatch`](FileError::QuotaMismatch).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Options, Quota};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("limit");
    /// Options::new().create(&path, Quota::per_hour(7)?)?;
    /// assert!(Options::new().open_or_create(&path, Quota::per_hour(5)?).is_err());
    /// let limiter = Options::new().any_quota(true).open_or_create(&path, Quota::per_hour(5)?)?;
    /// assert_eq!(limiter.quota(), Quota::per_hour(7)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub const fn any_quota(mut self, any: bool) -> Self {
        self.any_quota = any;
        self
    }

    /// As [`SharedRateLimiter::create`].
    ///
    /// # Errors
    ///
    /// As there; and [`FileError::BadMode`].
    pub fn create(&self, path: impl AsRef<Path>, quota: Quota) -> Result<SharedRateLimiter, FileError> {
        SharedRateLimiter::create_with(self, path.as_ref(), quota)
    }

    /// As [`SharedRateLimiter::open`].
    ///
    /// # Errors
    ///
    /// As there.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<SharedRateLimiter, FileError> {
        SharedRateLimiter::open_with(self, path.as_ref())
    }

    /// As [`SharedRateLimiter::open_or_create`].
    ///
    /// # Errors
    ///
    /// As there; and [`FileError::BadMode`].
    pub fn open_or_create(&self, path: impl AsRef<Path>, quota: Quota) -> Result<SharedRateLimiter, FileError> {
        SharedRateLimiter::open_or_create_with(self, path.as_ref(), quota)
    }
}
