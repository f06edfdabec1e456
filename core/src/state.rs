//! The bucket without its atomics: one `Copy` value, pure transitions.
//!
//! A [`State`] is what one pair of words means. Every operation of a shared bucket is: read the words, apply
//! transitions of this file, publish the outcome with one compare-and-swap.

use core::hint::cold_path;
use core::time::Duration;

use crate::tick::{FILL_TICKS, Scale};
use crate::{Moment, Quota, TryAcquireError};

/// Hides the states, so that small words are none.
///
/// The token half is complemented: only a bucket that holds 2^32 − 1 tokens could be a small word. The stamp half is
/// arbitrary, far from the first ticks of a clock, with a 0 where [`RESERVED`] has its 1.
const MASK: u64 = 0xffff_ffff_5c1e_a7b4;

/// Words below are no states: 0 says that there is none, [`MOVED`] that it is elsewhere.
const RESERVED: u64 = 2;

/// The state word of a bucket that was handed over.
pub(crate) const MOVED: u64 = 1;

/// The token half of a word.
const TOKENS: u64 = 0xffff_ffff_0000_0000;

/// How far past the horizon a call may still write, in ticks: half of a stamp's turn.
pub(crate) const REACH: u64 = 1 << 30;

/// How long ago a stamp without a horizon may be, in ticks: all of its turn of 2^32 but a sixteenth.
pub(crate) const WINDOW: u64 = 15 << 28;

/// How long a bucket without a horizon may be left alone, in ticks: the stamp may be a token's time older than the
/// call that set it, and that is at most the time to fill.
pub(crate) const IDLE: u64 = WINDOW - FILL_TICKS;

/// What a bucket holds: whole tokens, and the tick up to which time has been turned into tokens.
///
/// ```text
///  63            32  31           1   0
/// +----------------+--------------+-----+
/// |     tokens     |    stamp     |epoch|   XOR a constant, so that no state is all zeros
/// +----------------+--------------+-----+
/// ```
///
/// The stamp is the low part of the tick; the horizon, in the second word, tells the rest. The epoch changes with
/// each jump of the horizon, so that a word from before a jump is not met again before the next. The fraction of a
/// token that has accrued is the time since the tick: it is never dropped.
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
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct State {
    tokens: u32,
    /// The tick of the last refill.
    last: Mark,
}

/// A tick below 2^63, and which of two successive jumps of the horizon it comes after. As a word it is a horizon, and
/// its lower half is the stamp of a state.
///
/// ```text
///  63                        1   0
/// +---------------------------+-----+
/// |           tick            |epoch|   the larger word is the later horizon
/// +---------------------------+-----+
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub(crate) struct Mark(pub(crate) u64);

impl Mark {
    pub(crate) const fn new(tick: u64, epoch: bool) -> Self {
        Self((tick << 1) | epoch as u64)
    }

    #[inline]
    pub(crate) const fn tick(self) -> u64 {
        self.0 >> 1
    }

    #[inline]
    pub(crate) const fn epoch(self) -> bool {
        self.0 & 1 == 1
    }

    /// Tells whether this horizon can tell the stamp of a state that is written at `tick`.
    #[inline]
    pub(crate) const fn reaches(self, tick: u64) -> bool {
        tick < self.tick().wrapping_add(REACH)
    }

    /// The same epoch, `ticks` later.
    #[inline]
    const fn after(self, ticks: u64) -> Self {
        Self(self.0.wrapping_add(ticks << 1))
    }
}

impl State {
    /// Makes the state of a bucket that holds `tokens`, at most the capacity, at `now`.
    #[inline]
    #[must_use]
    pub const fn new(quota: &Quota, tokens: u32, now: Moment) -> Self {
        Self { tokens: at_most(tokens, quota.capacity()), last: Mark::new(quota.full_from(now), false) }
    }

    /// Makes the state of a bucket that was full when the clock showed 0.
    #[inline]
    #[must_use]
    pub const fn full(quota: &Quota) -> Self {
        Self { tokens: quota.capacity(), last: Mark::new(0, false) }
    }

    /// Makes the state of a full bucket that starts the epoch after `horizon`'s. `last` is the tick from which it
    /// counts.
    pub(crate) const fn next_epoch(quota: &Quota, last: u64, horizon: Mark) -> Self {
        Self { tokens: quota.capacity(), last: Mark::new(last, !horizon.epoch()) }
    }

    /// Reads a state word with the horizon that was there before and after it; `None` if the word is
    /// [`RESERVED`], or the tick past the last.
    ///
    /// A state of another epoch than the horizon's is full, and somebody is about to raise the horizon: its tick is
    /// not known yet. It is full at the horizon's, and at any other.
    #[inline]
    pub(crate) const fn unpack(word: u64, horizon: Mark) -> Option<Self> {
        if word < RESERVED {
            return None;
        }
        // Both are twice their ticks, plus the epoch: the difference is even if the epoch is the same.
        let since = lower(word ^ MASK).wrapping_sub(lower(horizon.0)) as u64;
        // Past the last tick, no horizon is one: the words are damaged, or were erased to ones.
        let Some(last) = horizon.0.checked_add(since) else { return None };
        if since & 1 == 0 {
            Some(Self { tokens: tokens_of(word), last: Mark(last) })
        } else {
            Some(Self::between_epochs(word, horizon))
        }
    }

    #[cold]
    const fn between_epochs(word: u64, horizon: Mark) -> Self {
        Self { tokens: tokens_of(word), last: Mark(horizon.0 ^ 1) }
    }

    /// The state once the jump that it may be in the middle of is done: full, from the first tick above the horizon
    /// that has the stamp of its word.
    pub(crate) const fn settled(self, word: u64, horizon: Mark) -> Self {
        if self.last.epoch() == horizon.epoch() {
            self
        } else {
            let begun = Self::stamp_near(word, horizon.tick().saturating_add(REACH));
            Self { last: Mark::new(begun, self.last.epoch()), ..self }
        }
    }

    /// Reads the word of a bucket that has no horizon, as seen at `now`; `None` if the word is zero.
    ///
    /// Its stamp takes 32 bits. It is taken for one of the last [`WINDOW`] ticks, or else, being that far back, for
    /// one of the ticks to come: the clock has gone back.
    #[inline]
    pub(crate) const fn unpack_alone(word: u64, now: Moment) -> Option<Self> {
        if word == 0 {
            return None;
        }
        let since = lower(now.tick).wrapping_sub(lower(word ^ MASK)) as u64;
        let last = if since < WINDOW {
            now.tick.saturating_sub(since)
        } else {
            now.tick.saturating_add((1_u64 << 32).wrapping_sub(since))
        };
        Some(Self { tokens: tokens_of(word), last: Mark::new(last, false) })
    }

    /// Packs the state into a word that has no horizon.
    #[inline]
    pub(crate) const fn pack_alone(self) -> u64 {
        unreserved((((self.tokens as u64) << 32) | lower(self.last.tick()) as u64) ^ MASK)
    }

    /// Packs the state into its word.
    #[inline]
    pub(crate) const fn pack(self) -> u64 {
        unreserved((((self.tokens as u64) << 32) | lower(self.last.0) as u64) ^ MASK)
    }

    /// Returns `word` with the tokens of [`refund`](Self::refund); `None` if it is [`RESERVED`]. The rest of it
    /// stays, unread.
    #[inline]
    pub(crate) const fn refund_word(word: u64, quota: &Quota, n: u32) -> Option<u64> {
        if word < RESERVED {
            return None;
        }
        let tokens = at_most(tokens_of(word).saturating_add(n), quota.capacity());
        Some(unreserved((((tokens as u64) << 32) ^ (MASK & TOKENS)) | (word & !TOKENS)))
    }

    /// Returns the words of a new bucket in this state: the state word, then the horizon.
    #[inline]
    #[must_use]
    pub const fn to_words(self) -> [u64; 2] {
        [self.pack(), self.last.0]
    }

    /// Returns the time up to which tokens have been credited, in microseconds: that of the last refill, or of the
    /// end of a debt.
    #[inline]
    #[must_use]
    pub const fn credited_until(self, quota: &Quota) -> u64 {
        let micros = quota.scale().micros(self.last.tick());
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        if micros < u64::MAX as u128 { micros as u64 } else { u64::MAX }
    }

    /// Returns the whole tokens, as of the last refill.
    #[inline]
    #[must_use]
    pub const fn tokens(self) -> u32 {
        self.tokens
    }

    /// Returns the highest horizon that tells the turn of this state's stamp.
    pub(crate) const fn horizon(self) -> Mark {
        self.last
    }

    #[inline]
    pub(crate) const fn epoch(self) -> bool {
        self.last.epoch()
    }

    /// The tick nearest to `tick` that has the stamp of a word.
    pub(crate) const fn stamp_near(word: u64, tick: u64) -> u64 {
        let stamp = (lower(word ^ MASK) >> 1) as u64;
        // How far ahead the stamp is, in a turn of 2^31.
        let ahead = stamp.wrapping_sub(tick) % (2 * REACH);
        if ahead <= REACH { tick.saturating_add(ahead) } else { tick.saturating_sub((2 * REACH).wrapping_sub(ahead)) }
    }

    /// The same, with the tokens of another, at most as many as there are.
    pub(crate) const fn with_tokens_of(self, other: Self) -> Self {
        Self { tokens: at_most(other.tokens, self.tokens), ..self }
    }

    /// Returns the tick of the last refill.
    #[inline]
    pub(crate) const fn last(self) -> u64 {
        self.last.tick()
    }

    /// Credits the whole tokens that have accrued until `now`. What is left of a token keeps accruing.
    ///
    /// A `now` before the last refill changes nothing.
    #[inline]
    #[must_use]
    pub const fn refill(self, quota: &Quota, now: Moment) -> Self {
        match self.refill_to(quota, now.tick) {
            Some(refilled) => refilled,
            None => Self { tokens: quota.capacity(), last: Mark::new(quota.full_from(now), self.last.epoch()) },
        }
    }

    /// Credits what has accrued until `tick`; `None` if that fills the bucket.
    #[inline]
    pub(crate) const fn refill_to(self, quota: &Quota, tick: u64) -> Option<Self> {
        let Some(ticks) = tick.checked_sub(self.last.tick()) else {
            // Only damaged words hold more than the capacity.
            return Some(Self { tokens: at_most(self.tokens, quota.capacity()), ..self });
        };
        let (tokens, taken) = quota.scale().tokens(ticks);
        let level = tokens.wrapping_add(self.tokens as u64);
        if level >= quota.capacity() as u64 {
            return None;
        }
        Some(Self { tokens: lower(level), last: self.last.after(taken) })
    }

    /// Takes `n` tokens; `None` if there are fewer. Refill first.
    #[inline]
    #[must_use]
    pub const fn take(self, n: u32) -> Option<Self> {
        match self.tokens.checked_sub(n) {
            Some(tokens) => Some(Self { tokens, ..self }),
            None => None,
        }
    }

    /// Takes `n` tokens, and owes those that are not there: the bucket stays empty until they have accrued. `None` if
    /// it would owe more than [`Quota::most_owed`] at `now`. Refill first.
    #[inline]
    pub(crate) const fn overdraw(self, quota: &Quota, now: Moment, n: u32) -> Option<Self> {
        match self.take(n) {
            Some(left) => Some(left),
            None if self.paid(quota, n) > now.tick.saturating_add(quota.most_owed_ticks()) => None,
            None => Self { tokens: 0, ..self }.owing(self.paid(quota, n)),
        }
    }

    /// Tells how long after `now` [`overdraw`](Self::overdraw) takes `n` tokens, more than there are.
    pub(crate) const fn wait_to_overdraw(self, quota: &Quota, now: Moment, n: u32) -> RetryAfter {
        // As if one token were missing, and due at the tick from which no more is owed than can be.
        let scale = quota.scale();
        let due = self.paid(quota, n).saturating_sub(quota.most_owed_ticks());
        RetryAfter { scale, missing: 1, last: due.saturating_sub(scale.ticks(1)), now: now.micros }
    }

    /// The tick at which the last of `n` tokens, more than there are, has accrued.
    const fn paid(self, quota: &Quota, n: u32) -> u64 {
        self.last.tick().saturating_add(quota.scale().ticks(n.saturating_sub(self.tokens)))
    }

    /// The same tokens, and more from `tick` on; `None` past the last tick.
    const fn owing(self, tick: u64) -> Option<Self> {
        if tick < 1 << 63 { Some(Self { last: Mark::new(tick, self.last.epoch()), ..self }) } else { None }
    }

    /// Makes the state of a bucket with another quota that has the level of this one at `now`, in microseconds: the
    /// whole tokens, at most the new capacity, or what is owed, at most as much as can be.
    pub(crate) const fn convert(self, quota: &Quota, new: &Quota, now: u64) -> Self {
        let before = quota.moment(now);
        let level = self.refill(quota, before);
        let state = Self::new(new, level.tokens, new.moment(now));
        let owed = new.scale().ticks_of(level.last.tick().saturating_sub(quota.full_from(before)), quota.scale());
        let owed = if owed < new.most_owed_ticks() { owed } else { new.most_owed_ticks() };
        if owed == 0 {
            return state;
        }
        match state.owing(state.last.tick().saturating_add(owed)) {
            Some(owing) => owing,
            None => state,
        }
    }

    /// Fills the bucket, whatever has accrued. From `now` on, or from the last refill if that is later.
    #[inline]
    #[must_use]
    pub const fn reset(self, quota: &Quota, now: Moment) -> Self {
        let full = Mark::new(quota.full_from(now), self.last.epoch());
        Self { tokens: quota.capacity(), last: if full.0 > self.last.0 { full } else { self.last } }
    }

    /// Gives `n` tokens back; what would rise above the capacity is forfeited.
    ///
    /// There is no need to refill first: what has accrued is credited by the next refill, to the same level.
    #[inline]
    #[must_use]
    pub const fn refund(self, quota: &Quota, n: u32) -> Self {
        Self { tokens: at_most(self.tokens.saturating_add(n), quota.capacity()), ..self }
    }

    /// Tells how long after `now` the bucket holds `n` tokens; `None` if that is more than the capacity.
    ///
    /// Costs nothing until it is [asked](RetryAfter::duration).
    #[inline]
    #[must_use]
    pub const fn wait_for(self, quota: &Quota, now: Moment, n: u32) -> Option<RetryAfter> {
        if quota.check(n).is_err() { None } else { Some(self.wait(quota, now, n)) }
    }

    /// Tells the same of an `n` that is at most the capacity.
    #[inline]
    pub(crate) const fn wait(self, quota: &Quota, now: Moment, n: u32) -> RetryAfter {
        RetryAfter { scale: quota.scale(), missing: n.saturating_sub(self.tokens), last: self.last(), now: now.micros }
    }

    /// Refuses `n` tokens, at most the capacity, that are not there.
    #[inline]
    pub(crate) const fn refusal(self, quota: &Quota, now: Moment, n: u32) -> TryAcquireError {
        let retry_after = self.wait(quota, now, n);
        TryAcquireError::Insufficient { requested: n, available: self.tokens, retry_after }
    }
}

/// How long to wait, worked out when it is asked: a refusal costs no division.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RetryAfter {
    scale: Scale,
    /// The tokens that are missing.
    missing: u32,
    /// The tick from which they accrue.
    last: u64,
    /// The time of the call, in microseconds.
    now: u64,
}

impl RetryAfter {
    /// Returns the shortest wait after which the same call succeeds, if nobody else takes tokens meanwhile.
    ///
    /// Exact to the microsecond: one less, and the call fails. Costs a division of 128 bits. A wait that ends past
    /// [`MAX_MICROS`](crate::MAX_MICROS), which no clock shows, never does.
    #[inline]
    #[must_use]
    pub const fn duration(&self) -> Duration {
        if self.missing == 0 {
            return Duration::ZERO;
        }
        let due = self.last.saturating_add(self.scale.ticks(self.missing));
        let wait = self.scale.micros(due).saturating_sub(self.now as u128);
        // A wait is at most 2^63 µs, one fill time, and 2^53 µs, how far a clock can go back. More comes of damaged
        // words.
        #[allow(clippy::cast_possible_truncation, reason = "compared before")]
        Duration::from_micros(if wait < u64::MAX as u128 { wait as u64 } else { u64::MAX })
    }
}

const fn tokens_of(word: u64) -> u32 {
    lower((word ^ MASK) >> 32)
}

/// Stamps a full bucket of 2^32 − 1 tokens, at one tick in 2^31, a tick late (two ticks without a horizon), which
/// mints nothing.
const fn unreserved(word: u64) -> u64 {
    if word >= RESERVED {
        word
    } else {
        cold_path();
        word | RESERVED
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

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects, reason = "a test may panic")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 30 } else { 20_000 }))]

        #[test]
        fn packing_keeps_the_state(tokens: u32, last in 0..1_u64 << 63, epoch: bool, below in 0..2 * REACH) {
            let state = State { tokens, last: Mark::new(last, epoch) };
            let horizon = Mark::new(last.saturating_sub(below), epoch);
            prop_assert_eq!(State::unpack(state.pack(), horizon), Some(state));
            prop_assert_eq!(State::unpack(state.pack(), state.horizon()), Some(state));
            prop_assert_eq!((horizon.tick(), horizon.epoch()), (last.saturating_sub(below), epoch));
        }

        #[test]
        fn a_refund_to_the_word_is_one_to_the_state(tokens: u32, last in 0..2 * REACH, epoch: bool, capacity in 1..=u32::MAX, n: u32) {
            let quota = crate::quota!(Quota::per_second(1)).with_burst(capacity).unwrap();
            let state = State { tokens, last: Mark::new(last, epoch) };
            prop_assert_eq!(State::refund_word(state.pack(), &quota, n), Some(state.refund(&quota, n).pack()));
        }
    }

    #[test]
    fn without_a_horizon_a_stamp_is_of_the_window_or_of_the_time_to_come() {
        let quota = crate::quota!(Quota::per_second(1));
        for now in [WINDOW, 1 << 32, (1 << 40) + 12_345] {
            let now = Moment { micros: 0, tick: now };
            let read = |since: u64| {
                let word = State { tokens: 1, last: Mark::new(now.tick.wrapping_sub(since), false) }.pack_alone();
                State::unpack_alone(word, now).map(State::last)
            };
            assert_eq!(read(WINDOW - 1), Some(now.tick - (WINDOW - 1)));
            assert_eq!(read(WINDOW), Some(now.tick + (1 << 28)));
            assert_eq!(read(0), Some(now.tick));
        }
        assert_eq!(State::full(&quota).tokens(), 1);
    }

    #[test]
    fn no_state_is_a_reserved_word() {
        let state = State { tokens: u32::MAX, last: Mark(u64::from(lower(MASK))) };
        assert_eq!(state.pack(), RESERVED);
        let later = State { last: state.last.after(1), ..state };
        assert_eq!(State::unpack(RESERVED, state.horizon()), Some(later));
        for word in 0..RESERVED {
            assert_eq!(State::unpack(word, state.horizon()), None);
            assert!(State { last: Mark(state.last.0 ^ word), ..state }.pack() >= RESERVED);
        }
        let one_less = State { tokens: u32::MAX - 1, ..state };
        let quota = crate::quota!(Quota::per_second(1), burst u32::MAX);
        assert_eq!(State::refund_word(one_less.pack(), &quota, 1), Some(RESERVED));
        assert_eq!(State::refund_word(RESERVED, &quota, 1), Some(RESERVED));
        assert_eq!(state.owing(1 << 63), None);
        assert_eq!(state.owing((1 << 63) - 1).map(State::last), Some((1 << 63) - 1));
    }
}
