//! Random quotas, times and calls against an exact rational bucket.
//!
//! The oracle is the ideal bucket L(t) = min(C, L(t0) + R·(t − t0)) in rational numbers. The bucket may be ahead of
//! it by what accrues in one microsecond, and behind by one tick: both come from the phase at which it was last full,
//! and neither grows.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

mod counted;
mod ideal;

use core::cell::Cell;
use core::sync::atomic::Ordering;
use core::time::Duration;

use counted::Counted;
use ideal::{Ideal, config, count, magnitude, quota, whole};
use num_bigint::BigInt;
use num_traits::ToPrimitive;
use proptest::prelude::*;
use tollgate_core::{DefaultWord, MAX_MICROS, NoClock, Quota, State, TokenBucket, TryAcquireError, Word, Words};

#[derive(Clone, Copy, Debug)]
enum Call {
    /// Take this part of the capacity, in 1/2^16.
    Part(u16),
    Take(u32),
    All,
    Refund(u32),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        any::<u16>().prop_map(Call::Part),
        (1..4_u32).prop_map(Call::Take),
        count().prop_map(Call::Take),
        Just(Call::All),
        count().prop_map(Call::Refund),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Forward(u64),
    Back(u64),
    /// This part of the time to fill the bucket, in 1/2^12: up to 16 fill times.
    Fill(u16),
    /// To this many microseconds around the moment when the next token is due.
    Due(i8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..3_u64).prop_map(Step::Forward),
        magnitude(50).prop_map(Step::Forward),
        magnitude(50).prop_map(Step::Back),
        any::<u16>().prop_map(Step::Fill),
        (-2..3_i8).prop_map(Step::Due),
    ]
}

fn micros_to_fill(quota: &Quota) -> u128 {
    quota.period().as_nanos() * u128::from(quota.capacity()) / u128::from(quota.tokens()) / 1000
}

proptest! {
    #![proptest_config(config(20_000))]

    #[test]
    fn any_calls_at_any_times(
        quota in quota(),
        start in magnitude(53),
        level in any::<u32>(),
        calls in prop::collection::vec((step(), call()), 1..40),
    ) {
        let level = level % quota.capacity() + 1;
        let mut state = State::new(&quota, level, quota.moment(start));
        let bucket = TokenBucket::over(quota, Words::holding(state), NoClock);
        let mut ideal = Ideal::new(&quota, level, start);
        let mut now = start;

        for (step, call) in calls {
            now = match step {
                Step::Forward(by) => now.saturating_add(by),
                Step::Back(by) => now.saturating_sub(by),
                Step::Fill(part) => {
                    let by = micros_to_fill(&quota) * u128::from(part) / (1 << 12);
                    now.saturating_add(u64::try_from(by).unwrap_or(u64::MAX))
                }
                Step::Due(by) => {
                    let wait = bucket.retry_after_at(now, quota.capacity().min(state.tokens() + 1)).unwrap();
                    now.saturating_add(u64::try_from(wait.as_micros()).unwrap()).saturating_add_signed(by.into())
                }
            }
            .min(MAX_MICROS);
            let moment = quota.moment(now);
            let refilled = state.refill(&quota, moment);

            // The bucket and its horizon agree with the state that has no turns to confuse.
            let available = bucket.available_at(now).unwrap();
            prop_assert_eq!(available, refilled.tokens());
            let (low, high) = ideal.bounds(now);
            prop_assert!(low <= available.into() && BigInt::from(available) <= high, "{} not in {}..={}", available, low, high);

            let n = match call {
                Call::Part(part) => u32::try_from((u64::from(quota.capacity()) * u64::from(part)) >> 16).unwrap(),
                Call::Take(n) => n,
                Call::All => available,
                Call::Refund(n) => {
                    bucket.refund(n).unwrap();
                    state = state.refund(&quota, n);
                    ideal.refund(n);
                    continue;
                }
            };
            match bucket.try_acquire_at(now, n) {
                Ok(remaining) => {
                    prop_assert_eq!(Some(remaining), available.checked_sub(n));
                    if n > 0 {
                        state = refilled.take(n).unwrap();
                        ideal.take(now, n);
                    }
                }
                Err(TryAcquireError::Insufficient { available: seen, retry_after, .. }) => {
                    prop_assert!(available < n);
                    prop_assert_eq!(seen, available);
                    let due = u128::from(now) + retry_after.duration().as_micros();
                    // Exactly then, not a microsecond before; unless the clock never gets there.
                    if due <= MAX_MICROS.into() {
                        let due = u64::try_from(due).unwrap();
                        prop_assert!(state.refill(&quota, quota.moment(due)).tokens() >= n);
                        prop_assert!(state.refill(&quota, quota.moment(due - 1)).tokens() < n);
                        prop_assert!(due > now);
                    }
                }
                Err(error) => {
                    prop_assert!(n > quota.capacity());
                    prop_assert!(matches!(error, TryAcquireError::ExceedsCapacity { .. }), "{}", error);
                }
            }
        }
    }

    #[test]
    fn many_small_refills_equal_one_big(
        quota in quota(),
        start in magnitude(53),
        level in any::<u32>(),
        mut times in prop::collection::vec(magnitude(53), 1..20),
    ) {
        times.sort_unstable();
        let first = State::new(&quota, level, quota.moment(start));
        let small = times.iter().fold(first, |state, now| state.refill(&quota, quota.moment(*now)));
        let last = *times.last().unwrap();
        prop_assert_eq!(small, first.refill(&quota, quota.moment(last)));
    }

    /// Whatever is in the words, no call panics, and none grants more than the capacity.
    #[test]
    fn any_words_at_any_time(quota in quota(), words in any::<[u64; 2]>(), now in any::<u64>(), n in any::<u32>()) {
        let [state, horizon] = words.map(DefaultWord::new);
        let bucket = TokenBucket::over(quota, Words::new(&state, &horizon), NoClock);
        let _ = bucket.retry_after_at(now, n);
        if let Ok(remaining) = bucket.try_acquire_at(now, n) {
            prop_assert!(n <= quota.capacity());
            prop_assert!(remaining <= quota.capacity() - n);
        }
        if let Ok(available) = bucket.available_at(now) {
            prop_assert!(available <= quota.capacity());
        }
        let _ = bucket.refund(n);
    }

    #[test]
    fn any_quota(tokens in any::<u32>(), capacity in any::<u32>(), seconds in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let _ = Quota::new(tokens, Duration::new(seconds, nanos)).and_then(|rate| rate.with_burst(capacity));
        let _ = Quota::new(tokens, Duration::new(0, nanos)).and_then(|rate| rate.with_burst(capacity));
    }
}

#[test]
fn the_oracle_is_exact_where_a_tick_divides_the_microsecond() {
    // 2^10 tokens in a second of 10^6 µs: the ideal level at 2^k µs is known by hand.
    let ideal = Ideal::new(&Quota::per_second(1024).unwrap(), 0, 0);
    assert_eq!(ideal.level(15_625), whole(16));
    assert_eq!(ideal.level(2_000_000).to_u32(), Some(1024));
}

#[test]
fn calls_that_take_nothing_write_nothing() {
    let quota = Quota::per_second(10).unwrap();
    let writes = Cell::new(0);
    let [state, horizon] = State::new(&quota, 3, quota.moment(0))
        .to_words()
        .map(|word| Counted { word: DefaultWord::new(word), writes: &writes });
    let bucket = TokenBucket::over(quota, Words::new(&state, &horizon), NoClock);
    let year = 365 * 86_400 * 1_000_000;

    for now in [0, 1, 99_999] {
        assert!(bucket.try_acquire_at(now, 4).is_err());
    }
    // A year past the horizon as well.
    for now in [0, year] {
        assert!(bucket.try_acquire_at(now, 11).is_err());
        assert!(bucket.try_acquire_at(now, 0).is_ok());
        assert!(bucket.available_at(now).is_ok());
        assert!(bucket.retry_after_at(now, 10).is_ok());
    }
    bucket.refund(0).unwrap();
    assert_eq!(bucket.acquire_up_to_at(year, 0), Ok(0));
    assert_eq!(writes.get(), 0);

    assert_eq!(bucket.try_acquire_at(1, 3), Ok(0));
    assert_eq!(bucket.acquire_up_to_at(1, 5), Ok(0));
    assert_eq!(bucket.overdraw_at(1, 0), Ok(0));
    assert!(bucket.overdraw_at(1, 11).is_err());
    assert_eq!(writes.get(), 1);
    assert_eq!(bucket.try_acquire_at(year, 10), Ok(0));
    assert!(bucket.try_acquire_at(year, 1).is_err());
    bucket.refund(10).unwrap();
    let written = writes.get();
    bucket.refund(1).unwrap();
    assert_eq!(writes.get(), written, "a full bucket takes no refund");
}

#[test]
fn a_word_of_zeros_is_not_a_bucket() {
    let [state, horizon] = [0, 0].map(DefaultWord::new);
    let bucket = TokenBucket::over(Quota::per_second(10).unwrap(), Words::new(&state, &horizon), NoClock);
    assert_eq!(bucket.try_acquire_at(0, 0), Err(TryAcquireError::Uninitialized));
    assert_eq!(bucket.try_acquire_at(0, 1), Err(TryAcquireError::Uninitialized));
    assert_eq!(bucket.available_at(0), Err(TryAcquireError::Uninitialized));
    assert_eq!(bucket.retry_after_at(0, 1), Err(TryAcquireError::Uninitialized));
    assert_eq!(bucket.refund(1), Err(TryAcquireError::Uninitialized));
    assert_eq!(state.load(Ordering::Relaxed), 0);
}

/// A word whose every exchange comes too late.
struct Busy(u64);

impl Word for Busy {
    fn load(&self, _: Ordering) -> u64 {
        self.0
    }

    fn compare_exchange(&self, _: u64, _: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        Err(self.0)
    }
}

#[test]
fn a_call_gives_up_in_the_end() {
    let quota = Quota::per_second(10).unwrap();
    let [state, horizon] = State::new(&quota, 3, quota.moment(0)).to_words().map(Busy);
    let bucket = TokenBucket::over(quota, Words::new(state, horizon), NoClock);
    assert_eq!(bucket.try_acquire_at(0, 1), Err(TryAcquireError::Contended));
    assert_eq!(bucket.try_acquire_at(MAX_MICROS, 1), Err(TryAcquireError::Contended));
    assert_eq!(bucket.refund(1), Err(TryAcquireError::Contended));
    assert_eq!(bucket.available_at(0), Ok(3));
}
