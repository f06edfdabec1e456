//! The pool, its permits and its owner, on one thread; the races are in the models.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod counted;

use core::cell::Cell;
use core::time::Duration;

use counted::Counted;
use proptest::prelude::*;
use tollgate_core::{
    AtomicTokenBucket, ExceedsPermit, MAX_MICROS, Quota, Refiller, TokenBucket, TryAcquireError, quota,
};

#[test]
fn claims_are_clamped_then_all_or_nothing() {
    let pool = AtomicTokenBucket::new(10);
    assert_eq!(pool.claim(0), Some(0));
    assert_eq!(pool.claim(7), Some(7));
    assert_eq!(pool.claim(4), None);
    assert_eq!(pool.claim(u64::MAX), None, "clamped to ten, and three are there");
    assert_eq!(pool.claim(3), Some(3));
    assert_eq!(pool.claim(1), None);
    assert_eq!(pool.claim(0), Some(0));
    assert_eq!(pool.refill(4), 4);
    assert_eq!(pool.refill(u64::MAX), 6);
    assert_eq!(pool.refill(1), 0);
    assert_eq!(pool.claim(u64::MAX), Some(10));
}

#[test]
fn extremes_neither_wrap_nor_panic() {
    let pool = AtomicTokenBucket::new(u64::MAX);
    assert_eq!(pool.refill(u64::MAX), 0);
    assert_eq!(pool.claim(1), Some(1));
    assert_eq!(pool.refill(u64::MAX), 1);
    assert_eq!(pool.drain(), u64::MAX);
    assert_eq!(pool.drain(), 0);
    assert_eq!(pool.claim(1), None);

    let none = AtomicTokenBucket::new(0);
    assert_eq!((none.claim(0), none.claim(1), none.refill(5), none.drain()), (Some(0), None, 0, 0));
}

#[test]
fn calls_that_change_nothing_write_nothing() {
    let writes = Cell::new(0);
    let word = |value| Counted { word: tollgate_core::DefaultWord::new(value), writes: &writes };
    let pool = AtomicTokenBucket::over(word(10), word(10));
    assert_eq!((pool.claim(0), pool.refill(3), pool.available()), (Some(0), 0, 10));
    assert_eq!(writes.get(), 0);
    assert_eq!((pool.drain(), writes.get()), (10, 1));
    assert_eq!((pool.claim(4), pool.claim(0), pool.drain(), pool.refill(0)), (None, Some(0), 0, 0));
    assert_eq!(writes.get(), 1);
    // The capacity alone, where there are as many tokens.
    assert_eq!(pool.refill(4), 4);
    pool.set_capacity(4);
    assert_eq!((pool.available(), writes.get()), (4, 3));
}

#[test]
fn the_capacity_can_change() {
    let pool = AtomicTokenBucket::new(10);
    pool.set_capacity(4);
    assert_eq!((pool.available(), pool.capacity()), (4, 4));
    assert_eq!(pool.claim(9), Some(4));
    pool.set_capacity(20);
    assert_eq!(pool.available(), 0, "a larger pool is not filled, and what was forfeited is gone");
    assert_eq!(pool.refill(15), 15);
    pool.set_capacity(0);
    assert_eq!((pool.available(), pool.claim(1)), (0, None));
    pool.set_capacity(20);
    assert_eq!(pool.available(), 0);
    assert_eq!(format!("{pool:?}"), "AtomicTokenBucket { available: 0, capacity: 20 }");
}

/// A refill that raced with a shrink may leave more than the capacity: it does not count.
#[test]
fn what_is_above_the_capacity_does_not_count() {
    let (tokens, capacity) = (tollgate_core::DefaultWord::new(9), tollgate_core::DefaultWord::new(5));
    let pool = AtomicTokenBucket::over(&tokens, &capacity);
    assert_eq!(pool.available(), 5);
    assert_eq!(pool.refill(3), 0);
    assert_eq!(pool.claim(2), Some(2));
    assert_eq!(pool.available(), 3);
    assert_eq!(pool.drain(), 3);
}

#[test]
fn a_permit_gives_back_what_it_did_not_spend() {
    let pool = AtomicTokenBucket::new(10);
    let bucket = TokenBucket::new(quota!(Quota::per_day(10)));
    let mut claimed = pool.claim_permit(20).unwrap();
    let mut taken = bucket.try_acquire_permit_at(0, 10).unwrap();
    assert_eq!((claimed.remaining(), taken.remaining()), (10, 10));
    claimed.spend(6).unwrap();
    taken.spend(6).unwrap();
    for error in [claimed.spend(5).unwrap_err(), taken.spend(5).unwrap_err()] {
        assert!(matches!(error, ExceedsPermit { requested: 5, remaining: 4, .. }), "{error}");
        assert_eq!(error.to_string(), "5 tokens to spend, but the permit has 4 left");
    }
    claimed.spend(0).unwrap();
    drop((claimed, taken));
    assert_eq!((pool.available(), bucket.available_at(0)), (4, Ok(4)));

    pool.claim_permit(4).unwrap().forget();
    bucket.try_acquire_permit_at(0, 4).unwrap().forget();
    assert_eq!((pool.available(), bucket.available_at(0)), (0, Ok(0)));
    assert!(pool.claim_permit(1).is_none());
    assert!(matches!(bucket.try_acquire_permit_at(0, 11), Err(TryAcquireError::ExceedsCapacity { .. })));

    // Never above the capacity.
    pool.refill(3);
    let permit = pool.claim_permit(3).unwrap();
    pool.refill(9);
    drop(permit);
    assert_eq!(pool.available(), 10);
}

#[test]
fn taking_what_there_is_and_filling_up() {
    let bucket = TokenBucket::new(quota!(Quota::per_second(10)));
    assert_eq!(bucket.acquire_up_to_at(0, 0), Ok(0));
    assert_eq!(bucket.acquire_up_to_at(0, 4), Ok(4));
    assert_eq!(bucket.drain_at(0), Ok(6));
    assert_eq!(bucket.drain_at(0), Ok(0));
    assert_eq!(bucket.acquire_up_to_at(250_000, u32::MAX), Ok(2));
    assert_eq!(bucket.available_at(300_000), Ok(1), "the half token was kept");
    let mut lease = bucket.lease_at(300_000, 5).unwrap();
    assert_eq!((lease.remaining(), bucket.available_at(300_000)), (1, Ok(0)));
    assert!(lease.spend(1).is_ok() && lease.spend(1).is_err());
    drop(lease);
    assert_eq!(bucket.lease_at(300_000, 1).unwrap().remaining(), 0);
    bucket.refund(1).unwrap();
    bucket.reset_at(310_000).unwrap();
    assert_eq!(bucket.drain_at(310_000), Ok(10));
    assert_eq!(bucket.available_at(409_999), Ok(0), "a reset bucket counts from the reset");
    assert_eq!(bucket.available_at(410_000), Ok(1));
    let early = TokenBucket::new(quota!(Quota::per_second(10)));
    assert_eq!(early.drain_at(0), Ok(10));
    early.reset_at(1_000_000).unwrap();
    assert_eq!(early.drain_at(0), Ok(10));
    assert_eq!(early.available_at(1_000_000), Ok(0), "it counts from the reset, though it was drained earlier");
    // By a clock that went back, it is full all the same, and counts on from where it was.
    bucket.reset_at(100_000).unwrap();
    assert_eq!(bucket.drain_at(100_000), Ok(10));
    assert_eq!(bucket.available_at(310_000), Ok(0));
    // After a time that takes a jump of the horizon.
    let year = 365 * 86_400 * 1_000_000;
    bucket.reset_at(year).unwrap();
    assert_eq!(bucket.drain_at(year), Ok(10));
    assert_eq!(bucket.drain_at(year), Ok(0));
}

/// Whatever the burst of the quota, and wherever it starts.
#[test]
fn each_period_is_credited_from_the_start() {
    let hour = 3_600_000_000;
    for (quota, start, period) in [
        (quota!(Quota::per_second(1), burst 1_000_000), 1_000, 1_000_000),
        (quota!(Quota::per_hour(1)), 5, hour),
        (quota!(Quota::per_day(1)), 77, 24 * hour),
        (quota!(Quota::per_minute(1), burst u32::MAX), 2, 60_000_000),
    ] {
        let mut owner = Refiller::new(quota, start);
        assert_eq!([1, 2, 3].map(|k| owner.accrued_at(start + k * period)), [1, 1, 1], "{quota}");
        assert_eq!(owner.accrued_at(start + 6 * period), 3);
        assert_eq!(owner.accrued_at(start + 7 * period - 1), 0);
        assert_eq!(owner.accrued_at(start + 7 * period), 1);
    }
    let mut fast = Refiller::new(quota!(Quota::per_second(999_999)), 1);
    assert_eq!((fast.accrued_at(2), fast.accrued_at(3)), (0, 1));
}

/// At a million a second, called each 10 ms ± 9 ms: exactly a million after each whole second.
#[test]
fn an_owner_with_jitter_loses_nothing() {
    let pool = AtomicTokenBucket::new(u64::MAX);
    pool.drain();
    let mut owner = Refiller::new(quota!(Quota::per_second(1_000_000)), 0);
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut now, mut second) = (0_u64, 1);
    while second <= if cfg!(miri) { 1 } else { 60 } {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        now += 1_000 + random % 18_001;
        if now >= second * 1_000_000 {
            now = second * 1_000_000;
            owner.refill_at(now, &pool);
            assert_eq!(pool.available(), second * 1_000_000);
            second += 1;
        }
        owner.refill_at(now, &pool);
    }
}

#[test]
fn a_late_owner_credits_all_periods() {
    let pool = AtomicTokenBucket::new(100);
    pool.drain();
    let mut owner = Refiller::new(quota!(Quota::per_second(100)), 5_000);
    assert_eq!(owner.refill_at(35_000, &pool), 3);
    assert_eq!(owner.refill_at(15_000, &pool), 0, "a clock that goes back");
    assert_eq!(owner.refill_at(45_000, &pool), 1);
    assert_eq!(owner.refill_at(10_000_000, &pool), 96, "up to the capacity");
    assert_eq!(owner.accrued_at(10_010_000), 1);
    assert_eq!(owner.accrued_at(MAX_MICROS), Refiller::new(*owner_quota(), 10_005_000).accrued_at(MAX_MICROS));
}

fn owner_quota() -> &'static Quota {
    const QUOTA: &Quota = &quota!(Quota::per_second(100));
    QUOTA
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 10 } else { 1000 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// However often it is called, the owner has credited floor(rate × time), to a tick.
    #[test]
    fn an_owner_credits_rate_times_time(
        tokens in 1..=u32::MAX,
        micros in 1..1_u64 << 40,
        mut times in prop::collection::vec(0..1_u64 << 50, 1..50),
    ) {
        times.sort_unstable();
        let quota = Quota::new(tokens, Duration::from_micros(micros)).unwrap();
        let mut owner = Refiller::new(quota, 0);
        let mut credited = 0_u128;
        for now in times {
            credited += u128::from(owner.accrued_at(now));
            let due = u128::from(now) * u128::from(tokens) / u128::from(micros);
            // From 1024 tokens a microsecond on, a tick is worth up to a 512th of a microsecond.
            let tick = u128::from(tokens) / u128::from(micros) / 512;
            prop_assert!(credited <= due && credited + tick >= due, "{credited} of {due}");
        }
    }
}
