//! How a limiter comes to its file.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::{Clock, MAX_ATTEMPTS, Quota, State, TryAcquireError, Word};

use super::{Access, Place, SharedRateLimiter};
use crate::clock::{FileClock, Origin};
use crate::counting::Table;
use crate::error::FileError;
use crate::file::{self, Identity};
use crate::generations::{Generation, Known};
use crate::layout::{EPOCH, Flaw, first_generation, page};
use crate::mapping::Mapping;
use crate::tell::{self, Damage};
use crate::{Fixed, Options};

/// How often a file may vanish between two attempts to open or create it.
const OPEN_ATTEMPTS: u32 = 100;

/// How far a time stamp may be ahead of the clock, beside the time to fill that a debt can take.
const AHEAD: Duration = Duration::from_secs(1);

impl SharedRateLimiter {
    /// Creates the file at `path`, mode 0600, with a full bucket.
    ///
    /// # Errors
    ///
    /// [`FileError::AlreadyExists`] if anything has that name; [`FileError::Io`] if the folder is missing or not
    /// writable, or the disk full.
    pub fn create(path: impl AsRef<Path>, quota: Quota) -> Result<Self, FileError> {
        Options::new().create(path, quota)
    }

    /// Opens the file at `path`; its quota is in it. If it may only be read, so may its level; nothing can be taken.
    ///
    /// After a restart of the machine, the bucket goes on with the level that it had.
    ///
    /// # Errors
    ///
    /// [`FileError::NotFound`] if there is none; an error of its own for everything that makes it unfit.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, FileError> {
        Options::new().open(path)
    }

    /// Opens the file at `path`, or creates it if there is none. Of several processes that do, one creates it and the
    /// others open the same.
    ///
    /// # Errors
    ///
    /// [`FileError::QuotaMismatch`] if it exists with another quota; else as for [`open`](Self::open) and
    /// [`create`](Self::create).
    pub fn open_or_create(path: impl AsRef<Path>, quota: Quota) -> Result<Self, FileError> {
        Options::new().open_or_create(path, quota)
    }

    /// Opens the path again, with the same options, name and policy: what to do when the file was [removed](crate::AcquireError::Removed) and
    /// made anew, or [replaced](crate::AcquireError::Replaced).
    ///
    /// # Errors
    ///
    /// As for [`open`](Self::open).
    pub fn reopen(&self) -> Result<Self, FileError> {
        match &self.place {
            Some(place) => {
                let mut opened = place.options.open(&self.path)?;
                (opened.policy, opened.name) = (self.policy.clone(), self.name.clone());
                Ok(opened)
            }
            None => Err(FileError::NotFound { path: self.path.clone() }),
        }
    }

    pub(crate) fn create_with(options: &Options, path: &Path, quota: Quota) -> Result<Self, FileError> {
        file::check_mode(options.mode)?;
        let origin = Origin::of_this_process()?;
        let now = quota.moment(origin.clock_of_new().now_micros());
        let words = State::new(&quota, quota.capacity(), now).to_words();
        let file = file::create(path, &page(&quota, words, origin.first_epoch(), first_generation()), options.mode)?;
        let limiter = Self::attach(options, path, file, true, origin)?;
        tell::created(&limiter.path, &quota);
        Ok(limiter)
    }

    pub(crate) fn open_with(options: &Options, path: &Path) -> Result<Self, FileError> {
        let origin = Origin::of_this_process()?;
        let opened = file::open(path, &options.owners)?;
        let limiter = Self::attach(options, path, opened.file, opened.writable, origin)?;
        tell::opened(&limiter.path, &limiter.quota());
        Ok(limiter)
    }

    pub(crate) fn open_or_create_with(options: &Options, path: &Path, quota: Quota) -> Result<Self, FileError> {
        let mut attempts = OPEN_ATTEMPTS;
        loop {
            match Self::open_with(options, path) {
                Ok(limiter) if options.any_quota || limiter.quota() == quota => return Ok(limiter),
                Ok(limiter) => {
                    let found = limiter.quota();
                    return Err(FileError::QuotaMismatch { path: path.to_owned(), found, expected: quota });
                }
                Err(FileError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
            attempts -= 1;
            match Self::create_with(options, path, quota) {
                // Somebody else was first; unless that was removed again, it can be opened.
                Err(FileError::AlreadyExists { .. }) if attempts > 0 => {}
                outcome => return outcome,
            }
        }
    }

    /// Maps a file whose header is right, and checks the rest.
    fn attach(options: &Options, path: &Path, file: File, writable: bool, origin: Origin) -> Result<Self, FileError> {
        let io = |doing, error| FileError::io(doing, path, error);
        let identity = Identity::of(&file).map_err(|error| io("reading", error))?;
        let page = Mapping::new(&file, writable, options.guard).map_err(|error| io("mapping", error))?;
        let place = Place { _file: file, identity, options: options.clone() };
        // Absolute, so that it names the same file from whatever folder.
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::over(page, origin, options, Some(place), path)
    }

    /// Makes a limiter without a file, for this process and the children that it forks.
    ///
    /// # Errors
    ///
    /// [`FileError::Io`] if there is no memory, or the system does not tell the time.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate::{Quota, SharedRateLimiter};
    ///
    /// let limiter = SharedRateLimiter::in_memory(Quota::per_hour(2)?)?;
    /// assert_eq!(limiter.try_acquire(2)?, 0);
    /// assert!(limiter.try_acquire(1).is_err());
    /// limiter.set_quota(Quota::per_hour(3)?)?;
    /// assert!(limiter.try_acquire(3).is_err()); // the level stays
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_memory(quota: Quota) -> Result<Self, FileError> {
        let path = PathBuf::new();
        let origin = Origin::of_this_process()?;
        let now = quota.moment(origin.clock_of_new().now_micros());
        let words = State::new(&quota, quota.capacity(), now).to_words();
        let first = page(&quota, words, origin.first_epoch(), first_generation());
        let page = Mapping::in_memory(&first).map_err(|error| FileError::io("mapping memory", &path, error))?;
        Self::over(page, origin, &Options::new(), None, path)
    }

    fn over(
        page: Mapping,
        origin: Origin,
        options: &Options,
        place: Option<Place>,
        path: PathBuf,
    ) -> Result<Self, FileError> {
        let (generation, clock) = settle(&page, origin).map_err(|flaw| FileError::flaw(&path, flaw))?;
        let access = match (page.is_writable(), options.counters) {
            (false, _) => Access::ReadOnly,
            (true, false) => Access::Uncounted,
            (true, true) => {
                let table = Table::new().map_err(|error| FileError::io("counting the forks of", &path, error))?;
                Access::Counted(Box::new(table))
            }
        };
        let limiter = Self {
            page,
            known: Known::new(generation),
            clock: clock.fast(options.fast_clock),
            access,
            place,
            path,
            setting: Mutex::new(()),
            policy: Arc::new(Fixed),
            name: None,
            damage: Damage::default(),
        };
        limiter.beat();
        Ok(limiter)
    }
}

/// Finds the latest generation and the clock of a file, and checks that the one has to do with the other. After a
/// restart of the machine, the file's time goes on from where it was.
fn settle(page: &Mapping, origin: Origin) -> Result<(Generation, FileClock), Flaw> {
    let epoch = page.cell(EPOCH);
    for _ in 0..MAX_ATTEMPTS {
        let seen = epoch.load(Acquire);
        let generation = Generation::latest(page)?;
        let quota = generation.quota;
        // The words are read without a clock.
        let bucket = generation.bucket(page, origin.clock_of_new());
        let state = match bucket.state() {
            Ok(state) => state,
            Err(TryAcquireError::Uninitialized) => return Err(Flaw::Content("its state was erased".to_owned())),
            Err(_) => continue,
        };
        let (tokens, stamp) = (state.tokens(), state.credited_until(&quota));
        if tokens > quota.capacity() {
            return Err(Flaw::Content(format!("it holds {tokens} tokens, and its burst is {}", quota.capacity())));
        }
        let Some(clock) = origin.clock(seen) else {
            let next = origin.epoch_after(stamp);
            // Who may only read goes by the same time, without writing it down.
            if epoch.compare_exchange(seen, next, AcqRel, Relaxed).is_err() && !page.is_writable() {
                let clock = origin.clock(next).unwrap_or(origin.clock_of_new());
                return Ok((generation, clock));
            }
            // Whoever steered it before, by a time that may have been ahead, is gone.
            if let Some(users) = page.users() {
                users.header.lease().end();
            }
            continue;
        };
        let fill = bucket_fill_micros(&quota).saturating_add(AHEAD.as_micros());
        let ahead = u128::from(stamp.saturating_sub(clock.now_micros()));
        if ahead > fill {
            return Err(Flaw::Content(format!("its time stamp is {} µs in the future", ahead)));
        }
        return Ok((generation, clock));
    }
    Err(Flaw::Content("it is changed all the time".to_owned()))
}

/// How long an empty bucket takes to fill, at most.
fn bucket_fill_micros(quota: &Quota) -> u128 {
    let nanos = quota.period().as_nanos().saturating_mul(quota.capacity().into());
    // A quota has at least one token in its period.
    nanos.checked_div(quota.tokens().into()).unwrap_or(nanos) / 1000 + 1
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::AcquireError;

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
}
