//! The black-box cases, against the pure state and the bucket in memory. `TOLLGATE_CASES` names another file of
//! cases.

#![allow(clippy::unwrap_used, reason = "a test")]

use tollgate_conformance::{Outcome, Subject, cases, check};
use tollgate_core::{NoClock, Quota, State, TokenBucket, Words};

struct Pure {
    quota: Quota,
    state: State,
}

impl Subject for Pure {
    fn start(quota: Quota, level: u32, at: u64) -> Self {
        Self { quota, state: State::new(&quota, level, quota.moment(at)) }
    }

    fn take(&mut self, now: u64, n: u32) -> Outcome {
        let now = self.quota.moment(now);
        let state = self.state.refill(&self.quota, now);
        match (state.take(n), state.wait_for(&self.quota, now, n)) {
            (Some(next), _) => {
                self.state = next;
                Outcome::Granted
            }
            (None, Some(wait)) => Outcome::Denied(wait.duration()),
            (None, None) => Outcome::Never,
        }
    }

    fn available(&mut self, now: u64) -> u32 {
        self.state.refill(&self.quota, self.quota.moment(now)).tokens()
    }

    fn refund(&mut self, n: u32) {
        self.state = self.state.refund(&self.quota, n);
    }
}

struct InMemory(TokenBucket);

impl Subject for InMemory {
    fn start(quota: Quota, level: u32, at: u64) -> Self {
        let words = Words::holding(State::new(&quota, level, quota.moment(at)));
        Self(TokenBucket::over(quota, words, NoClock))
    }

    fn take(&mut self, now: u64, n: u32) -> Outcome {
        self.0.try_acquire_at(now, n).into()
    }

    fn available(&mut self, now: u64) -> u32 {
        self.0.available_at(now).unwrap()
    }

    fn refund(&mut self, n: u32) {
        self.0.refund(n).unwrap();
    }
}

#[test]
fn the_pure_state_passes() {
    check::<Pure>(&cases().unwrap()).unwrap();
}

#[test]
fn the_bucket_in_memory_passes() {
    check::<InMemory>(&cases().unwrap()).unwrap();
}
