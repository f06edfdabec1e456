//! The suite on AArch64. With two cores, they race on one bucket; with one, it races with the interrupts of its timer,
//! which is the clock as well.

#![no_std]
#![no_main]

mod board;

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use aarch64_rt::{ExceptionHandlers, RegisterStateRef, entry, exception_handlers};
use arm_gic::wfi;
use board::{HERTZ, count};
use semihosting::{println, process};
use tollgate_core::CounterClock;
use tollgate_suite::{Contests, Report, Timed, check_answers, check_turns, counter};

/// Counts between two interrupts in the contests: no round number, so that they fall anywhere.
const OFTEN: u32 = 9973;

static CONTESTS: Contests = Contests::new();
static CLOCK_24: CounterClock = CounterClock::new(counter(24, HERTZ), || count() as u32);
static TIMED_24: Timed = Timed::new(&CLOCK_24, 24, HERTZ);
static CLOCK_32: CounterClock = CounterClock::new(counter(32, HERTZ), || count() as u32);
static TIMED_32: Timed = Timed::new(&CLOCK_32, 32, HERTZ);
/// Counts between two interrupts.
static PERIOD: AtomicU32 = AtomicU32::new(OFTEN);

exception_handlers!(Exceptions);

struct Exceptions;

impl ExceptionHandlers for Exceptions {
    extern "C" fn irq_current(_: RegisterStateRef) {
        board::handle_interrupt(|| {
            board::interrupt_in(PERIOD.load(Relaxed));
            CONTESTS.interrupt();
            TIMED_24.interrupt();
            TIMED_32.interrupt();
        });
    }
}

entry!(main);

fn main(_: u64, _: u64, _: u64, _: u64) -> ! {
    let mut report = Report::new(|line| println!("{line}"));
    check_answers(&mut report, 2000);
    let two_cores = board::start_second_core(|| {
        loop {
            CONTESTS.interrupt();
        }
    });
    if two_cores {
        println!("two cores");
        CONTESTS.run(&mut report);
    } else {
        println!("one core");
        board::enable_interrupts(OFTEN);
        CONTESTS.run(&mut report);
        PERIOD.store(HERTZ / 10, Relaxed);
        check_turns(&mut report, &TIMED_24, 4, wfi, count);
        PERIOD.store(20 * HERTZ, Relaxed);
        check_turns(&mut report, &TIMED_32, 3, wfi, count);
    }
    process::exit(i32::from(!report.finish()))
}
