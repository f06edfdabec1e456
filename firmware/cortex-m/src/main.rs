//! The suite on a Cortex-M: the system timer is the clock and the interrupt.

#![no_std]
#![no_main]

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use cortex_m::Peripherals;
use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::{entry, exception};
use semihosting::{println, process};
use tollgate_core::CounterClock;
use tollgate_suite::{Contests, Report, Timed, check_answers, check_turns, counter};

const BITS: u32 = 24;
const HERTZ: u32 = match u32::from_str_radix(env!("HERTZ"), 10) {
    Ok(hertz) => hertz,
    Err(_) => panic!("the build script says how fast the timer is"),
};
const LARGEST: u32 = (1 << BITS) - 1;
/// Counts between two interrupts in the contests: no round number, so that they fall anywhere.
const OFTEN: u32 = 1499;

static CONTESTS: Contests = Contests::new();
/// The timer counts down.
static CLOCK: CounterClock = CounterClock::new(counter(BITS, HERTZ), || !SYST::get_current());
static TIMED: Timed = Timed::new(&CLOCK, BITS, HERTZ);
static INTERRUPTS: AtomicU32 = AtomicU32::new(0);

#[exception]
fn SysTick() {
    CONTESTS.interrupt();
    TIMED.interrupt();
    // No other interrupt counts, so that a load and a store suffice.
    INTERRUPTS.store(INTERRUPTS.load(Relaxed).wrapping_add(1), Relaxed);
}

#[entry]
fn main() -> ! {
    let Some(peripherals) = Peripherals::take() else { process::exit(1) };
    let mut timer = peripherals.SYST;
    let mut report = Report::new(|line| println!("{line}"));
    check_answers(&mut report, 2000);

    timer.set_clock_source(SystClkSource::Core);
    start(&mut timer, OFTEN);
    CONTESTS.run(&mut report);

    start(&mut timer, LARGEST);
    // Its interrupt comes once in a turn, which is too rare to be the only reader of the clock.
    check_turns(&mut report, &TIMED, 4, || cortex_m::asm::delay(LARGEST / 8), counted);
    process::exit(i32::from(!report.finish()))
}

fn start(timer: &mut SYST, reload: u32) {
    timer.disable_interrupt();
    timer.disable_counter();
    timer.set_reload(reload);
    timer.clear_current();
    INTERRUPTS.store(0, Relaxed);
    timer.enable_interrupt();
    timer.enable_counter();
}

/// How often the timer has counted, by the number of its interrupts.
fn counted() -> u64 {
    loop {
        let before = INTERRUPTS.load(Relaxed);
        let count = LARGEST - SYST::get_current();
        if INTERRUPTS.load(Relaxed) == before {
            return u64::from(before) << BITS | u64::from(count);
        }
    }
}
