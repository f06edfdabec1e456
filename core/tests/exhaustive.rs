//! Every state, time and request of small buckets, against integers.
//!
//! The level is counted in the smallest unit that both a microsecond's accrual and a token are multiples of, so that
//! the ideal bucket is exact: L(t) = min(C, L(t0) + R·(t − t0)) with R = tokens / period.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::time::Duration;

use tollgate_core::{Quota, State};

/// All capacities, rates and periods, in microseconds, up to these.
const CAPACITY: u32 = if cfg!(miri) { 2 } else { 4 };
const TOKENS: u32 = if cfg!(miri) { 2 } else { 5 };
const PERIOD: u64 = if cfg!(miri) { 3 } else { 7 };
/// Start times and elapsed times up to this, in microseconds.
const TIME: u64 = if cfg!(miri) { 3 } else { 24 };

/// The level after `elapsed` µs, in 1/period of a token.
fn level(quota: &Quota, start: u32, elapsed: u64, period: u64) -> u64 {
    (u64::from(start) * period + elapsed * u64::from(quota.tokens())).min(u64::from(quota.capacity()) * period)
}

fn quotas() -> impl Iterator<Item = (Quota, u64)> {
    (1..=CAPACITY).flat_map(|capacity| {
        (1..=TOKENS).flat_map(move |tokens| {
            (1..=PERIOD).map(move |period| {
                let rate = Quota::new(tokens, Duration::from_micros(period)).unwrap();
                (rate.with_burst(capacity).unwrap(), period)
            })
        })
    })
}

/// What is there, what is granted, what is left, and for what is refused, the exact wait.
///
/// These ticks are far shorter than a microsecond. The phase at which a bucket starts to count is rounded to one, so
/// that a token may come early by one tick, and never by a microsecond that is not due anyway: whatever is not on a
/// tick agrees.
#[test]
fn every_state_time_and_request() {
    let mut checked = 0_u64;
    for (quota, period) in quotas() {
        for start in 0..=quota.capacity() {
            for since in 0..TIME {
                // Phases from 0, and after a whole period, where a tick and a microsecond begin together.
                let at = since * period;
                let state = State::new(&quota, start, quota.moment(at));
                for elapsed in 0..=TIME {
                    let now = quota.moment(at + elapsed);
                    let ideal = level(&quota, start, elapsed, period);
                    let whole = u32::try_from(ideal / period).unwrap();
                    let refilled = state.refill(&quota, now);
                    assert_eq!(refilled.tokens(), whole, "{quota}: {start} at {at}, after {elapsed}");
                    for n in 0..=quota.capacity() + 1 {
                        check(&quota, refilled, at + elapsed, (ideal, period), n);
                        checked += 1;
                    }
                    for n in 0..=quota.capacity() + 1 {
                        // A refund, before or after the refill, gives the same.
                        let after = refilled.refund(&quota, n).tokens();
                        assert_eq!(after, state.refund(&quota, n).refill(&quota, now).tokens(), "{quota}, refund {n}");
                        assert_eq!(after, (whole + n).min(quota.capacity()), "{quota}, refund {n}");
                    }
                }
            }
        }
    }
    assert!(cfg!(miri) || checked > 1_000_000, "{checked} checked");
}

fn check(quota: &Quota, state: State, now: u64, (ideal, period): (u64, u64), n: u32) {
    let moment = quota.moment(now);
    let whole = u32::try_from(ideal / period).unwrap();
    assert_eq!(state.take(n).map(State::tokens), whole.checked_sub(n), "{quota}: {n} of {whole}");
    let wait = state.wait_for(quota, moment, n).map(|wait| wait.duration());
    let expected = (n <= quota.capacity()).then(|| {
        let missing = (u64::from(n) * period).saturating_sub(ideal);
        Duration::from_micros(missing.div_ceil(quota.tokens().into()))
    });
    assert_eq!(wait, expected, "{quota}: wait for {n} with {ideal}/{period}");
}

/// A time before the last refill changes nothing, at every distance.
#[test]
fn every_time_before_the_last_refill() {
    for (quota, _) in quotas() {
        for start in 0..=quota.capacity() {
            let state = State::new(&quota, start, quota.moment(TIME));
            for now in 0..TIME {
                assert_eq!(state.refill(&quota, quota.moment(now)), state);
            }
        }
    }
}
