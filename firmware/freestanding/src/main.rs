//! Every operation of the core in a program without an operating system. A panic handler must be there; this one calls a
//! function that does not exist, so that the program links only if the optimiser has shown that no panic can be reached.

#![no_std]
#![no_main]

use core::time::Duration;

use tollgate_core::{
    AtomicTokenBucket, Clock, CompactTokenBucket, Counter, CounterClock, KeyedBuckets, NoClock, ObservationRing,
    Observed, Quota, Refiller, TokenBucket, quota,
};

const QUOTA: Quota = quota!(Quota::per_second(10), burst 5);

const TIMER: Counter = match Counter::new(24, 16_000_000) {
    Ok(counter) => counter,
    Err(_) => panic!(),
};

static CLOCK: CounterClock = CounterClock::new(TIMER, || input() as u32);
static BUCKET: TokenBucket<&CounterClock> = TokenBucket::with_clock(QUOTA, &CLOCK);
static COMPACT: CompactTokenBucket = CompactTokenBucket::with_window(QUOTA, Duration::from_hours(1), NoClock);
static POOL: AtomicTokenBucket = AtomicTokenBucket::new(1000);
static EVENTS: ObservationRing<10> = ObservationRing::new();

/// A value that the optimiser knows nothing about.
#[inline(never)]
fn input() -> u64 {
    core::hint::black_box(0)
}

fn everything() -> u64 {
    let n = input() as u32;
    let now = input();
    let mut sum = 0_u64;
    let mut seen = |value: u64| sum = sum.wrapping_add(value);

    seen(u64::from(BUCKET.try_acquire(n).unwrap_or(0)));
    seen(u64::from(BUCKET.acquire_up_to(n).unwrap_or(0)));
    seen(u64::from(BUCKET.drain().unwrap_or(0)));
    seen(u64::from(BUCKET.available().unwrap_or(0)));
    seen(BUCKET.retry_after(n).map_or(0, |wait| wait.as_secs()));
    seen(u64::from(BUCKET.refund(n).is_ok()));
    seen(u64::from(BUCKET.reset().is_ok()));
    if let Ok(mut permit) = BUCKET.try_acquire_permit(n) {
        seen(u64::from(permit.spend(now).is_ok()));
    }
    if let Err(refusal) = BUCKET.try_acquire_at(now, n) {
        seen(refusal.retry_after().map_or(0, |wait| wait.as_secs()));
    }

    seen(u64::from(COMPACT.try_acquire_at(now, n).unwrap_or(0)));
    seen(u64::from(COMPACT.available_at(now).unwrap_or(0)));
    seen(u64::from(COMPACT.refund(n).is_ok()));
    seen(COMPACT.window().as_secs());

    seen(POOL.claim(now).unwrap_or(0));
    seen(POOL.refill(now));
    POOL.set_capacity(now);
    seen(POOL.drain());
    let mut owner = Refiller::new(QUOTA, now);
    seen(owner.refill_at(input(), &POOL));

    EVENTS.push(now, input() as u8, n);
    if let Some(mut watcher) = EVENTS.watch() {
        seen(match watcher.read() {
            Some(Observed::Event(event)) => event.micros.into(),
            Some(Observed::Missed(count)) => count,
            _ => 0,
        });
    }

    // A quota that is known at run time only.
    let quota = Quota::new(n, Duration::new(now, 0)).and_then(|rate| rate.with_burst(input() as u32));
    seen(u64::from(quota.is_ok()));
    let mut keyed: KeyedBuckets<u64, 4> = KeyedBuckets::new(quota.unwrap_or(QUOTA));
    seen(u64::from(keyed.try_acquire_at(now, &input(), n).unwrap_or(0)));
    keyed.refund(&now, n);
    seen(CLOCK.now_micros());
    #[cfg(feature = "panics")]
    seen(1000 / input());
    sum
}

#[unsafe(no_mangle)]
extern "C" fn _start() -> ! {
    loop {
        core::hint::black_box(everything());
    }
}

// SAFETY: the signature can't be wrong, since no program that has the function is ever linked.
unsafe extern "C" {
    safe fn a_panic_can_be_reached() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    a_panic_can_be_reached()
}
