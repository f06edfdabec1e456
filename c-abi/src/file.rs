//! The calls on an opened file.

use std::time::Duration;

use shared::{AcquireError, Count, Outcome, SharedRateLimiter};
use tollgate_c_core::tollgate_status::TOLLGATE_BAD_POINTER;
use tollgate_c_core::{Out, TOLLGATE_NEVER, micros, put_quota, quota_at, status_of, tollgate_quota, tollgate_status};

use crate::last_error;
use crate::opening::tollgate_file;
use crate::status;

/// Takes `n` tokens, or none, and does not wait.
///
/// `TOLLGATE_INSUFFICIENT`, `TOLLGATE_PAUSED`: then `retry_after_us`, unless it is null, is how long to wait.
/// `TOLLGATE_CONTENDED`: try again at once; it is 0. Any other: it is `TOLLGATE_NEVER`.
///
/// # Safety
///
/// `file` was opened and not closed; `retry_after_us` is null, or points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_try_acquire(
    file: *const tollgate_file,
    n: u32,
    retry_after_us: *mut u64,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let wait = unsafe { Out::optional(retry_after_us, TOLLGATE_NEVER) }?;
        // SAFETY: the caller's promise.
        match unsafe { limiter(file) }?.try_acquire(n) {
            Ok(_) => wait.set(|| 0),
            Err(error) => {
                wait.set(|| micros(error.retry_after()));
                return Err(status::of_call(error));
            }
        }
        Ok(())
    })
}

/// Takes `n` tokens, and waits for them.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_acquire(file: *const tollgate_file, n: u32) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, |limiter| limiter.acquire(n)) }
}

/// Takes `n` tokens, and waits for them, but for `timeout_us` microseconds at most. If they would not come in that time,
/// it does not wait at all, and says why, as `tollgate_file_try_acquire` does.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_acquire_timeout(
    file: *const tollgate_file,
    n: u32,
    timeout_us: u64,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, |limiter| limiter.acquire_timeout(n, Duration::from_micros(timeout_us))) }
}

/// Takes up to `n` tokens: what there is. Writes how many to `taken`, which may be 0; after an error it
/// is.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`; `taken` points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_acquire_up_to(
    file: *const tollgate_file,
    n: u32,
    taken: *mut u32,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { tell(file, taken, 0, |limiter| limiter.acquire_up_to(n)) }
}

/// Gives `n` tokens back that were taken and not used. The limit never holds more than its burst.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_refund(file: *const tollgate_file, n: u32) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, |limiter| limiter.refund(n)) }
}

/// Fills the limit.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_reset(file: *const tollgate_file) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, SharedRateLimiter::reset) }
}

/// Writes the number of tokens that are there to `available`, and takes none. After an error, it is 0.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`; `available` points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_available(file: *const tollgate_file, available: *mut u32) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { tell(file, available, 0, SharedRateLimiter::available) }
}

/// Writes how long to wait until `n` tokens are there, in microseconds, to `retry_after_us`; 0 if they are. After an error,
/// it is `TOLLGATE_NEVER`.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_retry_after(
    file: *const tollgate_file,
    n: u32,
    retry_after_us: *mut u64,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { tell(file, retry_after_us, TOLLGATE_NEVER, |limiter| Ok(micros(Some(limiter.retry_after(n)?)))) }
}

/// Copies the quota that is in force to `quota`.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`; `quota` points to storage that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_quota(
    file: *const tollgate_file,
    quota: *mut tollgate_quota,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let current = unsafe { limiter(file) }?.quota();
        // SAFETY: the caller's promise.
        unsafe { put_quota(quota, current) }
    })
}

/// Changes the quota for all who use the file, at once. What is there stays, up to the new burst. After an error,
/// `tollgate_last_error` says more.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`; `quota` points to a `tollgate_quota`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_set_quota(
    file: *const tollgate_file,
    quota: *const tollgate_quota,
) -> tollgate_status {
    last_error::kept(|| {
        // SAFETY: the caller's promise.
        let limiter = unsafe { limiter(file) }?;
        // SAFETY: the caller's promise.
        let quota = unsafe { quota_at(quota) }?;
        Ok(limiter.set_quota(quota)?)
    })
}

/// Makes all who use the file wait for `wait_us` microseconds, as a server that is asked too often wants it. A pause that
/// ends later stays.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_pause(file: *const tollgate_file, wait_us: u64) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, |limiter| limiter.pause_for(Duration::from_micros(wait_us))) }
}

/// Ends a pause.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_resume(file: *const tollgate_file) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(file, SharedRateLimiter::resume) }
}

/// What all processes have counted since the limit was made, those included that have ended. Compare two readings to tell how much
/// was counted between; new counts are never added to this structure.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct tollgate_counts {
    /// Calls that were granted.
    pub granted_calls: u64,
    /// Tokens that were granted.
    pub granted_tokens: u64,
    /// Calls that were refused.
    pub refused_calls: u64,
    /// Attempts that had to be made again, since another was faster.
    pub contended_calls: u64,
    /// Tokens that were given back.
    pub refunded_tokens: u64,
    /// Reports that it went well, what was limited.
    pub reported_ok: u64,
    /// Reports that it met an overload, what was limited.
    pub reported_overload: u64,
    /// How long granted calls waited, in microseconds, all together.
    pub waited_us: u64,
}

/// Writes what all processes have counted to `counts`. After an error, all of it is 0.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`; `counts` points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_counts(
    file: *const tollgate_file,
    counts: *mut tollgate_counts,
) -> tollgate_status {
    let all = |limiter: &SharedRateLimiter| {
        let all = limiter.counts();
        Ok(tollgate_counts {
            granted_calls: all.get(Count::GrantedCalls),
            granted_tokens: all.get(Count::GrantedTokens),
            refused_calls: all.get(Count::RefusedCalls),
            contended_calls: all.get(Count::ContendedCalls),
            refunded_tokens: all.get(Count::RefundedTokens),
            reported_ok: all.get(Count::Ok),
            reported_overload: all.get(Count::Overload),
            waited_us: all.get(Count::WaitedMicros),
        })
    };
    // SAFETY: the caller's promise.
    unsafe { tell(file, counts, tollgate_counts::default(), all) }
}

/// Reports how it went, what tokens were taken for: whether it met an overload, as 429, 503 or a timeout. A program that steers
/// the quota by such reports can be any that uses the file. `TOLLGATE_READ_ONLY`: nothing can be reported.
///
/// # Safety
///
/// As for `tollgate_file_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_report(file: *const tollgate_file, overloaded: bool) -> tollgate_status {
    let outcome = if overloaded { Outcome::Overload } else { Outcome::Ok };
    let report = |limiter: &SharedRateLimiter| {
        limiter.report(outcome);
        if limiter.is_read_only() { Err(AcquireError::ReadOnly) } else { Ok(()) }
    };
    // SAFETY: the caller's promise.
    unsafe { call(file, report) }
}

unsafe fn limiter<'a>(file: *const tollgate_file) -> Result<&'a SharedRateLimiter, tollgate_status> {
    if !file.is_aligned() {
        return Err(TOLLGATE_BAD_POINTER);
    }
    // SAFETY: it is null, or was opened and not closed.
    unsafe { file.as_ref() }.map(|file| &file.0).ok_or(TOLLGATE_BAD_POINTER)
}

/// Does an operation that has nothing to tell but its status.
unsafe fn call<T>(
    file: *const tollgate_file,
    operation: impl FnOnce(&SharedRateLimiter) -> Result<T, AcquireError>,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    status_of(|| operation(unsafe { limiter(file) }?).map_err(status::of_call))
}

/// Does an operation, and writes what it finds; or `otherwise`, after an error.
unsafe fn tell<T>(
    file: *const tollgate_file,
    out: *mut T,
    otherwise: T,
    operation: impl FnOnce(&SharedRateLimiter) -> Result<T, AcquireError>,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(out, otherwise) }?;
        // SAFETY: the caller's promise.
        let found = operation(unsafe { limiter(file) }?).map_err(status::of_call)?;
        out.set(|| found);
        Ok(())
    })
}
