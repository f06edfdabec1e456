//! A clock that is read seldom, and shown often.

// As in `generations.rs`: a cell of the process's own.
#![allow(clippy::disallowed_types)]

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;
use std::time::Duration;

use tollgate_core::Clock;

use crate::MachineClock;

/// The time of [`MachineClock`] as it was when it was last refreshed: reading it is reading a word of memory.
///
/// Refresh it yourself, for example once for each batch of requests, or let a thread do that
/// ([`every`](Self::every)). A time that is late grants nothing early: a limit by this clock is as strict as ever,
/// but tokens come in lumps, one for each refreshing, and up to one period late.
///
/// # Examples
///
/// ```
/// use tollgate::{CachedClock, Clock, MachineClock};
/// use tollgate_core::{Quota, TokenBucket, quota};
///
/// let clock = CachedClock::new();
/// let bucket = TokenBucket::with_clock(quota!(Quota::per_second(1000), burst 1), &clock);
/// bucket.try_acquire(1)?;
/// std::thread::sleep(std::time::Duration::from_millis(2));
/// assert!(bucket.try_acquire(1).is_err()); // time stands still
/// clock.refresh();
/// assert!(bucket.try_acquire(1).is_ok());
/// assert!(clock.now_micros() <= MachineClock.now_micros());
/// # Ok::<(), tollgate::TryAcquireError>(())
/// ```
#[derive(Debug)]
pub struct CachedClock {
    micros: AtomicU64,
}

impl Default for CachedClock {
    fn default() -> Self {
        Self::new()
    }
}

impl CachedClock {
    /// Makes a clock that shows the time as it is now.
    #[must_use]
    pub fn new() -> Self {
        Self { micros: AtomicU64::new(MachineClock.now_micros()) }
    }

    /// Makes a clock that a thread refreshes once in each `period`, until the [`Refreshed`] is dropped.
    ///
    /// # Errors
    ///
    /// The operating system's, if it can't start a thread.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use tollgate::{CachedClock, Clock};
    ///
    /// let clock = CachedClock::every(Duration::from_millis(1))?;
    /// let before = clock.now_micros();
    /// while clock.now_micros() == before {
    ///     std::thread::yield_now();
    /// }
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn every(period: Duration) -> io::Result<Refreshed> {
        let clock = Arc::new(Self::new());
        let ended = Arc::new(AtomicBool::new(false));
        let (refreshed, end) = (clock.clone(), ended.clone());
        let thread = std::thread::Builder::new().name("tollgate clock".to_owned()).spawn(move || {
            while !end.load(Relaxed) {
                std::thread::park_timeout(period);
                refreshed.refresh();
            }
        })?;
        Ok(Refreshed { clock, ended, thread: Some(thread), process: std::process::id() })
    }

    /// Reads the machine's clock.
    pub fn refresh(&self) {
        // The larger, since another thread may have read it later.
        self.micros.fetch_max(MachineClock.now_micros(), Relaxed);
    }
}

impl Clock for CachedClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        self.micros.load(Relaxed)
    }
}

/// A [`CachedClock`] with the thread that refreshes it. A child that is forked has no such thread, and its time
/// stands still until it refreshes it itself.
#[derive(Debug)]
pub struct Refreshed {
    clock: Arc<CachedClock>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// The process that has the thread.
    process: u32,
}

impl Refreshed {
    /// Reads the machine's clock, before the thread does.
    pub fn refresh(&self) {
        self.clock.refresh();
    }
}

impl Clock for Refreshed {
    #[inline]
    fn now_micros(&self) -> u64 {
        self.clock.now_micros()
    }
}

impl Drop for Refreshed {
    fn drop(&mut self) {
        self.ended.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            if self.process != std::process::id() {
                // There is no such thread in a child that was forked: nothing to wait for.
                std::mem::forget(thread);
                return;
            }
            thread.thread().unpark();
            // It does not panic.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_refreshes_until_it_is_dropped() {
        let clock = CachedClock::every(Duration::from_millis(1)).unwrap();
        let weak = Arc::downgrade(&clock.clock);
        let start = clock.now_micros();
        while clock.now_micros() < start + 20_000 {
            assert!(clock.now_micros() <= MachineClock.now_micros());
            std::thread::yield_now();
        }
        drop(clock);
        assert!(weak.upgrade().is_none(), "the thread has ended");
        // A long period does not hold up its end.
        drop(CachedClock::every(Duration::from_hours(1)).unwrap());
    }
}
