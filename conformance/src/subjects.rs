//! The subjects that every target has: the pure state, and the bucket in memory.

use tollgate_core::{NoClock, Quota, State, TokenBucket, Word, Words};

use crate::{Outcome, Subject};

/// The bucket as a plain value.
#[derive(Debug)]
pub struct Pure {
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
                if n > 0 {
                    self.state = next;
                }
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

/// The bucket over two words, of whatever kind.
#[derive(Debug)]
pub struct InMemory<W>(TokenBucket<NoClock, Words<W>>);

impl<W: Word + From<u64>> Subject for InMemory<W> {
    fn start(quota: Quota, level: u32, at: u64) -> Self {
        let [state, horizon] = State::new(&quota, level, quota.moment(at)).to_words().map(W::from);
        Self(TokenBucket::over(quota, Words::new(state, horizon), NoClock))
    }

    fn take(&mut self, now: u64, n: u32) -> Outcome {
        self.0.try_acquire_at(now, n).into()
    }

    fn available(&mut self, now: u64) -> u32 {
        // Nobody else is there to contend with; an error would be no number of tokens, and fails the case.
        self.0.available_at(now).unwrap_or(u32::MAX)
    }

    fn refund(&mut self, n: u32) {
        // Likewise: tokens that are not given back are missed later.
        let _ = self.0.refund(n);
    }
}
