//! The text of this thread's last error with a file, as dlerror(3) has it for libraries.

use std::cell::RefCell;
use std::error::Error;
use std::ffi::{CString, c_char};

use shared::FileError;
use tollgate_c_core::tollgate_status;

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

/// Keeps the text, and returns the status.
pub(crate) fn keep(error: &FileError) -> tollgate_status {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    // A path has no zero byte, nor has any other text.
    let text = CString::new(text.replace('\0', "")).unwrap_or_default();
    // A thread that is ending has nobody who could ask.
    let _ = TEXT.try_with(|kept| kept.replace(text));
    status::of_file(error)
}
