//! Additive increase, multiplicative decrease.

// A flag of this process's own.
#![allow(clippy::disallowed_types)]

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tollgate_core::{Count, Quota};

use crate::{Policy, Stats};

/// Additive increase, multiplicative decrease (Chiu and Jain, 1989): finds the rate that what is behind the limit can take, from
/// [reports](crate::SharedRateLimiter::report) of how it went, and shares it fairly with others who do the same.
///
/// While all goes well and the limit is used, the rate grows by some tokens a second each second. When there was an overload, it
/// is multiplied by a factor below 1; then the sidecar looks away once, since some of the next reports are of calls from
/// before.
///
/// The rate so goes up and down between what can be taken and a little less. The burst stays as it is: it should be no
/// more than can be taken at once.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Aimd, Counts, Policy, Quota, Stats};
///
/// let policy = Aimd::between(Quota::per_second(10)?, Quota::per_second(1000)?).increase(50.0).decrease(0.9);
/// let now = Quota::per_second(1000)?.with_burst(20)?;
/// let idle = Stats::new(Duration::from_secs(1), Counts::default());
/// assert_eq!(policy.decide(&idle, now), None); // nobody asks for more
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Aimd {
    slowest: Quota,
    fastest: Quota,
    /// Tokens a second, each second.
    increase: f64,
    decrease: f64,
    /// Whether the rate was decreased when it was looked at last.
    decreased: AtomicBool,
}

impl Aimd {
    /// Makes a policy that keeps the rate between those of two quotas. The rate grows by a hundredth of the fastest each
    /// second, and is multiplied by 0.9.
    #[must_use]
    pub fn between(slowest: Quota, fastest: Quota) -> Self {
        let fastest = if rate(&fastest) < rate(&slowest) { slowest } else { fastest };
        let increase = rate(&fastest) / 100.0;
        Self { slowest, fastest, increase, decrease: 0.9, decreased: AtomicBool::new(false) }
    }

    /// Sets by how many tokens a second the rate grows each second. What is not above 0, or not finite, leaves it as it is.
    #[must_use]
    pub fn increase(mut self, tokens: f64) -> Self {
        if tokens > 0.0 && tokens.is_finite() {
            self.increase = tokens;
        }
        self
    }

    /// Sets the factor at an overload. What is not between 0 and 1 leaves it as it is.
    #[must_use]
    pub fn decrease(mut self, factor: f64) -> Self {
        if factor > 0.0 && factor < 1.0 {
            self.decrease = factor;
        }
        self
    }
}

impl Policy for Aimd {
    fn decide(&self, stats: &Stats, current: Quota) -> Option<Quota> {
        if self.decreased.swap(false, Relaxed) {
            return None;
        }
        let now = rate(&current);
        let wanted = if stats.counts.get(Count::Overload) > 0 {
            self.decreased.store(true, Relaxed);
            now * self.decrease
        } else if is_used(stats, now) {
            now + self.increase * stats.elapsed.as_secs_f64()
        } else {
            now
        };
        let wanted = self.within(wanted, current.capacity())?;
        (rate(&wanted) != now).then_some(wanted)
    }
}

impl Aimd {
    /// The quota of this rate, or that of the bound beyond which it is.
    fn within(&self, wanted: f64, burst: u32) -> Option<Quota> {
        let found = quota(wanted, burst);
        let wanted = found.as_ref().map_or(wanted, rate);
        if wanted >= rate(&self.fastest) {
            self.fastest.with_burst(burst).ok()
        } else if wanted <= rate(&self.slowest) {
            self.slowest.with_burst(burst).ok()
        } else {
            found
        }
    }
}

/// Whether somebody would take more, as far as can be told: a call was refused, or most of what accrued was taken.
fn is_used(stats: &Stats, rate: f64) -> bool {
    #[allow(clippy::cast_precision_loss, reason = "a rough comparison")]
    let granted = stats.counts.get(Count::GrantedTokens) as f64;
    stats.counts.get(Count::RefusedCalls) > 0 || granted > 0.75 * rate * stats.elapsed.as_secs_f64()
}

/// Tokens a second.
fn rate(quota: &Quota) -> f64 {
    f64::from(quota.tokens()) / quota.period().as_secs_f64()
}

/// The quota of this rate, to nine digits if there is one, in seconds if they do.
fn quota(rate: f64, burst: u32) -> Option<Quota> {
    let seconds = [1, 1000, 1_000_000, 1_000_000_000].map(Duration::from_secs);
    let shorter = [Duration::from_millis(1), Duration::from_micros(1)];
    let mut closest: Option<(f64, Quota)> = None;
    for period in seconds.into_iter().chain(shorter) {
        let tokens = (rate * period.as_secs_f64()).round();
        if !(1.0..=f64::from(u32::MAX)).contains(&tokens) {
            continue;
        }
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a whole number of 32 bits")]
        let Ok(quota) = Quota::new(tokens as u32, period).and_then(|rate| rate.with_burst(burst)) else { continue };
        let error = (self::rate(&quota) / rate - 1.0).abs();
        if closest.is_none_or(|(least, _)| error < least) {
            closest = Some((error, quota));
        }
        if error < 1e-9 {
            break;
        }
    }
    closest.map(|(_, quota)| quota)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::tests::stats;

    fn per_second(tokens: u32) -> Quota {
        Quota::per_second(tokens).unwrap().with_burst(20).unwrap()
    }

    #[test]
    fn it_grows_while_it_is_used() {
        let policy = Aimd::between(per_second(10), per_second(1200)).increase(100.0);
        let used = [(Count::RefusedCalls, 1)];
        assert_eq!(policy.decide(&stats(500, &used), per_second(1000)), Some(per_second(1050)));
        assert_eq!(policy.decide(&stats(500, &used), per_second(1199)), Some(per_second(1200)));
        assert_eq!(policy.decide(&stats(500, &used), per_second(1200)), None);
        // All that accrued was taken by who waits for it.
        assert_eq!(
            policy.decide(&stats(1000, &[(Count::GrantedTokens, 990)]), per_second(1000)),
            Some(per_second(1100))
        );
        assert_eq!(policy.decide(&stats(1000, &[(Count::GrantedTokens, 500)]), per_second(1000)), None);
    }

    #[test]
    fn it_falls_at_an_overload_and_looks_away_once() {
        let policy = Aimd::between(per_second(900), per_second(5000)).decrease(0.9);
        let overload = stats(100, &[(Count::Overload, 3), (Count::RefusedCalls, 9)]);
        assert_eq!(policy.decide(&overload, per_second(2000)), Some(per_second(1800)));
        assert_eq!(policy.decide(&overload, per_second(1800)), None);
        assert_eq!(policy.decide(&overload, per_second(1800)), Some(per_second(1620)));
        assert_eq!(policy.decide(&overload, per_second(1620)), None);
        assert_eq!(policy.decide(&overload, per_second(950)), Some(per_second(900)));
        assert_eq!(policy.decide(&overload, per_second(900)), None);
        assert_eq!(policy.decide(&overload, per_second(900)), None, "the slowest stays");
    }

    #[test]
    fn rates_have_digits_enough() {
        for tokens in [0.000_001, 0.01, 0.999, 1.0, 77.7, 1_000.123_456, 123_456.0, 4e9, 2e10, 4e15] {
            let quota = quota(tokens, 7).unwrap();
            assert_eq!(quota.capacity(), 7);
            let error = (rate(&quota) / tokens - 1.0).abs();
            assert!(error < 0.001, "{tokens} became {quota}");
        }
        for tokens in [0.0, 1e-300, 1e300, f64::NAN, f64::INFINITY] {
            assert_eq!(quota(tokens, 7), None);
        }
    }

    #[test]
    fn small_steps_add_up() {
        let policy = Aimd::between(per_second(1000), per_second(4000));
        let looks = |millis, n| {
            let refused = stats(millis, &[(Count::RefusedCalls, 1)]);
            (0..n).fold(per_second(1000), |quota, _| policy.decide(&refused, quota).unwrap_or(quota))
        };
        // A hundredth of the fastest for each second, in steps that are small, and of no whole tokens.
        assert!((rate(&looks(5, 2000)) - 1400.0).abs() < 1.0, "{}", looks(5, 2000));
        assert!((rate(&looks(14, 1000)) - 1560.0).abs() < 1.0, "{}", looks(14, 1000));
        let policy = Aimd::between(per_second(100_000), per_second(2_000_000)).increase(100.0);
        let refused = stats(1, &[(Count::RefusedCalls, 1)]);
        let slow = (0..10_000).fold(per_second(1_200_000), |quota, _| policy.decide(&refused, quota).unwrap_or(quota));
        assert!((rate(&slow) - 1_201_000.0).abs() < 10.0, "{slow}");
    }

    #[test]
    fn it_stays_within_its_bounds() {
        let per = |tokens, period| Quota::new(tokens, period).unwrap();
        let millisecond = Duration::from_millis(1);
        let age = Duration::from_secs(3_000_000_000);
        for (slowest, fastest) in [
            (per_second(10), per_second(1000)),
            (per(10_000_000, millisecond), per(20_000_000, millisecond)),
            (per_second(10), per(2001, Duration::from_secs(2))),
            (per(1, age), per(3, 2 * age / 2)),
            (per_second(9), per_second(1)),
        ] {
            let policy = Aimd::between(slowest, fastest).increase(f64::INFINITY).increase(1e300).decrease(1e-300);
            let (slowest, fastest) = (rate(&slowest), rate(&fastest).max(rate(&slowest)));
            for counted in [Count::RefusedCalls, Count::Overload, Count::GrantedTokens] {
                for (current, millis) in [(slowest, 0), (fastest, 0), (slowest, 1000), (fastest, u64::MAX)] {
                    let Some(current) = quota(current, 20) else { continue };
                    policy.decreased.store(false, Relaxed);
                    let decided = policy.decide(&stats(millis, &[(counted, u64::MAX)]), current).unwrap_or(current);
                    let bounds = slowest * (1.0 - 1e-9)..=fastest * (1.0 + 1e-9);
                    let is_current = rate(&decided) == rate(&current);
                    assert!(bounds.contains(&rate(&decided)) || is_current, "{decided} is not in {bounds:?}");
                }
            }
        }
    }
}
