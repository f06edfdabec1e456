//! Waiting for tokens: asleep, never spinning.

use std::time::Duration;

use tollgate_core::Clock;

use crate::{AcquireError, MachineClock, NotAll};

/// The shortest sleep: shorter ones would spin, and the kernel's timers add as much anyway.
const MIN_SLEEP: Duration = Duration::from_micros(50);

/// The longest sleep, so that the caller sees what others give back.
const MAX_SLEEP: Duration = Duration::from_secs(1);

/// A refusal that may say when to try again.
pub(crate) trait Refusal {
    /// Returns how long to wait before the same call can succeed; `None` if it never can.
    fn retry_after(&self) -> Option<Duration>;
}

impl Refusal for AcquireError {
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after()
    }
}

impl Refusal for NotAll {
    fn retry_after(&self) -> Option<Duration> {
        self.retry_after
    }
}

/// Makes an attempt, and while it is refused, sleeps for as long as the refusal says, and makes it again.
///
/// It never sleeps longer than a second between two attempts. If several wait, any may be first. It gives up at once when a
/// refusal is final, or when the wait would end later than `timeout` after the call.
pub(crate) fn retry_for<T, E: Refusal>(timeout: Duration, mut attempt: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let start = MachineClock.now_micros();
    loop {
        let refusal = match attempt() {
            Ok(answer) => return Ok(answer),
            Err(refusal) => refusal,
        };
        let Some(wait) = refusal.retry_after() else {
            return Err(refusal);
        };
        let waited = Duration::from_micros(MachineClock.now_micros().saturating_sub(start));
        if waited.saturating_add(wait) > timeout {
            return Err(refusal);
        }
        std::thread::sleep(wait.clamp(MIN_SLEEP, MAX_SLEEP));
    }
}
