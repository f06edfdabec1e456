//! Words that no bucket has written: each call has an answer, and grants no more than the capacity at once.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod ideal;

use core::time::Duration;

use ideal::{config, magnitude, quota};
use proptest::prelude::*;
use tollgate_core::{DefaultWord, MAX_MICROS, NoClock, Quota, State, TokenBucket, TryAcquireError, Words};

fn over(quota: Quota, [state, horizon]: [u64; 2]) -> TokenBucket {
    TokenBucket::over(quota, Words::new(DefaultWord::new(state), DefaultWord::new(horizon)), NoClock)
}

/// As erased flash has them.
#[test]
fn words_of_ones_are_no_bucket() {
    for quota in [Quota::per_second(5).unwrap(), Quota::new(u32::MAX, Duration::from_micros(1)).unwrap()] {
        let bucket = over(quota, [u64::MAX; 2]);
        for now in [0, 1_000_000, MAX_MICROS, u64::MAX] {
            assert_eq!(bucket.try_acquire_at(now, 1), Err(TryAcquireError::Uninitialized));
            assert_eq!(bucket.available_at(now), Err(TryAcquireError::Uninitialized));
            assert_eq!(bucket.overdraw_at(now, 1), Err(TryAcquireError::Uninitialized));
            assert_eq!(bucket.state(), Err(TryAcquireError::Uninitialized));
            let heir = TokenBucket::new(quota);
            assert_eq!(bucket.hand_over_at(now, &heir), Err(TryAcquireError::Uninitialized));
        }
    }
}

/// A state that is not full, in another epoch than its horizon: no caller leaves that. It grants no more than it has.
#[test]
fn a_flipped_epoch_mints_nothing() {
    let quota = Quota::per_second(4).unwrap();
    let now = 3_000_000;
    for level in 0..=4 {
        for flip in [[1, 0], [0, 1]] {
            let [state, horizon] = State::new(&quota, level, quota.moment(now)).to_words();
            let bucket = over(quota, [state ^ flip[0], horizon ^ flip[1]]);
            let granted = bucket.drain_at(now).unwrap();
            assert!(granted <= level, "{granted} of {level}");
            assert_eq!(bucket.drain_at(now), Ok(0));
            assert!(bucket.available_at(now + 250_000).unwrap() <= 1);
            assert_eq!(bucket.available_at(now + 3_600_000_000), Ok(4), "it is a bucket again");
        }
    }
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn any_words(
        quota in quota(),
        now in magnitude(53),
        state: u64,
        horizon in magnitude(64),
        near in any::<bool>(),
        off in -0x1_0000_0000..0x1_0000_0000_i64,
        takes in prop::collection::vec(any::<u32>(), 1..5),
    ) {
        // Around the time of the call, or anywhere.
        let [_, fitting] = State::new(&quota, 0, quota.moment(now)).to_words();
        let horizon = if near { fitting.wrapping_add_signed(off) } else { horizon };
        let bucket = over(quota, [state, horizon]);
        let mut granted = 0;
        for n in takes {
            match bucket.acquire_up_to_at(now, n) {
                Ok(taken) => granted += u64::from(taken),
                Err(error) => prop_assert_eq!(error, TryAcquireError::Uninitialized),
            }
        }
        match bucket.drain_at(now) {
            Ok(taken) => granted += u64::from(taken),
            Err(error) => prop_assert_eq!(error, TryAcquireError::Uninitialized),
        }
        prop_assert!(granted <= quota.capacity().into(), "{granted} at once");
        prop_assert!(matches!(bucket.available_at(now), Ok(0) | Err(TryAcquireError::Uninitialized)));
    }
}
