//! A limit for log lines that the main loop and an interrupt share: static, without a heap, safe to call from
//! anywhere.
//!
//! On a chip, `read_timer` reads a register, `uart` writes to a peripheral, and the interrupt is real; here they are
//! stand-ins, so that the example runs anywhere: `cargo run -p tollgate-core --example log_limiter`.

#![allow(clippy::arithmetic_side_effects, clippy::disallowed_types, reason = "stand-ins for hardware")]

use core::sync::atomic::{AtomicU32, Ordering};

use tollgate_core::{Counter, CounterClock, Quota, TokenBucket, quota};

/// Five lines at once, two a second: a quota that can't be does not compile.
const LINES: Quota = quota!(Quota::per_second(2), burst 5);

/// A 24-bit timer at 1 MHz wraps each 16.8 s; it has to be read at least as often as `max_gap` says.
const TIMER: Counter = match Counter::new(24, 1_000_000) {
    Ok(counter) => counter,
    Err(_) => panic!(),
};

static REGISTER: AtomicU32 = AtomicU32::new(0);
static CLOCK: CounterClock = CounterClock::new(TIMER, read_timer);
static LIMIT: TokenBucket<&CounterClock> = TokenBucket::with_clock(LINES, &CLOCK);
static SUPPRESSED: AtomicU32 = AtomicU32::new(0);

fn read_timer() -> u32 {
    REGISTER.load(Ordering::Relaxed) & 0xff_ffff
}

/// Writes the line, or counts it; tells how many were left out before.
fn log(line: &str) {
    if LIMIT.try_acquire(1).is_err() {
        SUPPRESSED.fetch_add(1, Ordering::Relaxed);
        return;
    }
    match SUPPRESSED.swap(0, Ordering::Relaxed) {
        0 => println!("{line}"),
        count => println!("{line} ({count} suppressed)"),
    }
}

fn timer_interrupt() {
    log("tick");
}

fn main() {
    // Thirty seconds, over a wrap of the timer, at 20 lines a second.
    for tenth in 0..300_u32 {
        REGISTER.store(tenth * 100_000, Ordering::Relaxed);
        log("main loop");
        timer_interrupt();
    }
    // 600 lines were asked for. In 29.9 s, 5 + 59 were written.
    assert_eq!(LIMIT.available(), Ok(0));
}
