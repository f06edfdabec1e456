//! The bucket in one word: exact within its window, never over beyond it.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod ideal;

use core::time::Duration;

use ideal::{Ideal, config, magnitude, quota, whole};
use num_bigint::BigInt;
use proptest::prelude::*;
use tollgate_core::{CompactTokenBucket, DefaultWord, MAX_MICROS, NoClock, Quota, State, TryAcquireError, Word};

/// A quarter of a token's time, in ticks and in microseconds: a stamp turns over in 128 of them, and the window is
/// 120.
const QUARTER: u64 = 1 << 25;

/// The largest burst of a bucket whose ticks are a token each.
const MOST: u32 = 13 << 28;

/// Miri is slow.
const STRIDE: usize = if cfg!(miri) { 97 } else { 1 };

/// Steps in a time to fill.
const STRIDE_OF_A_FILL: u64 = if cfg!(miri) { 10 } else { 10_000 };

fn narrow() -> CompactTokenBucket {
    let quota = Quota::new(1, Duration::from_micros(4 * QUARTER)).unwrap().with_burst(4).unwrap();
    CompactTokenBucket::with_window(quota, Duration::from_micros(1), NoClock)
}

#[test]
fn the_narrow_bucket_is_what_these_tests_take_it_for() {
    assert_eq!(narrow().window(), Duration::from_micros(104 * QUARTER - 1));
}

/// Drained at `start`, the bucket holds after `idle` what the ideal one does, as long as the stamp tells; beyond, no
/// more.
#[test]
fn every_idle_time_of_up_to_four_turns() {
    for start in (0..130).step_by(STRIDE) {
        for idle in (0..512).step_by(STRIDE) {
            let bucket = narrow();
            assert_eq!(bucket.drain_at(start * QUARTER), Ok(4));
            let now = start + idle;
            let ideal = u32::try_from((idle / 4).min(4)).unwrap();
            let available = bucket.available_at(now * QUARTER).unwrap();
            if idle < 120 {
                assert_eq!(available, ideal, "drained at {start}, idle for {idle}");
            }
            assert!(available <= ideal, "drained at {start}, idle for {idle}: {available}");
            assert_eq!(bucket.drain_at(now * QUARTER), Ok(available));
            // What was not credited is lost once; from here on it is exact again, unless the clock looked to be behind.
            if idle % 128 < 120 && available > 0 {
                let later = (now + 9) * QUARTER;
                assert!((2..=3).contains(&bucket.available_at(later).unwrap()), "{start}, {idle}");
            }
        }
    }
}

/// By less than a sixteenth of the turn, which is more than a sixteenth of the window.
#[test]
fn a_clock_that_goes_back_changes_nothing() {
    for start in [130, 200, 255, 256, 257] {
        for back in 0..=7 {
            let bucket = narrow();
            bucket.drain_at((start - 8) * QUARTER).unwrap();
            assert_eq!(bucket.acquire_up_to_at(start * QUARTER, 1), Ok(1));
            // One is left, and can be taken by the clock that went back.
            assert_eq!(bucket.available_at((start - back) * QUARTER), Ok(1));
            assert_eq!(bucket.try_acquire_at((start - back) * QUARTER, 1), Ok(0));
            assert_eq!(bucket.available_at(start * QUARTER), Ok(0));
            assert_eq!(bucket.available_at((start + 4) * QUARTER), Ok(1));
        }
    }
}

#[test]
fn a_word_of_zeros_is_a_full_bucket_that_nobody_has_used() {
    let quota = Quota::per_hour(10).unwrap();
    let word = DefaultWord::new(0);
    let bucket = CompactTokenBucket::over_word(quota, Duration::from_secs(1), &word, NoClock);
    let now = 123_456_789_000;
    assert_eq!(bucket.available_at(now), Ok(10));
    assert_eq!(bucket.try_acquire_at(now, 0), Ok(10));
    bucket.refund(3).unwrap();
    assert!(matches!(bucket.try_acquire_at(now, 11), Err(TryAcquireError::ExceedsCapacity { .. })));
    assert_eq!(Word::load(&word, core::sync::atomic::Ordering::Relaxed), 0, "nothing was written");
    assert_eq!(bucket.try_acquire_at(now, 10), Ok(0));
    assert_ne!(Word::load(&word, core::sync::atomic::Ordering::Relaxed), 0);
    assert_eq!(bucket.available_at(now), Ok(0), "full once, and not twice");
    bucket.refund(4).unwrap();
    assert_eq!(bucket.available_at(now), Ok(4));
    bucket.reset_at(now).unwrap();
    assert_eq!(bucket.available_at(now), Ok(10));
}

/// A client that takes all, twice a microsecond apart, however long the window that was asked for: no tick is worth
/// so many tokens that it could bring some of a burst again.
#[test]
fn no_more_than_the_burst_at_once() {
    for (rate, burst, hours) in [(1000, 65, 7 * 365 * 24), (1_000_000, 65, 48), (100_000, 150, 365 * 24)] {
        let quota = Quota::per_second(rate).unwrap().with_burst(burst).unwrap();
        let bucket = CompactTokenBucket::with_window(quota, Duration::from_hours(hours), NoClock);
        let fill = u64::from(burst) * 1_000_000 / u64::from(rate);
        let mut now = 0;
        for step in (fill / 2..4 * fill).step_by(usize::try_from(fill.div_ceil(STRIDE_OF_A_FILL)).unwrap()) {
            now += step;
            let (first, second) = (bucket.drain_at(now).unwrap(), bucket.drain_at(now + 1).unwrap());
            assert!(first + second <= burst + 2, "{quota}: {first} at {now}, and {second} a microsecond later");
        }
    }
}

proptest! {
    #![proptest_config(config(10_000))]

    #[test]
    fn the_window_is_as_long_as_asked_for(quota in quota(), asked in magnitude(64)) {
        let bucket = CompactTokenBucket::with_window(quota, Duration::from_micros(asked), NoClock);
        let time_of = |n: u64| quota.period().as_nanos() * u128::from(n) / u128::from(quota.tokens()) / 1000;
        // Or else a tick is a token's time, or less than a microsecond.
        let longest = time_of(13 << 28);
        prop_assert!(bucket.window().as_micros() + 1 >= u128::from(asked.min(MAX_MICROS)).min(longest));
        // And as long as the bucket takes to fill.
        prop_assert!(bucket.window().as_micros() + 1 >= time_of(quota.capacity().into()).min(longest));
        if bucket.quota() != quota {
            prop_assert!(quota.capacity() > MOST, "cut without need");
            prop_assert_eq!(bucket.quota(), quota.with_burst(MOST).unwrap());
        }
    }

    /// The quota can make another bucket: it has none of this one's ticks.
    #[test]
    fn its_quota_is_the_one_that_it_was_given(quota in quota(), asked in magnitude(53), now in magnitude(50)) {
        let bucket = CompactTokenBucket::with_window(quota, Duration::from_micros(asked), NoClock);
        prop_assert_eq!(bucket.quota().moment(now), quota.moment(now));
        prop_assert_eq!(
            State::full(&quota).credited_until(&bucket.quota()),
            State::full(&quota).credited_until(&quota)
        );
    }

    /// Steps within the window: between the ideal level less two ticks, and that with a microsecond's worth.
    #[test]
    fn any_takes_within_the_window(
        quota in quota(),
        asked in magnitude(53),
        start in magnitude(50),
        steps in prop::collection::vec((any::<u16>(), any::<u16>()), 1..40),
    ) {
        let bucket = CompactTokenBucket::with_window(quota, Duration::from_micros(asked), NoClock);
        let (quota, window) = (bucket.quota(), bucket.window().as_micros());
        prop_assume!(window < u64::MAX.into(), "so long that it tells nothing of the tick");
        let mut ideal = Ideal::new(&quota, quota.capacity(), start);
        prop_assert_eq!(bucket.try_acquire_at(start, quota.capacity()), Ok(0));
        ideal.take(start, quota.capacity());
        let tick = whole(window + 1) / whole(13_u64 << 28);
        let behind = &ideal.rate * tick * whole(2);
        let (mut now, mut used) = (start, start);
        for (step, part) in steps {
            // Shorter steps are more likely, and the longest are nearly the window.
            let by = (window * u128::from(step).pow(3)) >> 48;
            now = now.saturating_add(u64::try_from(by).unwrap_or(u64::MAX));
            if now > MAX_MICROS || u128::from(now - used) >= window {
                break;
            }
            let available = bucket.available_at(now).unwrap();
            let level = ideal.level(now);
            let low = (&level - &behind).floor().to_integer();
            let high = (&level + &ideal.rate).floor().to_integer();
            let seen = BigInt::from(available);
            prop_assert!(seen >= low.min(quota.capacity().into()) && seen <= high, "{available} of {level}");
            let n = u32::try_from((u64::from(available) * u64::from(part)) >> 16).unwrap();
            prop_assert_eq!(bucket.try_acquire_at(now, n), Ok(available - n));
            if n > 0 {
                ideal.take(now, n);
                used = now;
            }
        }
    }
}

/// More tokens than a stamp can tell the time of are never held, and so never asked for in vain.
#[test]
fn the_largest_burst() {
    let quota = Quota::per_second(1000).unwrap().with_burst(u32::MAX).unwrap();
    let bucket = CompactTokenBucket::with_window(quota, Duration::ZERO, NoClock);
    assert_eq!(bucket.quota(), quota.with_burst(MOST).unwrap());
    assert_eq!(
        bucket.try_acquire_at(0, u32::MAX),
        Err(TryAcquireError::ExceedsCapacity { requested: u32::MAX, capacity: MOST })
    );
    assert_eq!(bucket.drain_at(0), Ok(MOST));
    let wait = bucket.retry_after_at(0, MOST).unwrap();
    let then = u64::try_from(wait.as_micros()).unwrap();
    assert!(bucket.try_acquire_at(then - 1, MOST).is_err());
    assert_eq!(bucket.try_acquire_at(then, MOST), Ok(0));
}
