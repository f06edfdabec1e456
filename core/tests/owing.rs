//! Buckets that owe tokens, and buckets that hand over their level.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod ideal;

use core::time::Duration;

use ideal::{Ideal, config, count, magnitude, quota, whole};
use num_bigint::BigInt;
use proptest::prelude::*;
use tollgate_core::{MAX_MICROS, NoClock, Quota, State, TokenBucket, TryAcquireError, Words, quota};

fn at(quota: Quota, level: u32, now: u64) -> TokenBucket {
    TokenBucket::over(quota, Words::holding(State::new(&quota, level, quota.moment(now))), NoClock)
}

/// The same again, to look at without a change.
fn overdraws(quota: Quota, calls: &[(u64, u32)], now: u64, n: u32) -> bool {
    let bucket = at(quota, 0, 0);
    for (now, n) in calls {
        let _ = bucket.overdraw_at(*now, *n);
    }
    bucket.overdraw_at(now, n).is_ok()
}

proptest! {
    #![proptest_config(config(5000))]

    /// Against the ideal bucket, whose level may be negative.
    #[test]
    fn what_is_owed_is_paid_first(
        quota in quota(),
        calls in prop::collection::vec((magnitude(40), count()), 1..20),
    ) {
        let bucket = at(quota, 0, 0);
        let mut ideal = Ideal::new(&quota, 0, 0);
        let (mut now, mut made) = (0_u64, Vec::new());
        for (step, n) in calls {
            now += step;
            let available = bucket.available_at(now).unwrap();
            let (low, high) = ideal.bounds(now);
            prop_assert!(low <= available.into() && BigInt::from(available) <= high, "{} not in {}..={}", available, low, high);
            match bucket.overdraw_at(now, n) {
                Ok(left) => {
                    prop_assert_eq!(left, available.saturating_sub(n));
                    if n > 0 {
                        ideal.take(now, n);
                    }
                    // A tick of grace, for the phase.
                    prop_assert!(ideal.level(now) + whole(1) + &ideal.rate >= whole(-i64::from(quota.capacity())));
                }
                Err(TryAcquireError::Insufficient { requested, retry_after, .. }) => {
                    prop_assert_eq!(requested, n);
                    let due = u128::from(now) + retry_after.duration().as_micros();
                    if due < MAX_MICROS.into() {
                        let due = u64::try_from(due).unwrap();
                        prop_assert!(due > now);
                        prop_assert!(overdraws(quota, &made, due, n));
                        prop_assert!(!overdraws(quota, &made, due - 1, n));
                    }
                }
                Err(error) => {
                    prop_assert!(matches!(error, TryAcquireError::ExceedsCapacity { .. }), "{}", error);
                    prop_assert!(n > quota.capacity());
                    prop_assert!(u64::from(n) > 2 * u64::from(quota.capacity()) || quota.capacity() > 1 << 29);
                }
            }
            made.push((now, n));
        }
    }

    #[test]
    fn the_heir_has_the_level_or_the_debt(
        (old, new) in (quota(), quota()),
        level in any::<u32>(),
        owed in count(),
        (start, step) in (magnitude(50), magnitude(50)),
    ) {
        let level = level % old.capacity() + 1;
        let bucket = at(old, level, start);
        let _ = bucket.overdraw_at(start, owed);
        let now = start + step;
        let available = bucket.available_at(now).unwrap();
        let heir = TokenBucket::new(new);
        bucket.hand_over_at(now, &heir).unwrap();
        prop_assert_eq!(heir.available_at(now), Ok(available.min(new.capacity())));
        prop_assert_eq!(bucket.available_at(now), Err(TryAcquireError::Moved));
        prop_assert_eq!(bucket.refund(1), Err(TryAcquireError::Moved));
        prop_assert_eq!(bucket.hand_over_at(now, &heir), Err(TryAcquireError::Moved));
        // Nobody waits longer than twice the time to fill, and a microsecond and a tick for the phase.
        let fill = at(new, 0, 0).retry_after_at(0, new.capacity()).unwrap();
        let wait = heir.retry_after_at(now, new.capacity()).unwrap();
        prop_assert!(wait <= 2 * fill + fill / (1 << 27) + Duration::from_micros(2), "{:?} of {:?}", wait, fill);
    }
}

#[test]
fn a_debt_is_handed_over_in_tokens() {
    let quota = quota!(Quota::per_second(10));
    let bucket = at(quota, 10, 0);
    assert_eq!(bucket.overdraw_at(0, 16), Ok(0));
    let slower = TokenBucket::new(quota!(Quota::per_minute(60)));
    bucket.hand_over_at(0, &slower).unwrap();
    assert_eq!(slower.retry_after_at(0, 1), Ok(Duration::from_secs(7)), "six are owed");
    // What is refunded is there at once.
    slower.refund(2).unwrap();
    let same = TokenBucket::new(quota!(Quota::per_minute(60)));
    slower.hand_over_at(0, &same).unwrap();
    let slower = same;
    assert_eq!(slower.try_acquire_at(0, 2), Ok(0));
    assert_eq!(slower.retry_after_at(0, 1), Ok(Duration::from_secs(7)));
    // A smaller bucket owes no more than it holds.
    let small = TokenBucket::new(quota!(Quota::per_second(1), burst 2));
    slower.hand_over_at(0, &small).unwrap();
    assert_eq!(small.retry_after_at(0, 1), Ok(Duration::from_secs(3)));
}

#[test]
fn at_the_end_of_time_nothing_can_be_owed() {
    let quota = quota!(Quota::per_second(10));
    let bucket = at(quota, 10, MAX_MICROS);
    // 1024 ticks in a microsecond, but for 2^-39 of one: the last tick is within what could be owed.
    let fast = quota!(Quota::new(4_294_967_211, Duration::from_nanos(4_194_303_917)), burst 1 << 29);
    let full = at(fast, 1 << 29, u64::MAX);
    assert_eq!(full.overdraw_at(u64::MAX, 1 << 29), Ok(0));
    assert!(full.overdraw_at(u64::MAX, 1 << 28).is_err(), "it would be paid past the last tick");
    assert!(bucket.overdraw_at(MAX_MICROS, 20).is_ok(), "its ticks are longer");
    bucket.hand_over_at(MAX_MICROS, &full).unwrap();
    assert_eq!(full.available_at(MAX_MICROS), Ok(0));
}

#[test]
fn nothing_is_not_a_debt() {
    let bucket = at(quota!(Quota::per_second(10)), 0, 0);
    assert_eq!(bucket.overdraw_at(0, 10), Ok(0));
    assert_eq!(bucket.overdraw_at(0, 0), Ok(0));
    let refused = bucket.overdraw_at(0, 1).unwrap_err();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(100)));
    assert_eq!(bucket.overdraw_at(100_000, 1), Ok(0));
    assert!(bucket.overdraw_at(100_000, 21).unwrap_err().retry_after().is_none());
    assert!(bucket.overdraw_at(u64::MAX, 20).is_ok());
}

#[test]
fn a_state_is_read_as_it_was_written() {
    let quota = quota!(Quota::per_second(10));
    let bucket = at(quota, 10, 5);
    assert_eq!(bucket.overdraw_at(1_000_000, 12), Ok(0));
    let state = bucket.state().unwrap();
    assert_eq!((state.tokens(), state.credited_until(&quota)), (0, 1_200_000), "two are owed");
    bucket.refund(3).unwrap();
    assert_eq!(bucket.state().unwrap().tokens(), 3);
    bucket.hand_over_at(0, &at(quota, 0, 0)).unwrap();
    assert_eq!(bucket.state(), Err(TryAcquireError::Moved));
}

/// A bucket of coarse ticks counts from the next one, and owes nothing by that.
#[test]
fn a_tick_that_has_begun_is_no_debt() {
    let quota = quota!(Quota::per_second(1000), burst 1 << 30);
    let (bucket, heir) = (at(quota, 0, 0), at(quota, 0, 0));
    assert!(bucket.reset_at(500).is_ok());
    bucket.hand_over_at(500, &heir).unwrap();
    assert_eq!(heir.drain_at(500), Ok(1 << 30));
    assert_eq!(heir.available_at(1499), Ok(0));
    assert!(heir.available_at(2000).unwrap() >= 1, "no later than one tick");
}

/// However often it is handed over, a debt is paid when it was due, but for a tick each time.
#[test]
fn a_debt_is_not_forgiven_by_the_way() {
    let quotas = [
        quota!(Quota::per_second(10), burst 40),
        quota!(Quota::per_second(1_000_000), burst 40_000),
        quota!(Quota::per_minute(7), burst 40),
        quota!(Quota::new(4_000_000, Duration::from_micros(1)), burst 4_000_000_000),
    ];
    for quota in quotas {
        // To the same speed and back, in other ticks.
        let other = quota.with_burst(quota.capacity() / 3 * 2).unwrap();
        let mut bucket = at(quota, 0, 0);
        bucket.overdraw_at(0, quota.capacity() / 4).unwrap();
        let due = bucket.retry_after_at(0, 1).unwrap();
        for now in 0..100 {
            let heir = at(if now % 2 == 0 { other } else { quota }, 0, 0);
            bucket.hand_over_at(now, &heir).unwrap();
            bucket = heir;
        }
        let late = bucket.retry_after_at(100, 1).unwrap() + Duration::from_micros(100);
        assert!(late >= due, "{quota}: {late:?}, {due:?} was due");
        assert!(late <= due + Duration::from_micros(100) + due / 1_000_000, "{quota}: {late:?}, {due:?} was due");
    }
}
