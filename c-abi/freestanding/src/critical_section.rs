//! Critical sections, where the target has no 64-bit atomics: the C program says what they are.

use critical_section::{Impl, RawRestoreState, set_impl};

unsafe extern "C" {
    /// Masks interrupts, or takes a lock, so that nobody else is in a critical section until the next function is
    /// called; may be called in one. Returns what that function is to be given.
    fn tollgate_enter_critical_section() -> u32;

    /// Ends the critical section, and restores what was before it.
    fn tollgate_leave_critical_section(state: u32);
}

struct OfTheProgram;

set_impl!(OfTheProgram);

// SAFETY: the program's functions do what is asked of them above.
unsafe impl Impl for OfTheProgram {
    unsafe fn acquire() -> RawRestoreState {
        // SAFETY: as above.
        unsafe { tollgate_enter_critical_section() }
    }

    unsafe fn release(state: RawRestoreState) {
        // SAFETY: as above; it is the state that the other one returned.
        unsafe { tollgate_leave_critical_section(state) }
    }
}
