//! What quota a limit should have, from what was counted.

mod aimd;
#[cfg(feature = "schedule")]
mod schedule;

use std::time::Duration;

use tollgate_core::{Counts, Quota};

pub use aimd::Aimd;
#[cfg(feature = "schedule")]
pub use schedule::{Schedule, ScheduleError};

/// What all processes have counted since the sidecar looked before.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Stats {
    /// How long ago that was.
    pub elapsed: Duration,
    /// What was counted meanwhile.
    pub counts: Counts,
}

impl Stats {
    /// Makes the figures of a time, to try a policy on.
    #[must_use]
    pub const fn new(elapsed: Duration, counts: Counts) -> Self {
        Self { elapsed, counts }
    }
}

/// Decides on the quota of a limit, again and again: see [`SharedRateLimiter::with_policy`](crate::SharedRateLimiter::with_policy)
/// and [`Sidecar`](crate::Sidecar).
///
/// # Examples
///
/// Half the rate while nobody asks:
///
/// ```
/// use tollgate::{Count, Policy, Quota, SharedRateLimiter, SidecarBox, Stats};
///
/// #[derive(Debug)]
/// struct Thrifty {
///     busy: Quota,
///     idle: Quota,
/// }
///
/// impl Policy for Thrifty {
///     fn decide(&self, stats: &Stats, current: Quota) -> Option<Quota> {
///         let wanted = if stats.counts.get(Count::GrantedCalls) > 0 { self.busy } else { self.idle };
///         (wanted != current).then_some(wanted)
///     }
/// }
///
/// let policy = Thrifty { busy: Quota::per_second(100)?, idle: Quota::per_second(50)? };
/// let limiter = SidecarBox::new(SharedRateLimiter::in_memory(policy.busy)?.with_policy(policy))?;
/// assert_eq!(limiter.try_acquire(100)?, 0);
/// assert!(limiter.try_acquire(100).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Policy: std::fmt::Debug + Send + Sync {
    /// Returns another quota, or `None` to leave it as it is. Called by the sidecar's thread, one call at a time.
    fn decide(&self, stats: &Stats, current: Quota) -> Option<Quota>;

    /// Whether it ever decides on another quota: a policy that does not leaves the steering to other processes.
    fn steers(&self) -> bool {
        true
    }
}

/// The quota stays as it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fixed;

impl Policy for Fixed {
    fn decide(&self, _: &Stats, _: Quota) -> Option<Quota> {
        None
    }

    fn steers(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Count, DefaultWord, HandshakeHeader, Writers};

    use super::*;

    /// What was counted in some time.
    pub(super) fn stats(millis: u64, counts: &[(Count, u64)]) -> Stats {
        let header: HandshakeHeader<1, DefaultWord> = HandshakeHeader::new();
        for (count, n) in counts {
            header.common().add(Writers::One, *count, *n);
        }
        Stats::new(Duration::from_millis(millis), header.totals())
    }

    #[test]
    fn fixed_is_fixed() {
        let quota = Quota::per_second(1).unwrap();
        assert_eq!(Fixed.decide(&stats(1, &[(Count::Overload, 1)]), quota), None);
        assert!(!Fixed.steers());
    }
}
