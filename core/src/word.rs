//! The one door through which atomics enter: a 64-bit cell that can be loaded, compared and raised.
//!
//! All shared memory of this crate is [`Words`], two such cells. Firmware runs the same source over a cell of
//! its own, servers over a mapped file, and the model checker over atomics that explore every interleaving.

// The lint guards this door; the door itself has to name what is behind it.
#![allow(clippy::disallowed_types)]

use core::sync::atomic::Ordering;

/// A 64-bit cell that several threads, interrupts or processes change at once.
///
/// Implemented for the target's own `AtomicU64`, where it has one, and for references to any word. Implement it
/// for a cell of your own where the target has none, for example one that masks interrupts.
///
/// # Memory ordering
///
/// Every operation must be atomic and at least as strong as the ordering it is given, with the meaning of
/// [`core::sync::atomic`]. An implementation that is always sequentially consistent is right.
///
/// # Progress
///
/// The bucket is lock-free exactly where the word's operations are.
pub trait Word {
    /// Returns the value.
    fn load(&self, order: Ordering) -> u64;

    /// Stores `new` if the value is `current`; returns the value seen, `Ok` if it was stored.
    ///
    /// It must not fail while the value is `current`.
    ///
    /// # Errors
    ///
    /// The value seen, when it was not `current`; nothing is stored then.
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64>;

    /// Raises the value to `floor` if it is below, and returns the value from before.
    fn fetch_max(&self, floor: u64, order: Ordering) -> u64;
}

impl<W: Word + ?Sized> Word for &W {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        (**self).load(order)
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        (**self).compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn fetch_max(&self, floor: u64, order: Ordering) -> u64 {
        (**self).fetch_max(floor, order)
    }
}

/// The word that a bucket owns unless told otherwise: the target's own 64-bit atomic.
#[cfg(target_has_atomic = "64")]
pub type DefaultWord = core::sync::atomic::AtomicU64;

/// The word that a bucket owns unless told otherwise: there is none, since this target has no 64-bit atomic.
///
/// No value of it exists. Name a [`Word`] of your own: `TokenBucket<Clock, MyWord>`.
#[cfg(not(target_has_atomic = "64"))]
pub type DefaultWord = core::convert::Infallible;

#[cfg(target_has_atomic = "64")]
impl Word for core::sync::atomic::AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn fetch_max(&self, floor: u64, order: Ordering) -> u64 {
        self.fetch_max(floor, order)
    }
}

/// Everything that the users of one bucket share: 16 bytes.
///
/// ```text
/// offset 0   state    tokens and the low 32 bits of the last refill's tick, packed (see State)
/// offset 8   horizon  a tick at or below the last refill's, which tells the stamp's turns apart
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
    /// [`State::to_words`](crate::State::to_words). They are used as they are: a state
    /// cell of zero makes every call fail with [`Uninitialized`](crate::TryAcquireError::Uninitialized).
    #[inline]
    pub const fn new(state: W, horizon: W) -> Self {
        Self { state, horizon }
    }
}

#[cfg(target_has_atomic = "64")]
impl Words {
    /// Makes words that hold `state`.
    #[inline]
    #[must_use]
    pub const fn holding(state: crate::State) -> Self {
        let [state, horizon] = state.to_words();
        Self::new(DefaultWord::new(state), DefaultWord::new(horizon))
    }
}

#[cfg(target_has_atomic = "64")]
const _: () = assert!(size_of::<Words>() == 16, "the shared words of a bucket are 16 bytes");
