//! A bucket by a hardware counter that turns over.

use core::sync::atomic::AtomicU32;
use core::sync::atomic::Ordering::Relaxed;

use tollgate_core::{Clock, Counter, CounterClock, Quota, TokenBucket, quota};

use crate::Report;

/// A token in a millisecond. It is never full, since it is emptied once in a turn.
const QUOTA: Quota = quota!(Quota::per_second(1000), burst 200_000);

/// The low bits of a hardware counter, as if it had no more.
pub const fn counter(bits: u32, hertz: u32) -> Counter {
    match Counter::new(bits, hertz) {
        Ok(counter) => counter,
        Err(_) => panic!("a counter of the boards is in range"),
    }
}

/// A bucket that refills by a counter, from which an interrupt takes as well.
pub struct Timed<F: 'static = fn() -> u32> {
    bucket: TokenBucket<&'static CounterClock<F>>,
    clock: &'static CounterClock<F>,
    bits: u32,
    hertz: u32,
    taken: AtomicU32,
}

impl<F: Fn() -> u32> Timed<F> {
    /// Of a clock on a counter of as many bits, that counts so often in a second.
    pub const fn new(clock: &'static CounterClock<F>, bits: u32, hertz: u32) -> Self {
        Self { bucket: TokenBucket::with_clock(QUOTA, clock), clock, bits, hertz, taken: AtomicU32::new(0) }
    }

    /// Reads the clock, as somebody must at least once in a turn, and takes what has accrued.
    pub fn interrupt(&self) {
        let n = self.bucket.drain().unwrap_or(0);
        // The interrupt alone counts, so that a load and a store suffice.
        self.taken.store(self.taken.load(Relaxed).wrapping_add(n), Relaxed);
    }
}

/// Runs a bucket by a counter until it has turned over `turns` times, and checks the time, and the tokens to the last
/// one. `sleep` waits for less than a turn; `real` tells how often the counter has counted, by another way.
pub fn check_turns<F: Fn() -> u32>(
    report: &mut Report,
    timed: &Timed<F>,
    turns: u64,
    mut sleep: impl FnMut(),
    real: impl Fn() -> u64,
) {
    let Timed { bucket, clock, bits, hertz, taken: by_interrupt } = timed;
    bucket.drain().unwrap_or(0);
    let (start, began, before) = (clock.now_micros(), real(), by_interrupt.load(Relaxed));
    let mut taken = 0;
    while real().wrapping_sub(began) < turns << bits {
        sleep();
        taken += u64::from(bucket.try_acquire(1).is_ok());
    }
    taken += u64::from(bucket.drain().unwrap_or(0));
    let (end, ended) = (clock.now_micros(), real());
    taken += u64::from(by_interrupt.load(Relaxed).wrapping_sub(before));

    let (elapsed, counted) = (end.wrapping_sub(start), ended.wrapping_sub(began) * 1_000_000 / u64::from(*hertz));
    let due = elapsed / 1000;
    report.check(
        // The readings of one moment are less than a millisecond apart; a turn that was missed is more than a second.
        elapsed.abs_diff(counted) < 1000 && taken.abs_diff(due) <= 2,
        format_args!(
            "{turns} turns of a counter of {bits} bits: {elapsed} of {counted} µs, {taken} of {due} tokens, and no more"
        ),
    );
}
