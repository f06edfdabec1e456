//! The bucket in 8 bytes: one word, no horizon.

use core::sync::atomic::Ordering::Relaxed;
use core::time::Duration;

use crate::memory::{MAX_ATTEMPTS, Miss, Sealed};
use crate::state::IDLE;
use crate::{DefaultWord, Memory, Moment, NoClock, Quota, State, TokenBucket, Word};

/// The one word of a [`CompactTokenBucket`]: 8 bytes, tokens and the low 32 bits of the tick of the last refill.
///
/// Zero, as in fresh static memory, means that nobody has used the bucket: it is full, and the first call that takes
/// from it is the one that stamps it, once, whatever races.
#[derive(Debug)]
pub struct OneWord<W = DefaultWord>(W);

/// A [`TokenBucket`] in 8 bytes, exact as long as somebody takes from it at least once in each
/// [`window`](Self::window).
///
/// Without a horizon, nothing tells the turns of the stamp apart. So it counts in ticks so long that the window of
/// them is as long as you ask for: the longer the window, the coarser. But a tick is never longer than a token takes:
/// the window of fast quotas is shorter than asked for, 13 · 2^28 tokens' time (40 days at 1000 a second, an hour at
/// a million). What that means for a bucket that is
///
/// - used within the window: it is a [`TokenBucket`], to the tick. A token is at most one tick late, and never more
///   than a microsecond early;
/// - idle for longer: it may once be credited less than is due, never more;
/// - read by a clock that goes back by less than a thirteenth of the window: nothing changes. By more, it could be
///   credited what it should not: use it with monotonic clocks.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tollgate_core::{CompactTokenBucket, NoClock, Quota, quota};
///
/// const QUOTA: Quota = quota!(Quota::per_second(10), burst 2);
/// static PORTS: [CompactTokenBucket; 64] =
///     [const { CompactTokenBucket::with_window(QUOTA, Duration::from_hours(24), NoClock) }; 64];
///
/// assert_eq!(PORTS[3].try_acquire_at(5, 2), Ok(0));
/// assert!(PORTS[3].try_acquire_at(99_000, 1).is_err());
/// assert_eq!(PORTS[3].try_acquire_at(100_100, 1), Ok(0));
/// assert!(PORTS[3].window() >= Duration::from_hours(24));
/// ```
pub type CompactTokenBucket<C = NoClock, W = DefaultWord> = TokenBucket<C, OneWord<W>>;

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<C> CompactTokenBucket<C> {
    /// Makes a full bucket that is exact when somebody takes from it at least once in each `window`, and reads
    /// `clock` ([`NoClock`] for the calls that are given the time).
    ///
    /// The window is at least as long as asked for, up to the time that a clock can show
    /// ([`MAX_MICROS`](crate::MAX_MICROS)), or else the 13 · 2^28 ticks of a token: [`window`](Self::window) tells.
    /// It is at least as long as the bucket takes to fill: a larger burst, of more than 13 · 2^28 (3 489 660 928)
    /// tokens, is cut, as [`quota`](Self::quota) tells.
    #[inline]
    #[must_use]
    pub const fn with_window(quota: Quota, window: Duration, clock: C) -> Self {
        Self::over_word(quota, window, DefaultWord::new(0), clock)
    }
}

impl<C, W> CompactTokenBucket<C, W> {
    /// Makes a bucket of a word that exists, as it is: zero makes it full, and any other is a state. All users of the
    /// word must use an equal quota and window, and clocks that agree. Otherwise as
    /// [`with_window`](Self::with_window).
    #[inline]
    #[must_use]
    pub const fn over_word(quota: Quota, window: Duration, word: W, clock: C) -> Self {
        let micros = window.as_micros();
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        let micros = if micros < u64::MAX as u128 { micros as u64 } else { u64::MAX };
        Self::from_parts(quota.within(micros), OneWord(word), clock)
    }

    /// Returns the quota, with the burst that is in force.
    #[inline]
    #[must_use]
    pub const fn quota(&self) -> Quota {
        self.counted_in().in_finest_ticks()
    }

    /// Returns how long the bucket may be left alone, in whole microseconds, at most 2^64 − 1 of them.
    #[inline]
    #[must_use]
    pub const fn window(&self) -> Duration {
        let micros = self.counted_in().scale().micros(IDLE).saturating_sub(1);
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        Duration::from_micros(if micros < u64::MAX as u128 { micros as u64 } else { u64::MAX })
    }
}

impl<W: Word> Memory for OneWord<W> {}

/// All is Relaxed: there is one word, and the order of its changes is all that counts.
impl<W: Word> Sealed for OneWord<W> {
    #[inline]
    fn transact(
        &self,
        quota: &Quota,
        clock: impl Fn() -> u64,
        decide: impl Fn(State, Moment) -> Option<State>,
    ) -> Result<(State, Moment), Miss> {
        for _ in 0..MAX_ATTEMPTS {
            let word = self.0.load(Relaxed);
            // After the word, at each attempt, so that the clock is not behind whoever wrote it.
            let now = quota.moment(clock());
            let stored = State::unpack_alone(word, now).unwrap_or(State::new(quota, u32::MAX, now));
            let state = stored.refill(quota, now);
            let Some(next) = decide(state, now) else { return Ok((state, now)) };
            if self.0.compare_exchange(word, next.pack_alone(), Relaxed, Relaxed).is_ok() {
                return Ok((state, now));
            }
        }
        Err(Miss::Overtaken)
    }

    #[inline]
    fn refund(&self, quota: &Quota, n: u32) -> Result<(), Miss> {
        for _ in 0..MAX_ATTEMPTS {
            let word = self.0.load(Relaxed);
            // A bucket that nobody has used is full.
            let Some(next) = State::refund_word(word, quota, n) else { return Ok(()) };
            if next == word || self.0.compare_exchange(word, next, Relaxed, Relaxed).is_ok() {
                return Ok(());
            }
        }
        Err(Miss::Overtaken)
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
const _: () = assert!(size_of::<OneWord>() == 8, "the word of a compact bucket is 8 bytes");
