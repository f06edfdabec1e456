//! Quotas.

use core::mem::MaybeUninit;
use core::time::Duration;

use tollgate_core::Quota;

use crate::opaque::{Out, at, put};
use crate::status::status_of;
use crate::tollgate_status;
use crate::tollgate_status::{TOLLGATE_BAD_POINTER, TOLLGATE_UNINITIALIZED};

/// Says that a quota was initialised: no bits that memory starts with.
const MARK: u64 = 0x746f_6c6c_6761_7465;
const WORDS: usize = 8;

/// A rate and a burst. Initialise it with `tollgate_quota_init`; it may be copied, and read by any number of threads.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct tollgate_quota {
    /// The quota, whose padding nobody writes, and the mark in the last word.
    opaque: [MaybeUninit<u64>; 8],
}

const _: () = {
    assert!(size_of::<tollgate_quota>() == size_of::<[u64; WORDS]>(), "the mark is in the last word");
    assert!(size_of::<Quota>() <= size_of::<[u64; WORDS - 1]>(), "a quota fits before the mark");
    assert!(align_of::<Quota>() <= align_of::<tollgate_quota>(), "it is aligned");
};

/// Sets a quota: as many `tokens` accrue in each `period_ns` nanoseconds, 1 microsecond to 100 years, and at most
/// `burst` are held.
///
/// `TOLLGATE_ZERO_RATE`, `TOLLGATE_ZERO_CAPACITY`, `TOLLGATE_PERIOD_TOO_SHORT`, `TOLLGATE_PERIOD_TOO_LONG` and
/// `TOLLGATE_FILL_TIME_TOO_LONG` say what can't be; the quota is left as it was.
///
/// # Safety
///
/// `quota` points to storage that nobody else uses meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_quota_init(
    quota: *mut tollgate_quota,
    tokens: u32,
    period_ns: u64,
    burst: u32,
) -> tollgate_status {
    status_of(|| {
        let value = Quota::new(tokens, Duration::from_nanos(period_ns)).and_then(|rate| rate.with_burst(burst))?;
        // SAFETY: the caller's promise.
        unsafe { put_quota(quota, value) }
    })
}

/// Reads a quota: `tokens` accrue in each `period_ns` nanoseconds, and at most `burst` are held. Any of the three pointers may
/// be null. After an error, they are 0.
///
/// # Safety
///
/// `quota` points to a `tollgate_quota`; the others are null, or point to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_quota_get(
    quota: *const tollgate_quota,
    tokens: *mut u32,
    period_ns: *mut u64,
    burst: *mut u32,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let tokens = unsafe { Out::optional(tokens, 0) };
        // SAFETY: the caller's promise.
        let period_ns = unsafe { Out::optional(period_ns, 0) };
        // SAFETY: the caller's promise.
        let burst = unsafe { Out::optional(burst, 0) };
        // All of them have been written to, if one of them is bad.
        let (tokens, period_ns, burst) = (tokens?, period_ns?, burst?);
        // SAFETY: the caller's promise.
        let quota = unsafe { quota_at(quota) }?;
        tokens.set(|| quota.tokens());
        period_ns.set(|| u64::try_from(quota.period().as_nanos()).unwrap_or(u64::MAX));
        burst.set(|| quota.capacity());
        Ok(())
    })
}

/// Writes a quota to storage of the C program.
///
/// # Errors
///
/// `TOLLGATE_BAD_POINTER` if the pointer is null or not aligned; nothing is written.
///
/// # Safety
///
/// As for `tollgate_quota_init`.
pub unsafe fn put_quota(quota: *mut tollgate_quota, value: Quota) -> Result<(), tollgate_status> {
    let mut opaque = [MaybeUninit::new(0); WORDS];
    opaque[WORDS - 1] = MaybeUninit::new(MARK);
    // SAFETY: the caller's promise.
    unsafe { put(quota, tollgate_quota { opaque }) }?;
    // SAFETY: the words before the mark have room for it, aligned, as is asserted above.
    unsafe { quota.cast::<Quota>().write(value) };
    Ok(())
}

/// Reads a quota from storage of the C program.
///
/// # Errors
///
/// `TOLLGATE_UNINITIALIZED` if it does not hold one, `TOLLGATE_BAD_POINTER` if the pointer is null or not aligned.
///
/// # Safety
///
/// The pointer must be null, or to a `tollgate_quota` that nobody changes meanwhile.
pub unsafe fn quota_at(quota: *const tollgate_quota) -> Result<Quota, tollgate_status> {
    if quota.is_null() || !quota.is_aligned() {
        return Err(TOLLGATE_BAD_POINTER);
    }
    let marks = quota.cast::<u64>().wrapping_add(WORDS - 1);
    // SAFETY: it is the last word of the storage, which C has written or `put_quota` has.
    let mark = unsafe { at(marks) }?;
    if *mark != MARK {
        return Err(TOLLGATE_UNINITIALIZED);
    }
    // SAFETY: it is marked, so `put_quota` has written a quota there, or in what this is a copy of.
    unsafe { at(quota.cast::<Quota>()) }.copied()
}
