//! The pool: a bucket without a clock, which its owner refills.

use core::fmt;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use crate::permit::{GiveBack, Permit};
use crate::{DefaultWord, Word};

/// A pool of tokens that any number of threads and interrupts claim from, and that its owner refills: lock-free, 16
/// bytes, 64-bit counts, no time.
///
/// Use it to hand out a budget that somebody else measures: bytes of a frame, credits of a link, work for each turn
/// of a scheduler. [`Refiller`](crate::Refiller) turns elapsed time into refills, exactly.
///
/// # Why not fetch_add
///
/// Adding first and correcting an overshoot afterwards is not atomic. A pool of 10 holds 8; two owners each add 5.
/// The counter goes to 13 and 18; the one takes 3 back, the other 8, and 7 are left: two refills have *removed* a
/// token. Between the steps, a claim has seen 18 in a pool of 10. Subtracting first fails alike: of two claims of 6
/// from 8, the second wraps below zero. So every change is one exchange, tried again when another call was faster.
///
/// # Memory ordering
///
/// For a pool whose capacity never changes, Relaxed would do: all that counts is the order of the changes of one
/// word, which every atomic has, and the pool orders no memory but its own. But a capacity that is set is a second
/// word. So the tokens are published by a Release and read by an Acquire: whoever sees tokens that were refilled or
/// forfeited under a new capacity sees that capacity. Without it, a claim that met the tokens of a larger pool with
/// the capacity of the smaller would throw the difference away, and a full pool could refuse a claim while it
/// shrinks.
///
/// # Progress
///
/// Lock-free wherever the [`Word`] is: an attempt is made again only when another call has succeeded. There is no
/// limit to the attempts of one call, and so no error for it.
///
/// # Examples
///
/// ```
/// use tollgate_core::AtomicTokenBucket;
///
/// static FRAME_BYTES: AtomicTokenBucket = AtomicTokenBucket::new(1500);
///
/// assert_eq!(FRAME_BYTES.claim(1000), Some(1000));
/// assert_eq!(FRAME_BYTES.claim(1000), None); // all or nothing
/// assert_eq!(FRAME_BYTES.refill(9000), 1000); // up to the capacity
/// assert_eq!(FRAME_BYTES.claim(9000), Some(1500)); // no more than the capacity is ever asked for
/// ```
pub struct AtomicTokenBucket<W = DefaultWord> {
    /// 0 ..= 2^64 − 1; what is above the capacity does not count.
    tokens: W,
    /// 0 ..= 2^64 − 1.
    capacity: W,
}

#[cfg(any(target_has_atomic = "64", feature = "critical-section"))]
impl AtomicTokenBucket {
    /// Makes a full pool. One of capacity 0 grants nothing until [`set_capacity`](Self::set_capacity) and a refill.
    #[inline]
    #[must_use]
    pub const fn new(capacity: u64) -> Self {
        Self { tokens: DefaultWord::new(capacity), capacity: DefaultWord::new(capacity) }
    }
}

impl<W: Word> AtomicTokenBucket<W> {
    /// Makes a pool of words that exist, as they are: the tokens, and the capacity.
    #[inline]
    #[must_use]
    pub const fn over(tokens: W, capacity: W) -> Self {
        Self { tokens, capacity }
    }

    /// Claims `n` tokens, or the capacity if that is less: all of them or none. Returns how many, which may be fewer
    /// than `n`: look at what is returned.
    ///
    /// `None` means not now; or never, while the capacity is 0. `n` = 0 is granted and writes nothing.
    #[inline]
    pub fn claim(&self, n: u64) -> Option<u64> {
        self.change(|tokens, capacity| {
            let asked = n.min(capacity);
            let left = tokens.checked_sub(asked).filter(|_| asked > 0 || n == 0);
            left.map_or((None, None), |left| (Some(left).filter(|_| asked > 0), Some(asked)))
        })
    }

    /// Claims as [`claim`](Self::claim) does, no more than the capacity: [`remaining`](Permit::remaining) tells how
    /// many. What is not [spent](Permit::spend) goes back when the permit is dropped.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_core::AtomicTokenBucket;
    ///
    /// let pool = AtomicTokenBucket::new(10);
    /// let mut permit = pool.claim_permit(8).unwrap();
    /// permit.spend(5).unwrap();
    /// drop(permit);
    /// assert_eq!(pool.available(), 5);
    /// assert!(pool.claim_permit(8).is_none());
    /// ```
    #[inline]
    pub fn claim_permit(&self, n: u64) -> Option<Permit<'_, Self>> {
        self.claim(n).map(|granted| Permit::new(self, granted))
    }

    /// Adds `n` tokens and returns how many found room; the rest is forfeited.
    #[inline]
    pub fn refill(&self, n: u64) -> u64 {
        self.change(|tokens, capacity| {
            let added = n.min(capacity.saturating_sub(tokens));
            (Some(tokens.saturating_add(added)).filter(|_| added > 0), added)
        })
    }

    /// Takes all tokens and returns how many there were.
    #[inline]
    pub fn drain(&self) -> u64 {
        self.change(|tokens, _| (Some(0).filter(|_| tokens > 0), tokens))
    }

    /// Returns the most tokens that the pool holds.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity.load(Relaxed)
    }

    /// Sets the most tokens that the pool holds. Tokens above it are forfeited; a larger pool is not filled.
    ///
    /// No claim that begins after this has returned sees more than `capacity`. A refill that runs at the same time
    /// may still fill the pool to the old capacity: what is above the new one does not count while it is in force,
    /// and is there again if a larger one is set before the next change. And a call that is held up while the capacity
    /// goes up may forfeit what was above the old one. Tokens are never made by any of this.
    #[inline]
    pub fn set_capacity(&self, capacity: u64) {
        let mut seen = self.capacity.load(Relaxed);
        while let Err(other) = self.capacity.compare_exchange(seen, capacity, Relaxed, Relaxed) {
            seen = other;
        }
        // Forfeits what is above, so that a later, larger capacity does not bring it back. Above the capacity that is
        // in force now: somebody may have set a larger one, and filled it.
        self.publish(|tokens, capacity| (Some(capacity).filter(|_| tokens > capacity), ()));
    }

    /// Returns how many tokens are there. Stale when it returns.
    #[inline]
    pub fn available(&self) -> u64 {
        self.change(|tokens, _| (None, tokens))
    }

    /// Decides on the tokens that count, and publishes the outcome.
    #[inline]
    fn change<T>(&self, decide: impl Fn(u64, u64) -> (Option<u64>, T)) -> T {
        self.publish(|stored, capacity| decide(stored.min(capacity), capacity))
    }

    /// The loop: decides on the tokens that are stored, and publishes the outcome, if there is one, unless others
    /// were faster.
    #[inline]
    fn publish<T>(&self, decide: impl Fn(u64, u64) -> (Option<u64>, T)) -> T {
        // Acquire, pairs with the Release below: the capacity read next is no older than the one that the tokens were
        // published under.
        let mut stored = self.tokens.load(Acquire);
        loop {
            let capacity = self.capacity.load(Relaxed);
            let (next, answer) = decide(stored, capacity);
            let Some(next) = next else { return answer };
            match self.tokens.compare_exchange(stored, next, Release, Acquire) {
                Ok(_) => return answer,
                Err(other) => stored = other,
            }
        }
    }
}

impl<W: Word> GiveBack for AtomicTokenBucket<W> {
    #[inline]
    fn give_back(&self, n: u64) {
        self.refill(n);
    }
}

impl<W: Word> fmt::Debug for AtomicTokenBucket<W> {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtomicTokenBucket")
            .field("available", &self.available())
            .field("capacity", &self.capacity())
            .finish()
    }
}
