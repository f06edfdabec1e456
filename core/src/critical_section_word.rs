//! A word for targets without 64-bit atomics: a cell that is reached with interrupts masked.

use core::cell::Cell;
use core::sync::atomic::Ordering;

use critical_section::Mutex;

use crate::Word;

/// A [`Word`] of plain memory, each access to which is a critical section: for chips without 64-bit atomics.
///
/// The final program says what a critical section is: on one core, interrupts are masked for it, as the feature
/// `critical-section-single-core` of the crate `cortex-m` and that of `riscv` do.
/// Programs with an operating system, or several cores, bring their own by [`critical_section::set_impl!`]. A program
/// that has none does not link.
///
/// Where the target has no 64-bit atomics, this is the [`DefaultWord`](crate::DefaultWord): buckets own it
/// unless told otherwise.
///
/// # Memory ordering
///
/// A critical section begins with Acquire and ends with Release, so that every operation is as strong as any that is
/// asked for.
///
/// # Progress
///
/// Nobody waits for anybody on one core: interrupts are late by one access to the word, some ten instructions. On
/// several cores it is as good as the lock of the critical section. Not for interrupts that can't be masked.
///
/// # Examples
///
/// ```
/// use tollgate_core::{CriticalSectionWord, NoClock, Quota, State, TokenBucket, Words, quota};
///
/// const QUOTA: Quota = quota!(Quota::per_second(10), burst 2);
/// const FULL: [u64; 2] = State::full(&QUOTA).to_words();
/// static BUCKET: TokenBucket<NoClock, Words<CriticalSectionWord>> = TokenBucket::over(
///     QUOTA,
///     Words::new(CriticalSectionWord::new(FULL[0]), CriticalSectionWord::new(FULL[1])),
///     NoClock,
/// );
///
/// assert_eq!(BUCKET.try_acquire_at(0, 2), Ok(0));
/// assert!(BUCKET.try_acquire_at(0, 1).is_err());
/// ```
#[derive(Debug)]
pub struct CriticalSectionWord(Mutex<Cell<u64>>);

impl CriticalSectionWord {
    /// Makes a word that holds `value`.
    #[inline]
    #[must_use]
    pub const fn new(value: u64) -> Self {
        Self(Mutex::new(Cell::new(value)))
    }
}

impl From<u64> for CriticalSectionWord {
    #[inline]
    fn from(value: u64) -> Self {
        Self::new(value)
    }
}

impl Word for CriticalSectionWord {
    #[inline]
    fn load(&self, _: Ordering) -> u64 {
        critical_section::with(|section| self.0.borrow(section).get())
    }

    #[inline]
    fn store(&self, value: u64, _: Ordering) {
        critical_section::with(|section| self.0.borrow(section).set(value));
    }

    #[inline]
    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        critical_section::with(|section| {
            let cell = self.0.borrow(section);
            let seen = cell.get();
            if seen != current {
                return Err(seen);
            }
            cell.set(new);
            Ok(seen)
        })
    }

    #[inline]
    fn fetch_add(&self, n: u64, _: Ordering) -> u64 {
        critical_section::with(|section| {
            let cell = self.0.borrow(section);
            cell.replace(cell.get().wrapping_add(n))
        })
    }
}
