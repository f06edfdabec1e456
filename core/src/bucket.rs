//! The rate limiter: a quota, its memory and a clock.

use core::time::Duration;

use crate::memory::{Miss, Sealed};
use crate::permit::{GiveBack, Permit};
use crate::{Clock, Memory, Moment, NoClock, Quota, State, TryAcquireError, Word, Words};

/// A token bucket that any number of threads, interrupts or processes share: exact to the token, lock-free, 16 bytes.
///
/// It refills itself at each call from the time it is given, or reads from its [`Clock`] `C`. Its two [`Words`] are
/// its own ([`new`](Self::new), [`with_clock`](Self::with_clock)), or any that the caller has ([`over`](Self::over)).
/// Where 16 bytes are too many, [`CompactTokenBucket`](crate::CompactTokenBucket) has the same calls in 8.
///
/// Which call to use when:
///
/// | call | for |
/// |---|---|
/// | [`try_acquire`](Self::try_acquire) | take all or nothing, and be told why not |
/// | [`try_acquire_permit`](Self::try_acquire_permit) | the same, and give back what is not spent |
/// | [`lease`](Self::lease) | take a batch of what there is, and spend it one by one |
/// | [`acquire_up_to`](Self::acquire_up_to), [`drain`](Self::drain) | take what there is |
/// | [`refund`](Self::refund), [`reset`](Self::reset) | give back what was not used; fill up |
/// | [`available`](Self::available), [`retry_after`](Self::retry_after) | look without taking |
/// | `…_at(now, …)` | the same, with the time as an argument |
///
/// # The clock
///
/// A call reads it once; again where it finds the bucket after a long idle time, and, in one word, where others were
/// faster.
///
/// # Memory ordering
///
/// The bucket publishes nothing but itself: a call that succeeds does not make the caller's other writes visible to
/// anyone.
///
/// # Progress
///
/// Lock-free wherever the [`Word`](crate::Word) is; no call blocks. Each makes at most
/// [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) attempts. Calls that take nothing, and calls that only look, write nothing
/// to shared memory.
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
pub struct TokenBucket<C = NoClock, M = Words> {
    quota: Quota,
    memory: M,
    clock: C,
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl TokenBucket {
    /// Makes a full bucket without a clock, for the calls that are given the time. Its time starts at 0.
    #[inline]
    #[must_use]
    pub const fn new(quota: Quota) -> Self {
        Self::with_clock(quota, NoClock)
    }
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl<C> TokenBucket<C> {
    /// Makes a full bucket that reads `clock`.
    #[inline]
    #[must_use]
    pub const fn with_clock(quota: Quota, clock: C) -> Self {
        Self::over(quota, Words::holding(State::full(&quota)), clock)
    }
}

impl<C, W> TokenBucket<C, Words<W>> {
    /// Makes a bucket of words that exist, as they are. All users of the words must use an equal quota and clocks
    /// that agree. See [`Words`] for an example.
    #[inline]
    #[must_use]
    pub const fn over(quota: Quota, words: Words<W>, clock: C) -> Self {
        Self::from_parts(quota, words, clock)
    }

    /// Returns the quota.
    #[inline]
    #[must_use]
    pub const fn quota(&self) -> &Quota {
        &self.quota
    }
}

impl<C, W: Word> TokenBucket<C, Words<W>> {
    /// Takes `n` tokens at the time `now`, in microseconds, even if there are fewer: what is missing is owed, and the
    /// bucket stays empty until it has accrued. Returns how many tokens remain.
    ///
    /// At most one capacity can be owed (at most 2^29 tokens by a bucket that holds more), so that nobody ever waits
    /// longer than two times the bucket's time to fill. What is [refunded](Self::refund) is there at once,
    /// whatever is owed.
    ///
    /// # Errors
    ///
    /// [`Insufficient`](TryAcquireError::Insufficient) if it would owe more: it says when it would not.
    /// [`ExceedsCapacity`](TryAcquireError::ExceedsCapacity) if `n` is more than a full bucket can owe. Else as for
    /// [`try_acquire`](Self::try_acquire).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use tollgate_core::{Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_second(10)));
    /// assert_eq!(bucket.try_acquire_at(0, 6), Ok(4)); // an estimate
    /// assert_eq!(bucket.overdraw_at(0, 9), Ok(0)); // it was 15
    /// assert_eq!(bucket.retry_after_at(0, 1), Ok(Duration::from_millis(600)));
    /// assert!(bucket.overdraw_at(0, 6).is_err()); // five more can be owed
    /// assert_eq!(bucket.overdraw_at(0, 5), Ok(0));
    /// ```
    #[inline]
    pub fn overdraw_at(&self, now: u64, n: u32) -> Result<u32, TryAcquireError> {
        let most = self.quota.capacity().saturating_add(self.quota.most_owed());
        if n > most {
            return Err(TryAcquireError::ExceedsCapacity { requested: n, capacity: most });
        }
        let take = |state: State, now| if n > 0 { state.overdraw(&self.quota, now, n) } else { None };
        let (state, now) = self.memory.transact(&self.quota, || now, take)?;
        match state.overdraw(&self.quota, now, n) {
            Some(left) => Ok(left.tokens()),
            None => {
                let retry_after = state.wait_to_overdraw(&self.quota, now, n);
                Err(TryAcquireError::Insufficient { requested: n, available: state.tokens(), retry_after })
            }
        }
    }

    /// Makes one attempt at what [`try_acquire_at`](Self::try_acquire_at) does: takes `n` tokens at the time `now`, in
    /// microseconds, and returns how many remain.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended) means that another call was faster, or that the bucket was idle for
    /// long, which only the whole call puts right: go on with that. Else as for [`try_acquire`](Self::try_acquire).
    ///
    /// # Progress
    ///
    /// Wait-free wherever the word is: no loop, at most three loads and one exchange.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, TokenBucket, TryAcquireError, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_hour(2)));
    /// assert_eq!(bucket.try_acquire_once_at(0, 2), Ok(0));
    /// assert!(matches!(bucket.try_acquire_once_at(0, 1), Err(TryAcquireError::Insufficient { .. })));
    ///
    /// let years_later = 100_000_000_000_000;
    /// assert_eq!(bucket.try_acquire_once_at(years_later, 1), Err(TryAcquireError::Contended));
    /// assert_eq!(bucket.try_acquire_at(years_later, 1), Ok(1));
    /// ```
    #[inline(always)]
    pub fn try_acquire_once_at(&self, now: u64, n: u32) -> Result<u32, TryAcquireError> {
        self.quota.check(n)?;
        let now = self.quota.moment(now);
        let state = self.memory.attempt(&self.quota, now, move |state, _| taking(state, n))?;
        taken(&self.quota, state, now, n)
    }

    /// Returns the state as it was last written, without a refill.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended), [`Moved`](TryAcquireError::Moved) and
    /// [`Uninitialized`](TryAcquireError::Uninitialized), as for [`available`](Self::available).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_second(10)));
    /// assert_eq!(bucket.try_acquire_at(1_000_000, 4), Ok(6));
    /// let state = bucket.state()?;
    /// assert_eq!((state.tokens(), state.credited_until(bucket.quota())), (6, 1_000_000));
    /// # Ok::<(), tollgate_core::TryAcquireError>(())
    /// ```
    #[inline]
    pub fn state(&self) -> Result<State, TryAcquireError> {
        Ok(self.memory.state()?)
    }

    /// Hands the level at the time `now`, in microseconds, over to `heir`, which nobody uses yet, and seals this
    /// bucket: each later call on it fails with [`Moved`](TryAcquireError::Moved).
    ///
    /// This is how a quota is changed while others use the bucket: `heir` has the new one. It gets the whole tokens
    /// of this bucket, at most its own capacity, or the debt. All who are told that the bucket has moved go on
    /// with it, and see the level that was there when it moved: none is granted twice, none is lost but the
    /// fraction of a token.
    ///
    /// One caller at a time can hand over a bucket; see to that. A caller that is killed has either not handed it
    /// over yet, or has.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended): others changed the bucket at each attempt; try again.
    /// [`Moved`](TryAcquireError::Moved) and [`Uninitialized`](TryAcquireError::Uninitialized): there is no level to
    /// hand over. This bucket was not changed.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{Quota, TokenBucket, TryAcquireError, quota};
    ///
    /// let bucket = TokenBucket::new(quota!(Quota::per_second(10)));
    /// let slower = TokenBucket::new(quota!(Quota::per_minute(5)));
    /// assert_eq!(bucket.try_acquire_at(0, 7), Ok(3));
    /// bucket.hand_over_at(0, &slower)?;
    /// assert_eq!(bucket.try_acquire_at(0, 1), Err(TryAcquireError::Moved));
    /// assert_eq!(slower.available_at(0), Ok(3));
    /// assert_eq!(slower.available_at(12_000_000), Ok(4));
    /// # Ok::<(), TryAcquireError>(())
    /// ```
    #[inline]
    pub fn hand_over_at<D, V: Word>(&self, now: u64, heir: &TokenBucket<D, Words<V>>) -> Result<(), TryAcquireError> {
        Ok(self.memory.hand_over(&self.quota, &heir.memory, &heir.quota, || now)?)
    }
}

impl<C, M> TokenBucket<C, M> {
    pub(crate) const fn from_parts(quota: Quota, memory: M, clock: C) -> Self {
        Self { quota, memory, clock }
    }

    /// The quota, in the ticks of this memory.
    pub(crate) const fn counted_in(&self) -> &Quota {
        &self.quota
    }

    /// Returns the clock.
    #[inline]
    #[must_use]
    pub const fn clock(&self) -> &C {
        &self.clock
    }
}

impl<C: Clock, M: Memory> TokenBucket<C, M> {
    /// Takes `n` tokens and returns how many remain; takes nothing if there are fewer.
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
    /// is dropped.
    ///
    /// # Errors
    ///
    /// As for [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn try_acquire_permit(&self, n: u32) -> Result<Permit<'_, Self>, TryAcquireError> {
        self.try_acquire(n).map(|_| Permit::new(self, n.into()))
    }

    /// Takes what there is, at most `n` tokens, and returns how many: 0 if there are none.
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

    /// Takes what there is, at most `n` tokens, for one thread to spend one by one: what it does not spend goes back
    /// when the lease is dropped.
    ///
    /// Spending a token of a lease costs a nanosecond, and no other thread feels it. The tokens are granted when they
    /// are leased: the bound holds, and others may be refused what a lease holds and has not spent yet.
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::{ManualClock, Quota, TokenBucket, quota};
    ///
    /// let bucket = TokenBucket::with_clock(quota!(Quota::per_second(5)), ManualClock::new());
    /// let mut lease = bucket.lease(3)?;
    /// assert!(lease.spend(1).is_ok());
    /// assert_eq!(bucket.available(), Ok(2));
    /// drop(lease);
    /// assert_eq!(bucket.available(), Ok(4));
    /// assert_eq!(bucket.lease(9)?.remaining(), 4);
    /// # Ok::<(), tollgate_core::TryAcquireError>(())
    /// ```
    #[inline]
    pub fn lease(&self, n: u32) -> Result<Permit<'_, Self>, TryAcquireError> {
        self.acquire_up_to(n).map(|granted| Permit::new(self, granted.into()))
    }

    /// Takes all whole tokens and returns how many there were.
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    #[inline]
    pub fn drain(&self) -> Result<u32, TryAcquireError> {
        self.acquire_up_to(u32::MAX)
    }

    /// Fills the bucket now, whatever was taken. A debt stays: the bucket is full, and nothing accrues until it is
    /// paid.
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

    /// Returns how many tokens are there, rounded down. Stale when it returns.
    ///
    /// # Errors
    ///
    /// [`Contended`](TryAcquireError::Contended) and [`Uninitialized`](TryAcquireError::Uninitialized), as for
    /// [`try_acquire`](Self::try_acquire).
    #[inline]
    pub fn available(&self) -> Result<u32, TryAcquireError> {
        Ok(self.look(|| self.clock.now_micros())?.0.tokens())
    }

    /// Returns the shortest wait after which [`try_acquire(n)`](Self::try_acquire) can succeed: zero if it can now.
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

impl<C, M: Memory> TokenBucket<C, M> {
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

    /// Takes what there is at the time `now`, in microseconds, at most `n` tokens. Otherwise [`lease`](Self::lease).
    ///
    /// # Errors
    ///
    /// As for [`acquire_up_to`](Self::acquire_up_to).
    #[inline]
    pub fn lease_at(&self, now: u64, n: u32) -> Result<Permit<'_, Self>, TryAcquireError> {
        self.acquire_up_to_at(now, n).map(|granted| Permit::new(self, granted.into()))
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
        Ok(self.look(|| now)?.0.tokens())
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
        Ok(self.memory.refund(&self.quota, n)?)
    }

    #[inline(always)]
    fn acquire_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<u32, TryAcquireError> {
        self.quota.check(n)?;
        let (state, now) = self.memory.transact(&self.quota, clock, move |state, _| taking(state, n))?;
        taken(&self.quota, state, now, n)
    }

    #[inline]
    fn acquire_up_to_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<u32, TryAcquireError> {
        let granted = move |state: State| n.min(state.tokens());
        let take = move |state, _| if granted(state) > 0 { state.take(granted(state)) } else { None };
        Ok(granted(self.memory.transact(&self.quota, clock, take)?.0))
    }

    #[inline]
    fn reset_with(&self, clock: impl Fn() -> u64) -> Result<(), TryAcquireError> {
        self.memory.transact(&self.quota, clock, |state, now| Some(state.reset(&self.quota, now)))?;
        Ok(())
    }

    #[inline]
    fn wait_with(&self, clock: impl Fn() -> u64, n: u32) -> Result<Duration, TryAcquireError> {
        self.quota.check(n)?;
        let (state, now) = self.look(clock)?;
        Ok(state.wait(&self.quota, now, n).duration())
    }

    #[inline(always)]
    fn look(&self, clock: impl Fn() -> u64) -> Result<(State, Moment), Miss> {
        self.memory.transact(&self.quota, clock, |_, _| None)
    }
}

impl<C, M: Memory> GiveBack for TokenBucket<C, M> {
    /// What the bucket can't take back because others change it all the time, after
    /// [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS), is forfeited: the limit is only stricter then.
    #[inline]
    fn give_back(&self, n: u64) {
        let _ = self.refund(u32::try_from(n).unwrap_or(u32::MAX));
    }
}

/// What a call for `n` tokens makes of a state; `None` if it changes nothing.
#[inline]
const fn taking(state: State, n: u32) -> Option<State> {
    if n > 0 { state.take(n) } else { None }
}

/// What it answers.
#[inline]
const fn taken(quota: &Quota, state: State, now: Moment, n: u32) -> Result<u32, TryAcquireError> {
    match state.take(n) {
        Some(left) => Ok(left.tokens()),
        None => Err(state.refusal(quota, now, n)),
    }
}
