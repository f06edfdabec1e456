//! Tokens that go back unless they are spent.

use core::fmt;

/// A bucket that takes tokens back; what a [`Permit`] needs of it.
pub trait GiveBack {
    /// Gives `n` tokens back; what would rise above the capacity is forfeited.
    fn give_back(&self, n: u64);
}

/// Tokens that were taken and not yet spent. Those that are left when it is dropped go back, never above the
/// capacity.
///
/// From [`TokenBucket::try_acquire_permit`](crate::TokenBucket::try_acquire_permit),
/// [`TokenBucket::lease`](crate::TokenBucket::lease) and
/// [`AtomicTokenBucket::claim_permit`](crate::AtomicTokenBucket::claim_permit). Spending is a subtraction in the
/// permit itself, which one thread has: nothing is shared until it is dropped.
///
/// Nobody can be told that giving back has failed: if others change a [`TokenBucket`](crate::TokenBucket) at each of
/// [`MAX_ATTEMPTS`](crate::MAX_ATTEMPTS) attempts, or it has moved, the tokens count as spent. A permit that is never
/// dropped (`core::mem::forget`, a killed process) has spent all, too. A process that forks has each permit twice, and
/// what goes back, if others can see it, goes back twice: [`forget`](Self::forget) those of the child.
///
/// # Examples
///
/// ```
/// use tollgate_core::{ExceedsPermit, Quota, TokenBucket, quota};
///
/// let bucket = TokenBucket::new(quota!(Quota::per_hour(10)));
/// let mut permit = bucket.try_acquire_permit_at(0, 8)?;
/// permit.spend(5)?;
/// assert_eq!(permit.remaining(), 3);
/// assert!(permit.spend(4).is_err()); // spends nothing
/// assert_eq!(bucket.available_at(0)?, 2);
///
/// drop(permit); // three go back
/// assert_eq!(bucket.available_at(0)?, 5);
///
/// bucket.try_acquire_permit_at(0, 5)?.forget(); // all are spent
/// assert_eq!(bucket.available_at(0)?, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "a permit that is dropped gives its tokens back"]
pub struct Permit<'a, B: GiveBack + ?Sized> {
    bucket: &'a B,
    remaining: u64,
}

impl<'a, B: GiveBack + ?Sized> Permit<'a, B> {
    /// Makes a permit of tokens that were taken from `bucket`.
    #[inline]
    pub const fn new(bucket: &'a B, granted: u64) -> Self {
        Self { bucket, remaining: granted }
    }

    /// Returns the tokens that are not spent yet.
    #[inline]
    #[must_use]
    pub const fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Spends `n` of the tokens: they don't go back.
    ///
    /// # Errors
    ///
    /// [`ExceedsPermit`] if fewer remain; none are spent then. Take another permit for the difference.
    #[inline]
    pub const fn spend(&mut self, n: u64) -> Result<(), ExceedsPermit> {
        match self.remaining.checked_sub(n) {
            Some(remaining) => {
                self.remaining = remaining;
                Ok(())
            }
            None => Err(ExceedsPermit { requested: n, remaining: self.remaining }),
        }
    }

    /// Spends all tokens that remain.
    #[inline]
    pub fn forget(mut self) {
        self.remaining = 0;
    }
}

impl<B: GiveBack + ?Sized> Drop for Permit<'_, B> {
    #[inline]
    fn drop(&mut self) {
        if self.remaining > 0 {
            self.bucket.give_back(self.remaining);
        }
    }
}

/// More was to be spent than the permit has: nothing was spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct ExceedsPermit {
    /// The tokens that were to be spent.
    pub requested: u64,
    /// The tokens that the permit still has.
    pub remaining: u64,
}

impl fmt::Display for ExceedsPermit {
    #[inline]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens to spend, but the permit has {} left", self.requested, self.remaining)
    }
}

impl core::error::Error for ExceedsPermit {}
