//! The ideal bucket in rational numbers, and random quotas.

#![allow(missing_docs, unreachable_pub, dead_code, reason = "shared by tests, none of which uses all")]

use core::time::Duration;

use num_bigint::BigInt;
use num_rational::BigRational;
use proptest::prelude::*;
use tollgate_core::Quota;

/// Settings for a property test of this many cases, fewer under Miri, and no more than `PROPTEST_CASES`.
pub fn config(cases: u32) -> ProptestConfig {
    let most = std::env::var("PROPTEST_CASES").ok().and_then(|most| most.parse().ok());
    let cases = if cfg!(miri) { 4 } else { cases.min(most.unwrap_or(u32::MAX)) };
    ProptestConfig { cases, failure_persistence: None, max_local_rejects: 1_000_000, ..ProptestConfig::default() }
}

/// Any value of up to `bits` bits, all magnitudes alike.
pub fn magnitude(bits: u32) -> impl Strategy<Value = u64> {
    (0..=bits).prop_flat_map(|bits| match bits {
        0 => 0..=0,
        _ => (1_u64 << (bits - 1))..=(u64::MAX >> (64 - bits)),
    })
}

pub fn count() -> impl Strategy<Value = u32> {
    magnitude(32).prop_map(|n| u32::try_from(n).unwrap())
}

pub fn quota() -> impl Strategy<Value = Quota> {
    (count(), count(), magnitude(62)).prop_filter_map("fills too slowly", |(capacity, tokens, nanos)| {
        let period = Duration::from_nanos(nanos.clamp(1000, 3_155_760_000_000_000_000));
        Quota::new(tokens.max(1), period).and_then(|rate| rate.with_burst(capacity.max(1))).ok()
    })
}

/// The ideal bucket: its level at the time of the last call that changed it.
pub struct Ideal {
    pub capacity: BigRational,
    /// Tokens in a microsecond.
    pub rate: BigRational,
    level: BigRational,
    at: u64,
    /// Whether a refund overflowed. It has no time, so that the fraction of a token is forfeited at the next call, by
    /// that call's time: where this is one from before the refund, the fraction stays.
    overflowed: bool,
}

pub fn whole(n: impl Into<BigInt>) -> BigRational {
    BigRational::from_integer(n.into())
}

impl Ideal {
    pub fn new(quota: &Quota, level: u32, at: u64) -> Self {
        let period = BigRational::new(quota.period().as_nanos().into(), 1000.into());
        Self {
            capacity: whole(quota.capacity()),
            rate: whole(quota.tokens()) / period,
            level: whole(level),
            at,
            overflowed: false,
        }
    }

    pub fn level(&self, now: u64) -> BigRational {
        (&self.level + &self.rate * whole(now.saturating_sub(self.at))).min(self.capacity.clone())
    }

    pub fn take(&mut self, now: u64, n: u32) {
        let level = self.level(now);
        self.overflowed &= now < self.at || level < self.capacity;
        self.level = level - whole(n);
        self.at = self.at.max(now);
    }

    pub fn refund(&mut self, n: u32) {
        let level = &self.level + whole(n);
        self.overflowed |= level > self.capacity;
        self.level = level.min(self.capacity.clone());
    }

    /// The whole tokens that the bucket may show now, lowest and highest.
    pub fn bounds(&self, now: u64) -> (BigInt, BigInt) {
        let level = self.level(now);
        // A tick: at most a token and at most 2^-28 of the capacity, or less than a microsecond's worth.
        let tick = (&self.capacity / whole(1 << 28)).min(whole(1));
        let behind = if self.rate > whole(1024) { self.rate.clone() } else { tick };
        let low = (&level - behind).floor().max(whole(0));
        let ahead = &self.rate + whole(u8::from(self.overflowed));
        let high = (&level + ahead).floor().min(self.capacity.clone()).max(whole(0));
        (low.to_integer(), high.to_integer())
    }
}
