//! The calls that take no division, compiled for any word and target, and how large the buckets are.

#![no_std]

#[cfg(feature = "sizes")]
mod sizes;

#[cfg(feature = "cells")]
#[path = "../../plain.rs"]
mod plain;

use tollgate_core::{NoClock, TokenBucket, TryAcquireError, Words};

/// Over words of any kind, so that nothing of them is folded.
#[cfg(not(feature = "cells"))]
type Bucket<'a> = TokenBucket<NoClock, Words<&'a dyn tollgate_core::Word>>;

/// Over plain cells, which cost nothing of their own.
#[cfg(feature = "cells")]
type Bucket<'a> = TokenBucket<NoClock, Words<&'a plain::Plain>>;

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

/// Over portable-atomic's words, as the program chooses them.
#[cfg(feature = "portable-atomic")]
#[inline(never)]
pub fn take_portable(
    bucket: &TokenBucket<NoClock, Words<&portable_atomic::AtomicU64>>,
    now: u64,
    n: u32,
) -> Result<u32, TryAcquireError> {
    bucket.try_acquire_at(now, n)
}
