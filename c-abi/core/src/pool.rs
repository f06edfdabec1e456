//! The pool that its owner refills.

use tollgate_core::{AtomicTokenBucket, DefaultWord};

use crate::bucket::{cells_at, put_aligned};
use crate::status::status_of;
use crate::tollgate_status;
use crate::tollgate_status::{TOLLGATE_EXCEEDS_CAPACITY, TOLLGATE_INSUFFICIENT, TOLLGATE_OK};

/// A pool of tokens without a clock, which its owner refills: 16 bytes. Initialise it with `tollgate_pool_init`; one of
/// zeros holds nothing, and never will. It needs no clean-up. Don't copy it.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct tollgate_pool {
    /// Two words, of the kind that this target has.
    opaque: [u64; 2],
}

/// Makes a full pool of `capacity` tokens, before anybody uses it.
///
/// # Safety
///
/// `pool` points to storage that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_pool_init(pool: *mut tollgate_pool, capacity: u64) -> tollgate_status {
    let cells = [DefaultWord::new(capacity), DefaultWord::new(capacity)];
    // SAFETY: the caller's promise.
    status_of(|| unsafe { put_aligned::<tollgate_pool, _>(pool, cells) })
}

/// Takes `n` tokens, or none: `TOLLGATE_INSUFFICIENT` if there are fewer, `TOLLGATE_EXCEEDS_CAPACITY` if the pool never
/// holds so many.
///
/// # Safety
///
/// `pool` points to what was initialised, and nobody writes to it but through these functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_pool_claim(pool: *mut tollgate_pool, n: u64) -> tollgate_status {
    // SAFETY: the caller's promise.
    match unsafe { pool_at(pool) } {
        // In Rust, it would be granted as many as that, and told. The capacity does not change.
        Ok(pool) if n > pool.capacity() => TOLLGATE_EXCEEDS_CAPACITY,
        Ok(pool) if pool.claim(n).is_some() => TOLLGATE_OK,
        Ok(_) => TOLLGATE_INSUFFICIENT,
        Err(status) => status,
    }
}

/// Puts `n` tokens in, as far as there is room; returns how many tokens went in.
///
/// # Safety
///
/// As for `tollgate_pool_claim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_pool_refill(pool: *mut tollgate_pool, n: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { pool_at(pool) }.map_or(0, |pool| pool.refill(n))
}

/// Takes all that is there; returns how many tokens that were.
///
/// # Safety
///
/// As for `tollgate_pool_claim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_pool_drain(pool: *mut tollgate_pool) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { pool_at(pool) }.map_or(0, |pool| pool.drain())
}

/// Returns how many tokens are there.
///
/// # Safety
///
/// As for `tollgate_pool_claim`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_pool_available(pool: *const tollgate_pool) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { pool_at(pool) }.map_or(0, |pool| pool.available())
}

unsafe fn pool_at<'a>(pool: *const tollgate_pool) -> Result<AtomicTokenBucket<&'a DefaultWord>, tollgate_status> {
    // SAFETY: the caller's promise.
    let [tokens, capacity] = unsafe { cells_at(pool) }?;
    Ok(AtomicTokenBucket::over(tokens, capacity))
}
