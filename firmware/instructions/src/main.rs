//! Counts the instructions of each call, by a system timer that runs in step with them (QEMU's `-icount shift=0`).

#![no_std]
#![no_main]

#[path = "../../plain.rs"]
mod plain;

use core::cell::Cell;
use core::hint::black_box;
use core::panic::PanicInfo;
use core::time::Duration;

use cortex_m::peripheral::SYST;
use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::entry;
use cortex_m_semihosting::{debug, hprintln};
use plain::Plain;
use tollgate_core::{AtomicTokenBucket, CompactTokenBucket, NoClock, Quota, State, TokenBucket, Words, quota};

const PLENTY: Quota = quota!(Quota::per_second(1_000_000), burst 1_000_000_000);
const NOTHING: Quota = quota!(Quota::per_day(1));
const CALLS: u64 = 1000;
/// The timer runs at 12.5 MHz, and an instruction takes a nanosecond.
const INSTRUCTIONS_PER_TICK: u64 = 80;

#[entry]
fn main() -> ! {
    let Some(peripherals) = cortex_m::Peripherals::take() else { exit(false) };
    let mut timer = peripherals.SYST;
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(0x00ff_ffff);
    timer.clear_current();
    timer.enable_counter();

    let words = |quota: &Quota| {
        let [state, horizon] = State::full(quota).to_words().map(|word| Plain(Cell::new(word)));
        Words::new(state, horizon)
    };
    let bucket = TokenBucket::over(PLENTY, words(&PLENTY), NoClock);
    let empty = TokenBucket::over(NOTHING, words(&NOTHING), NoClock);
    let compact = CompactTokenBucket::over_word(PLENTY, Duration::from_secs(3600), Plain(Cell::new(0)), NoClock);
    let pool = AtomicTokenBucket::over(Plain(Cell::new(u64::MAX)), Plain(Cell::new(u64::MAX)));
    let half = TokenBucket::over(PLENTY, words(&PLENTY), NoClock);
    if empty.try_acquire_at(0, 1).is_err() || half.try_acquire_at(0, 500_000_000).is_err() {
        exit(false);
    }

    // Hidden, or the optimiser would keep them in registers.
    let [bucket, half, empty] = [&bucket, &half, &empty].map(black_box);
    let (compact, pool) = (black_box(&compact), black_box(&pool));

    let none = count(|now| now);
    let print = |name: &str, instructions: u64| hprintln!("{}: {}", name, instructions.saturating_sub(none));
    print("grant", count(|now| bucket.try_acquire_at(now, 1)));
    print("grant not full", count(|now| half.try_acquire_at(now, 1)));
    print("refuse", count(|now| empty.try_acquire_at(now, 1)));
    print("acquire_up_to", count(|now| bucket.acquire_up_to_at(now, 1)));
    print("reset", count(|now| bucket.reset_at(now)));
    print("available", count(|now| bucket.available_at(now)));
    print("retry_after", count(|now| empty.retry_after_at(now, 1)));
    print("refund", count(|now| bucket.refund(u32::from(now == 0))));
    print("compact grant", count(|now| compact.try_acquire_at(now, 1)));
    print("claim", count(|_| pool.claim(1)));
    print("refill", count(|_| pool.refill(1)));
    exit(true)
}

/// The instructions of one call, on the average of calls at as many microseconds.
fn count<T>(mut call: impl FnMut(u64) -> T) -> u64 {
    let start = SYST::get_current();
    for now in 0..CALLS {
        black_box(call(black_box(1_000_000 + now)));
    }
    // The timer counts down, in 24 bits.
    let ticks = start.wrapping_sub(SYST::get_current()) & 0x00ff_ffff;
    u64::from(ticks) * INSTRUCTIONS_PER_TICK / CALLS
}

fn exit(well: bool) -> ! {
    loop {
        debug::exit(if well { debug::EXIT_SUCCESS } else { debug::EXIT_FAILURE });
    }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    exit(false)
}
