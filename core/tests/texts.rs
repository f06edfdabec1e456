//! What errors and quotas say.

#![allow(clippy::unwrap_used, reason = "a test")]

use core::time::Duration;

use tollgate_core::{Counter, DefaultWord, NoClock, Quota, QuotaError, TokenBucket, TryAcquireError, Words, quota};

const QUOTA: Quota = quota!(Quota::per_second(10), burst 3);

#[test]
fn a_quota_says_what_it_is_or_why_it_cannot_be() {
    assert_eq!(QUOTA.to_string(), "10 per 1s, burst 3");
    assert_eq!(format!("{QUOTA:?}"), "Quota(10 per 1s, burst 3)");
    assert_eq!(Quota::per_day(3).unwrap().to_string(), "3 per 86400s, burst 3");
    let century = Duration::from_hours(36_525 * 24);
    assert!(Quota::new(1, century).is_ok());
    let refused = [
        (Quota::per_minute(0), "a rate of 0 tokens grants nothing; it must be at least 1 token in a period"),
        (QUOTA.with_burst(0), "a burst of 0 tokens grants nothing; it must be at least 1"),
        (Quota::new(1, Duration::from_nanos(999)), "the period is shorter than 1µs: 999ns"),
        (
            Quota::new(1, century + Duration::from_nanos(1)),
            "the period is longer than 100 years (36525 days): 3155760000.000000001s",
        ),
        (
            Quota::new(1, century).unwrap().with_burst(u32::MAX),
            "the bucket would take longer than 292000 years to fill; lower the burst or raise the rate: burst 4294967295 at \
             1 per 3155760000s",
        ),
    ];
    for (quota, text) in refused {
        let error: QuotaError = quota.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert!(text.starts_with(error.reason()));
    }
}

#[test]
fn the_longest_fill_time_is_the_last_that_fits() {
    let fills = |capacity, nanos| Quota::new(1, Duration::from_nanos(nanos)).unwrap().with_burst(capacity).is_ok();
    // 2^63 − 1 µs, less 994 ns; and 2^63 µs.
    assert!(fills(3003, 3_071_385_959_658_600_002));
    assert!(!fills(4000, 1 << 61));
}

#[test]
fn quotas_are_equal_that_allow_the_same() {
    assert_eq!(Quota::per_minute(60).unwrap().with_burst(3), Quota::per_second(1).unwrap().with_burst(3));
    assert_ne!(QUOTA, Quota::per_second(11).unwrap().with_burst(3).unwrap());
    assert_ne!(QUOTA, Quota::per_second(10).unwrap().with_burst(4).unwrap());
    assert_ne!(Quota::new(1, Duration::from_micros(2)), Quota::new(1, Duration::from_nanos(2001)));
}

#[test]
fn a_counter_says_why_it_cannot_be() {
    let error = Counter::new(40, 16_000_000).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a counter of 40 bits at 16000000 Hz; it must have 8 to 32 bits, count once a second or more, \
         and take 16/15 of a microsecond or longer to come round"
    );
}

#[test]
fn a_refusal_says_when_or_that_it_is_for_ever() {
    let bucket = TokenBucket::new(QUOTA);
    bucket.try_acquire_at(0, 3).unwrap();
    let zeros = [0, 0].map(DefaultWord::new);
    let erased = TokenBucket::over(QUOTA, Words::new(&zeros[0], &zeros[1]), NoClock);
    let texts = [
        (bucket.try_acquire_at(0, 2), "not enough tokens: 2 requested, 0 available; retry after 200ms"),
        (bucket.try_acquire_at(0, 4), "4 requested, but the bucket never holds more than 3"),
        (erased.try_acquire_at(0, 1), "the words hold no bucket: they were not initialised, or were erased"),
        (Err(TryAcquireError::Contended), "others changed the bucket at every attempt; try again"),
        (Err(TryAcquireError::Moved), "the bucket was handed over to another"),
    ];
    let waits = [Some(Duration::from_millis(200)), None, None, Some(Duration::ZERO), None];
    for ((answer, text), wait) in texts.into_iter().zip(waits) {
        let error = answer.unwrap_err();
        assert_eq!(error.to_string(), text);
        assert_eq!(error.retry_after(), wait);
    }
    assert_eq!(erased.refund(1), Err(TryAcquireError::Uninitialized));
}
