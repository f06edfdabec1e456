//! The suite on RISC-V: the machine timer (CLINT) is the clock and the interrupt.

#![no_std]
#![no_main]

use core::ptr::with_exposed_provenance_mut;
use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use riscv::asm::wfi;
use riscv::interrupt::Interrupt;
use riscv::register::mie;
use riscv_rt::{core_interrupt, entry};
use semihosting::{println, process};
use tollgate_core::CounterClock;
use tollgate_suite::{Contests, Report, Timed, check_answers, check_turns, counter};

/// QEMU's virt board.
const HERTZ: u32 = 10_000_000;
const MTIME: usize = 0x0200_bff8;
const MTIMECMP: usize = 0x0200_4000;
/// Counts between two interrupts in the contests: no round number, so that they fall anywhere.
const OFTEN: u32 = 1499;

static CONTESTS: Contests = Contests::new();
static CLOCK_24: CounterClock = CounterClock::new(counter(24, HERTZ), || mtime() as u32);
static TIMED_24: Timed = Timed::new(&CLOCK_24, 24, HERTZ);
static CLOCK_32: CounterClock = CounterClock::new(counter(32, HERTZ), || mtime() as u32);
static TIMED_32: Timed = Timed::new(&CLOCK_32, 32, HERTZ);
/// Counts between two interrupts.
static PERIOD: AtomicU32 = AtomicU32::new(OFTEN);

#[core_interrupt(Interrupt::MachineTimer)]
fn timer() {
    next_interrupt();
    CONTESTS.interrupt();
    TIMED_24.interrupt();
    TIMED_32.interrupt();
}

#[entry]
fn main() -> ! {
    let mut report = Report::new(|line| println!("{line}"));
    check_answers(&mut report, 2000);

    next_interrupt();
    // SAFETY: nothing depends on interrupts being masked but critical sections, which mask them for themselves.
    unsafe {
        mie::set_mtimer();
        riscv::interrupt::enable();
    }
    CONTESTS.run(&mut report);

    PERIOD.store(HERTZ / 2, Relaxed);
    check_turns(&mut report, &TIMED_24, 4, wfi, mtime);
    PERIOD.store(100 * HERTZ, Relaxed);
    check_turns(&mut report, &TIMED_32, 3, wfi, mtime);
    process::exit(i32::from(!report.finish()))
}

fn next_interrupt() {
    let next = mtime() + u64::from(PERIOD.load(Relaxed));
    write(MTIMECMP + 4, u32::MAX);
    write(MTIMECMP, next as u32);
    write(MTIMECMP + 4, (next >> 32) as u32);
}

/// The timer, all of it.
fn mtime() -> u64 {
    loop {
        let (high, low) = (read(MTIME + 4), read(MTIME));
        if read(MTIME + 4) == high {
            return u64::from(high) << 32 | u64::from(low);
        }
    }
}

fn read(register: usize) -> u32 {
    // SAFETY: the board has a register of 32 bits there; reading it changes nothing.
    unsafe { with_exposed_provenance_mut::<u32>(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: the board has a register of 32 bits there, which only says when the next interrupt comes.
    unsafe { with_exposed_provenance_mut::<u32>(register).write_volatile(value) };
}
