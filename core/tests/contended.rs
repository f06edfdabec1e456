//! Calls that are overtaken: the last attempt counts, and a call that gives up has done nothing.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "a test")]

use core::cell::Cell;
use core::sync::atomic::Ordering;
use core::time::Duration;

use tollgate_core::{
    AtomicTokenBucket, CompactTokenBucket, MAX_ATTEMPTS, NoClock, Quota, State, TokenBucket, TryAcquireError, Word,
    Words, quota,
};

const QUOTA: Quota = quota!(Quota::per_second(10));
/// What somebody else toggles in a state: its lowest token.
const A_TOKEN: u64 = 1 << 32;
/// What somebody else toggles in a horizon: its lowest tick.
const A_TICK: u64 = 2;

/// A word that somebody else changes before each of the next exchanges, or after each of the next loads.
struct Busy {
    value: Cell<u64>,
    change: u64,
    exchanges: Cell<u32>,
    loads: Cell<u32>,
}

impl Busy {
    fn new(value: u64, change: u64) -> Self {
        Self { value: Cell::new(value), change, exchanges: Cell::new(0), loads: Cell::new(0) }
    }

    fn disturb(&self, left: &Cell<u32>) {
        if let Some(fewer) = left.get().checked_sub(1) {
            left.set(fewer);
            self.value.set(self.value.get() ^ self.change);
        }
    }
}

impl Word for Busy {
    fn load(&self, _: Ordering) -> u64 {
        let value = self.value.get();
        self.disturb(&self.loads);
        value
    }

    fn compare_exchange(&self, current: u64, new: u64, _: Ordering, _: Ordering) -> Result<u64, u64> {
        self.disturb(&self.exchanges);
        let seen = self.value.get();
        if seen != current {
            return Err(seen);
        }
        self.value.set(new);
        Ok(seen)
    }
}

#[test]
fn the_state_is_changed_before_each_exchange() {
    let [state, horizon] = State::new(&QUOTA, 5, QUOTA.moment(0)).to_words();
    let (state, horizon) = (Busy::new(state, A_TOKEN), Busy::new(horizon, 0));
    let bucket = TokenBucket::over(QUOTA, Words::new(&state, &horizon), NoClock);
    state.exchanges.set(MAX_ATTEMPTS - 1);
    assert_eq!(bucket.try_acquire_at(0, 2), Ok(2), "of 4 or 5");
    state.exchanges.set(MAX_ATTEMPTS - 1);
    assert_eq!(bucket.refund(2), Ok(()));

    let level = bucket.available_at(0);
    state.exchanges.set(MAX_ATTEMPTS);
    assert_eq!(bucket.try_acquire_at(0, 2), Err(TryAcquireError::Contended));
    state.exchanges.set(MAX_ATTEMPTS);
    assert_eq!(bucket.refund(2), Err(TryAcquireError::Contended));
    assert_eq!(bucket.available_at(0), level, "toggled an even number of times");
}

/// One attempt is one: overtaken, it says so, and has taken nothing.
#[test]
fn a_single_attempt() {
    let [state, horizon] = State::new(&QUOTA, 5, QUOTA.moment(0)).to_words();
    let (state, horizon) = (Busy::new(state, A_TOKEN), Busy::new(horizon, 0));
    let bucket = TokenBucket::over(QUOTA, Words::new(&state, &horizon), NoClock);
    state.exchanges.set(1);
    assert_eq!(bucket.try_acquire_once_at(0, 2), Err(TryAcquireError::Contended));
    assert!(matches!(bucket.available_at(0), Ok(4 | 6)), "what the other call has left");
    assert!(bucket.try_acquire_once_at(0, 2).is_ok());
    assert!(matches!(bucket.try_acquire_once_at(0, 11), Err(TryAcquireError::ExceedsCapacity { .. })));
    assert!(matches!(bucket.try_acquire_once_at(0, 10), Err(TryAcquireError::Insufficient { .. })));
}

#[test]
fn the_horizon_is_changed_between_its_loads() {
    let [state, horizon] = State::new(&QUOTA, 5, QUOTA.moment(0)).to_words();
    let (state, horizon) = (Busy::new(state, 0), Busy::new(horizon, A_TICK));
    let bucket = TokenBucket::over(QUOTA, Words::new(&state, &horizon), NoClock);
    // Two loads an attempt; the change after the second is met by the next attempt, and makes no difference to it.
    horizon.loads.set(2 * MAX_ATTEMPTS - 2);
    assert_eq!(bucket.available_at(0), Ok(5));
    horizon.loads.set(2 * MAX_ATTEMPTS);
    assert_eq!(bucket.available_at(0), Err(TryAcquireError::Contended));

    // A bucket that was long idle: the settling meets a change as well, and the next attempt settles again.
    horizon.loads.set(0);
    let year = 365 * 86_400_000_000;
    assert_eq!(bucket.available_at(year), Ok(10));
    for changes in 0..6 {
        let later = year * (2 + u64::from(changes));
        horizon.loads.set(changes);
        assert_eq!(bucket.try_acquire_at(later, 10), Ok(0), "after {changes} changes");
        assert!(bucket.try_acquire_at(later, 1).is_err());
    }
}

#[test]
fn one_word_is_changed_before_each_exchange() {
    let word = Busy::new(0, A_TOKEN);
    let bucket = CompactTokenBucket::over_word(QUOTA, Duration::from_mins(1), &word, NoClock);
    assert_eq!(bucket.try_acquire_at(0, 5), Ok(5));
    word.exchanges.set(MAX_ATTEMPTS - 1);
    assert_eq!(bucket.try_acquire_at(0, 2), Ok(2), "of 4 or 5");
    word.exchanges.set(MAX_ATTEMPTS - 1);
    assert_eq!(bucket.refund(2), Ok(()));

    let level = bucket.available_at(0);
    word.exchanges.set(MAX_ATTEMPTS);
    assert_eq!(bucket.try_acquire_at(0, 2), Err(TryAcquireError::Contended));
    word.exchanges.set(MAX_ATTEMPTS);
    assert_eq!(bucket.refund(2), Err(TryAcquireError::Contended));
    assert_eq!(bucket.available_at(0), level, "toggled an even number of times");
}

/// The pool does not give up: somebody else has succeeded each time.
#[test]
fn a_pool_is_changed_before_each_exchange() {
    let (tokens, capacity) = (Busy::new(8, 1), Busy::new(9, 0));
    let pool = AtomicTokenBucket::over(&tokens, &capacity);
    tokens.exchanges.set(1001);
    assert_eq!(pool.claim(2), Some(2));
    assert_eq!(pool.available(), 7, "of 9");
    tokens.exchanges.set(1001);
    pool.refill(1);
    assert_eq!(pool.available(), 7, "of 6");
    tokens.exchanges.set(2);
    capacity.exchanges.set(0);
    pool.set_capacity(3);
    assert_eq!(pool.available(), 3);
    pool.set_capacity(9);
    assert_eq!(pool.available(), 3, "what was above has been forfeited");
    let changing = Busy::new(9, 4);
    let pool = AtomicTokenBucket::over(&tokens, &changing);
    changing.exchanges.set(3);
    pool.set_capacity(2);
    assert_eq!((pool.capacity(), pool.available()), (2, 2));
}

#[cfg(all(feature = "portable-atomic", target_has_atomic = "64"))]
#[test]
fn a_portable_word_is_a_word() {
    let [state, horizon] = State::full(&QUOTA).to_words().map(portable_atomic::AtomicU64::new);
    let bucket = TokenBucket::over(QUOTA, Words::new(state, horizon), NoClock);
    let year = 365 * 86_400_000_000;
    for now in [0, year] {
        assert_eq!(bucket.try_acquire_at(now, 10), Ok(0));
        assert!(bucket.try_acquire_at(now, 1).is_err());
    }
}

#[test]
fn a_bucket_is_handed_over_while_it_is_changed() {
    let words = || {
        let [state, horizon] = State::new(&QUOTA, 5, QUOTA.moment(0)).to_words();
        (Busy::new(state, A_TOKEN), Busy::new(horizon, A_TICK))
    };
    let (old, new) = (words(), words());
    let bucket = TokenBucket::over(QUOTA, Words::new(&old.0, &old.1), NoClock);
    let heir = TokenBucket::over(QUOTA, Words::new(&new.0, &new.1), NoClock);
    // The level is changed before each seal, and the horizon between its loads.
    old.0.exchanges.set(MAX_ATTEMPTS);
    assert_eq!(bucket.hand_over_at(0, &heir), Err(TryAcquireError::Contended));
    old.1.loads.set(3);
    old.0.exchanges.set(7);
    assert_eq!(bucket.hand_over_at(0, &heir), Ok(()));
    assert_eq!(heir.available_at(0), Ok(4), "the level at the seal");
    assert_eq!(bucket.state(), Err(TryAcquireError::Moved));
    // Somebody uses the heir, who should not.
    let (third, fourth) = (words(), words());
    let bucket = TokenBucket::over(QUOTA, Words::new(&third.0, &third.1), NoClock);
    let heir = TokenBucket::over(QUOTA, Words::new(&fourth.0, &fourth.1), NoClock);
    fourth.0.exchanges.set(1);
    assert_eq!(bucket.hand_over_at(0, &heir), Err(TryAcquireError::Contended));
    assert_eq!(bucket.available_at(0), Ok(5), "it was not sealed");
    // Reading a state whose horizon is changed.
    third.1.loads.set(2 * MAX_ATTEMPTS - 2);
    assert_eq!(bucket.state().map(State::tokens), Ok(5));
    third.1.loads.set(2 * MAX_ATTEMPTS);
    assert_eq!(bucket.state(), Err(TryAcquireError::Contended));
}
