//! Elapsed time as refills, for a bucket that has no clock.

use crate::{AtomicTokenBucket, Moment, Quota, Word};

/// Credits a pool by the time that has passed, not by how often it is called: late by three periods, it credits all
/// three; early, it credits what is due. Nothing is lost or minted by jitter.
///
/// It is the owner's alone (`&mut self`); the pool is shared. Of the quota, only the rate counts; the pool's capacity
/// is its own. The arithmetic is the [`TokenBucket`](crate::TokenBucket)'s, exact to the tick.
///
/// # Examples
///
/// ```
/// use tollgate_core::{AtomicTokenBucket, Quota, Refiller, quota};
///
/// static POOL: AtomicTokenBucket = AtomicTokenBucket::new(1000);
/// POOL.drain();
///
/// let mut owner = Refiller::new(quota!(Quota::per_second(100)), 0);
/// assert_eq!(owner.refill_at(9_999, &POOL), 0); // a timer that fires early
/// assert_eq!(owner.refill_at(30_500, &POOL), 3); // and late
/// assert_eq!(owner.refill_at(40_000, &POOL), 1); // the half token was not lost
/// assert_eq!(POOL.available(), 4);
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Refiller {
    quota: Quota,
    /// The time from which it counts, in microseconds.
    start: u64,
    /// The tick since then up to which time has been credited.
    last: u64,
}

impl Refiller {
    /// Starts to count at the time `now`, in microseconds.
    #[inline]
    #[must_use]
    pub const fn new(quota: Quota, now: u64) -> Self {
        Self { quota, start: now, last: 0 }
    }

    /// Returns the whole tokens that have accrued until the time `now`, in microseconds, and counts on from there. A
    /// time before an earlier call's returns 0. More than 2^62 at once are told as that.
    #[inline]
    pub const fn accrued_at(&mut self, now: u64) -> u64 {
        let Moment { tick, .. } = self.quota.moment(now.saturating_sub(self.start));
        let (tokens, taken) = self.quota.scale().tokens(tick.saturating_sub(self.last));
        // At most `tick`.
        self.last = self.last.wrapping_add(taken);
        tokens
    }

    /// Refills `pool` with what has accrued until the time `now`, in microseconds; returns how many tokens found
    /// room.
    #[inline]
    pub fn refill_at<W: Word>(&mut self, now: u64, pool: &AtomicTokenBucket<W>) -> u64 {
        match self.accrued_at(now) {
            0 => 0,
            tokens => pool.refill(tokens),
        }
    }
}
