//! What a call says: the errors of Rust, as numbers.

use core::ffi::{CStr, c_char};

use tollgate_core::{QuotaError, TryAcquireError};

use tollgate_status::*;

/// What a call says. 1 to 9 are "not now": try again, and it can succeed. All above are "never", until you change something.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum tollgate_status {
    /// It was done.
    TOLLGATE_OK = 0,
    /// Fewer tokens are there than were asked for: wait, then try again.
    TOLLGATE_INSUFFICIENT = 1,
    /// Others changed the bucket at each attempt: try again.
    TOLLGATE_CONTENDED = 2,
    /// Somebody has paused the limit: wait, then try again.
    TOLLGATE_PAUSED = 3,

    /// More was asked for than is ever held: ask for less, or raise the burst.
    TOLLGATE_EXCEEDS_CAPACITY = 10,
    /// The bucket or the quota was not initialised, or was erased: initialise it.
    TOLLGATE_UNINITIALIZED = 11,
    /// The bucket was handed over to another: use that.
    TOLLGATE_MOVED = 12,
    /// A pointer is null, or not aligned: correct the call.
    TOLLGATE_BAD_POINTER = 13,

    /// The burst is 0: give at least 1.
    TOLLGATE_ZERO_CAPACITY = 20,
    /// The rate is 0: give at least 1 token, in a longer period if need be.
    TOLLGATE_ZERO_RATE = 21,
    /// The period is below a microsecond: give fewer tokens in a longer one.
    TOLLGATE_PERIOD_TOO_SHORT = 22,
    /// The period is above 100 years: give more tokens in a shorter one.
    TOLLGATE_PERIOD_TOO_LONG = 23,
    /// The bucket would take more than 292000 years to fill: give a smaller burst or a faster rate.
    TOLLGATE_FILL_TIME_TOO_LONG = 24,

    /// The file may only be read: get permission to write.
    TOLLGATE_READ_ONLY = 40,
    /// The file was truncated, overwritten or erased in use: remove it, create another, and open that.
    TOLLGATE_DAMAGED = 41,
    /// There is no file of this name any more: create another, and open that.
    TOLLGATE_REMOVED = 42,
    /// Another file has this name now: open it.
    TOLLGATE_REPLACED = 43,
    /// There is no such file: create it, or correct the path.
    TOLLGATE_NOT_FOUND = 44,
    /// Something has this name already: open it, or choose another path.
    TOLLGATE_ALREADY_EXISTS = 45,
    /// The operating system refused: `tollgate_last_error` says why.
    TOLLGATE_IO = 46,
    /// The path names something else than a regular file: name the file itself.
    TOLLGATE_NOT_A_FILE = 47,
    /// The file was not made by tollgate, or was damaged since: choose another path, or remove it.
    TOLLGATE_NOT_A_LIMITER = 48,
    /// The file has another version of the format: use one version of tollgate for all its users.
    TOLLGATE_VERSION = 49,
    /// The file's quota is none: it was damaged; remove it.
    TOLLGATE_BAD_QUOTA = 50,
    /// The file has another quota than was asked for: ask for that, change it, or remove the file.
    TOLLGATE_QUOTA_MISMATCH = 51,
    /// The file belongs to another user, who could change the limit: choose another path.
    TOLLGATE_OTHER_OWNER = 52,
    /// Everybody can write to the file: take that permission away, or choose another path.
    TOLLGATE_WORLD_WRITABLE = 53,
    /// The mode lets everybody write to the file, or its owner not: give another.
    TOLLGATE_BAD_MODE = 54,
    /// The file is on another machine: choose a local folder.
    TOLLGATE_REMOTE = 55,
    /// The file was removed or replaced since it was opened: open the path again.
    TOLLGATE_GONE = 56,
    /// Another process is changing the quota, or holds a lock on the file: try again, or end it.
    TOLLGATE_BUSY = 57,
    /// This process's time namespace is not its children's: start a program in it.
    TOLLGATE_TIME_NAMESPACE = 58,

    /// An error that this header does not know: take that of the library's version.
    TOLLGATE_UNKNOWN = 99,
}

/// What each means, and what to do about it.
const TEXTS: &[(tollgate_status, &CStr)] = &[
    (TOLLGATE_OK, c"done"),
    (TOLLGATE_INSUFFICIENT, c"not enough tokens; wait, then try again"),
    (TOLLGATE_CONTENDED, c"others changed the bucket at every attempt; try again"),
    (TOLLGATE_PAUSED, c"the limit is paused; wait, then try again"),
    (TOLLGATE_EXCEEDS_CAPACITY, c"more than is ever held; ask for less, or raise the burst"),
    (TOLLGATE_UNINITIALIZED, c"the bucket or the quota was not initialised, or was erased; initialise it"),
    (TOLLGATE_MOVED, c"the bucket was handed over to another; use that"),
    (TOLLGATE_BAD_POINTER, c"a pointer is null, or not aligned; correct the call"),
    (TOLLGATE_ZERO_CAPACITY, c"a burst of 0 tokens grants nothing; it must be at least 1"),
    (TOLLGATE_ZERO_RATE, c"a rate of 0 tokens grants nothing; it must be at least 1 token in a period"),
    (TOLLGATE_PERIOD_TOO_SHORT, c"the period is shorter than 1000 ns; give fewer tokens in a longer one"),
    (TOLLGATE_PERIOD_TOO_LONG, c"the period is longer than 100 years; give more tokens in a shorter one"),
    (
        TOLLGATE_FILL_TIME_TOO_LONG,
        c"the bucket would take longer than 292000 years to fill; lower the burst or raise the rate",
    ),
    (TOLLGATE_READ_ONLY, c"no permission to write to the file; get it"),
    (TOLLGATE_DAMAGED, c"the file was damaged while it was in use; remove it, and create another"),
    (TOLLGATE_REMOVED, c"the file was removed while it was in use; create another"),
    (TOLLGATE_REPLACED, c"the file was replaced while it was in use; open it again"),
    (TOLLGATE_NOT_FOUND, c"there is no such file; create it, or correct the path"),
    (TOLLGATE_ALREADY_EXISTS, c"the file exists already; open it, or choose another path"),
    (TOLLGATE_IO, c"the operating system refused; tollgate_last_error says why"),
    (TOLLGATE_NOT_A_FILE, c"not a regular file; name the file itself"),
    (TOLLGATE_NOT_A_LIMITER, c"not a limiter's file; choose another path, or remove it"),
    (TOLLGATE_VERSION, c"the file's format has another version; use one tollgate for all its users"),
    (TOLLGATE_BAD_QUOTA, c"the file's quota is damaged; remove the file"),
    (
        TOLLGATE_QUOTA_MISMATCH,
        c"the file has another quota than was asked for; ask for that, change it, or remove the file",
    ),
    (TOLLGATE_OTHER_OWNER, c"the file belongs to another user; choose another path"),
    (TOLLGATE_WORLD_WRITABLE, c"everybody can write to the file; chmod o-w it, or choose another path"),
    (TOLLGATE_BAD_MODE, c"the owner must be able to read and write, others not to write; give a mode like 0660"),
    (TOLLGATE_REMOTE, c"the file is on a file system that other machines share; choose a local folder"),
    (TOLLGATE_GONE, c"the file was removed or replaced; open it again"),
    (TOLLGATE_BUSY, c"another process is changing the quota, or holds a lock on the file; try again"),
    (
        TOLLGATE_TIME_NAMESPACE,
        c"this process has left its time namespace and is not yet in another; start a program in it",
    ),
    (TOLLGATE_UNKNOWN, c"an error that this version does not know; update tollgate"),
];

/// Says what a status means, and what to do about it: a text in English that is there for ever.
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_strerror(status: i32) -> *const c_char {
    text(status).as_ptr()
}

fn text(status: i32) -> &'static CStr {
    let text = TEXTS.iter().find(|(known, _)| *known as i32 == status);
    text.map_or(c"no status of tollgate", |(_, text)| text)
}

impl tollgate_status {
    /// What it means, and what to do about it.
    #[must_use]
    pub fn text(self) -> &'static CStr {
        text(self as i32)
    }
}

/// The status of what a call does.
pub fn status_of<T>(call: impl FnOnce() -> Result<T, tollgate_status>) -> tollgate_status {
    match call() {
        Ok(_) => TOLLGATE_OK,
        Err(status) => status,
    }
}

impl From<TryAcquireError> for tollgate_status {
    fn from(error: TryAcquireError) -> Self {
        match error {
            TryAcquireError::Insufficient { .. } => TOLLGATE_INSUFFICIENT,
            TryAcquireError::ExceedsCapacity { .. } => TOLLGATE_EXCEEDS_CAPACITY,
            TryAcquireError::Contended => TOLLGATE_CONTENDED,
            TryAcquireError::Uninitialized => TOLLGATE_UNINITIALIZED,
            TryAcquireError::Moved => TOLLGATE_MOVED,
            _ => TOLLGATE_UNKNOWN,
        }
    }
}

impl From<QuotaError> for tollgate_status {
    fn from(error: QuotaError) -> Self {
        match error {
            QuotaError::ZeroCapacity => TOLLGATE_ZERO_CAPACITY,
            QuotaError::ZeroRate => TOLLGATE_ZERO_RATE,
            QuotaError::PeriodTooShort { .. } => TOLLGATE_PERIOD_TOO_SHORT,
            QuotaError::PeriodTooLong { .. } => TOLLGATE_PERIOD_TOO_LONG,
            QuotaError::FillTimeTooLong { .. } => TOLLGATE_FILL_TIME_TOO_LONG,
            _ => TOLLGATE_UNKNOWN,
        }
    }
}
