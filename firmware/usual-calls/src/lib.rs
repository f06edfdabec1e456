//! The calls that take no division, compiled for any word and target.

#![no_std]

use tollgate_core::{NoClock, TokenBucket, TryAcquireError, Word, Words};

/// Over words of any kind, so that nothing of them is folded.
#[cfg(not(feature = "cells"))]
type Bucket<'a> = TokenBucket<NoClock, Words<&'a dyn Word>>;

/// Over plain cells, which cost nothing of their own.
#[cfg(feature = "cells")]
type Bucket<'a> = TokenBucket<NoClock, Words<&'a Plain>>;

/// What one processor could use with its interrupts masked.
#[cfg(feature = "cells")]
pub struct Plain(core::cell::Cell<u64>);

#[cfg(feature = "cells")]
impl Word for Plain {
    #[inline]
    fn load(&self, _: core::sync::atomic::Ordering) -> u64 {
        self.0.get()
    }

    #[inline]
    fn compare_exchange(
        &self,
        current: u64,
        new: u64,
        _: core::sync::atomic::Ordering,
        _: core::sync::atomic::Ordering,
    ) -> Result<u64, u64> {
        let seen = self.0.get();
        if seen == current {
            self.0.set(new);
            return Ok(seen);
        }
        Err(seen)
    }

    #[inline]
    fn fetch_max(&self, floor: u64, _: core::sync::atomic::Ordering) -> u64 {
        let seen = self.0.get();
        self.0.set(seen.max(floor));
        seen
    }
}

#[inline(never)]
pub fn take(bucket: &Bucket<'_>, now: u64, n: u32) -> Result<u32, TryAcquireError> {
    bucket.try_acquire_at(now, n)
}

#[inline(never)]
pub fn take_up_to(bucket: &Bucket<'_>, now: u64, n: u32) -> Result<u32, TryAcquireError> {
    bucket.acquire_up_to_at(now, n)
}

#[inline(never)]
pub fn look(bucket: &Bucket<'_>, now: u64) -> Result<u32, TryAcquireError> {
    bucket.available_at(now)
}

#[inline(never)]
pub fn give_back(bucket: &Bucket<'_>, n: u32) -> Result<(), TryAcquireError> {
    bucket.refund(n)
}

#[cfg(feature = "divides")]
#[inline(never)]
pub fn wait(bucket: &Bucket<'_>, now: u64, n: u32) -> Result<core::time::Duration, TryAcquireError> {
    bucket.retry_after_at(now, n)
}
