//! The calls that read a clock, by a manual one and by a hardware counter.

#![cfg(target_has_atomic = "64")]
#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::cell::Cell;
use core::time::Duration;

use tollgate_core::{Clock, CompactTokenBucket, Counter, CounterClock, ManualClock, Quota, TokenBucket, quota};

const QUOTA: Quota = quota!(Quota::per_second(10), burst 3);

/// Wherever the counter is when it is first read.
#[test]
fn a_counter_runs_from_its_first_reading() {
    let shown = Cell::new(0xf000_0001_u32);
    let clock = CounterClock::new(Counter::new(32, 1_000_000).unwrap(), || shown.get());
    let first = clock.now_micros();
    shown.set(shown.get() + 240_000_000);
    assert_eq!(clock.now_micros() - first, 240_000_000);
    shown.set(5);
    assert_eq!(clock.now_micros(), (1 << 32) + 5);
    shown.set(u32::MAX);
    assert_eq!(clock.now_micros(), (1 << 32) + 5, "an older reading changes nothing");
}

#[test]
fn each_call_reads_the_clock() {
    let clock = ManualClock::new();
    let bucket = TokenBucket::with_clock(QUOTA, &clock);
    let compact = CompactTokenBucket::with_window(QUOTA, Duration::from_mins(1), &clock);
    assert_eq!((bucket.available(), compact.available()), (Ok(3), Ok(3)));
    assert_eq!((bucket.try_acquire(2), compact.try_acquire(2)), (Ok(1), Ok(1)));
    assert_eq!(
        (bucket.retry_after(2), compact.retry_after(2)),
        (Ok(Duration::from_millis(100)), Ok(Duration::from_millis(100)))
    );
    clock.advance(Duration::from_millis(100));
    assert_eq!((bucket.available(), compact.available()), (Ok(2), Ok(2)));
    assert_eq!((bucket.acquire_up_to(1), compact.acquire_up_to(1)), (Ok(1), Ok(1)));
    assert_eq!((bucket.drain(), compact.drain()), (Ok(1), Ok(1)));
    assert_eq!((bucket.reset(), compact.reset()), (Ok(()), Ok(())));
    assert_eq!((bucket.drain(), compact.drain()), (Ok(3), Ok(3)));
    clock.advance(Duration::from_millis(200));
    drop(bucket.try_acquire_permit(2).unwrap());
    drop(compact.try_acquire_permit(2).unwrap());
    assert_eq!((bucket.available(), compact.available()), (Ok(2), Ok(2)));
    assert!(bucket.try_acquire_permit(3).is_err());
}

/// Who settles a bucket that was long idle reads the clock once more, and goes by the later reading.
#[test]
fn a_long_idle_bucket_counts_from_the_later_reading() {
    struct Late(Cell<u64>);
    impl Clock for Late {
        fn now_micros(&self) -> u64 {
            self.0.replace(self.0.get() + 50_000)
        }
    }
    let bucket = TokenBucket::with_clock(QUOTA, Late(Cell::new(3_600_000_000)));
    assert_eq!(bucket.try_acquire(3), Ok(0));
    let state = bucket.state().unwrap();
    assert_eq!((state.tokens(), state.credited_until(&QUOTA)), (0, 3_600_050_000));
}

/// A clock that is wrong by an hour once, and right from then on.
struct Glitch(Cell<bool>);

impl Clock for Glitch {
    fn now_micros(&self) -> u64 {
        if self.0.replace(false) { 3_600_000_000 } else { 7 }
    }
}

#[test]
fn a_call_answers_by_the_reading_that_it_took() {
    let bucket = TokenBucket::with_clock(QUOTA, Glitch(Cell::new(true)));
    assert_eq!(bucket.try_acquire(3), Ok(0), "long idle, by that reading");
    assert!(bucket.try_acquire(1).is_err(), "the clock went back: nothing accrues");
}

#[test]
fn a_manual_clock_moves_as_told() {
    let clock = ManualClock::default();
    clock.set_micros(7);
    clock.advance(Duration::from_nanos(2999));
    assert_eq!(clock.now_micros(), 9, "whole microseconds");
    clock.advance(Duration::MAX);
    assert_eq!(clock.now_micros(), u64::MAX, "up to the largest");
    clock.set_micros(0);
    let borrowed: &dyn Clock = &clock;
    assert_eq!(borrowed.now_micros(), 0);
}

/// A counter of 24 bits at 16 MHz, read once in each of several turns, up and down.
#[test]
fn a_counter_goes_on_over_its_wraps() {
    let timer = Counter::new(24, 16_000_000).unwrap();
    assert_eq!(timer.max_gap(), Duration::from_micros(983_040));
    let shown = Cell::new(0_u32);
    let up = CounterClock::new(timer, || shown.get());
    let down = CounterClock::new(timer, || !(0xff_ffff - shown.get()));
    let mut count = 0_u64;
    for step in [1, 16, 15_728_640, 15_000_000, 1, 0, 8_388_608, 15_728_640, 15_728_639] {
        count += step;
        shown.set(u32::try_from(count & 0xff_ffff).unwrap());
        assert_eq!(up.now_micros(), count / 16);
        assert_eq!(down.now_micros(), count / 16);
    }
    // Older than the last reading, by up to a sixteenth of a turn: the time stands still.
    shown.set(u32::try_from((count - 1_048_000) & 0xff_ffff).unwrap());
    assert_eq!(up.now_micros(), count / 16);
    assert_eq!(up.counter().max_gap(), timer.max_gap());
}

/// A call is held up before it reads the counter, while others read it as often as they must.
#[test]
fn a_call_that_is_held_up_is_not_turns_behind() {
    thread_local! {
        static SHOWN: Cell<u64> = const { Cell::new(0) };
        static HELD_UP: Cell<u32> = const { Cell::new(0) };
    }
    static CLOCK: CounterClock = CounterClock::new(
        match Counter::new(24, 1_000_000) {
            Ok(counter) => counter,
            Err(_) => panic!(),
        },
        || {
            for _ in 0..HELD_UP.take() {
                SHOWN.set(SHOWN.get() + (9 << 24) / 10);
                CLOCK.now_micros();
            }
            u32::try_from(SHOWN.get() % (1 << 24)).unwrap()
        },
    );
    for turns in [1, 2, 5, 40] {
        HELD_UP.set(turns);
        assert_eq!(CLOCK.now_micros(), SHOWN.get());
    }
}
