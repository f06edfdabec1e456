//! The bucket that refills itself.

use core::time::Duration;

use tollgate_core::{DefaultWord, NoClock, State, TokenBucket, TryAcquireError, Words};

use crate::opaque::{Out, at, put};
use crate::status::status_of;
use crate::tollgate_status;
use crate::{quota_at, tollgate_quota};

/// What is written to `retry_after_us` if the call can never succeed.
pub const TOLLGATE_NEVER: u64 = 0xffff_ffff_ffff_ffff;

/// A token bucket, to be shared by threads and interrupts: 16 bytes. Initialise it with `tollgate_bucket_init`; one of
/// zeros, as a `static` is at first, refuses all with `TOLLGATE_UNINITIALIZED`. It needs no clean-up. Don't copy it.
#[repr(C, align(16))]
#[derive(Debug)]
pub struct tollgate_bucket {
    /// Two words, of the kind that this target has.
    opaque: [u64; 2],
}

type Cells = [DefaultWord; 2];

const _: () = {
    assert!(size_of::<Cells>() == size_of::<tollgate_bucket>(), "the words fill it");
    assert!(align_of::<Cells>() <= align_of::<tollgate_bucket>(), "they are aligned");
};

/// Makes a full bucket, before anybody uses it. Its time starts at 0.
///
/// # Safety
///
/// `bucket` points to storage that nobody else uses meanwhile, `quota` to a `tollgate_quota`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_bucket_init(
    bucket: *mut tollgate_bucket,
    quota: *const tollgate_quota,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let quota = unsafe { quota_at(quota) }?;
        let cells = State::full(&quota).to_words().map(DefaultWord::new);
        // SAFETY: the caller's promise.
        unsafe { put_aligned::<tollgate_bucket, _>(bucket, cells) }
    })
}

/// Takes `n` tokens at the time `now_us`, or none.
///
/// `TOLLGATE_INSUFFICIENT`: fewer are there. Then `retry_after_us`, unless it is null, is how long to wait: until then,
/// and not a microsecond before. `TOLLGATE_CONTENDED`: try again at once; it is 0. Any other: it is `TOLLGATE_NEVER`.
///
/// # Safety
///
/// `bucket` and `quota` point to what was initialised, and nobody writes to them but through these functions;
/// `retry_after_us` is null, or points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_try_acquire(
    bucket: *mut tollgate_bucket,
    quota: *const tollgate_quota,
    now_us: u64,
    n: u32,
    retry_after_us: *mut u64,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let wait = unsafe { Out::optional(retry_after_us, TOLLGATE_NEVER) }?;
        // SAFETY: the caller's promise.
        let bucket = unsafe { bucket_at(bucket, quota) }?;
        match bucket.try_acquire_at(now_us, n) {
            Ok(_) => wait.set(|| 0),
            Err(refusal) => {
                wait.set(|| micros(refusal.retry_after()));
                return Err(refusal.into());
            }
        }
        Ok(())
    })
}

/// Takes up to `n` tokens at the time `now_us`: what there is. Writes how many to `taken`, which may be 0;
/// after an error it is.
///
/// # Safety
///
/// As for `tollgate_try_acquire`; `taken` points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_acquire_up_to(
    bucket: *mut tollgate_bucket,
    quota: *const tollgate_quota,
    now_us: u64,
    n: u32,
    taken: *mut u32,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { tell(bucket, quota, taken, 0, |bucket| bucket.acquire_up_to_at(now_us, n)) }
}

/// Gives `n` tokens back that were taken and not used. The bucket never holds more than its burst.
///
/// # Safety
///
/// As for `tollgate_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_refund(
    bucket: *mut tollgate_bucket,
    quota: *const tollgate_quota,
    n: u32,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(bucket, quota, |bucket| bucket.refund(n)) }
}

/// Fills the bucket at the time `now_us`.
///
/// # Safety
///
/// As for `tollgate_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_reset(
    bucket: *mut tollgate_bucket,
    quota: *const tollgate_quota,
    now_us: u64,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { call(bucket, quota, |bucket| bucket.reset_at(now_us)) }
}

/// Writes the number of tokens that are there at the time `now_us` to `available`, and takes none. After an error, it is 0.
///
/// # Safety
///
/// As for `tollgate_try_acquire`; `available` points to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_available(
    bucket: *const tollgate_bucket,
    quota: *const tollgate_quota,
    now_us: u64,
    available: *mut u32,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { tell(bucket, quota, available, 0, |bucket| bucket.available_at(now_us)) }
}

/// Writes how long to wait from `now_us` until `n` tokens are there, in microseconds, to `retry_after_us`; 0 if they
/// are. `TOLLGATE_EXCEEDS_CAPACITY`: they never are. After this and any other error it is `TOLLGATE_NEVER`.
///
/// # Safety
///
/// As for `tollgate_try_acquire`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_retry_after(
    bucket: *const tollgate_bucket,
    quota: *const tollgate_quota,
    now_us: u64,
    n: u32,
    retry_after_us: *mut u64,
) -> tollgate_status {
    let wait = |bucket: &Bucket<'_>| Ok(micros(Some(bucket.retry_after_at(now_us, n)?)));
    // SAFETY: the caller's promise.
    unsafe { tell(bucket, quota, retry_after_us, TOLLGATE_NEVER, wait) }
}

type Bucket<'a> = TokenBucket<NoClock, Words<&'a DefaultWord>>;

unsafe fn bucket_at<'a>(
    bucket: *const tollgate_bucket,
    quota: *const tollgate_quota,
) -> Result<Bucket<'a>, tollgate_status> {
    // SAFETY: the caller's promise.
    let quota = unsafe { quota_at(quota) }?;
    // SAFETY: the caller's promise. A bucket is two words, whether of zeros or of a state: any bits are a word.
    let [state, horizon] = unsafe { cells_at(bucket) }?;
    Ok(TokenBucket::over(quota, Words::new(state, horizon), NoClock))
}

/// Does an operation that has nothing to tell but its status.
unsafe fn call(
    bucket: *const tollgate_bucket,
    quota: *const tollgate_quota,
    operation: impl FnOnce(&Bucket<'_>) -> Result<(), TryAcquireError>,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    status_of(|| Ok(operation(&unsafe { bucket_at(bucket, quota) }?)?))
}

/// Does an operation, and writes what it finds; or `otherwise`, after an error.
unsafe fn tell<T>(
    bucket: *const tollgate_bucket,
    quota: *const tollgate_quota,
    out: *mut T,
    otherwise: T,
    operation: impl FnOnce(&Bucket<'_>) -> Result<T, TryAcquireError>,
) -> tollgate_status {
    status_of(|| {
        // SAFETY: the caller's promise.
        let out = unsafe { Out::new(out, otherwise) }?;
        // SAFETY: the caller's promise.
        let found = operation(&unsafe { bucket_at(bucket, quota) }?)?;
        out.set(|| found);
        Ok(())
    })
}

/// The words of a bucket or a pool `T`, which is aligned for them and as large.
pub(crate) unsafe fn cells_at<'a, T>(storage: *const T) -> Result<&'a Cells, tollgate_status> {
    const { assert!(size_of::<Cells>() == size_of::<T>() && align_of::<Cells>() <= align_of::<T>()) };
    // SAFETY: the caller's promise; the size and the alignment do.
    unsafe { at(storage.cast::<Cells>()) }
}

/// Writes a value into storage that is declared as `T`, and aligned as that.
pub(crate) unsafe fn put_aligned<T, V>(storage: *mut T, value: V) -> Result<(), tollgate_status> {
    const { assert!(size_of::<V>() == size_of::<T>() && align_of::<V>() <= align_of::<T>()) };
    // SAFETY: the caller's promise; the size and the alignment do.
    unsafe { put(storage.cast::<V>(), value) }
}

/// A wait as C is told it: `None` is never.
#[must_use]
pub fn micros(wait: Option<Duration>) -> u64 {
    wait.and_then(|wait| u64::try_from(wait.as_micros()).ok()).unwrap_or(TOLLGATE_NEVER)
}
