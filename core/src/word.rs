//! The one door through which atomics enter: a 64-bit cell that can be loaded, and exchanged if it is as expected.
//!
//! All shared memory of this crate is made of such cells. Firmware runs the same source over a cell of
//! its own, servers over a mapped file, and the model checker over atomics that explore every interleaving.

// The lint guards this door; the door itself has to name what is behind it.
#![allow(clippy::disallowed_types)]

use core::sync::atomic::Ordering;

/// A 64-bit cell that several threads, interrupts or processes change at once.
///
/// Implemented for the target's own `AtomicU64`, where it has one, and for references to any word; with the feature
/// `critical-section`, there is a cell for targets that have none, and with the feature `portable-atomic`, another.
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

    /// Stores a value. Only a [`HandshakeHeader`](crate::HandshakeHeader) needs it.
    ///
    /// As given here, it exchanges until it wins. A word that can store in one step should.
    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        let mut seen = self.load(Ordering::Relaxed);
        while let Err(other) = self.compare_exchange(seen, value, order, Ordering::Relaxed) {
            seen = other;
        }
    }

    /// Adds `n`, and wraps; returns the value before. Only an [`ObservationRing`](crate::ObservationRing) and a
    /// [`HandshakeHeader`](crate::HandshakeHeader) need it.
    ///
    /// As given here, it exchanges until it wins. A word that can add in one step should.
    #[inline]
    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        let mut seen = self.load(Ordering::Relaxed);
        loop {
            match self.compare_exchange(seen, seen.wrapping_add(n), order, Ordering::Relaxed) {
                Ok(before) => return before,
                Err(other) => seen = other,
            }
        }
    }

    /// A fence between the operations on such words. Only a [`HandshakeHeader`](crate::HandshakeHeader) needs it.
    ///
    /// As given here, it is that of [`core::sync::atomic`]; only a word for a model checker has one of its own.
    #[inline]
    fn fence(&self, order: Ordering) {
        core::sync::atomic::fence(order);
    }
}

impl<W: Word + ?Sized> Word for &W {
    #[inline]
    fn fence(&self, order: Ordering) {
        (**self).fence(order);
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        (**self).store(value, order);
    }

    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        (**self).load(order)
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        (**self).compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        (**self).fetch_add(n, order)
    }
}

/// The word that a bucket owns unless told otherwise: the target's own 64-bit atomic.
#[cfg(target_has_atomic = "64")]
pub type DefaultWord = core::sync::atomic::AtomicU64;

/// The word that a bucket owns unless told otherwise: one behind a critical section, since this target has no 64-bit
/// atomic.
#[cfg(all(not(target_has_atomic = "64"), feature = "critical-section"))]
pub type DefaultWord = crate::CriticalSectionWord;

/// The word that a bucket owns unless told otherwise: there is none, since this target has no 64-bit atomic.
///
/// No value of it exists. Turn on the feature `critical-section`, or name a [`Word`] of your own:
/// `TokenBucket<Clock, Words<MyWord>>`.
#[cfg(not(any(target_has_atomic = "64", feature = "critical-section")))]
pub type DefaultWord = core::convert::Infallible;

#[cfg(target_has_atomic = "64")]
impl Word for core::sync::atomic::AtomicU64 {
    #[inline]
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    #[inline]
    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<u64, u64> {
        self.compare_exchange(current, new, success, failure)
    }

    #[inline]
    fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
        self.fetch_add(n, order)
    }
}

#[cfg(feature = "portable-atomic")]
portable_atomic::cfg_has_atomic_64! {
    /// On a chip with 32-bit atomics, a 64-bit atomic of portable-atomic that is not lock-free is behind a spin lock, with
    /// its feature `critical-section` too: an interrupt that meets the lock would spin for ever. (Only with
    /// `unsafe-assume-privileged` interrupts are masked as well, which can't be told from here.)
    const fn refuse_spin_locks(lock_free: bool) {
        let locks = cfg!(all(target_os = "none", target_has_atomic = "32")) && !lock_free;
        assert!(
            !locks,
            "portable-atomic has this AtomicU64 behind a lock; take CriticalSectionWord (feature `critical-section`), or, \
             on one core, its feature `unsafe-assume-single-core`"
        );
    }

    impl Word for portable_atomic::AtomicU64 {
        #[inline]
        fn load(&self, order: Ordering) -> u64 {
            const { refuse_spin_locks(Self::is_always_lock_free()) };
            self.load(order)
        }

        #[inline]
        fn store(&self, value: u64, order: Ordering) {
            const { refuse_spin_locks(Self::is_always_lock_free()) };
            self.store(value, order);
        }

        #[inline]
        fn compare_exchange(
            &self,
            current: u64,
            new: u64,
            success: Ordering,
            failure: Ordering,
        ) -> Result<u64, u64> {
            const { refuse_spin_locks(Self::is_always_lock_free()) };
            self.compare_exchange(current, new, success, failure)
        }

        #[inline]
        fn fetch_add(&self, n: u64, order: Ordering) -> u64 {
            const { refuse_spin_locks(Self::is_always_lock_free()) };
            self.fetch_add(n, order)
        }
    }
}
