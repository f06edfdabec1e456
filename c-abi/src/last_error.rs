//! The text of this thread's last error with a file, as dlerror(3) has it for libraries.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char};

use shared::FileError;
use tollgate_c_core::tollgate_status;
use tollgate_c_core::tollgate_status::TOLLGATE_OK;

use crate::status;

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Says why this thread's last `tollgate_file_create`, `_open`, `_open_or_create` or `_set_quota` failed: with the path,
/// what was found and what to do; empty if none has. The text is there until the thread's next such call that fails.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_last_error() -> *const c_char {
    TEXT.try_with(|text| text.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

/// What makes a call on a file fail.
pub(crate) enum Failure {
    /// A bad argument, which the status says all about.
    Status(tollgate_status),
    File(FileError),
}

impl From<tollgate_status> for Failure {
    fn from(status: tollgate_status) -> Self {
        Self::Status(status)
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Self {
        Self::File(error)
    }
}

/// The status of what a call does; keeps the text of an error.
pub(crate) fn kept(call: impl FnOnce() -> Result<(), Failure>) -> tollgate_status {
    let (status, text) = match call() {
        Ok(()) => return TOLLGATE_OK,
        Err(Failure::Status(status)) => (status, status.text().to_owned()),
        Err(Failure::File(error)) => (status::of_file(&error), text_of(&error)),
    };
    // A thread that is ending has nobody who could ask.
    let _ = TEXT.try_with(|kept| kept.replace(text));
    status
}

/// The text of an error, and of what is behind it.
fn text_of(error: &FileError) -> CString {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    // A path has no zero byte, nor has any other text.
    CString::new(text.replace('\0', "")).unwrap_or_default()
}
