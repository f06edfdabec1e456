//! What a quota would have done with requests of one token each.

use std::time::Duration;

use tollgate_core::{Quota, TokenBucket};

/// The outcome.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) granted: u64,
    pub(crate) refused: u64,
    /// Which were granted, in the order of the requests.
    pub(crate) grants: Vec<bool>,
    /// The longest wait if none is refused, and each waits for those before it.
    pub(crate) longest_wait: Duration,
    /// The smallest burst that refuses none; `None` if there is no such burst, or it would be no quota.
    pub(crate) smallest_burst: Option<u32>,
}

impl Verdict {
    /// Of requests at these times, in microseconds and in order, against a bucket that is full at the first.
    pub(crate) fn of(quota: &Quota, micros: &[i64]) -> Self {
        let first = micros.first().copied().unwrap_or_default();
        let times: Vec<u64> = micros.iter().map(|time| time.abs_diff(first)).collect();
        let grants = grants(quota, &times);
        let granted = count(&grants);
        Self {
            granted,
            refused: grants.len() as u64 - granted,
            longest_wait: longest_wait(quota, &times),
            smallest_burst: smallest_burst(quota, &times),
            grants,
        }
    }
}

/// By the bucket itself.
fn grants(quota: &Quota, times: &[u64]) -> Vec<bool> {
    let bucket = TokenBucket::new(*quota);
    times.iter().map(|now| bucket.try_acquire_at(*now, 1).is_ok()).collect()
}

fn count(grants: &[bool]) -> u64 {
    grants.iter().filter(|granted| **granted).count() as u64
}

/// A level in parts of a token, of which `tokens` accrue in a nanosecond and `period` (in nanoseconds) make a token. It
/// may be below 0: then that is owed.
struct Parts {
    tokens: i128,
    period: i128,
    level: i128,
    at: u64,
}

impl Parts {
    fn full(quota: &Quota) -> Self {
        let period = quota.period().as_nanos().cast_signed();
        Self { tokens: quota.tokens().into(), period, level: period * i128::from(quota.capacity()), at: 0 }
    }

    /// Lets time pass, and takes a token.
    fn take(&mut self, now: u64, most: i128) {
        // Below 2^63 · 2^10 · 2^32, and so is what is owed: 2^62 for each request.
        self.level = most.min(self.level + i128::from(now - self.at) * 1000 * self.tokens) - self.period;
        self.at = now;
    }
}

fn longest_wait(quota: &Quota, times: &[u64]) -> Duration {
    let mut bucket = Parts::full(quota);
    let (most, mut deepest) = (bucket.level, 0);
    for now in times {
        bucket.take(*now, most);
        deepest = bucket.level.min(deepest);
    }
    // In whole microseconds, as all waits are.
    let micros = -(deepest.div_euclid(1000 * bucket.tokens));
    Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
}

fn smallest_burst(quota: &Quota, times: &[u64]) -> Option<u32> {
    // What is taken of a bucket that is full at 0, however large it is.
    let mut bucket = Parts { level: 0, ..Parts::full(quota) };
    let mut deepest = 0;
    for now in times {
        bucket.take(*now, 0);
        deepest = bucket.level.min(deepest);
    }
    let least = u32::try_from(-(deepest.div_euclid(bucket.period))).ok()?.max(1);
    // A bucket counts from whole ticks when it leaves the full level, by which a token may come a tick late.
    (least..=least.saturating_add(1)).find(|burst| {
        let quota = quota.with_burst(*burst);
        quota.is_ok_and(|quota| !grants(&quota, times).contains(&false))
    })
}
