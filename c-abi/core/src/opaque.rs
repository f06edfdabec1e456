//! Rust values in storage of the C program.

use crate::tollgate_status;
use crate::tollgate_status::{TOLLGATE_BAD_POINTER, TOLLGATE_OK};

/// Refers to the value behind a pointer.
///
/// # Errors
///
/// `TOLLGATE_BAD_POINTER` if it is null or not aligned.
///
/// # Safety
///
/// A pointer that is neither must be to a `T` that outlives `'a`.
pub(crate) unsafe fn at<'a, T>(pointer: *const T) -> Result<&'a T, tollgate_status> {
    if !pointer.is_aligned() {
        return Err(TOLLGATE_BAD_POINTER);
    }
    // SAFETY: it is aligned; and null, or to a `T`, as the caller promises.
    unsafe { pointer.as_ref() }.ok_or(TOLLGATE_BAD_POINTER)
}

/// Writes the value to where the pointer points.
///
/// # Errors
///
/// `TOLLGATE_BAD_POINTER` if it is null or not aligned; nothing is written.
///
/// # Safety
///
/// A pointer that is neither must be to storage for a `T` that nobody else uses meanwhile.
pub unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), tollgate_status> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(TOLLGATE_BAD_POINTER);
    }
    // SAFETY: it is aligned and not null; the rest is the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// The status of a call that gives a value: writes the value, if there is one, to where the pointer points.
///
/// # Safety
///
/// As for [`put`].
pub unsafe fn get<T>(pointer: *mut T, value: Result<T, tollgate_status>) -> tollgate_status {
    // SAFETY: the caller's promise.
    match value.and_then(|value| unsafe { put(pointer, value) }) {
        Ok(()) => TOLLGATE_OK,
        Err(status) => status,
    }
}
