//! Buckets for a fixed number of keys.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use std::collections::HashMap;

use proptest::prelude::*;
use tollgate_core::{KeyedBuckets, KeyedError, Quota, TokenBucket, TryAcquireError, quota};

const QUOTA: Quota = quota!(Quota::per_second(10), burst 3);

#[test]
fn each_key_has_its_own_bucket() {
    let mut buckets: KeyedBuckets<&str, 4> = KeyedBuckets::new(QUOTA);
    assert_eq!(buckets.try_acquire_at(0, &"a", 3), Ok(0));
    assert_eq!(buckets.try_acquire_at(0, &"b", 1), Ok(2));
    assert!(matches!(
        buckets.try_acquire_at(0, &"a", 1),
        Err(KeyedError::Refused(TryAcquireError::Insufficient { available: 0, .. }))
    ));
    assert!(matches!(
        buckets.try_acquire_at(0, &"c", 4),
        Err(KeyedError::Refused(TryAcquireError::ExceedsCapacity { capacity: 3, .. }))
    ));
    buckets.refund(&"a", 1);
    buckets.refund(&"nobody", 1);
    assert_eq!((buckets.available_at(0, &"a"), buckets.available_at(0, &"b")), (1, 2), "to the one alone");
    assert_eq!(buckets.available_at(100_000, &"a"), 2);
    assert_eq!(buckets.available_at(0, &"nobody"), 3);
}

#[test]
fn asking_for_nothing_takes_no_room() {
    let mut buckets: KeyedBuckets<u32, 1> = KeyedBuckets::new(QUOTA);
    for key in 0..10 {
        assert_eq!(buckets.try_acquire_at(0, &key, 0), Ok(3));
        assert!(buckets.try_acquire_at(0, &key, 4).is_err());
    }
    assert_eq!(buckets.try_acquire_at(0, &11, 1), Ok(2));
    assert_eq!(buckets.try_acquire_at(0, &12, 0), Ok(3), "nor does it need any");
}

#[test]
fn full_buckets_make_room_and_others_do_not() {
    let mut buckets: KeyedBuckets<u32, 2> = KeyedBuckets::new(QUOTA);
    assert_eq!(buckets.try_acquire_at(0, &1, 3), Ok(0));
    assert_eq!(buckets.try_acquire_at(0, &2, 1), Ok(2));
    let refused = buckets.try_acquire_at(0, &3, 1).unwrap_err();
    let KeyedError::NoRoom { keys: 2, retry_after, .. } = refused else { panic!("{refused}") };
    assert_eq!(retry_after.duration().as_micros(), 100_000, "the second is full first");
    assert_eq!(refused.to_string(), "all 2 keys are in use; retry after 100ms");
    let refused = buckets.try_acquire_at(0, &1, 1).unwrap_err();
    assert_eq!(refused.to_string(), "not enough tokens: 1 requested, 0 available; retry after 100ms");
    assert_eq!(buckets.quota(), &QUOTA);
    assert!(buckets.try_acquire_at(99_999, &3, 1).is_err());
    assert_eq!(buckets.try_acquire_at(100_000, &3, 1), Ok(2));
    assert_eq!(buckets.available_at(100_000, &1), 1, "the debt of the first was not forgotten");
    // One that comes back is full, as it would be.
    assert!(buckets.try_acquire_at(100_000, &2, 1).is_err());
    assert_eq!(buckets.try_acquire_at(200_000, &2, 1), Ok(2));
}

/// A clock that goes back: a key that was given up when it was full gets no second burst for the time before.
#[test]
fn no_clock_gives_a_key_a_second_burst() {
    let mut buckets: KeyedBuckets<u32, 2> = KeyedBuckets::new(quota!(Quota::per_second(4)));
    let second = 1_000_000;
    buckets.try_acquire_at(0, &1, 1).unwrap();
    buckets.try_acquire_at(0, &9, 1).unwrap();
    let mut granted = 4;
    buckets.try_acquire_at(10 * second, &1, 4).unwrap();
    buckets.try_acquire_at(11 * second, &2, 1).unwrap();
    for now in [10 * second + 1, 11 * second + 1, 11 * second + 2] {
        granted += (0..4).filter(|_| buckets.try_acquire_at(now, &1, 1).is_ok()).count();
    }
    assert!(granted <= 8, "{granted} from 10 s to 11 s, at 4 a second");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 10 } else { 1000 }, failure_persistence: None, ..ProptestConfig::default() })]

    /// With room for all, each key's bucket is a bucket; without, a grant is one that the key's own bucket would give.
    #[test]
    fn no_key_gets_more_than_its_own_bucket_would_give(
        calls in prop::collection::vec((0..5_u8, 0..5_u32, 0..150_000_u64), 1..100),
    ) {
        let mut roomy: KeyedBuckets<u8, 5> = KeyedBuckets::new(QUOTA);
        let mut tight: KeyedBuckets<u8, 2> = KeyedBuckets::new(QUOTA);
        let own = || TokenBucket::new(QUOTA);
        let (mut of_roomy, mut of_tight) = (HashMap::new(), HashMap::new());
        let mut now = 0;
        for (key, n, step) in calls {
            now += step;
            let expected = of_roomy.entry(key).or_insert_with(own).try_acquire_at(now, n);
            prop_assert_eq!(roomy.try_acquire_at(now, &key, n), expected.map_err(KeyedError::Refused));
            match tight.try_acquire_at(now, &key, n) {
                Err(KeyedError::NoRoom { .. }) => {}
                answer => {
                    let expected = of_tight.entry(key).or_insert_with(own).try_acquire_at(now, n);
                    prop_assert_eq!(answer, expected.map_err(KeyedError::Refused));
                }
            }
        }
    }
}
