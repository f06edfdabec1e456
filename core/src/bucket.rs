//! The rate limiter: a quota, two words and one compare-and-swap loop.
//!
//! # The horizon
//!
//! The state word has room for the low 31 bits of its tick. The second word, the *horizon* H, is a full tick that
//! tells the stamp's turns apart:
//!
//! ```text
//!          H                last            T = now
//! ---------+-----------------+---------------+------+---------------+--------> ticks
//!          |<- 2^29 ------------------------------->|               |
//!          |<- a call may write a new state while T is here, 2^30 ->|
//!          |<- a stamp turns over, 2^31 ---------------------------------- …
//! ```
//!
//! While H <= last < H + 2^31, the stamp and H give the tick. A call that comes later than H + 2^30 first advances H,
//! and tries again (see `advance`):
//!
//! - not full: H is raised to a quarter of a turn below the stamp;
//! - full: it *jumps*. First the state becomes full at T, in the other epoch, then H is raised to a quarter of a turn
//!   below T, in that epoch. In between, the epochs differ: the state is full, by any reading, and nobody takes from
//!   it. A caller that dies there leaves a state that the next one settles alike.
//!
//! H never falls, and the quarter turn is what two readings of the clock may differ by while both settle one jump.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::time::Duration;

use crate::permit::{GiveBack, Permit};
use crate::state::{Horizon, REACH, SLACK};
use crate::{Clock, DefaultWord, Moment, NoClock, Quota, State, TryAcquireError, Word, Words};

/// The most attempts that one call makes to change the bucket, before it gives up with
/// [`Contended`](TryAcquireError::Contended). An attempt fails only because another call has succeeded.
pub const MAX_ATTEMPTS: u32 = 256;

/// A token bucket that any number of threads, interrupts or processes share: exact to the token, lock-free, 16 bytes.
///
/// It refills itself at each call from the time it is given, or reads from its [`Clock`] `C`. Its two [`Words`] are
/// its own ([`new`](Self::new), [`with_clock`](Self::with_clock)), or any that the caller has ([`over`](Self::over)).
///
/// Which call to use when:
///
/// | call | for |
/// |---|---|
/// | [`try_acquire`](Self::try_acquire) | take all or nothing, and be told why not |
/// | [`try_acquire_permit`](Self::try_acquire_permit) | the same, and give back what is not spent |
/// | [`acquire_up_to`](Self::acquire_up_to), [`drain`](Self::drain) | take what there is |
/// | [`refund`](Self::refund), [`reset`](Self::reset) | give back what was not used; fill up |
/// | [`available`](Self::available), [`retry_after`](Self::retry_after) | look without taking |
/// | `…_at(now, …)` | the same, with the time as an argument |
///
/// # Memory ordering
///
/// The bucket publishes nothing but itself: a call that succeeds does not make the caller's other writes visible to
/// anyone.
///
/// # Progress
///
/// Lock-free wherever the [`Word`] is; no call blocks. Each makes at most [`MAX_ATTEMPTS`] attempts. Calls that take
/// nothing, and calls that only look, write nothing to shared memory.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Quota, TokenBucket, TryAcquireError, quota};
///
/// static LOG_LINES: TokenBucket = TokenBucket::new(quota!(Quota::per_second(10), burst 2));
///
/// let now = 5_000_000; // microseconds, from a timer of yours
/// assert_eq!(LOG_LINES.try_acquire_at(now, 2), Ok(0));
/// assert!(matches!(LOG_LINES.try_acquire_at(now, 1), Err(TryAcquireError::Insufficient { .. })));
/// assert_eq!(LOG_LINES.try_acquire_at(now + 100_000, 1), Ok(0));
/// ```
#[derive(Debug)]
pub struct TokenBucket<C = NoClock, W = DefaultWord> {
    quota: Quota,
    words: Words<W>,
    clock: C,
}

#[cfg(target_has_atomic = "64")]
impl TokenBucket {
    /// Makes a full bucket without a clock, for the calls that are given the time. Its time starts at 0.
    #[inline]
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self::with_clock(quota, NoClock)
    }
}

#[cfg(target_has_atomic = "64")]
impl<C> TokenBucket<C> {
    /// Makes a full bucket that reads `clock`.
    #[inline]
    #[must_use]
    pub const fn with_clock(quota: Quota, clock: C) -> Self {
        Self::over(quota, Words::holding(State::full(&quota)), clock)
    }
}

impl<C, W> TokenBucket<C, W> {
    /// Makes a bucket of words that exist, as they are. All users of the words must use an equal quota and clocks
    /// that agree. See [`Words`] for an example.
    #[inline]
    #[must_use]
    pub const fn over(quota: Quota, words: Words<W>, clock: C) -> Self {
        Self { quota, words, clock }
    }

    /// Returns the quota.
    #[inline]
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns the clock.
    #[inline]
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock, W: Word> TokenBucket<C, W> {
    /// Takes `n` tokens and returns how many remain; takes nothing if there are fewer. Reads the clock once.
    ///
    /// The tokens that remain may have changed by the time the call returns. `n` = 0 succeeds and writes nothing.
    ///
    /// # Errors
    ///
    /// [`Insufficient`](TryAcquireError::Insufficient): wait, it says how long.
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity): never. [`Contended`](TryAcquireError::Contended):
    /// try again. [`Uninitialized`](TryAcquireError::Uninitialized): the words were never set. Nothing was taken,
    /// and nothing written.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use tollgate_core::{ManualClock, Quota, TokenBucket, quota};
    ///
    /// let clock = ManualClock::new();
    /// let bucket = TokenBucket::with_clock(quota!(Quota::per_second(3)), &clock);
    /// assert_eq!(bucket.try_acquire(2), Ok(1));
    /// let refused = bucket.try_acquire(2).unwrap_err();
    ///
    /// clock.advance(refused.retry_after().unwrap());
    /// assert_eq!(bucket.try_acquire(2), Ok(0));
    /// ```
    #[inline]
    pub fn try_acquire(&self, n: u32) -> Result<u32, TryAcquireError> {
        self.acquire_with(|| self.clock.now_micros(), n)
    }

    /// Takes as [`try_acquire`](Self::try_acquire) does; what is not [spent](Permit::spend) goes back when the permit
    /// is dropped. Reads the clock once.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_permit(&self, n: u32) -> Result<Permit<'_, Self>, TryAcquireError> {
        self.try_acquire(n).map(|_| Permit::new(self, n.into()))
    }

    /// Takes what there is, at most `n` tokens, and returns how many: 0 if there are none. Reads the clock once.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended) and [`Uninitialized`](TryAcquireError::Uninitialized), as for
    /// [`try_acquire`](Self::try_acquire). Nothing was taken.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{ManualClock, Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::with_clock(quota!(Quota::per_second(5)), ManualClock::new());
    /// assert_eq!(bucket.acquire_up_to(3), Ok(3));
    /// assert_eq!(bucket.acquire_up_to(3), Ok(2));
    /// assert_eq!(bucket.acquire_up_to(3), Ok(0));
    /// ```
    #[inline]
    pub fn acquire_up_to(&self, n: u32) -> Result<u32, TryAcquireError> {
        self.acquire_up_to_with(|| self.clock.now_micros(), n)
    }

    /// Takes all whole tokens and returns how many there were. Reads the clock once.
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    #[inline]
    pub fn drain(&self) -> Result<u32, TryAcquireError> {
        self.acquire_up_to(u32::MAX)
    }

    /// Fills the bucket now, whatever was taken. Reads the clock once.
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to); nothing was changed. Words that were never set stay so: write
    /// [`State::to_words`] into them.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{ManualClock, Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::with_clock(quota!(Quota::per_hour(5)), ManualClock::new());
    /// assert_eq!(bucket.drain(), Ok(5));
    /// assert!(bucket.try_acquire(1).is_err());
    /// bucket.reset()?;
    /// assert_eq!(bucket.available(), Ok(5));
    /// # Ok::<(), tollgate_core::TryAcquireError>(())
    /// ```
    #[inline]
    pub fn reset(&self) -> Result<(), TryAcquireError> {
        self.reset_with(|| self.clock.now_micros())
    }

    /// Returns how many tokens are there, rounded down. Stale when it returns. Reads the clock once.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended) and [`Uninitialized`](TryAcquireError::Uninitialized), as for
    /// [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn available(&self) -> Result<u32, TryAcquireError> {
        self.look(|| self.clock.now_micros(), |state, _| state.tokens())
    }

    /// Returns the shortest wait after which [`try_acquire(n)`](Self::try_acquire) can succeed: zero if it can now.
    /// Reads the clock once.
    ///
    /// # Errors
    ///
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity) if it never can; else as for
    /// [`available`](Self::available).
    #[inline]
    pub fn retry_after(&self, n: u32) -> Result<Duration, TryAcquireError> {
        self.wait_with(|| self.clock.now_micros(), n)
    }
}

impl<C, W: Word> TokenBucket<C, W> {
    /// Takes `n` tokens at the time `now`, in microseconds of the clock that all users of the bucket go by.
    ///
    /// Otherwise [`try_acquire`](Self::try_acquire). A time before an earlier call's is taken as it is: nothing
    /// accrues, what is there can be taken.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_at(&self, now: u64, n: u32) -> Result<u32, TryAcquireError> {
        self.acquire_with(|| now, n)
    }

    /// Takes as [`try_acquire_permit`](Self::try_acquire_permit) does, at the time `now`, in microseconds.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_permit_at(&self, now: u64, n: u32) -> Result<Permit<'_, Self>, TryAcquireError> {
        self.try_acquire_at(now, n).map(|_| Permit::new(self, n.into()))
    }

    /// Takes what there is at the time `now`, in microseconds, at most `n` tokens. Otherwise
    /// [`acquire_up_to`](Self::acquire_up_to).
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    #[inline]
    pub fn acquire_up_to_at(&self, now: u64, n: u32) -> Result<u32, TryAcquireError> {
        self.acquire_up_to_with(|| now, n)
    }

    /// Takes all whole tokens at the time `now`, in microseconds. Otherwise [`drain`](Self::drain).
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    #[inline]
    pub fn drain_at(&self, now: u64) -> Result<u32, TryAcquireError> {
        self.acquire_up_to_at(now, u32::MAX)
    }

    /// Fills the bucket at the time `now`, in microseconds. Otherwise [`reset`](Self::reset).
    ///
    /// # Errors
    ///
    /// As for [`reset`](Self::reset).
    #[inline]
    pub fn reset_at(&self, now: u64) -> Result<(), TryAcquireError> {
        self.reset_with(|| now)
    }

    /// Returns how many tokens are there at the time `now`, in microseconds. Otherwise
    /// [`available`](Self::available).
    ///
    /// # Errors
    ///
    /// As for [`available`](Self::available).
    #[inline]
    pub fn available_at(&self, now: u64) -> Result<u32, TryAcquireError> {
        self.look(|| now, |state, _| state.tokens())
    }

    /// Returns the shortest wait from the time `now`, in microseconds. Otherwise [`retry_after`](Self::retry_after).
    ///
    /// # Errors
    ///
    /// As for [`retry_after`](Self::retry_after).
    #[inline]
    pub fn retry_after_at(&self, now: u64, n: u32) -> Result<Duration, TryAcquireError> {
        self.wait_with(|| now, n)
    }

    /// Gives `n` tokens back. What would rise above the capacity is forfeited; more than was taken can be given back.
    ///
    /// It needs no time, and so has no twin that is given one: what has accrued is credited by the next call, and the
    /// level is the same in either order.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended) and [`Uninitialized`](TryAcquireError::Uninitialized): nothing was
    /// given back.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_hour(10)));
    /// assert_eq!(bucket.try_acquire_at(0, 8), Ok(2));
    /// bucket.refund(3)?;
    /// assert_eq!(bucket.available_at(0), Ok(5));
    /// bucket.refund(100)?;
    /// assert_eq!(bucket.available_at(0), Ok(10));
    /// # Ok::<(), tollgate_core::TryAcquireError>(())
    /// ```
    #[inline]
    pub fn refund(&self, n: u32) -> Result<(), TryAcquireError> {
        for _ in 0..MAX_ATTEMPTS {
            // Relaxed: the exchange compares the whole word, and what was read with it is carried over unread.
            let word = self.words.state.load(Relaxed);
            let Some(next) = State::refund_word(word, &self.quota, n) else {
                return Err(TryAcquireError::Uninitialized);
            };
            if next == word || self.replace(word, next) {
                return Ok(());
            }
        }
        Err(TryAcquireError::Contended)
    }

    #[inline]
    fn acquire_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<u32, TryAcquireError> {
        self.fits(n)?;
        self.transact(clock, |state, now| match state.take(n) {
            Some(next) if n > 0 => (Some(next), Ok(next.tokens())),
            Some(_) => (None, Ok(state.tokens())),
            None => (None, Err(self.refusal(state, now, n))),
        })?
    }

    #[inline]
    fn acquire_up_to_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<u32, TryAcquireError> {
        self.transact(clock, |state, _| {
            let granted = n.min(state.tokens());
            (state.take(granted).filter(|_| granted > 0), granted)
        })
    }

    #[inline]
    fn reset_with(&self, clock: impl Fn() -> u64) -> Result<(), TryAcquireError> {
        self.transact(clock, |state, now| (Some(state.reset(&self.quota, now)), ()))
    }

    #[inline]
    fn wait_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<Duration, TryAcquireError> {
        self.fits(n)?;
        self.look(clock, |state, now| state.wait_for(&self.quota, now, n).map(|wait| wait.duration()))?
            .ok_or(self.never(n))
    }

    #[inline]
    fn look<T>(&self, clock: impl Fn() -> u64, read: impl Fn(State, Moment) -> T) -> Result<T, TryAcquireError> {
        self.transact(clock, |state, now| (None, read(state, now)))
    }

    #[inline]
    const fn fits(&self, n: u32) -> Result<(), TryAcquireError> {
        if n > self.quota.capacity() { Err(self.never(n)) } else { Ok(()) }
    }

    #[inline]
    const fn never(&self, n: u32) -> TryAcquireError {
        TryAcquireError::ExceedsCapacity { requested: n, capacity: self.quota.capacity() }
    }

    #[inline]
    const fn refusal(&self, state: State, now: Moment, n: u32) -> TryAcquireError {
        match state.wait_for(&self.quota, now, n) {
            Some(retry_after) => TryAcquireError::Insufficient { requested: n, available: state.tokens(), retry_after },
            None => self.never(n),
        }
    }

    /// The loop. Reads the words, refills to now, lets `decide` answer, and publishes the state that comes with the
    /// answer, if any.
    #[inline]
    fn transact<T>(
        &self,
        clock: impl Fn() -> u64,
        decide: impl Fn(State, Moment) -> (Option<State>, T),
    ) -> Result<T, TryAcquireError> {
        let mut reading = None;
        for _ in 0..MAX_ATTEMPTS {
            // Acquire, pairs with the Release in `raise`: the state read next is no older than the one for which the
            // horizon was raised.
            let horizon = self.words.horizon.load(Acquire);
            // Acquire, pairs with the Release in `replace`: the horizon read next is no older than the writer's.
            let word = self.words.state.load(Acquire);
            // After the state is read, so that the clock is not behind it; once, since a call happens at one time.
            let now = *reading.get_or_insert_with(|| self.quota.moment(clock()));
            // Relaxed: only compared. Unchanged, it belongs to the state that was read between.
            if self.words.horizon.load(Relaxed) != horizon {
                continue;
            }
            let horizon = Horizon::unpack(horizon);
            let Some(stored) = State::unpack(word, horizon) else {
                return Err(TryAcquireError::Uninitialized);
            };
            match decide(stored.refill(&self.quota, now), now) {
                (None, answer) => return Ok(answer),
                (Some(next), answer) if stored.within_reach(horizon, now) => {
                    if self.replace(word, next.pack()) {
                        return Ok(answer);
                    }
                }
                _ => self.advance(word, stored, horizon, now),
            }
        }
        Err(TryAcquireError::Contended)
    }

    /// Takes one step towards a horizon that lets a call write at `now`; the caller tries again, whatever comes of
    /// it.
    #[cold]
    fn advance(&self, word: u64, stored: State, horizon: Horizon, now: Moment) {
        if stored.refill(&self.quota, now).tokens() == self.quota.capacity() {
            // The state first: full, it can stand before the horizon is raised. Its stamp is above all of this epoch,
            // so that their horizons are below its own, even where the clock is behind: somebody has read
            // it to be past the reach.
            let last = now.full.max(horizon.tick.saturating_add(REACH)).max(stored.last().saturating_add(1));
            let settled = State::next_epoch(&self.quota, last, horizon);
            if self.replace(word, settled.pack()) {
                self.raise(settled.horizon());
            }
        } else if stored.horizon().tick > horizon.tick {
            // Not full, so it is less than a fill time since the stamp; and stamps don't fall within an epoch.
            self.raise(stored.horizon());
        } else {
            // A fill time of more than 2^29 ticks, as only a burst above 2^29 tokens has: settle on the way, within the
            // turn.
            let within = horizon.tick.saturating_add(REACH).saturating_add(SLACK);
            if let Some(part) = stored.refill_to(&self.quota, now.tick.min(within)) {
                self.replace(word, part.pack());
            }
        }
    }

    /// Raises the horizon to one that fits a state which was published or read before.
    fn raise(&self, horizon: Horizon) {
        // Release, pairs with the Acquire of the horizon in `transact`: who sees it sees that state or a later one.
        self.words.horizon.fetch_max(horizon.pack(), Release);
    }

    /// Publishes `next` if the state word is still `word`.
    #[inline]
    fn replace(&self, word: u64, next: u64) -> bool {
        // Release, pairs with the Acquire of the state in `transact`: who sees it sees the horizon that it was made
        // under. Relaxed on failure: the loop reads again.
        self.words.state.compare_exchange(word, next, Release, Relaxed).is_ok()
    }
}

impl<C, W: Word> GiveBack for TokenBucket<C, W> {
    /// What the bucket can't take back because others change it all the time, after [`MAX_ATTEMPTS`], is forfeited:
    /// the limit is only stricter then.
    #[inline]
    fn give_back(&self, n: u64) {
        let _ = self.refund(u32::try_from(n).unwrap_or(u32::MAX));
    }
}
