//! A right that one has at a time, and that ends by itself.

use core::fmt;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use crate::{DefaultWord, Word};

/// The lowest bits are the holder; the others, when its lease ends.
const HOLDER_BITS: u32 = 24;
const HOLDER: u64 = (1 << HOLDER_BITS) - 1;
/// The end is counted in 1024 µs: 34 years of them.
const UNIT_BITS: u32 = 10;
const LATEST: u64 = u64::MAX >> HOLDER_BITS;
/// An hour and ten minutes.
const LONGEST: u64 = 1 << 22;

/// The right to do something that one at a time should, such as to steer a limiter: whoever has it renews it, and whoever
/// dies, stops or forgets loses it when its time is over. One word.
///
/// Its time is one that starts near zero and never goes back, such as the microseconds since the machine started: after 35 years of
/// it, every lease has ended.
///
/// It keeps others from starting, and does not make a holder stop who was held up past its end: so use it where two at a
/// time are a waste, and no harm.
///
/// # Memory ordering
///
/// Who [holds](Self::hold) it sees what the holder before did until it [gave the lease up](Self::give_up), or last renewed it.
///
/// # Examples
///
/// ```
/// use tollgate_core::Lease;
///
/// static STEERING: Lease = Lease::new();
/// assert!(STEERING.hold(0, 3_000_000, 7)); // from the time 0, for three seconds
/// assert!(!STEERING.hold(1_000_000, 4_000_000, 8)); // somebody else has it
/// assert!(STEERING.hold(2_000_000, 5_000_000, 7)); // renewed
/// assert!(STEERING.hold(5_100_000, 8_000_000, 8)); // it had ended
/// assert!(!STEERING.hold(5_200_000, 8_000_000, 7));
/// ```
pub struct Lease<W = DefaultWord>(W);

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl Lease {
    /// Makes a lease that nobody has.
    #[inline]
    #[must_use]
    pub const fn new() -> Self {
        Self(DefaultWord::new(0))
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl Default for Lease {
    #[inline]
    fn default() -> Self {
        Self::new()
    }
}

impl<W> Lease<W> {
    /// Makes a lease of a word as it is: of zero, to begin with.
    #[inline]
    #[must_use]
    pub const fn over(word: W) -> Self {
        Self(word)
    }
}

impl<W: Word> Lease<W> {
    /// Takes the lease at the time `now`, or renews it, until the time `until`, both in microseconds, at most an hour (it ends up to
    /// 1024 µs later); tells whether `holder` has it. Of a holder, the low 24 bits count.
    #[inline]
    pub fn hold(&self, now: u64, until: u64, holder: u32) -> bool {
        let holder = u64::from(holder) & HOLDER;
        let latest = (now >> UNIT_BITS).saturating_add(LONGEST).min(LATEST);
        let wanted = (until.div_ceil(1 << UNIT_BITS).min(latest) << HOLDER_BITS) | holder;
        let mut seen = self.0.load(Relaxed);
        while seen & HOLDER == holder || has_ended(seen, now) {
            match self.0.compare_exchange(seen, wanted, AcqRel, Acquire) {
                Ok(_) => return true,
                // Somebody was faster, and has it now, but for one who gave it up.
                Err(other) => seen = other,
            }
        }
        false
    }

    /// Gives the lease up, if `holder` has it.
    #[inline]
    pub fn give_up(&self, holder: u32) {
        let seen = self.0.load(Relaxed);
        if seen & HOLDER == u64::from(holder) & HOLDER {
            // It fails if somebody else has it by now.
            let _ = self.0.compare_exchange(seen, 0, AcqRel, Relaxed);
        }
    }

    /// Ends the lease, whoever has it.
    #[inline]
    pub fn end(&self) {
        self.0.store(0, Release);
    }

    /// Returns who has the lease at the time `now`.
    #[inline]
    #[must_use]
    #[allow(clippy::cast_possible_truncation, reason = "24 bits")]
    pub fn holder(&self, now: u64) -> Option<u32> {
        let seen = self.0.load(Relaxed);
        (!has_ended(seen, now)).then_some((seen & HOLDER) as u32)
    }
}

/// Whether it is over; or ends so late that nobody can have taken it, in memory that something else was written to.
const fn has_ended(word: u64, now: u64) -> bool {
    let (end, now) = (word >> HOLDER_BITS, now >> UNIT_BITS);
    end <= now || end.saturating_sub(now) > LONGEST.saturating_add(1)
}

impl<W: fmt::Debug> fmt::Debug for Lease<W> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lease").field(&self.0).finish()
    }
}
