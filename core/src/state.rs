//! The bucket without its atomics: one `Copy` value, pure transitions.
//!
//! A [`State`] is what one pair of words means. Every operation of a shared bucket is: read the words, apply transitions of this
//! file, publish the outcome with one compare-and-swap.

use core::time::Duration;

use crate::tick::Scale;
use crate::{Moment, Quota};

/// Hides a pattern that no bucket reaches by the clock's first tick, so that a word of zeros is none.
///
/// The token half is complemented: only a bucket that holds 2^32 − 1 tokens could be all zeros. The stamp half is an
/// arbitrary even number, far from the first ticks of a clock.
const MASK: u64 = 0xffff_ffff_5c1e_a7b2;

/// How far a horizon is kept below the stamps, in ticks: a quarter of a stamp's turn. See [`Words`](crate::Words).
pub(crate) const SLACK: u64 = 1 << 30;

/// What a bucket holds: whole tokens, and the tick up to which time has been turned into tokens.
///
/// ```text
///  63            32 31             0
/// +----------------+----------------+
/// |     tokens     |     stamp      |   XOR a constant, so that no state is all zeros
/// +----------------+----------------+
/// ```
///
/// The stamp is the low half of the tick; [`unpack`](Self::unpack) finds the upper half with the horizon's help. The fraction
/// of a token that has accrued is the time since that tick: it is never dropped.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use tollgate_core::{Quota, State, quota};
///
/// const QUOTA: Quota = quota!(Quota::per_second(3));
/// let drained = State::new(&QUOTA, 0, QUOTA.moment(0));
///
/// let later = drained.refill(&QUOTA, QUOTA.moment(500_000)); // a token and a half
/// let spent = later.take(1).unwrap();
/// assert_eq!(spent.take(1), None);
///
/// let wait = spent.wait_for(&QUOTA, QUOTA.moment(500_000), 1).unwrap();
/// assert_eq!(wait.duration(), Duration::from_micros(166_667));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    tokens: u32,
    /// The tick of the last refill: below 2^63 + 2.
    last: u64,
}

impl State {
    /// Makes the state of a bucket that holds `tokens`, at most the capacity, at `now`.
    #[inline]
    #[must_use]
    pub const fn new(quota: &Quota, tokens: u32, now: Moment) -> Self {
        Self { tokens: at_most(tokens, quota.capacity()), last: now.full }
    }

    /// Makes the state of a bucket that was full when the clock showed 0.
    #[inline]
    #[must_use]
    pub const fn full(quota: &Quota) -> Self {
        Self { tokens: quota.capacity(), last: 0 }
    }

    /// Reads a state word with the horizon that belongs to it; `None` if the word is zero, which is not a state.
    ///
    /// It belongs to it if the horizon was the same before and after the word was read.
    #[inline]
    #[must_use]
    pub const fn unpack(word: u64, horizon: u64) -> Option<Self> {
        if word == 0 {
            return None;
        }
        let word = word ^ MASK;
        let turn = lower(word).wrapping_sub(lower(horizon));
        Some(Self { tokens: lower(word >> 32), last: horizon.saturating_add(turn as u64) })
    }

    /// Packs the state into its word.
    #[inline]
    #[must_use]
    pub const fn pack(self) -> u64 {
        let word = (((self.tokens as u64) << 32) | lower(self.last) as u64) ^ MASK;
        if word != 0 {
            return word;
        }
        // A full bucket of 2^32 − 1 tokens, at one tick in 2^32: stamped a tick late (the stamp is even), which mints nothing.
        1
    }

    /// Returns the words of a new bucket in this state: the state word, then the horizon.
    #[inline]
    #[must_use]
    pub const fn to_words(self) -> [u64; 2] {
        [self.pack(), self.last.saturating_sub(SLACK)]
    }

    /// Returns the whole tokens, as of the last refill.
    #[inline]
    #[must_use]
    pub const fn tokens(self) -> u32 {
        self.tokens
    }

    /// Returns the tick of the last refill.
    #[inline]
    pub(crate) const fn last(self) -> u64 {
        self.last
    }

    /// Credits the whole tokens that have accrued until `now`. What is left of a token keeps accruing.
    ///
    /// A `now` before the last refill changes nothing.
    #[inline]
    #[must_use]
    pub const fn refill(self, quota: &Quota, now: Moment) -> Self {
        match self.refill_to(quota, now.tick) {
            Some(refilled) => refilled,
            None => Self { tokens: quota.capacity(), last: now.full },
        }
    }

    /// Credits what has accrued until `tick`; `None` if that fills the bucket.
    #[inline]
    pub(crate) const fn refill_to(self, quota: &Quota, tick: u64) -> Option<Self> {
        if tick < self.last {
            // Only damaged words hold more than the capacity.
            return Some(Self { tokens: at_most(self.tokens, quota.capacity()), last: self.last });
        }
        let ticks = tick.wrapping_sub(self.last);
        if ticks >= quota.scale().ticks(quota.capacity().saturating_sub(self.tokens)) {
            return None;
        }
        // Fewer tokens than were missing, so that they fit; their ticks are at most `ticks`.
        let (tokens, taken) = quota.scale().tokens(ticks);
        Some(Self { tokens: self.tokens.wrapping_add(lower(tokens)), last: self.last.wrapping_add(taken) })
    }

    /// Takes `n` tokens; `None` if there are fewer. Refill first.
    #[inline]
    #[must_use]
    pub const fn take(self, n: u32) -> Option<Self> {
        match self.tokens.checked_sub(n) {
            Some(tokens) => Some(Self { tokens, last: self.last }),
            None => None,
        }
    }

    /// Gives `n` tokens back; what would rise above the capacity is forfeited.
    ///
    /// There is no need to refill first: what has accrued is credited by the next refill, to the same level.
    #[inline]
    #[must_use]
    pub const fn refund(self, quota: &Quota, n: u32) -> Self {
        Self { tokens: at_most(self.tokens.saturating_add(n), quota.capacity()), last: self.last }
    }

    /// Tells how long after `now` the bucket holds `n` tokens; `None` if that is more than the capacity.
    ///
    /// Costs nothing until it is [asked](RetryAfter::duration).
    #[inline]
    #[must_use]
    pub const fn wait_for(self, quota: &Quota, now: Moment, n: u32) -> Option<RetryAfter> {
        if n > quota.capacity() {
            return None;
        }
        let scale = quota.scale();
        let due = match n.checked_sub(self.tokens) {
            None | Some(0) => 0,
            Some(missing) => self.last.saturating_add(scale.ticks(missing)),
        };
        Some(RetryAfter { scale, due, now: now.micros })
    }
}

/// How long to wait, worked out when it is asked: a refusal costs no division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryAfter {
    scale: Scale,
    /// The tick at which the tokens will be there; 0 if they are.
    due: u64,
    /// The time of the call, in microseconds.
    now: u64,
}

impl RetryAfter {
    /// Returns the shortest wait after which the same call succeeds, if nobody else takes tokens meanwhile.
    ///
    /// Exact to the microsecond: one less, and the call fails. Costs a division of 128 bits.
    #[inline]
    #[must_use]
    pub const fn duration(&self) -> Duration {
        let wait = self.scale.micros(self.due).saturating_sub(self.now as u128);
        // A wait is at most 2^63 µs, one fill time, and 2^53 µs, how far a clock can go back. More comes of damaged words.
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        Duration::from_micros(if wait < u64::MAX as u128 { wait as u64 } else { u64::MAX })
    }
}

/// `Ord::min` is not const.
const fn at_most(tokens: u32, capacity: u32) -> u32 {
    if tokens < capacity { tokens } else { capacity }
}

#[allow(clippy::cast_possible_truncation, reason = "the lower half is what is asked for")]
const fn lower(value: u64) -> u32 {
    value as u32
}
