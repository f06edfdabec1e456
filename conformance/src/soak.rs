//! Random calls beside the ideal bucket in whole numbers, without an allocation: what a chip can do. (The property
//! tests of the core do the same in rational numbers, for any quota.)

use core::time::Duration;

use tollgate_core::Quota;

use crate::{Outcome, Subject};

/// The quotas, all of which the ideal bucket can count in units of a token divided by its period in microseconds.
const QUOTAS: [(u32, u64, u32); 8] = [
    (1, 1_000_000, 1),
    (3, 1_000_000, 7),
    (999_983, 1_000_000, 100),
    (1000, 7, 50),
    (1, 86_400_000_000, 10),
    (5000, 3_600_000_000, 5000),
    (60, 60_000_000, 3),
    (4_000_000_000, 1_000_000, u32::MAX),
];

/// A bucket that went astray.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct Astray {
    pub quota: Quota,
    pub call: u64,
    pub now: u64,
    /// What the ideal bucket had, to the token, by clocks that are a tick late, and a microsecond early.
    pub expected: [u64; 2],
    pub seen: Outcome,
    pub asked: u32,
}

/// Makes `calls` random calls on a bucket of each of some quotas, and compares each answer with the ideal bucket's.
/// The time goes on by nothing, by microseconds, or by days, and sometimes back.
///
/// # Errors
///
/// The first answer that can't be.
pub fn soak<S: Subject>(calls: u64) -> Result<u64, Astray> {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for (tokens, period_us, burst) in QUOTAS {
        let Ok(quota) = Quota::new(tokens, Duration::from_micros(period_us)).and_then(|rate| rate.with_burst(burst))
        else {
            continue;
        };
        let mut subject = S::start(quota, 0, 0);
        let fill = u128::from(period_us) * u128::from(burst) / u128::from(tokens);
        let tick = 1 + u64::try_from(fill >> 28).unwrap_or(u64::MAX);
        let mut ideal =
            Ideal { rate: tokens.into(), unit: period_us.into(), most: burst.into(), level: 0, at: 0, tick };
        let mut now: u64 = 0;
        for call in 0..calls {
            now = match random.below(16) {
                0 => now.saturating_sub(random.below(2_000_000)),
                1 => now + random.below(1 << 40),
                2..6 => now,
                step => now + random.below(1 << (3 * (step - 5))),
            };
            let asked = u32::try_from(random.below(u64::from(burst).saturating_add(u64::from(burst / 8) + 2)))
                .unwrap_or(u32::MAX);
            let seen = subject.take(now, asked);
            let latest = now.max(ideal.at);
            let expected = [ideal.tokens(latest.saturating_sub(ideal.tick)), ideal.tokens(latest + 1)];
            let fits = match seen {
                Outcome::Granted => u64::from(asked) <= expected[1],
                Outcome::Denied(wait) => u64::from(asked) > expected[0] && ideal.waits(now, asked, wait),
                Outcome::Never => asked > burst,
            };
            if !fits {
                return Err(Astray { quota, call, now, expected, seen, asked });
            }
            // A call for nothing writes nothing, not even the time.
            if seen == Outcome::Granted && asked > 0 {
                ideal.take(now, asked);
            }
        }
    }
    Ok(calls)
}

/// The ideal bucket: its level in units of 1/`unit` token at the time of the last call that took. What a real one
/// grants up to a microsecond early, it owes.
struct Ideal {
    rate: i128,
    unit: i128,
    most: i128,
    level: i128,
    at: u64,
    /// In which a bucket keeps its phase: a microsecond, or 2^-28 of the time to fill.
    tick: u64,
}

impl Ideal {
    fn level(&self, now: u64) -> i128 {
        let accrued = i128::from(now.saturating_sub(self.at)) * self.rate;
        (self.level + accrued).min(self.most * self.unit)
    }

    fn tokens(&self, now: u64) -> u64 {
        u64::try_from(self.level(now).max(0) / self.unit).unwrap_or(u64::MAX)
    }

    fn take(&mut self, now: u64, n: u32) {
        self.level = self.level(now) - i128::from(n) * self.unit;
        self.at = self.at.max(now);
    }

    /// Whether the tokens are there at the end of the wait, to the microsecond, and were not there before.
    fn waits(&self, now: u64, n: u32, wait: Duration) -> bool {
        let due = now.saturating_add(u64::try_from(wait.as_micros()).unwrap_or(u64::MAX));
        self.tokens(due.max(self.at).saturating_add(1)) >= n.into()
            && self.tokens(due.saturating_sub(1 + self.tick)) < n.into()
    }
}

/// Marsaglia's xorshift64, for calls alone.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end.max(1)
    }
}
