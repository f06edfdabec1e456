//! Any calls on any bucket: the same as the pure state, which has no turns to confuse; never more than the bound; and a wait that is
//! true.

#![no_main]

use std::time::Duration;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use tollgate_core::{MAX_MICROS, NoClock, Quota, State, TokenBucket, TryAcquireError, Words};

#[derive(Arbitrary, Debug)]
struct Input {
    tokens: u32,
    period: u64,
    capacity: u32,
    start: u64,
    calls: Vec<(Step, Call)>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Forward(u32),
    Far(u64),
    Back(u64),
}

#[derive(Arbitrary, Debug)]
enum Call {
    Take(u32),
    UpTo(u32),
    Refund(u32),
    Overdraw(u32),
    Reset,
}

fuzz_target!(|input: Input| {
    let rate = Quota::new(input.tokens, Duration::from_nanos(input.period));
    let Ok(quota) = rate.and_then(|rate| rate.with_burst(input.capacity)) else { return };
    let start = input.start.min(MAX_MICROS);
    let mut state = State::new(&quota, quota.capacity(), quota.moment(start));
    let bucket = TokenBucket::over(quota, Words::holding(state), NoClock);
    // What may have been granted, less what was given back; and the latest time.
    let (mut now, mut latest, mut granted, mut allowed) = (start, start, 0_u128, u128::from(quota.capacity()));
    let mut owed = false;
    for (step, call) in input.calls {
        now = match step {
            Step::Forward(by) => now.saturating_add(by.into()),
            Step::Far(by) => now.saturating_add(by),
            Step::Back(by) => now.saturating_sub(by),
        }
        .min(MAX_MICROS);
        latest = latest.max(now);
        // A jump of the horizon while tokens are owed stamps the bucket a tick later than the pure state would be.
        if owed {
            state = bucket.state().expect("a lone caller");
        }
        let refilled = state.refill(&quota, quota.moment(now));
        assert_eq!(bucket.available_at(now), Ok(refilled.tokens()));
        match call {
            Call::Take(n) => match bucket.try_acquire_at(now, n) {
                Ok(left) => {
                    assert_eq!(left, refilled.tokens() - n);
                    granted += u128::from(n);
                    state = if n > 0 { refilled.take(n).expect("granted") } else { state };
                }
                Err(TryAcquireError::Insufficient { available, retry_after, .. }) => {
                    assert!(available < n);
                    let due = u128::from(now) + retry_after.duration().as_micros();
                    if let Ok(due) = u64::try_from(due)
                        && due <= MAX_MICROS
                    {
                        assert!(state.refill(&quota, quota.moment(due)).tokens() >= n);
                        assert!(state.refill(&quota, quota.moment(due - 1)).tokens() < n);
                    }
                }
                Err(error) => assert!(matches!(error, TryAcquireError::ExceedsCapacity { .. }) && n > quota.capacity()),
            },
            Call::UpTo(n) => {
                let got = bucket.acquire_up_to_at(now, n).expect("a lone caller");
                assert_eq!(got, n.min(refilled.tokens()));
                granted += u128::from(got);
                state = if got > 0 { refilled.take(got).expect("granted") } else { state };
            }
            Call::Refund(n) => {
                bucket.refund(n).expect("a lone caller");
                state = state.refund(&quota, n);
                allowed += u128::from(n);
            }
            // Beyond the pure state: from here on, the bucket is its own model.
            Call::Overdraw(n) => {
                owed = true;
                if bucket.overdraw_at(now, n).is_ok() {
                    granted += u128::from(n);
                    allowed += u128::from(quota.capacity());
                }
                state = bucket.state().expect("a lone caller");
            }
            Call::Reset => {
                bucket.reset_at(now).expect("a lone caller");
                state = bucket.state().expect("a lone caller");
                allowed += u128::from(quota.capacity());
            }
        }
        let micros = u128::from(latest - start) + 1;
        let accrued = micros * 1000 * u128::from(quota.tokens()) / quota.period().as_nanos() + 1;
        assert!(granted <= allowed + accrued, "{granted} of {allowed} + {accrued}");
    }
});
