//! The clock for tests. Absent where the target has no 64-bit atomics.

use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use crate::{Clock, DefaultWord};

/// A clock that stands still until it is told to move, for tests.
///
/// # Memory ordering
///
/// Reading and moving are Relaxed: the clock orders nothing but itself.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tollgate_core::{Clock, ManualClock};
///
/// let clock = ManualClock::new();
/// clock.advance(Duration::from_millis(3));
/// assert_eq!(clock.now_micros(), 3000);
/// clock.set_micros(1000); // back, as real clocks do
/// assert_eq!(clock.now_micros(), 1000);
/// ```
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: DefaultWord,
}

impl ManualClock {
    /// Makes a clock that shows 0.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self { micros: DefaultWord::new(0) }
    }

    /// Sets the time, forward or back, in microseconds.
    #[inline]
    pub fn set_micros(&self, micros: u64) {
        self.micros.store(micros, Relaxed);
    }

    /// Moves the time forward by the whole microseconds of `by`, up to `u64::MAX` microseconds.
    #[inline]
    pub fn advance(&self, by: Duration) {
        let by = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        // The closure always answers, so the update always happens.
        let _ = self.micros.fetch_update(Relaxed, Relaxed, |now| Some(now.saturating_add(by)));
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now_micros(&self) -> u64 {
        self.micros.load(Relaxed)
    }
}
