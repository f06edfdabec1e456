//! The processor's counter: one instruction, and unsafe code for no other reason than that it is one.

/// What Linux calls its clock when it keeps time by this counter; `None` where there is no counter to read.
pub(crate) const KERNEL_CLOCK: Option<&str> = if cfg!(not(target_os = "linux")) {
    None
} else if cfg!(target_arch = "x86_64") {
    Some("tsc")
} else if cfg!(target_arch = "aarch64") {
    Some("arch_sys_counter")
} else {
    None
};

/// Reads the time stamp counter.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn read() -> u64 {
    // SAFETY: every x86-64 processor has the instruction. Where the system forbids it to programs (prctl(2),
    // PR_SET_TSC), it is a signal.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the virtual counter.
#[cfg(target_arch = "aarch64")]
#[inline]
pub(crate) fn read() -> u64 {
    let count: u64;
    // SAFETY: reading this register has no effect, and Linux allows it to programs; it touches no memory.
    unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack, preserves_flags)) };
    count
}

/// There is none.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline]
pub(crate) fn read() -> u64 {
    0
}
