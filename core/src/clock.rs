//! Where time comes from: the caller.

/// The latest time that a clock can show, in microseconds: 2^53 − 1, about 285 years. A later reading is taken
/// as this one.
pub const MAX_MICROS: u64 = (1 << 53) - 1;

/// A source of time, in microseconds since an origin of its own.
///
/// All users of one bucket must read clocks with one origin and one rate.
///
/// - A reading never fails, blocks or panics.
/// - Readings count microseconds from a fixed origin, from 0 to [`MAX_MICROS`]; a later one is taken as that.
/// - The clock should be monotonic. One that stands still, goes back or is read late never makes the bucket grant
///   more than its quota allows between the earliest and the latest reading it was given, and never takes a token
///   away: nothing accrues until the clock has passed the last refill again.
/// - The resolution may be coarser than a microsecond. Whatever it is adds to the bound of the bucket: at most
///   capacity + rate × (window + one step of the clock).
///
/// # Examples
///
/// ```
/// use tollgate_core::{Clock, Quota, TokenBucket, quota};
///
/// /// A millisecond counter that a timer interrupt increments.
/// struct Millis<'a>(&'a core::sync::atomic::AtomicU32);
///
/// impl Clock for Millis<'_> {
///     fn now_micros(&self) -> u64 {
///         u64::from(self.0.load(core::sync::atomic::Ordering::Relaxed)) * 1000
///     }
/// }
///
/// let uptime = core::sync::atomic::AtomicU32::new(0);
/// let bucket = TokenBucket::with_clock(quota!(Quota::per_second(1)), Millis(&uptime));
/// assert!(bucket.try_acquire(1).is_ok());
/// assert!(bucket.try_acquire(1).is_err());
/// uptime.store(1000, core::sync::atomic::Ordering::Relaxed);
/// assert!(bucket.try_acquire(1).is_ok());
/// ```
pub trait Clock {
    /// Returns the time now, in microseconds since the clock's origin.
    fn now_micros(&self) -> u64;
}

impl<C: Clock + ?Sized> Clock for &C {
    #[inline]
    fn now_micros(&self) -> u64 {
        (**self).now_micros()
    }
}

/// The clock of a bucket that has none: only the calls that are given the time (`…_at`) exist on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoClock;
