//! Rust values in storage of the C program.

use crate::tollgate_status;
use crate::tollgate_status::TOLLGATE_BAD_POINTER;

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
pub(crate) unsafe fn put<T>(pointer: *mut T, value: T) -> Result<(), tollgate_status> {
    if pointer.is_null() || !pointer.is_aligned() {
        return Err(TOLLGATE_BAD_POINTER);
    }
    // SAFETY: it is aligned and not null; the rest is the caller's promise.
    unsafe { pointer.write(value) };
    Ok(())
}

/// Where a call puts a value beside its status. It is checked, and has a first value, before the call does anything.
#[derive(Debug)]
pub struct Out<T>(Option<*mut T>);

impl<T> Out<T> {
    /// Writes the first value.
    ///
    /// # Errors
    ///
    /// `TOLLGATE_BAD_POINTER` if the pointer is null or not aligned.
    ///
    /// # Safety
    ///
    /// A pointer that is neither must be to storage for a `T` that nobody else uses while this lives.
    pub unsafe fn new(pointer: *mut T, first: T) -> Result<Self, tollgate_status> {
        // SAFETY: the caller's promise.
        unsafe { put(pointer, first) }?;
        Ok(Self(Some(pointer)))
    }

    /// The same for a pointer that may be null, if nobody wants to know.
    ///
    /// # Errors
    ///
    /// `TOLLGATE_BAD_POINTER` if the pointer is not aligned.
    ///
    /// # Safety
    ///
    /// As for [`new`](Self::new).
    pub unsafe fn optional(pointer: *mut T, first: T) -> Result<Self, tollgate_status> {
        if pointer.is_null() {
            return Ok(Self(None));
        }
        // SAFETY: the caller's promise.
        unsafe { Self::new(pointer, first) }
    }

    /// Writes the value, which is worked out only if somebody wants to know it.
    pub fn set(self, value: impl FnOnce() -> T) {
        if let Self(Some(pointer)) = self {
            // SAFETY: it was written to in `new`, and whoever made this has promised that it is nobody else's since.
            unsafe { pointer.write(value()) };
        }
    }
}
