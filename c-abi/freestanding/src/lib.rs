//! `libtollgate_freestanding.a`: the functions of `include/tollgate.h`, for firmware and kernels in C.

#![no_std]

#[cfg(not(target_has_atomic = "64"))]
mod critical_section;

pub use tollgate_c_core::*;

/// A panic that can be reached.
#[cfg(feature = "panics")]
#[unsafe(no_mangle)]
pub extern "C" fn tollgate_divide(n: u32, by: u32) -> u32 {
    n / by
}

/// Never reached: nothing in the library panics, as `../check` shows.
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[cfg(feature = "panics-are-undefined")]
    {
        // SAFETY: the signature can't be wrong, since there is no such function.
        unsafe extern "C" {
            safe fn a_panic_can_be_reached() -> !;
        }
        a_panic_can_be_reached()
    }
    #[cfg(not(feature = "panics-are-undefined"))]
    loop {
        core::hint::spin_loop();
    }
}
