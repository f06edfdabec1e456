//! How often this process was forked, so that a child does not take what is its parent's for its own.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use crate::counting;

/// One more than the forks that led to this process, since the count began. Never zero.
static FORKS: AtomicU32 = AtomicU32::new(1);

/// Returns a number that no process has which this one is a child of, by fork(2), and none is a child of this one. Never
/// zero.
#[inline(always)]
pub(crate) fn generation() -> u32 {
    FORKS.load(Relaxed)
}

/// Begins to count, once.
pub(crate) fn count() -> io::Result<()> {
    static INSTALLED: OnceLock<Result<(), i32>> = OnceLock::new();
    let outcome = INSTALLED.get_or_init(|| {
        // SAFETY: pthread_atfork(3) asks for functions of this type, which live for ever; what the child's does is allowed
        // in a child of any process (signal-safety(7)): it changes atomics.
        match unsafe { libc::pthread_atfork(None, None, Some(in_the_child)) } {
            0 => Ok(()),
            error => Err(error),
        }
    });
    (*outcome).map_err(io::Error::from_raw_os_error)
}

extern "C" fn in_the_child() {
    // It comes round after four thousand million forks in one line.
    FORKS.store(FORKS.load(Relaxed).wrapping_add(1).max(1), Relaxed);
    counting::in_the_child();
}
