//! Clients that take whatever there is, for years: no drift, at any rate, however they poll.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::time::Duration;

use tollgate_core::{NoClock, Quota, State, TokenBucket, Words};

const HOUR: u64 = 3_600_000_000;
const DAY: u64 = 24 * HOUR;
const TEN_YEARS: u64 = 3652 * DAY;
/// Miri is slow.
const CALLS: u64 = if cfg!(miri) { 100 } else { 1_000_000 };

/// Rates as tokens and microseconds.
const RATES: [(u32, u64); 8] = [
    (3, 1_000_000),
    (7, 1_000_000),
    (999_983, 1_000_000),
    (700_000, 1_000_000),
    (1_500_000, 1_000_000),
    (1, HOUR),
    (1, DAY),
    (4_000_000_000, 1_000_000),
];

/// Microseconds between two calls.
#[derive(Clone, Copy, Debug)]
enum Poll {
    Every(u64),
    /// Uniform in 1 ..= most.
    Random(u64),
}

struct Intervals(Poll, u64);

impl Iterator for Intervals {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        Some(match self.0 {
            Poll::Every(interval) => interval,
            Poll::Random(most) => {
                // Marsaglia's xorshift64.
                self.1 ^= self.1 << 13;
                self.1 ^= self.1 >> 7;
                self.1 ^= self.1 << 17;
                1 + self.1 % most
            }
        })
    }
}

/// The tokens and the time of one more call that takes all.
fn take_all(bucket: &TokenBucket, now: u64) -> u64 {
    let n = bucket.available_at(now).unwrap();
    assert_eq!(bucket.try_acquire_at(now, n), Ok(0));
    n.into()
}

/// Drains the bucket at `start`, then takes all at each of `calls` times, and compares what it got with rate × time
/// all the while.
fn saturate(bucket: &TokenBucket, start: u64, poll: Poll, calls: u64) -> u64 {
    take_all(bucket, start);
    let quota = *bucket.quota();
    let (tokens, period) = (u128::from(quota.tokens()), quota.period().as_micros());
    // One token, or one microsecond's worth where that is more.
    let tolerance = 1.max(tokens.div_ceil(period));
    let mut now = start;
    let mut granted = 0_u128;
    for interval in Intervals(poll, 0x9e37_79b9_7f4a_7c15).take(usize::try_from(calls).unwrap()) {
        now += interval;
        granted += u128::from(take_all(bucket, now));
        let due = u128::from(now - start) * tokens / period;
        assert!(granted.abs_diff(due) <= tolerance, "{quota}, {poll:?}: {granted} granted, {due} due at {now}");
    }
    now
}

fn quota(tokens: u32, period: u64, burst: u32) -> Quota {
    Quota::new(tokens, Duration::from_micros(period)).unwrap().with_burst(burst).unwrap()
}

fn drained(quota: Quota, at: u64) -> TokenBucket {
    TokenBucket::over(quota, Words::holding(State::new(&quota, 0, quota.moment(at))), NoClock)
}

#[test]
fn a_million_calls_now_and_a_million_ten_years_later() {
    let polls = [Poll::Every(1), Poll::Every(2), Poll::Every(1900), Poll::Random(500_000)];
    for (tokens, period) in RATES {
        for poll in polls {
            let bucket = drained(quota(tokens, period, tokens), 123_456_789);
            let end = saturate(&bucket, 123_456_789, poll, CALLS);
            saturate(&bucket, end + TEN_YEARS, poll, CALLS);
        }
    }
}

/// The microseconds in which the largest burst accrues.
fn most(tokens: u32, period: u64) -> u64 {
    u64::try_from(u128::from(u32::MAX - 2) * u128::from(period) / u128::from(tokens)).unwrap_or(u64::MAX)
}

#[test]
fn ten_years_without_a_break() {
    for (tokens, period) in RATES {
        // A million calls in ten years, or as long between two as the largest burst allows, and the burst that this
        // asks for.
        let interval = (TEN_YEARS / CALLS).min(most(tokens, period));
        let burst = u32::try_from(u128::from(tokens) * u128::from(interval) / u128::from(period) + 2).unwrap();
        // Only 4·10⁹/s needs more than a million; the test above has it ten years later.
        let calls = (TEN_YEARS / interval).min(CALLS);
        for poll in [Poll::Every(interval), Poll::Random(interval)] {
            saturate(&drained(quota(tokens, period, burst), 1), 1, poll, calls);
        }
    }
}

/// Long idle times fill the bucket as far as they should, to the token: exactly where the start is on a tick, else a
/// tick later.
#[test]
fn idle_times_that_have_broken_others() {
    let minute = 60_000_000;
    let quota = quota(1, minute, 1_000_000);
    let tick = minute / 512 + 1;
    for idle in [36 * minute, 71 * minute + 34_967_296, 72 * minute, DAY, TEN_YEARS] {
        for (start, late) in [(0, 0), (1, tick), (4_294_967_295, tick), (4_294_967_296, tick), (DAY, 0)] {
            let bucket = drained(quota, start);
            let now = start + idle + late;
            let level = (idle / minute).min(1_000_000);
            assert_eq!(bucket.available_at(now).map(u64::from), Ok(level));
            assert_eq!(bucket.try_acquire_at(now, 1).map(u64::from), Ok(level - 1));
        }
    }
}
