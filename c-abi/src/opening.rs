//! Files, created and opened.

use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use shared::{FileError, Options, Quota, SharedRateLimiter};
use tollgate_c_core::tollgate_status::TOLLGATE_BAD_POINTER;
use tollgate_c_core::{Out, quota_at, tollgate_quota, tollgate_status};

use crate::last_error::{self, Failure};

/// A limit in a file, opened. Any number of threads may use it; close it with `tollgate_file_close`.
#[derive(Debug)]
pub struct tollgate_file(pub(crate) SharedRateLimiter);

/// Creates the file of a limit, full, and opens it. Nothing must have this name yet.
///
/// `mode` are its permission bits, as of chmod(2): 0600 for this user alone; others must not be able to write.
/// `file` is where the handle is put; after an error it is null, and `tollgate_last_error` says more.
///
/// # Safety
///
/// `path` points to a string, `quota` to a `tollgate_quota`, `file` to storage of the caller's own.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_create(
    path: *const c_char,
    quota: *const tollgate_quota,
    mode: u32,
    file: *mut *mut tollgate_file,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { make(path, quota, file, |path, quota| Options::new().mode(mode).create(path, quota)) }
}

/// Opens the file of a limit, which must exist; its quota is in it.
///
/// # Safety
///
/// As for `tollgate_file_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_open(path: *const c_char, file: *mut *mut tollgate_file) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { open(path, file, |path| Ok(SharedRateLimiter::open(path)?)) }
}

/// Opens the file of a limit, or creates it if there is none. One that exists must have this quota.
///
/// # Safety
///
/// As for `tollgate_file_create`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_open_or_create(
    path: *const c_char,
    quota: *const tollgate_quota,
    mode: u32,
    file: *mut *mut tollgate_file,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    unsafe { make(path, quota, file, |path, quota| Options::new().mode(mode).open_or_create(path, quota)) }
}

/// Closes the file; null is allowed. The limit stays, for others and for the next time.
///
/// # Safety
///
/// `file` is null, or was opened and not closed; no thread uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tollgate_file_close(file: *mut tollgate_file) {
    if !file.is_null() {
        // SAFETY: `open` has made it of a box, and the caller closes it once.
        drop(unsafe { Box::from_raw(file) });
    }
}

/// Opens a file that is made, if it is, with a quota.
unsafe fn make(
    path: *const c_char,
    quota: *const tollgate_quota,
    file: *mut *mut tollgate_file,
    how: impl FnOnce(&Path, Quota) -> Result<SharedRateLimiter, FileError>,
) -> tollgate_status {
    // SAFETY: the caller's promise.
    let quota = || unsafe { quota_at(quota) };
    // SAFETY: the caller's promise.
    unsafe { open(path, file, |path| Ok(how(path, quota()?)?)) }
}

unsafe fn open(
    path: *const c_char,
    file: *mut *mut tollgate_file,
    how: impl FnOnce(&Path) -> Result<SharedRateLimiter, Failure>,
) -> tollgate_status {
    last_error::kept(|| {
        // SAFETY: the caller's promise.
        let file = unsafe { Out::new(file, ptr::null_mut()) }?;
        if path.is_null() {
            return Err(TOLLGATE_BAD_POINTER.into());
        }
        // SAFETY: the caller's promise.
        let limiter = how(&to_path(unsafe { CStr::from_ptr(path) }))?;
        file.set(|| Box::into_raw(Box::new(tollgate_file(limiter))));
        Ok(())
    })
}

#[cfg(unix)]
fn to_path(path: &CStr) -> std::borrow::Cow<'_, Path> {
    use std::os::unix::ffi::OsStrExt;
    Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())).into()
}

/// Where paths are not bytes, they are given as UTF-8.
#[cfg(not(unix))]
fn to_path(path: &CStr) -> std::borrow::Cow<'_, Path> {
    std::path::PathBuf::from(path.to_string_lossy().into_owned()).into()
}
