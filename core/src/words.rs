//! The two words of a bucket, and the compare-and-swap loop over them.
//!
//! # The horizon
//!
//! The state word has room for the low 31 bits of its tick. The second word, the *horizon* H, is a full tick that
//! tells the stamp's turns apart:
//!
//! ```text
//!          H                last            T = now
//! ---------+-----------------+---------------+------+---------------+--------> ticks
//!          |<- a call may write a new state while T is here, 2^30 ->|
//!          |<- a stamp turns over, 2^31 ---------------------------------- …
//! ```
//!
//! While H <= last < H + 2^31, the stamp and H give the tick. A call that comes later than H + 2^30 first advances H,
//! and tries again (see `settle`):
//!
//! - not full: H is raised to the stamp, from which stamps don't fall;
//! - full: it *jumps*. First the state becomes full at T, in the other epoch, then H is raised to T, in that epoch.
//!   In between, the epochs differ: the state is full, by any reading, and nobody takes from it. A caller that dies
//!   there leaves a state that the next one settles alike.
//!
//! H never falls.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::memory::{MAX_ATTEMPTS, Miss, Sealed};
use crate::state::{MOVED, Mark, REACH};
use crate::{DefaultWord, Memory, Moment, Quota, State, Word};

/// How far apart the readings of two who settle one jump may be, in ticks: a quarter of a stamp's turn.
const APART: u64 = REACH / 2;

/// Everything that the users of one bucket share: 16 bytes.
///
/// ```text
/// offset 0   state    tokens, an epoch, and the low 31 bits of the last refill's tick (see State)
/// offset 8   horizon  a tick at or below the last refill's, which tells the stamp's turns apart, and its epoch
/// ```
///
/// The pair is aligned to its size, so that a call on a bucket that owns it touches one cache line. See to the same
/// where you lend the cells.
///
/// # Examples
///
/// ```
/// use core::sync::atomic::AtomicU64;
/// use tollgate_core::{NoClock, Quota, State, TokenBucket, TryAcquireError, Words, quota};
///
/// // Two words of somebody else's memory, here of the stack.
/// const QUOTA: Quota = quota!(Quota::per_second(5));
/// let [state, horizon] = State::new(&QUOTA, 3, QUOTA.moment(0)).to_words().map(AtomicU64::new);
///
/// let bucket = TokenBucket::over(QUOTA, Words::new(&state, &horizon), NoClock);
/// assert_eq!(bucket.try_acquire_at(0, 3), Ok(0));
/// assert!(matches!(bucket.try_acquire_at(0, 1), Err(TryAcquireError::Insufficient { .. })));
/// ```
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Words<W = DefaultWord> {
    pub(crate) state: W,
    pub(crate) horizon: W,
}

impl<W> Words<W> {
    /// Names the two cells of a bucket, in the order of
    /// [`State::to_words`](crate::State::to_words). They are used as they are: zeros, as in fresh memory, or ones, as
    /// in erased flash, make every call that takes or looks fail with
    /// [`Uninitialized`](crate::TryAcquireError::Uninitialized).
    #[inline]
    pub const fn new(state: W, horizon: W) -> Self {
        Self { state, horizon }
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl Words {
    /// Makes words that hold `state`.
    #[inline]
    #[must_use]
    pub const fn holding(state: crate::State) -> Self {
        let [state, horizon] = state.to_words();
        Self::new(DefaultWord::new(state), DefaultWord::new(horizon))
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
const _: () = assert!(size_of::<Words>() == 16, "the shared words of a bucket are 16 bytes");

impl<W: Word> Memory for Words<W> {}

impl<W: Word> Sealed for Words<W> {
    #[inline(always)]
    fn transact(
        &self,
        quota: &Quota,
        clock: impl Fn() -> u64,
        decide: impl Fn(State, Moment) -> Option<State>,
    ) -> Result<(State, Moment), Miss> {
        // Once, since a call happens at one time. A state of somebody whose clock was read later is taken as it is.
        let now = quota.moment(clock());
        match self.attempt(quota, now, &decide) {
            Ok(state) => Ok((state, now)),
            Err(miss) => Ok((self.attempt_again(miss, quota, clock, now, decide)?, now)),
        }
    }

    #[inline]
    fn refund(&self, quota: &Quota, n: u32) -> Result<(), Miss> {
        for _ in 0..MAX_ATTEMPTS {
            // Acquire, pairs with the Release in `replace`: who sees that the bucket has moved finds its level there.
            let word = self.state.load(Acquire);
            let Some(next) = State::refund_word(word, quota, n) else {
                return Err(Miss::NoState(word));
            };
            if next == word || self.replace(word, next) {
                return Ok(());
            }
        }
        Err(Miss::Overtaken)
    }
}

impl<W: Word> Words<W> {
    /// Reads the words as they are at one time, and what they mean.
    #[inline]
    fn snapshot(&self) -> Result<(u64, Mark, State), Miss> {
        // Acquire, pairs with the Release in `raise`: the state read next is no older than the one for which the
        // horizon was raised.
        let horizon = self.horizon.load(Acquire);
        // Acquire, pairs with the Release in `replace`: the horizon read next is no older than the writer's.
        let word = self.state.load(Acquire);
        // Relaxed: only compared. Unchanged, it belongs to the state that was read between.
        if self.horizon.load(Relaxed) != horizon {
            return Err(Miss::Overtaken);
        }
        let horizon = Mark(horizon);
        match State::unpack(word, horizon) {
            Some(stored) => Ok((word, horizon, stored)),
            None => Err(Miss::NoState(word)),
        }
    }

    /// Refills to `now`, and publishes what `decide` makes of that, if anything. Returns what `decide` was given.
    #[inline(always)]
    pub(crate) fn attempt(
        &self,
        quota: &Quota,
        now: Moment,
        decide: impl Fn(State, Moment) -> Option<State>,
    ) -> Result<State, Miss> {
        let (word, horizon, stored) = self.snapshot()?;
        let state = stored.refill(quota, now);
        let Some(next) = decide(state, now) else { return Ok(state) };
        // In the middle of a jump, the level can be told, but not changed.
        if stored.epoch() != horizon.epoch() || !horizon.reaches(now.tick) {
            return Err(Miss::Unsettled);
        }
        if self.replace(word, next.pack()) { Ok(state) } else { Err(Miss::Overtaken) }
    }

    /// Settles what the first attempt met, and makes the others. Apart from the first, so that the usual call is
    /// straight.
    #[cold]
    #[inline(never)]
    fn attempt_again(
        &self,
        mut miss: Miss,
        quota: &Quota,
        clock: impl Fn() -> u64,
        now: Moment,
        decide: impl Fn(State, Moment) -> Option<State>,
    ) -> Result<State, Miss> {
        for _ in 1..MAX_ATTEMPTS {
            match miss {
                Miss::Overtaken => {}
                Miss::Unsettled => self.settle(quota, &clock, now),
                Miss::NoState(_) => break,
            }
            match self.attempt(quota, now, &decide) {
                Ok(state) => return Ok(state),
                Err(next) => miss = next,
            }
        }
        Err(miss)
    }

    /// Takes one step towards a horizon that lets a call write at `now`. Whatever comes of it, the caller tries
    /// again. One for all calls and clocks.
    #[cold]
    #[inline(never)]
    fn settle(&self, quota: &Quota, clock: &dyn Fn() -> u64, now: Moment) {
        let Ok((word, horizon, stored)) = self.snapshot() else { return };
        // Read once more, after the words, so that it is not behind whoever wrote them.
        let fresh = quota.moment(clock());
        let now = if fresh.tick > now.tick { fresh } else { now };
        if stored.epoch() != horizon.epoch() {
            self.finish_jump(quota, word, stored, horizon, now);
        } else if horizon.reaches(now.tick) {
            // Somebody else has raised it.
        } else if stored.refill(quota, now).tokens() == quota.capacity() {
            // The state first: full, it can stand before the horizon is raised. Its stamp is above all of this epoch,
            // even one in the future: a late raise from this epoch then stays below its own.
            let last = quota.full_from(now).max(stored.last().saturating_add(1));
            let settled = State::next_epoch(quota, last, horizon);
            if self.replace(word, settled.pack()) {
                self.raise(horizon, settled.horizon());
            }
        } else if stored.horizon().tick() > horizon.tick() {
            // Not full, so it is less than a fill time since the stamp; and stamps don't fall within an epoch.
            self.raise(horizon, stored.horizon());
        } else {
            // A fill time of more than 2^29 ticks, as only a burst above 2^29 tokens has: settle on the way, within the
            // turn.
            let within = horizon.tick().saturating_add(REACH).saturating_add(APART);
            if let Some(part) = stored.refill_to(quota, now.tick.min(within)) {
                self.replace(word, part.pack());
            }
        }
    }

    /// Finishes the jump that somebody else has begun, at a time of which the word tells the stamp alone.
    fn finish_jump(&self, quota: &Quota, word: u64, stored: State, horizon: Mark, now: Moment) {
        let candidate = quota.full_from(now).max(horizon.tick().saturating_add(REACH));
        // The tick nearest to this reading; or, by one that need not have settled, the first above the horizon, which a
        // call of the epoch before may have raised meanwhile.
        let begun = State::stamp_near(word, candidate);
        // Two who settle at the same time read clocks that are less than that apart. So it is somebody's of now: his
        // stamp stands, even if it is later than this reading, or the time between would accrue twice.
        let of_now = horizon.reaches(now.tick) || begun.abs_diff(candidate) <= APART;
        let settled = State::next_epoch(quota, if of_now { begun } else { candidate }, horizon);
        // Or it is a dead one's of long ago, and full now; only damaged words hold less.
        let settled = settled.with_tokens_of(stored);
        if of_now || self.replace(word, settled.pack()) {
            self.raise(horizon, settled.horizon());
        }
    }

    /// Writes the level into the words of `heir`, which nobody uses yet, and then seals these words: they are no
    /// bucket any more.
    pub(crate) fn hand_over<V: Word>(
        &self,
        quota: &Quota,
        heir: &Words<V>,
        heir_quota: &Quota,
        clock: impl Fn() -> u64,
    ) -> Result<(), Miss> {
        for _ in 0..MAX_ATTEMPTS {
            match self.snapshot() {
                Ok((word, _, stored)) => {
                    // The heir first: who sees the seal finds the level there. Until then others take from this
                    // bucket, and the level is written again.
                    heir.overwrite(stored.convert(quota, heir_quota, clock()))?;
                    if self.replace(word, MOVED) {
                        return Ok(());
                    }
                }
                Err(Miss::NoState(word)) => return Err(Miss::NoState(word)),
                Err(_) => {}
            }
        }
        Err(Miss::Overtaken)
    }

    /// Reads the state as it is.
    pub(crate) fn state(&self) -> Result<State, Miss> {
        for _ in 0..MAX_ATTEMPTS {
            match self.snapshot() {
                Ok((word, horizon, stored)) => return Ok(stored.settled(word, horizon)),
                Err(Miss::NoState(word)) => return Err(Miss::NoState(word)),
                Err(_) => {}
            }
        }
        Err(Miss::Overtaken)
    }

    /// Writes a state over whatever these words hold.
    fn overwrite(&self, state: State) -> Result<(), Miss> {
        let [word, horizon] = state.to_words();
        for (cell, new) in [(&self.state, word), (&self.horizon, horizon)] {
            // Relaxed: the exchange compares. Release, pairs with the Acquire of both in `snapshot`, though whoever
            // reads them has seen the seal before.
            if cell.compare_exchange(cell.load(Relaxed), new, Release, Relaxed).is_err() {
                return Err(Miss::Overtaken);
            }
        }
        Ok(())
    }

    /// Raises the horizon to one that fits a state which was published or read before, if it is still the one that
    /// was seen with that. Else somebody else has raised it, or these words are another bucket's by now.
    fn raise(&self, seen: Mark, horizon: Mark) {
        // Release, pairs with the Acquire of the horizon in `snapshot`: who sees it sees that state or a later one.
        let _ = self.horizon.compare_exchange(seen.0, horizon.0, Release, Relaxed);
    }

    /// Publishes `next` if the state word is still `word`.
    #[inline]
    fn replace(&self, word: u64, next: u64) -> bool {
        // Release, pairs with the Acquire of the state in `snapshot`: who sees it sees the horizon that it was made
        // under. Relaxed on failure: the loop reads again.
        self.state.compare_exchange(word, next, Release, Relaxed).is_ok()
    }
}
