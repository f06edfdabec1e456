//! QEMU's virt board: its memory, its timer (Arm Architecture Reference Manual, D12), its interrupt controller (GICv2),
//! and its second core (PSCI).

use core::arch::asm;
use core::ptr::with_exposed_provenance_mut;

use aarch64_rt::{InitialPagetable, Stack, initial_pagetable, start_core};
use arm_gic::gicv2::GicV2;
use arm_gic::{IntId, InterruptGroup, irq_enable};
use smccc::Hvc;

/// How often the counter counts in a second.
pub const HERTZ: u32 = 62_500_000;

/// Blocks of a gigabyte, each at its own address: valid, accessed, and not for unprivileged execution.
const BLOCK: usize = 1 | 1 << 10 | 1 << 54;
/// Memory that the cores share (index 1 of the default attributes, inner shareable).
const MEMORY: usize = 1 << 2 | 3 << 8;

initial_pagetable!({
    let mut table = [0; 512];
    table[0] = BLOCK; // devices
    table[1] = BLOCK | MEMORY | 0x4000_0000;
    InitialPagetable(table)
});

const DISTRIBUTOR: usize = 0x0800_0000;
const CPU_INTERFACE: usize = 0x0801_0000;
const VIRTUAL_TIMER: IntId = IntId::ppi(11);

/// The counter, all of it.
pub fn count() -> u64 {
    let count;
    // SAFETY: reading the counter changes nothing. The barrier keeps it from being read early.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) count, options(nostack, preserves_flags)) };
    count
}

/// Asks for an interrupt after as many counts.
pub fn interrupt_in(counts: u32) {
    // SAFETY: the register says when the timer's next interrupt comes, and no more.
    unsafe { asm!("msr cntv_tval_el0, {}", in(reg) u64::from(counts), options(nostack, preserves_flags)) };
}

/// Lets the timer interrupt, at first after as many counts.
pub fn enable_interrupts(counts: u32) {
    let mut gic = gic();
    gic.setup();
    gic.set_interrupt_priority(VIRTUAL_TIMER, 0x80);
    // An interrupt of the timer's own kind is always there.
    let _ = gic.enable_interrupt(VIRTUAL_TIMER, true);
    interrupt_in(counts);
    // SAFETY: the register turns the timer on, whose interrupt is handled.
    unsafe { asm!("msr cntv_ctl_el0, {}", in(reg) 1_u64, options(nostack, preserves_flags)) };
    irq_enable();
}

/// Handles the interrupt that has come.
pub fn handle_interrupt(handler: impl FnOnce()) {
    gic().handle_interrupt(InterruptGroup::Group0, |_| handler());
}

fn gic() -> GicV2<'static> {
    // SAFETY: the registers are there, and mapped as a device's. Only `enable_interrupts`, before there are any, and
    // the handler, which is not interrupted, use them, each for the time of a call.
    unsafe { GicV2::new(with_exposed_provenance_mut(DISTRIBUTOR), with_exposed_provenance_mut(CPU_INTERFACE)) }
}

/// Starts the second core, if there is one.
pub fn start_second_core(main: fn()) -> bool {
    static mut STACK: Stack<8> = Stack::new();
    // SAFETY: this is the only use of the stack, since the core can be started once only: by then it is on.
    unsafe { start_core::<Hvc, _, 8>(1, &raw mut STACK, main) }.is_ok()
}
