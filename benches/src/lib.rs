//! What the benchmarks compare with, and a place where the code of the top README is tested.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tollgate::FastClock;
use tollgate_core::{Clock, Quota, State};

/// The same arithmetic as the bucket's behind a lock, which is what most programs have.
#[derive(Debug)]
pub struct LockedBucket<C> {
    quota: Quota,
    state: Mutex<State>,
    clock: C,
}

impl<C: Clock> LockedBucket<C> {
    /// Makes a full bucket.
    #[must_use]
    pub fn new(quota: Quota, clock: C) -> Self {
        let state = State::new(&quota, quota.capacity(), quota.moment(clock.now_micros()));
        Self { quota, state: Mutex::new(state), clock }
    }

    /// Takes `n` tokens and returns how many remain, if there are that many.
    #[inline]
    pub fn try_acquire(&self, n: u32) -> Option<u32> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let next = state.refill(&self.quota, self.quota.moment(self.clock.now_micros())).take(n)?;
        *state = next;
        Some(next.tokens())
    }

    /// Returns how many tokens are there.
    #[inline]
    pub fn available(&self) -> u32 {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.refill(&self.quota, self.quota.moment(self.clock.now_micros())).tokens()
    }
}

/// Lets this process's [`FastClock`] learn the counter's speed: it takes two readings, 20 ms or more apart.
pub fn warm_up_the_fast_clock() {
    let _ = FastClock.now_micros();
    std::thread::sleep(Duration::from_millis(30));
    let _ = FastClock.now_micros();
}

/// The README's code.
#[doc = include_str!("../../README.md")]
#[cfg(doctest)]
pub struct Readme;
